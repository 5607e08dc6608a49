package onnx

import (
	"fmt"
	"math"
)

// Shape rules of operators that move elements.

func inferShapeOf(inf *inference, n *Node) error {
	from, to := shapeRange(n, len(inf.in(n, 0).Shape))
	return inf.set(n.Out[0], Int64, []int{to - from})
}

// shapeRange returns the dimensions that a Shape node reports, [from, to) within [0, rank].
func shapeRange(n *Node, rank int) (from, to int) {
	clamp := func(x int64) int {
		if x < 0 {
			x += int64(rank)
		}
		return int(min(max(x, 0), int64(rank)))
	}
	from = clamp(n.Int("start", 0))
	to = clamp(n.Int("end", math.MaxInt32))
	return from, max(from, to)
}

func inferFlatten(inf *inference, n *Node) error {
	v := inf.in(n, 0)
	at := n.Int("axis", 1)
	if at != int64(len(v.Shape)) { // one past the last axis is allowed
		a, err := axis(at, len(v.Shape))
		if err != nil {
			return err
		}
		at = int64(a)
	}
	rows, cols := int64(1), int64(1)
	for i, d := range v.Shape { // within byteSize's bound, set saw to it
		if int64(i) < at {
			rows *= int64(d)
		} else {
			cols *= int64(d)
		}
	}
	return inf.setWide(n.Out[0], v.Type, []int64{rows, cols})
}

// setWide is set for dimensions that are products.
func (inf *inference) setWide(name string, t DType, shape []int64) error {
	out := make([]int, len(shape))
	for i, d := range shape {
		x, err := dimension(d)
		if err != nil {
			return err
		}
		out[i] = x
	}
	return inf.set(name, t, out)
}

func inferReshape(inf *inference, n *Node) error {
	v := inf.in(n, 0)
	want, err := inf.need(n, 1)
	if err != nil {
		return err
	}
	if err := inf.rank(len(want)); err != nil {
		return err
	}
	total := elements(v.Shape)
	keepZero := n.Int("allowzero", 0) != 0
	out := make([]int64, len(want))
	product, free := int64(1), -1
	for i, d := range want {
		switch {
		case d == -1 && free >= 0:
			return fmt.Errorf("%w: two free dimensions in %v", ErrShape, want)
		case d == -1:
			free = i
			continue
		case d == 0 && !keepZero:
			if i >= len(v.Shape) {
				return fmt.Errorf("%w: dimension %d of %v does not exist", ErrShape, i, v.Shape)
			}
			d = int64(v.Shape[i])
		}
		if d < 0 || d > math.MaxInt32 || product > 0 && d > math.MaxInt64/2/product {
			return fmt.Errorf("%w: %v overflows", ErrShape, want)
		}
		out[i] = d
		product *= d
	}
	if free >= 0 {
		if product == 0 || total%product != 0 {
			return fmt.Errorf("%w: %v cannot be reshaped to %v", ErrShape, v.Shape, want)
		}
		out[free] = total / product
		product = total
	}
	if product != total {
		return fmt.Errorf("%w: %v cannot be reshaped to %v", ErrShape, v.Shape, want)
	}
	return inf.setWide(n.Out[0], v.Type, out)
}

// elements is the product of a shape that set has accepted.
func elements(shape []int) int64 {
	n := int64(1)
	for _, d := range shape {
		if d == 0 {
			return 0
		}
	}
	for _, d := range shape {
		n *= int64(d)
	}
	return n
}

func (inf *inference) rank(n int) error {
	if most := inf.g.limits.orDefault().Rank; n > most {
		return fmt.Errorf("%w: %d dimensions, at most %d are allowed", ErrLimit, n, most)
	}
	return nil
}

func inferTranspose(inf *inference, n *Node) error {
	v := inf.in(n, 0)
	perm := n.Ints("perm", nil)
	out := make([]int, len(v.Shape))
	if perm == nil {
		for i, d := range v.Shape {
			out[len(out)-1-i] = d
		}
		return inf.set(n.Out[0], v.Type, out)
	}
	if len(perm) != len(v.Shape) {
		return fmt.Errorf("%w: perm %v of %v", ErrShape, perm, v.Shape)
	}
	seen := make([]bool, len(perm))
	for i, p := range perm {
		if p < 0 || p >= int64(len(perm)) || seen[p] {
			return fmt.Errorf("%w: perm %v", ErrShape, perm)
		}
		seen[p] = true
		out[i] = v.Shape[p]
	}
	return inf.set(n.Out[0], v.Type, out)
}

func inferConcat(inf *inference, n *Node) error {
	if err := inf.sameType(n); err != nil {
		return err
	}
	first := inf.in(n, 0)
	if _, ok := n.Attr["axis"]; !ok {
		return fmt.Errorf("%w: axis is missing", ErrFormat)
	}
	at, err := axis(n.Int("axis", 0), len(first.Shape))
	if err != nil {
		return err
	}
	out := make([]int64, len(first.Shape))
	for i, d := range first.Shape {
		out[i] = int64(d)
	}
	for _, name := range n.In[1:] {
		s := inf.values[name].Shape
		if name == "" || len(s) != len(out) {
			return fmt.Errorf("%w: %v joined to %v", ErrShape, s, first.Shape)
		}
		for i, d := range s {
			if i == at {
				out[i] += int64(d)
			} else if d != first.Shape[i] {
				return fmt.Errorf("%w: %v joined to %v", ErrShape, s, first.Shape)
			}
		}
	}
	return inf.setWide(n.Out[0], first.Type, out)
}

func inferGather(inf *inference, n *Node) error {
	data, indices := inf.in(n, 0), inf.in(n, 1)
	if !isIndex(indices.Type) {
		return fmt.Errorf("%w: indices of %v", ErrShape, indices.Type)
	}
	at, err := axis(n.Int("axis", 0), len(data.Shape))
	if err != nil {
		return err
	}
	if t, ok := inf.ints[n.In[1]]; ok {
		for _, i := range t.Int64s() {
			if i < -int64(data.Shape[at]) || i >= int64(data.Shape[at]) {
				return fmt.Errorf("%w: element %d of %d", ErrShape, i, data.Shape[at])
			}
		}
	}
	out := append([]int{}, data.Shape[:at]...)
	out = append(out, indices.Shape...)
	return inf.set(n.Out[0], data.Type, append(out, data.Shape[at+1:]...))
}

// givenAxes returns the axes of Squeeze and Unsqueeze: an attribute before opset 13, an input since.
func (inf *inference) givenAxes(n *Node) ([]int64, bool, error) {
	if inf.g.Opset < 13 {
		if len(n.In) > 1 {
			return nil, false, fmt.Errorf("%w: axes as an input in operator set %d", ErrOperator, inf.g.Opset)
		}
		a, ok := n.Attr["axes"]
		return a.Ints, ok, nil
	}
	if n.Input(1) == "" {
		return nil, false, nil
	}
	x, err := inf.need(n, 1)
	return x, true, err
}

func inferUnsqueeze(inf *inference, n *Node) error {
	v := inf.in(n, 0)
	given, ok, err := inf.givenAxes(n)
	if err != nil {
		return err
	}
	if !ok {
		return fmt.Errorf("%w: axes are missing", ErrFormat)
	}
	rank := len(v.Shape) + len(given)
	if err := inf.rank(rank); err != nil {
		return err
	}
	as, err := axes(given, rank)
	if err != nil {
		return err
	}
	out, rest := make([]int, rank), v.Shape
	for i := range out {
		if len(as) > 0 && as[0] == i {
			out[i], as = 1, as[1:]
			continue
		}
		out[i], rest = rest[0], rest[1:]
	}
	return inf.set(n.Out[0], v.Type, out)
}

func inferSqueeze(inf *inference, n *Node) error {
	v := inf.in(n, 0)
	given, ok, err := inf.givenAxes(n)
	if err != nil {
		return err
	}
	as, err := axes(given, len(v.Shape))
	if err != nil {
		return err
	}
	out := []int{}
	for i, d := range v.Shape {
		switch {
		case ok && len(as) > 0 && as[0] == i:
			if as = as[1:]; d != 1 {
				return fmt.Errorf("%w: dimension %d of %v is not 1", ErrShape, i, v.Shape)
			}
		case !ok && d == 1:
		default:
			out = append(out, d)
		}
	}
	return inf.set(n.Out[0], v.Type, out)
}

// pads resolves how many elements a Pad node adds: begin of each dimension, then end of each.
func (inf *inference) pads(n *Node, rank int) ([]int64, error) {
	pads := n.Ints("pads", nil)
	if inf.g.Opset < 11 {
		if len(n.In) > 1 {
			return nil, fmt.Errorf("%w: pads as an input in operator set %d", ErrOperator, inf.g.Opset)
		}
	} else {
		x, err := inf.need(n, 1)
		if err != nil {
			return nil, err
		}
		pads = x
	}
	if n.Input(3) == "" {
		if len(pads) != 2*rank {
			return nil, fmt.Errorf("%w: %d pads for %d dimensions", ErrShape, len(pads), rank)
		}
		return pads, nil
	}
	which, err := inf.need(n, 3)
	if err != nil {
		return nil, err
	}
	if _, err := axes(which, rank); err != nil || len(pads) != 2*len(which) {
		return nil, fmt.Errorf("%w: %d pads for axes %v of %d dimensions", ErrShape, len(pads), which, rank)
	}
	full := make([]int64, 2*rank)
	for i, a := range which {
		at, _ := axis(a, rank)
		full[at], full[rank+at] = pads[i], pads[len(which)+i]
	}
	return full, nil
}

func inferPad(inf *inference, n *Node) error {
	v := inf.in(n, 0)
	switch mode := n.Text("mode", "constant"); mode {
	case "constant", "reflect", "edge":
	default:
		return fmt.Errorf("%w: Pad with mode %q", ErrOperator, mode)
	}
	pads, err := inf.pads(n, len(v.Shape))
	if err != nil {
		return err
	}
	out := make([]int64, len(v.Shape))
	for i, d := range v.Shape {
		a, b := pads[i], pads[len(out)+i]
		if max(a, b) > math.MaxInt32 || min(a, b) < -math.MaxInt32 {
			return fmt.Errorf("%w: pads %v", ErrShape, pads)
		}
		out[i] = int64(d) + a + b
	}
	return inf.setWide(n.Out[0], v.Type, out)
}
