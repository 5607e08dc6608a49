package onnx

import (
	"fmt"
	"math"
)

// Shape rules of operators that compute. The formulas are those of the schema's Operators.md.

func inferSame(inf *inference, n *Node) error {
	v := inf.in(n, 0)
	switch n.Op {
	case "Identity":
	case "Relu":
		if !isSigned(v.Type) {
			return fmt.Errorf("%w: %q has unsupported type %v", ErrShape, v.Name, v.Type)
		}
	default:
		if err := isFloat(v); err != nil {
			return err
		}
	}
	if n.Op == "Softmax" || n.Op == "LpNormalization" {
		if _, err := axis(n.Int("axis", -1), len(v.Shape)); err != nil {
			return err
		}
	}
	if p := n.Int("p", 2); p != 1 && p != 2 {
		return fmt.Errorf("%w: a norm with p = %d", ErrOperator, p)
	}
	return inf.set(n.Out[0], v.Type, v.Shape)
}

func isSigned(t DType) bool {
	switch t {
	case Float32, Float16, Float64, Int8, Int16, Int32, Int64:
		return true
	}
	return false
}

func inferBroadcast(inf *inference, n *Node) error {
	if err := inf.sameType(n); err != nil {
		return err
	}
	shape, err := broadcast(inf.in(n, 0).Shape, inf.in(n, 1).Shape)
	if err != nil {
		return err
	}
	return inf.set(n.Out[0], inf.in(n, 0).Type, shape)
}

// inferPow lets the exponent have a type of its own.
func inferPow(inf *inference, n *Node) error {
	shape, err := broadcast(inf.in(n, 0).Shape, inf.in(n, 1).Shape)
	if err != nil {
		return err
	}
	return inf.set(n.Out[0], inf.in(n, 0).Type, shape)
}

// broadcast aligns two shapes at their ends; a dimension of one stretches.
func broadcast(a, b []int) ([]int, error) {
	if len(a) < len(b) {
		a, b = b, a
	}
	out := append([]int{}, a...)
	for i, d := range b {
		at := len(a) - len(b) + i
		switch {
		case a[at] == d || d == 1:
		case a[at] == 1:
			out[at] = d
		default:
			return nil, fmt.Errorf("%w: %v and %v do not broadcast", ErrShape, a, b)
		}
	}
	return out, nil
}

func inferClip(inf *inference, n *Node) error {
	if inf.g.Opset < 11 && len(n.In) > 1 {
		return fmt.Errorf("%w: bounds as inputs in operator set %d", ErrOperator, inf.g.Opset)
	}
	if err := inf.sameType(n); err != nil {
		return err
	}
	for _, name := range n.In[1:] {
		if s := inf.values[name].Shape; name != "" && len(s) > 0 && (len(s) != 1 || s[0] != 1) {
			return fmt.Errorf("%w: bound %q of shape %v is not a scalar", ErrShape, name, s)
		}
	}
	return inf.set(n.Out[0], inf.in(n, 0).Type, inf.in(n, 0).Shape)
}

// inferDropout takes the form for inference only, which passes its input on.
func inferDropout(inf *inference, n *Node) error {
	if name := n.Input(2); name != "" {
		t, ok := inf.g.Init[name]
		if !ok || t.Type != Bool || len(t.Data) != 1 || t.Data[0] != 0 {
			return fmt.Errorf("%w: Dropout in training mode", ErrOperator)
		}
	}
	v := inf.in(n, 0)
	if len(n.Out) > 1 && n.Out[1] != "" {
		if err := inf.set(n.Out[1], Bool, v.Shape); err != nil {
			return err
		}
	}
	return inf.set(n.Out[0], v.Type, v.Shape)
}

func inferCast(inf *inference, n *Node) error {
	to := n.Int("to", 0)
	if to <= 0 || to > math.MaxInt32 || DType(to).Size() == 0 {
		return fmt.Errorf("%w: Cast to type %d", ErrOperator, to)
	}
	return inf.set(n.Out[0], DType(to), inf.in(n, 0).Shape)
}

func inferConv(inf *inference, n *Node) error {
	if err := inf.sameType(n); err != nil {
		return err
	}
	x, w := inf.in(n, 0), inf.in(n, 1)
	if err := isFloat(x); err != nil {
		return err
	}
	if len(x.Shape) < 3 || len(w.Shape) != len(x.Shape) {
		return fmt.Errorf("%w: weights %v on %v", ErrShape, w.Shape, x.Shape)
	}
	group := n.Int("group", 1)
	if group < 1 || int64(x.Shape[1]) != int64(w.Shape[1])*group || int64(w.Shape[0])%group != 0 {
		return fmt.Errorf("%w: weights %v in %d groups on %v", ErrShape, w.Shape, group, x.Shape)
	}
	if b := n.Input(2); b != "" {
		if s := inf.values[b].Shape; len(s) != 1 || s[0] != w.Shape[0] {
			return fmt.Errorf("%w: bias %v for %d channels", ErrShape, s, w.Shape[0])
		}
	}
	win, err := n.Window(x.Shape, w.Shape[2:])
	if err != nil {
		return err
	}
	return inf.set(n.Out[0], x.Type, append([]int{x.Shape[0], w.Shape[0]}, win.Out...))
}

func inferPool(inf *inference, n *Node) error {
	x := inf.in(n, 0)
	if err := isFloat(x); err != nil && n.Op != "MaxPool" {
		return err
	}
	if len(x.Shape) < 3 {
		return fmt.Errorf("%w: a window on %v", ErrShape, x.Shape)
	}
	win, err := n.Window(x.Shape, nil)
	if err != nil {
		return err
	}
	return inf.set(n.Out[0], x.Type, append([]int{x.Shape[0], x.Shape[1]}, win.Out...))
}

func inferGlobalPool(inf *inference, n *Node) error {
	x := inf.in(n, 0)
	if err := isFloat(x); err != nil {
		return err
	}
	if len(x.Shape) < 3 {
		return fmt.Errorf("%w: a global pool on %v", ErrShape, x.Shape)
	}
	shape := append([]int{}, x.Shape...)
	for i := range shape[2:] {
		if shape[2+i] == 0 {
			return fmt.Errorf("%w: a global pool on %v", ErrShape, x.Shape)
		}
		shape[2+i] = 1
	}
	return inf.set(n.Out[0], x.Type, shape)
}

func inferBatchNorm(inf *inference, n *Node) error {
	if n.Int("training_mode", 0) != 0 {
		return fmt.Errorf("%w: BatchNormalization in training mode", ErrOperator)
	}
	if err := inf.sameType(n); err != nil {
		return err
	}
	x := inf.in(n, 0)
	if err := isFloat(x); err != nil {
		return err
	}
	if len(x.Shape) < 2 {
		return fmt.Errorf("%w: channels of %v", ErrShape, x.Shape)
	}
	for i := 1; i < 5; i++ {
		if s := inf.in(n, i).Shape; len(s) != 1 || s[0] != x.Shape[1] {
			return fmt.Errorf("%w: input %d of shape %v for %d channels", ErrShape, i, s, x.Shape[1])
		}
	}
	return inf.set(n.Out[0], x.Type, x.Shape)
}

func inferGemm(inf *inference, n *Node) error {
	if err := inf.sameType(n); err != nil {
		return err
	}
	a, b := inf.in(n, 0).Shape, inf.in(n, 1).Shape
	if len(a) != 2 || len(b) != 2 {
		return fmt.Errorf("%w: %v times %v", ErrShape, a, b)
	}
	m, k, k2, cols := a[0], a[1], b[0], b[1]
	if n.Int("transA", 0) != 0 {
		m, k = k, m
	}
	if n.Int("transB", 0) != 0 {
		k2, cols = cols, k2
	}
	if k != k2 {
		return fmt.Errorf("%w: %v times %v", ErrShape, a, b)
	}
	out := []int{m, cols}
	if c := n.Input(2); c != "" {
		s, err := broadcast(out, inf.values[c].Shape)
		if err != nil {
			return err
		}
		if len(s) != 2 || s[0] != m || s[1] != cols {
			return fmt.Errorf("%w: %v added to %v", ErrShape, inf.values[c].Shape, out)
		}
	}
	return inf.set(n.Out[0], inf.in(n, 0).Type, out)
}

func inferMatMul(inf *inference, n *Node) error {
	if err := inf.sameType(n); err != nil {
		return err
	}
	a, b := inf.in(n, 0).Shape, inf.in(n, 1).Shape
	if len(a) == 0 || len(b) == 0 {
		return fmt.Errorf("%w: %v times %v", ErrShape, a, b)
	}
	left, right := a, b // as matrices
	if len(a) == 1 {
		left = []int{1, a[0]}
	}
	if len(b) == 1 {
		right = []int{b[0], 1}
	}
	p, q := len(left)-2, len(right)-2
	if left[p+1] != right[q] {
		return fmt.Errorf("%w: %v times %v", ErrShape, a, b)
	}
	out, err := broadcast(left[:p], right[:q])
	if err != nil {
		return err
	}
	if len(a) > 1 {
		out = append(out, left[p])
	}
	if len(b) > 1 {
		out = append(out, right[q+1])
	}
	return inf.set(n.Out[0], inf.in(n, 0).Type, out)
}

func inferReduce(inf *inference, n *Node) error {
	v := inf.in(n, 0)
	which := n.Ints("axes", nil)
	if inf.g.Opset >= 18 && n.Input(1) != "" {
		x, err := inf.need(n, 1)
		if err != nil {
			return err
		}
		which = x
	}
	as, err := axes(which, len(v.Shape))
	if err != nil {
		return err
	}
	if len(as) == 0 && n.Int("noop_with_empty_axes", 0) != 0 {
		return inf.set(n.Out[0], v.Type, v.Shape)
	}
	if len(as) == 0 {
		for i := range v.Shape {
			as = append(as, i)
		}
	}
	out := []int{}
	for i, d := range v.Shape {
		switch {
		case len(as) == 0 || as[0] != i:
			out = append(out, d)
			continue
		case n.Int("keepdims", 1) != 0:
			out = append(out, 1)
		}
		as = as[1:]
	}
	return inf.set(n.Out[0], v.Type, out)
}
