package onnx

import (
	"fmt"
	"math"
)

// Shape rules of quantisation.

func inferQuantize(inf *inference, n *Node) error {
	x := inf.in(n, 0)
	if err := isFloat(x); err != nil && x.Type != Int32 {
		return err
	}
	to := DType(Uint8)
	if d := n.Int("output_dtype", 0); d != 0 {
		to = DType(min(max(d, -1), math.MaxInt32))
	}
	if z := n.Input(2); z != "" {
		if t := inf.values[z].Type; n.Int("output_dtype", 0) != 0 && t != to {
			return fmt.Errorf("%w: output_dtype %v with a zero point of %v", ErrShape, to, t)
		}
		to = inf.values[z].Type
	}
	switch to {
	case Uint8, Int8, Uint16, Int16:
	default:
		return fmt.Errorf("%w: QuantizeLinear to %v", ErrOperator, to)
	}
	if err := inf.scales(n, x.Shape); err != nil {
		return err
	}
	return inf.set(n.Out[0], to, x.Shape)
}

func inferDequantize(inf *inference, n *Node) error {
	x := inf.in(n, 0)
	switch x.Type {
	case Uint8, Int8, Uint16, Int16, Int32:
	default:
		return fmt.Errorf("%w: DequantizeLinear from %v", ErrOperator, x.Type)
	}
	if z := n.Input(2); z != "" && inf.values[z].Type != x.Type {
		return fmt.Errorf("%w: a zero point of %v for %v", ErrShape, inf.values[z].Type, x.Type)
	}
	if err := inf.scales(n, x.Shape); err != nil {
		return err
	}
	return inf.set(n.Out[0], inf.in(n, 1).Type, x.Shape)
}

// scales checks scale and zero point: one for the tensor, or one for each index of an axis.
func (inf *inference) scales(n *Node, shape []int) error {
	s := inf.in(n, 1)
	if err := isFloat(s); err != nil {
		return err
	}
	if n.Int("block_size", 0) != 0 {
		return fmt.Errorf("%w: %s with blocks", ErrOperator, n.Op)
	}
	if len(s.Shape) > 1 {
		return fmt.Errorf("%w: scales of shape %v", ErrShape, s.Shape)
	}
	if len(s.Shape) == 1 && s.Shape[0] != 1 {
		if inf.g.Opset < 13 {
			return fmt.Errorf("%w: %s along an axis in operator set %d", ErrOperator, n.Op, inf.g.Opset)
		}
		at, err := axis(n.Int("axis", 1), len(shape))
		if err != nil {
			return err
		}
		if shape[at] != s.Shape[0] {
			return fmt.Errorf("%w: %d scales for %d of axis %d", ErrShape, s.Shape[0], shape[at], at)
		}
	}
	if z := n.Input(2); z != "" && elements(inf.values[z].Shape) != elements(s.Shape) {
		return fmt.Errorf("%w: zero points %v for scales %v", ErrShape, inf.values[z].Shape, s.Shape)
	}
	return nil
}
