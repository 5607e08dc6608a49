package onnx

import "slices"

// maxFolded bounds the elements of integers that are followed: shapes have at most 8.
const maxFolded = 1024

// isIndex reports whether t is a type that shapes and indices have.
func isIndex(t DType) bool { return t == Int64 || t == Int32 }

// fold returns the integers that n computes where all it needs is known, otherwise nil. The
// shape of the result has been inferred already; vectors and scalars only.
func (inf *inference) fold(n *Node) *Tensor {
	out := inf.values[n.Out[0]]
	if !isIndex(out.Type) || len(out.Shape) > 1 {
		return nil
	}
	if len(out.Shape) == 1 && out.Shape[0] > maxFolded {
		return nil
	}
	if n.Op == "Shape" {
		in := inf.in(n, 0)
		from, to := shapeRange(n, len(in.Shape))
		v := make([]int64, 0, to-from)
		for _, d := range in.Shape[from:to] {
			v = append(v, int64(d))
		}
		return known(out, v)
	}
	args := make([][]int64, len(n.In))
	for i, name := range n.In {
		if name == "" {
			continue
		}
		t, ok := inf.ints[name]
		if !ok {
			return nil
		}
		args[i] = t.Int64s()
	}
	switch n.Op {
	case "Identity", "Cast", "Reshape", "Squeeze", "Unsqueeze", "Flatten":
		return known(out, args[0])
	case "Concat":
		return known(out, slices.Concat(args...))
	case "Gather":
		return foldGather(out, args[0], args[1])
	case "Slice":
		return inf.foldSlice(n, out, args[0])
	case "Add", "Sub", "Mul", "Div":
		return foldArithmetic(n.Op, out, args[0], args[1])
	}
	return nil
}

// known makes the tensor of a folded value, narrowing to its type. A result whose length is not
// the inferred one is not followed.
func known(v Value, x []int64) *Tensor {
	t := &Tensor{Name: v.Name, Type: v.Type, Shape: v.Shape}
	if len(x) != t.Len() {
		return nil
	}
	if v.Type == Int32 {
		narrow := make([]int32, len(x))
		for i := range x {
			narrow[i] = int32(x[i])
		}
		return FromInt32s(v.Name, v.Shape, narrow)
	}
	return FromInt64s(v.Name, v.Shape, x)
}

func foldGather(out Value, data, indices []int64) *Tensor {
	x := make([]int64, len(indices))
	for i, at := range indices {
		if at < 0 {
			at += int64(len(data))
		}
		if at < 0 || at >= int64(len(data)) {
			return nil
		}
		x[i] = data[at]
	}
	return known(out, x)
}

func (inf *inference) foldSlice(n *Node, out Value, data []int64) *Tensor {
	cuts, err := inf.cuts(n, []int{len(data)})
	if err != nil {
		return nil
	}
	c := cuts[0]
	x := make([]int64, 0, c.count)
	for i := range c.count {
		x = append(x, data[c.start+i*c.step])
	}
	return known(out, x)
}

// foldArithmetic computes on vectors of equal length, or one scalar and a vector.
func foldArithmetic(op string, out Value, a, b []int64) *Tensor {
	size := max(len(a), len(b))
	if len(a) != size && len(a) != 1 || len(b) != size && len(b) != 1 {
		return nil
	}
	x := make([]int64, size)
	for i := range x {
		p, q := a[min(i, len(a)-1)], b[min(i, len(b)-1)]
		switch op {
		case "Add":
			x[i] = p + q
		case "Sub":
			x[i] = p - q
		case "Mul":
			x[i] = p * q
		default:
			if q == 0 {
				return nil
			}
			x[i] = p / q
		}
	}
	return known(out, x)
}
