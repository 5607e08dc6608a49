package onnx

import (
	"fmt"
	"math"
)

// cut is what a Slice takes from one dimension: count elements from start on, each step from the last.
type cut struct{ start, step, count int }

func inferSlice(inf *inference, n *Node) error {
	v := inf.in(n, 0)
	cuts, err := inf.cuts(n, v.Shape)
	if err != nil {
		return err
	}
	out := make([]int, len(cuts))
	for i, c := range cuts {
		out[i] = c.count
	}
	return inf.set(n.Out[0], v.Type, out)
}

// cuts resolves starts, ends, axes and steps: attributes before opset 10, inputs since.
func (inf *inference) cuts(n *Node, shape []int) ([]cut, error) {
	starts, ends, which, steps := n.Ints("starts", nil), n.Ints("ends", nil), n.Ints("axes", nil), []int64(nil)
	if inf.g.Opset >= 10 {
		for i, list := range []*[]int64{nil, &starts, &ends, &which, &steps} {
			if i == 0 || i > 2 && n.Input(i) == "" {
				continue
			}
			x, err := inf.need(n, i)
			if err != nil {
				return nil, err
			}
			*list = x
		}
	} else if len(n.In) > 1 {
		return nil, fmt.Errorf("%w: ranges as inputs in operator set %d", ErrOperator, inf.g.Opset)
	}
	if len(starts) != len(ends) || which != nil && len(which) != len(starts) || steps != nil && len(steps) != len(starts) ||
		len(starts) > len(shape) {
		return nil, fmt.Errorf("%w: %d starts, %d ends, %d axes, %d steps", ErrShape, len(starts), len(ends), len(which), len(steps))
	}
	out := make([]cut, len(shape))
	for i, d := range shape {
		out[i] = cut{0, 1, d}
	}
	if _, err := axes(which, len(shape)); err != nil {
		return nil, err
	}
	for i := range starts {
		at, step := i, int64(1)
		if which != nil {
			at, _ = axis(which[i], len(shape))
		}
		if steps != nil {
			step = steps[i]
		}
		if step == 0 || step > math.MaxInt32 || step < -math.MaxInt32 {
			return nil, fmt.Errorf("%w: a step of %d", ErrShape, step)
		}
		out[at] = resolveCut(starts[i], ends[i], step, int64(shape[at]))
	}
	return out, nil
}

// resolveCut clamps as the schema says: negative positions count from the end once.
func resolveCut(start, end, step, size int64) cut {
	wrap := func(x, lo, hi int64) int64 {
		if x < 0 {
			x = max(x, -size-1) + size
		}
		return min(max(x, lo), hi)
	}
	var count int64
	if step > 0 {
		start, end = wrap(start, 0, size), wrap(end, 0, size)
		count = (end - start + step - 1) / step
	} else {
		start = wrap(start, 0, max(size-1, 0))
		end = wrap(end, -1, size-1)
		count = (start - end - step - 1) / -step
	}
	if size == 0 {
		count = 0
	}
	return cut{int(start), int(step), int(max(count, 0))}
}
