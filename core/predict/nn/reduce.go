package nn

import "math"

// reduceMean lowers ReduceMean over any axes of floats.
func (c *compiler) reduceMean(n *node) error {
	x, out := c.plain(n, n.in[0]), n.out[0]
	if !floats(x) {
		return n.errorf("type %v", x.typ)
	}
	axes := n.axes(1)
	if len(axes) == 0 && n.attrInt("noop_with_empty_axes", 0) != 0 {
		out.nhwc, out.halo = false, [4]int{}
		out.same = x
		return nil
	}
	// The result's strides over the input's shape: 0 along the axes summed away.
	kept := make([]int, 0, len(x.shape))
	for d, size := range x.shape {
		if len(axes) == 0 || axes[d] {
			size = 1
		}
		kept = append(kept, size)
	}
	target := out
	if out.nhwc {
		target = out.fresh()
	}
	st := (&value{shape: kept}).broadcast(x.shape)
	t := newNest(x.shape, x.strides(), st)
	size, inner := t.inner()
	count := volume(x.shape) / max(1, volume(kept))
	results := volume(kept)
	c.emit(step{name: n.String(), out: []*value{target}, in: []*value{x}, run: func(s *Session) {
		dst, src := data[float32](s, target)[:results], data[float32](s, x)
		clear(dst)
		for k := t.start(0, 0); !k.done; t.next(&k) {
			for i := range size {
				dst[k.off[1]+i*inner[1]] += src[k.off[0]+i*inner[0]]
			}
		}
		for j := range dst {
			dst[j] /= float32(count)
		}
	}})
	if target != out {
		c.copyStep(n, out, target)
	}
	return nil
}

// softmax lowers Softmax along one axis; before opset 13, over all axes from that one on.
func (c *compiler) softmax(n *node) error {
	x := n.in[0]
	if c.graph.opset >= 13 {
		return c.alongAxis(n, x, n.axis(n.attrInt("axis", -1), len(x.shape)), softmaxLine)
	}
	axis := n.axis(n.attrInt("axis", 1), len(x.shape))
	if axis == len(x.shape)-1 || volume(x.shape[axis+1:]) == 1 {
		return c.alongAxis(n, x, axis, softmaxLine)
	}
	flat := []int{volume(x.shape[:axis]), volume(x.shape[axis:])}
	from := &value{name: x.name, typ: x.typ, shape: flat, same: c.plain(n, x)}
	out := n.out[0]
	to := &value{name: out.name, typ: out.typ, shape: flat}
	whole := &value{name: out.name, typ: out.typ, shape: out.shape, same: to}
	made := *n
	made.out = []*value{to}
	if err := c.alongAxis(&made, from, 1, softmaxLine); err != nil {
		return err
	}
	c.copyStep(n, out, whole)
	return nil
}

// lpNormalization lowers LpNormalization with p = 2 or 1.
func (c *compiler) lpNormalization(n *node) error {
	x := n.in[0]
	p := n.attrInt("p", 2)
	if p != 1 && p != 2 {
		return n.errorf("p = %d", p)
	}
	return c.alongAxis(n, x, n.axis(n.attrInt("axis", -1), len(x.shape)), func(dst, src []float32, n, sd, ss int) {
		var sum float64
		for i := range n {
			v := math.Abs(float64(src[i*ss]))
			if p == 2 {
				v = float64(v * v)
			}
			sum += v
		}
		if p == 2 {
			sum = math.Sqrt(sum)
		}
		for i := range n {
			if dst[i*sd] = 0; sum > 0 {
				dst[i*sd] = float32(float64(src[i*ss]) / sum)
			}
		}
	})
}

// softmaxLine sets n elements of dst, sd apart, to the softmax of src's, ss apart.
func softmaxLine(dst, src []float32, n, sd, ss int) {
	top := float32(math.Inf(-1))
	for i := range n {
		top = max(top, src[i*ss])
	}
	var sum float32
	for i := range n {
		e := exp(src[i*ss] - top)
		dst[i*sd] = e
		sum += e
	}
	for i := range n {
		dst[i*sd] /= sum
	}
}

// alongAxis emits f over every line of x along axis.
func (c *compiler) alongAxis(n *node, x *value, axis int, f func(dst, src []float32, n, sd, ss int)) error {
	out := n.out[0]
	if !floats(x) || len(x.shape) == 0 {
		return n.errorf("type %v, shape %v", x.typ, x.shape)
	}
	across := append([]int{}, out.shape...)
	across[axis] = 1
	t := newNest(across, out.strides(), x.strides())
	lines, st := t.inner()
	size, sd, ss := out.shape[axis], out.strides()[axis], x.strides()[axis]
	base, from := out.base(), x.base()
	c.emit(step{name: n.String(), out: []*value{out}, in: []*value{x}, run: func(s *Session) {
		dst, src := data[float32](s, out), data[float32](s, x)
		for k := t.start(base, from); !k.done; t.next(&k) {
			for i := range lines {
				f(dst[k.off[0]+i*st[0]:], src[k.off[1]+i*st[1]:], size, sd, ss)
			}
		}
	}})
	return nil
}
