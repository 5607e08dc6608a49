package nn

import (
	"github.com/sightline-dev/sightline/core/predict/nn/kernel"
)

// narrow is the width up to which a 1×1 convolution into a haloed value runs over the whole
// picture into scratch and is copied: row by row its products would be too short.
const narrow = 16

// conv lowers a Conv node, float or integer, to one of four forms: depthwise, 1×1 (a product
// over all pixels), segmented rows (the kernel reads the window in place), or rows gathered into
// scratch (groups, dilation along x).
func (c *compiler) conv(n *node) error {
	out := n.out[0]
	w, err := n.window(n.in[0].shape, out.shape)
	if err != nil {
		return err
	}
	want, err := n.padding()
	if err != nil {
		return err
	}
	if !n.weighted() {
		return n.errorf("weights are not constant, or not float32")
	}
	x := c.pixels(n, n.in[0], want)
	if n.fuse.add != nil {
		n.fuse.add = c.pixels(n, n.fuse.add, padding{})
	}
	switch {
	case n.depthwise(w):
		c.depthwise(n, w, x)
	case w.pointwise():
		c.pointwise(n, x)
	case w.group == 1 && w.dw == 1:
		c.segmented(n, w, x)
	default:
		c.gathered(n, w, x)
	}
	return nil
}

// pointwise emits a 1×1 convolution: one product where input, output and residual are dense.
func (c *compiler) pointwise(n *node, x *value) {
	out := n.out[0]
	res := n.fuse.add
	target := out
	if out.halo != [4]int{} && out.shape[3] <= narrow {
		target = out.fresh()
		target.nhwc = true
	}
	p := c.product(n, x, target, 0, 1, 1, x.shape[1])
	p.stepX = x.shape[1]
	batch, h, w := out.shape[0], out.shape[2], out.shape[3]
	dense := x.halo == [4]int{} && target.halo == [4]int{} && (res == nil || res.halo == [4]int{})
	run := func(s *Session) {
		for b := range batch {
			for y := range h {
				d, i, r := target.at(b, y), x.at(b, y), 0
				if res != nil {
					r = res.at(b, y)
				}
				p.rows(s, d, i, r, w)
			}
		}
	}
	if dense {
		run = func(s *Session) { p.rows(s, 0, 0, 0, batch*h*w) }
	}
	c.emit(step{name: n.String(), out: []*value{target}, in: p.reads(), temp: p.temps(), run: run})
	if target != out {
		c.copyStep(n, out, target)
	}
}

// segmented emits a dense convolution whose kernel rows are read in place from the haloed input.
func (c *compiler) segmented(n *node, w window, x *value) {
	out, res := n.out[0], n.fuse.add
	p := c.product(n, x, out, 0, 1, w.kh, w.kw*x.shape[1])
	p.stepX, p.stepRow = w.sw*x.shape[1], w.dh*x.row()
	c.emit(step{name: n.String(), out: []*value{out}, in: p.reads(), temp: p.temps(), run: func(s *Session) {
		for b := range out.shape[0] {
			for y := range out.shape[2] {
				r := 0
				if res != nil {
					r = res.at(b, y)
				}
				p.rows(s, out.at(b, y), x.under(b, y, w), r, out.shape[3])
			}
		}
	}})
}

// gathered emits a convolution that copies each output row's windows side by side into scratch
// and multiplies them, group by group.
func (c *compiler) gathered(n *node, w window, x *value) {
	out, res := n.out[0], n.fuse.add
	ins, outs := x.shape[1]/w.group, out.shape[1]/w.group
	depth := w.kh * w.kw * ins
	rows := scratch(x.typ, out.shape[3]*depth)
	products := make([]*product, w.group)
	for g := range products {
		products[g] = c.product(n, rows, out, g, w.group, 1, depth)
		products[g].stepX = depth
	}
	// Along one output row: windows, kernel rows, kernel columns, channels.
	t := newNest([]int{out.shape[3], w.kh, w.kw, ins},
		[]int{depth, w.kw * ins, ins, 1},
		[]int{w.sw * x.shape[1], w.dh * x.row(), w.dw * x.shape[1], 1})
	size := x.typ.Size()
	p := products[0]
	c.emit(step{name: n.String(), out: []*value{out}, in: append(p.reads(), x), temp: append(p.temps(), rows), run: func(s *Session) {
		for b := range out.shape[0] {
			for y := range out.shape[2] {
				for g, p := range products {
					from := x.under(b, y, w) + g*ins
					if size == 1 {
						move(t, data[uint8](s, rows), data[uint8](s, x), 0, from)
					} else {
						move(t, data[float32](s, rows), data[float32](s, x), 0, from)
					}
					r := 0
					if res != nil {
						r = res.at(b, y) + g*outs
					}
					p.rows(s, out.at(b, y)+g*outs, 0, r, out.shape[3])
				}
			}
		}
	}})
}

// depthwise reports whether convolution n has one input channel per output channel, and nothing
// that the row kernels lack.
func (n *node) depthwise(w window) bool {
	return w.group == n.in[0].shape[1] && w.group == n.out[0].shape[1] && w.group > 1 &&
		n.fuse.add == nil && (n.q == nil || n.q.out != nil)
}

// depthwise emits a depthwise convolution row by row.
func (c *compiler) depthwise(n *node, w window, x *value) {
	out := n.out[0]
	rows := c.depthwiseRows(n, w, out, x, w.depthwise(out.shape[3], out.row(), x.row()))
	c.emit(step{name: n.String(), out: []*value{out}, in: []*value{x}, run: func(s *Session) {
		for b := range out.shape[0] {
			rows(s, out.at(b, 0), x.under(b, 0, w), out.shape[2])
		}
	}})
}

// depthwise is the geometry of w over rows of width results, dstRow apart, from input rows srcRow apart.
func (w window) depthwise(width, dstRow, srcRow int) kernel.Depthwise {
	return kernel.Depthwise{
		Width: width, DstStep: dstRow, SrcStep: w.sh * srcRow, SrcStride: w.dh * srcRow, StrideX: w.sw, DilationX: w.dw,
	}
}

// depthwiseRows packs n's weights and returns the function that computes rows of results from
// dst[o:], reading src from src[i:] on.
func (c *compiler) depthwiseRows(n *node, w window, dst, src *value, d kernel.Depthwise) func(s *Session, o, i, rows int) {
	if n.q != nil {
		k := kernel.PackDepthwiseS8(n.q.weights, w.group, w.kh, w.kw)
		req := n.q.requant(k.Sum)
		return func(s *Session, o, i, rows int) {
			d := d
			d.Rows = rows
			kernel.DepthwiseRowsU8(data[uint8](s, dst)[o:], data[uint8](s, src)[i:], d, k, req)
		}
	}
	weights, bias := n.floatWeights()
	k := kernel.PackDepthwiseF32(weights, bias, w.group, w.kh, w.kw)
	lo, hi := n.clamp()
	return func(s *Session, o, i, rows int) {
		d := d
		d.Rows = rows
		kernel.DepthwiseRowsF32(data[float32](s, dst)[o:], data[float32](s, src)[i:], d, k, lo, hi)
	}
}

// at returns the offset of the first pixel of line y of picture b.
func (v *value) at(b, y int) int { return v.base() + b*v.image() + y*v.row() }

// under returns the offset of the top left of w's window over output line y, column 0: in v's
// halo, or in v.
func (v *value) under(b, y int, w window) int {
	return v.at(b, 0) + (y*w.sh-w.pt)*v.row() - w.pl*v.shape[1]
}
