package nn

import (
	"math"

	"github.com/sightline-dev/sightline/core/predict/nn/kernel"
	"github.com/sightline-dev/sightline/core/predict/onnx"
)

// elementwise returns the function on single elements that n is, where it is one.
func (n *node) elementwise() (func(float32) float32, bool) {
	if n.q != nil || n.out[0].typ != onnx.Float32 || n.in[0].typ != onnx.Float32 {
		return nil, false
	}
	switch n.op {
	case "Relu":
		return relu, true
	case "Clip":
		lo, hi, ok := n.bounds()
		return func(x float32) float32 { return min(max(x, lo), hi) }, ok
	case "Sigmoid":
		return sigmoid, true
	case "Exp":
		return exp, true
	case "Sqrt":
		return sqrt, true
	case "HardSwish":
		return hardSwish, true
	case "HardSigmoid":
		alpha, beta := n.attrFloat("alpha", 0.2), n.attrFloat("beta", 0.5)
		return func(x float32) float32 { return min(max(float32(alpha*x)+beta, 0), 1) }, true
	case "Pow":
		if y, ok := scalarF32(n.in[1], 0); ok {
			return power(y)
		}
	}
	return nil, false
}

// unary lowers an operator on single elements.
func (c *compiler) unary(n *node) error {
	f, ok := n.elementwise()
	if !ok {
		return n.errorf("unsupported types or parameters")
	}
	x, out := n.in[0], n.out[0]
	t := newNest(out.shape, out.strides(), x.strides())
	base, from := out.base(), x.base()
	size, st := t.inner()
	lo, hi, clamps := n.bounds()
	clamps = clamps && st[0] == 1 && st[1] == 1
	c.emit(step{name: n.String(), out: []*value{out}, in: []*value{x}, run: func(s *Session) {
		dst, src := data[float32](s, out), data[float32](s, x)
		for k := t.start(base, from); !k.done; t.next(&k) {
			d, i := k.off[0], k.off[1]
			if clamps {
				kernel.ClampF32(dst[d:d+size], src[i:i+size], lo, hi)
				continue
			}
			for range size {
				dst[d] = f(src[i])
				d += st[0]
				i += st[1]
			}
		}
	}})
	return nil
}

// binary lowers an operator on pairs of elements, with ONNX's broadcasting.
func (c *compiler) binary(n *node) error {
	a, b, out := n.in[0], n.in[1], n.out[0]
	if !floats(a, b, out) {
		return n.errorf("type %v", a.typ)
	}
	var f func(d, a, b []float32, st [maxOperands]int, size int)
	switch n.op {
	case "Add":
		f = addLanes
	case "Sub":
		f = lanes(func(a, b float32) float32 { return a - b })
	case "Mul":
		f = lanes(func(a, b float32) float32 { return a * b })
	case "Div":
		f = lanes(func(a, b float32) float32 { return a / b })
	}
	t := newNest(out.shape, out.strides(), a.broadcast(out.shape), b.broadcast(out.shape))
	base, baseA, baseB := out.base(), a.base(), b.base()
	size, st := t.inner()
	c.emit(step{name: n.String(), out: []*value{out}, in: []*value{a, b}, run: func(s *Session) {
		dst, x, y := data[float32](s, out), data[float32](s, a), data[float32](s, b)
		for k := t.start(base, baseA, baseB); !k.done; t.next(&k) {
			f(dst[k.off[0]:], x[k.off[1]:], y[k.off[2]:], st, size)
		}
	}})
	return nil
}

// lanes applies f along one strided line.
func lanes(f func(a, b float32) float32) func(d, a, b []float32, st [maxOperands]int, size int) {
	return func(d, a, b []float32, st [maxOperands]int, size int) {
		for i := range size {
			d[i*st[0]] = f(a[i*st[1]], b[i*st[2]])
		}
	}
}

func addLanes(d, a, b []float32, st [maxOperands]int, size int) {
	if st == [maxOperands]int{1, 1, 1} {
		kernel.AddF32(d[:size], a[:size], b[:size], float32(math.Inf(-1)), float32(math.Inf(1)))
		return
	}
	for i := range size {
		d[i*st[0]] = a[i*st[1]] + b[i*st[2]]
	}
}

// add lowers Add, of floats or of quantised tensors of one shape.
func (c *compiler) add(n *node) error {
	if n.q == nil {
		return c.binary(n)
	}
	a, b, out, p := n.in[0], n.in[1], n.out[0], n.q.add
	t := newNest(out.shape, out.strides(), a.strides(), b.strides())
	base, baseA, baseB := out.base(), a.base(), b.base()
	size, st := t.inner()
	c.emit(step{name: n.String(), out: []*value{out}, in: []*value{a, b}, run: func(s *Session) {
		dst, x, y := data[uint8](s, out), data[uint8](s, a), data[uint8](s, b)
		for k := t.start(base, baseA, baseB); !k.done; t.next(&k) {
			d, i, j := k.off[0], k.off[1], k.off[2]
			if st == [maxOperands]int{1, 1, 1} {
				kernel.AddU8(dst[d:d+size], x[i:], y[j:], p)
				continue
			}
			for e := range size {
				kernel.AddU8(dst[d+e*st[0]:][:1], x[i+e*st[1]:], y[j+e*st[2]:], p)
			}
		}
	}})
	return nil
}

// table lowers a map from bytes to bytes.
func (c *compiler) table(n *node) error {
	x, out, table := n.in[0], n.out[0], [256]uint8(n.q.table)
	t := newNest(out.shape, out.strides(), x.strides())
	base, from := out.base(), x.base()
	size, st := t.inner()
	c.emit(step{name: n.String(), out: []*value{out}, in: []*value{x}, run: func(s *Session) {
		dst, src := data[uint8](s, out), data[uint8](s, x)
		for k := t.start(base, from); !k.done; t.next(&k) {
			d, i := k.off[0], k.off[1]
			for range size {
				dst[d] = table[src[i]]
				d += st[0]
				i += st[1]
			}
		}
	}})
	return nil
}
