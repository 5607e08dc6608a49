package nn

import (
	"slices"

	"github.com/sightline-dev/sightline/core/predict/onnx"
)

// reshape lowers the operators that keep the row-major order of elements: no copy, unless the
// input lies as pixels.
func (c *compiler) reshape(n *node) error {
	x := c.plain(n, n.in[0])
	n.out[0].same = x
	return nil
}

// transpose lowers Transpose: no copy where the permuted strides are those of the result, as for
// (N, H, W, C) of a value that lies so already.
func (c *compiler) transpose(n *node) error {
	x, out := n.in[0], n.out[0]
	perm := n.attrInts("perm")
	own := x.strides()
	st := make([]int, len(own))
	for d := range st {
		from := len(own) - 1 - d
		if perm != nil {
			from = int(perm[d])
		}
		st[d] = own[from]
	}
	t := newNest(out.shape, out.strides(), st)
	if size, inner := t.inner(); len(t.n) == 1 && size == x.elems() && inner[0] == 1 && inner[1] == 1 && x.halo == [4]int{} {
		out.same = x
		return nil
	}
	c.moveStep(n, t, out, x, 0, x.base())
	return nil
}

// concat lowers Concat: each operand is copied to its place.
func (c *compiler) concat(n *node) error {
	out := n.out[0]
	axis := n.axis(n.attrInt("axis", 1), len(out.shape))
	to := out.base()
	st := out.strides()
	for _, x := range n.in {
		if volume(x.shape) == 0 {
			continue
		}
		c.moveStep(n, newNest(x.shape, st, x.strides()), out, x, to, x.base())
		to += x.shape[axis] * st[axis]
	}
	return nil
}

// axis returns a, counted from the front.
func (n *node) axis(a, rank int) int {
	if a < 0 {
		return a + rank
	}
	return a
}

// slice lowers Slice with constant bounds: one strided copy.
func (c *compiler) slice(n *node) error {
	x, out := n.in[0], n.out[0]
	starts, axes, steps := n.attrInts("starts"), n.attrInts("axes"), []int64(nil)
	if len(n.in) > 1 {
		var ok bool
		if starts, ok = ints(n.in[1]); !ok {
			return n.errorf("bounds are not constant")
		}
		if v := n.input(3); v != nil {
			if axes, ok = ints(v); !ok {
				return n.errorf("axes are not constant")
			}
		}
		if v := n.input(4); v != nil {
			if steps, ok = ints(v); !ok {
				return n.errorf("steps are not constant")
			}
		}
	}
	st := slices.Clone(x.strides())
	from := x.base()
	for i, start := range starts {
		d := i
		if axes != nil {
			d = n.axis(int(axes[i]), len(x.shape))
		}
		step := 1
		if steps != nil {
			step = int(steps[i])
		}
		size := x.shape[d]
		at := int(max(start, -int64(size)-1))
		if start < 0 {
			at += size
		}
		if step > 0 {
			at = min(max(at, 0), size)
		} else {
			at = min(max(at, 0), size-1)
		}
		from += at * st[d]
		st[d] *= step
	}
	c.moveStep(n, newNest(out.shape, out.strides(), st), out, x, out.base(), from)
	return nil
}

// maxGather bounds the steps of one Gather.
const maxGather = 4096

// gather lowers Gather with constant indices: one copy per index.
func (c *compiler) gather(n *node) error {
	x := n.in[0]
	indices, ok := ints(n.in[1])
	if !ok {
		return n.errorf("indices are not constant")
	}
	if len(indices) > maxGather {
		return n.errorf("%d indices", len(indices))
	}
	out := n.out[0]
	axis := n.axis(n.attrInt("axis", 0), len(x.shape))
	// Along axis the result has the indices' dimensions instead: view them as one.
	inner := volume(x.shape[axis+1:])
	view := append(slices.Clone(x.shape[:axis]), 1)
	view = append(view, x.shape[axis+1:]...)
	st := make([]int, len(view))
	own := rowMajor(out.shape)
	for d := range view {
		if d < axis {
			st[d] = own[d]
		} else if d > axis {
			st[d] = own[d+len(n.in[1].shape)-1]
		}
	}
	for i, at := range indices {
		if at < 0 {
			at += int64(x.shape[axis])
		}
		if at < 0 || at >= int64(x.shape[axis]) {
			return n.errorf("index %d outside %v", at, x.shape)
		}
		c.moveStep(n, newNest(view, st, x.strides()), out, x, i*inner, x.base()+int(at)*x.strides()[axis])
	}
	return nil
}

// pad lowers Pad with a constant value: a fill, then a copy into the middle.
func (c *compiler) pad(n *node) error {
	x, out := n.in[0], n.out[0]
	pads := n.attrInts("pads")
	if v := n.input(1); v != nil {
		var ok bool
		if pads, ok = ints(v); !ok {
			return n.errorf("pads are not constant")
		}
	}
	fill, ok := scalarF32(n.input(2), n.attrFloat("value", 0))
	if !ok || !floats(x) || n.attrText("mode", "constant") != "constant" {
		return n.errorf("unsupported mode, type or value")
	}
	axes := make([]int, len(x.shape))
	for d := range axes {
		axes[d] = d
	}
	if v := n.input(3); v != nil {
		list, ok := ints(v)
		if !ok {
			return n.errorf("axes are not constant")
		}
		axes = axes[:0]
		for _, a := range list {
			axes = append(axes, n.axis(int(a), len(x.shape)))
		}
	}
	// What of x is kept (negative pads cut) and where it goes.
	kept, st, ost := slices.Clone(x.shape), x.strides(), out.strides()
	from, to := x.base(), out.base()
	for i, d := range axes {
		before, after := int(pads[i]), int(pads[len(axes)+i])
		kept[d] += min(before, 0) + min(after, 0)
		from -= min(before, 0) * st[d]
		to += max(before, 0) * ost[d]
	}
	all := newNest(out.shape, ost)
	base := out.base()
	size, inner := all.inner()
	c.emit(step{name: n.String(), out: []*value{out}, run: func(s *Session) {
		dst := data[float32](s, out)
		for k := all.start(base); !k.done; all.next(&k) {
			for i := range size {
				dst[k.off[0]+i*inner[0]] = fill
			}
		}
	}})
	for _, k := range kept {
		if k <= 0 {
			return nil
		}
	}
	c.moveStep(n, newNest(kept, ost, st), out, x, to, from)
	return nil
}

// cast lowers Cast between types that hold the same numbers here.
func (c *compiler) cast(n *node) error {
	x, out := n.in[0], n.out[0]
	if x.typ == out.typ {
		c.copyStep(n, out, x)
		return nil
	}
	x = c.plain(n, x)
	to := out
	if out.nhwc {
		to = out.fresh()
	}
	size := volume(x.shape)
	var run func(s *Session)
	switch {
	case x.typ == onnx.Uint8 && to.typ == onnx.Float32:
		run = func(s *Session) { convert(data[float32](s, to)[:size], data[uint8](s, x)) }
	case x.typ == onnx.Int32 && to.typ == onnx.Float32:
		run = func(s *Session) { convert(data[float32](s, to)[:size], data[int32](s, x)) }
	case x.typ == onnx.Int64 && to.typ == onnx.Float32:
		run = func(s *Session) { convert(data[float32](s, to)[:size], data[int64](s, x)) }
	case x.typ == onnx.Int64 && to.typ == onnx.Int32:
		run = func(s *Session) { convert(data[int32](s, to)[:size], data[int64](s, x)) }
	case x.typ == onnx.Int32 && to.typ == onnx.Int64:
		run = func(s *Session) { convert(data[int64](s, to)[:size], data[int32](s, x)) }
	default:
		return n.errorf("from %v to %v", x.typ, to.typ)
	}
	c.emit(step{name: n.String(), out: []*value{to}, in: []*value{x}, run: run})
	if to != out {
		c.copyStep(n, out, to)
	}
	return nil
}

func convert[D, T uint8 | int32 | int64 | float32](dst []D, src []T) {
	for i := range dst {
		dst[i] = D(src[i])
	}
}
