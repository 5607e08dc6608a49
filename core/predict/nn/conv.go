package nn

import (
	"github.com/sightline-dev/sightline/core/predict/nn/kernel"
)

// narrow is the maximum width, in pixels, at which a 1×1 convolution into a haloed value computes the whole picture in scratch and then
// copies it. Computed row by row, its products would be too short.
const narrow = 16

// conv emits the steps of a Conv node, float or integer, in one of three forms: depthwise; segmented rows, whose windows the kernel reads
// in place; or rows gathered into scratch, for groups and dilation along x.
func (c *compiler) conv(n *node) {
	w, x := n.slide, n.in
	switch {
	case n.depthwise():
		c.depthwise(n, w, x)
	case w.group == 1 && (w.dw == 1 || w.kw == 1):
		c.emitSegmentedConv(n, w, x)
	default:
		c.emitGatheredConv(n, w, x)
	}
}

// emitSegmentedConv emits a convolution that reads its kernel rows in place from the haloed input. If input, output and residual have no
// halo, a 1×1 convolution is one product over all pixels.
func (c *compiler) emitSegmentedConv(n *node, w window, x *value) {
	out, res := n.out, n.add
	target := out
	if w.pointwise() && out.halo != [4]int{} && out.shape[3] <= narrow {
		target = out.fresh()
		target.nhwc = true
	}
	p := c.product(n, x, target, 0, 1, w.kh, w.kw*x.shape[1])
	p.stepX, p.stepRow = w.sw*x.shape[1], w.dh*x.row()
	batch, height, width := out.shape[0], out.shape[2], out.shape[3]
	run := func(s *Session) {
		for b := range batch {
			if res == nil {
				p.block(s, target.at(b, 0), target.row(), x.under(b, 0, w), w.sh*x.row(), height, width)
				continue
			}
			for y := range height {
				p.rows(s, target.at(b, y), x.under(b, y, w), res.at(b, y), width)
			}
		}
	}
	if w.pointwise() && x.halo == [4]int{} && target.halo == [4]int{} && (res == nil || res.halo == [4]int{}) {
		run = func(s *Session) { p.rows(s, 0, 0, 0, batch*height*width) }
	}
	c.emit(step{name: n.String(), out: []*value{target}, in: p.reads(), temp: p.temps(), run: run})
	if target != out {
		c.copyStep(n.String(), out, target)
	}
}

// gatherTile is the target size, in bytes, of the windows that emitGatheredConv copies and multiplies at a time.
const gatherTile = 256 << 10

// emitGatheredConv emits a convolution that works group by group on some output lines at a time: it copies their windows side by side into
// scratch and multiplies them.
func (c *compiler) emitGatheredConv(n *node, w window, x *value) {
	out, res := n.out, n.add
	height, width := out.shape[2], out.shape[3]
	ins, outs := x.shape[1]/w.group, out.shape[1]/w.group
	depth := w.kh * w.kw * ins
	lines := min(height, max(1, gatherTile/(width*depth*x.typ.Size())))
	rows := scratch(x.typ, lines*width*depth)
	products := make([]*product, w.group)
	for g := range products {
		products[g] = c.product(n, rows, out, g, w.group, 1, depth)
		products[g].stepX = depth
	}
	// Distances in elements between lines, windows of a line, kernel rows, kernel columns and channels: in scratch, then in x.
	to := []int{width * depth, depth, w.kw * ins, ins, 1}
	from := []int{w.sh * x.row(), w.sw * x.shape[1], w.dh * x.row(), w.dw * x.shape[1], 1}
	full := newNest([]int{lines, width, w.kh, w.kw, ins}, to, from)
	rest := newNest([]int{height % lines, width, w.kh, w.kw, ins}, to, from)
	size := x.typ.Size()
	dense := out.halo == [4]int{} && (res == nil || res.halo == [4]int{})
	p := products[0]
	c.emit(step{name: n.String(), out: []*value{out}, in: append(p.reads(), x), temp: []*value{rows}, run: func(s *Session) {
		for b := range out.shape[0] {
			for y := 0; y < height; y += lines {
				t, now := full, lines
				if y+lines > height {
					t, now = rest, height-y
				}
				for g, p := range products {
					at := x.under(b, y, w) + g*ins
					if size == 1 {
						move(t, data[uint8](s, rows), data[uint8](s, x), 0, at)
					} else {
						move(t, data[float32](s, rows), data[float32](s, x), 0, at)
					}
					p.lines(s, out, res, b, y, now, dense, g*outs)
				}
			}
		}
	}})
}

// lines multiplies the windows of now lines in p's source and writes the results to picture b of out, starting at line y and channel ch. If
// dense is set, out and res have no halo, and lines multiplies all lines at once.
func (p *product) lines(s *Session, out, res *value, b, y, now int, dense bool, ch int) {
	width := out.shape[3]
	if dense {
		now, width = 1, now*width
	}
	if res == nil {
		p.block(s, out.at(b, y)+ch, out.row(), 0, width*p.stepX, now, width)
		return
	}
	for i := range now {
		p.rows(s, out.at(b, y+i)+ch, i*width*p.stepX, res.at(b, y+i)+ch, width)
	}
}

// depthwise reports whether convolution n has one input channel per output channel and no residual, which the row kernels do not
// support.
func (n *node) depthwise() bool {
	w := n.slide
	return w.group == n.in.shape[1] && w.group == n.out.shape[1] && w.group > 1 && n.add == nil
}

// depthwise emits a depthwise convolution row by row.
func (c *compiler) depthwise(n *node, w window, x *value) {
	out := n.out
	rows := c.depthwiseRows(n, w, out, x, w.depthwise(out.shape[3], out.row(), x.row()))
	c.emit(step{name: n.String(), out: []*value{out}, in: []*value{x}, run: func(s *Session) {
		for b := range out.shape[0] {
			rows(s, out.at(b, 0), x.under(b, 0, w), out.shape[2])
		}
	}})
}

// depthwise returns the geometry of w for output rows of width pixels. dstRow and srcRow are the elements from one output row and one input
// row to the next.
func (w window) depthwise(width, dstRow, srcRow int) kernel.Depthwise {
	return kernel.Depthwise{
		Width: width, DstStep: dstRow, SrcStep: w.sh * srcRow, SrcStride: w.dh * srcRow, StrideX: w.sw, DilationX: w.dw,
	}
}

// depthwiseRows packs n's weights and returns a function that computes a number of output rows. It reads src, starting at element i, and
// writes dst, starting at element o.
func (c *compiler) depthwiseRows(n *node, w window, dst, src *value, d kernel.Depthwise) func(s *Session, o, i, rows int) {
	if n.in.typ != Float32 {
		k := kernel.PackDepthwiseS8(n.Bytes, w.group, w.kh, w.kw)
		req := n.requant(k.Sum, 0)
		return func(s *Session, o, i, rows int) {
			d := d
			d.Rows = rows
			kernel.DepthwiseRowsU8(data[uint8](s, dst)[o:], data[uint8](s, src)[i:], d, k, req)
		}
	}
	k := kernel.PackDepthwiseF32(n.Weights, n.Bias, w.group, w.kh, w.kw)
	lo, hi := n.Lo, n.Hi
	return func(s *Session, o, i, rows int) {
		d := d
		d.Rows = rows
		kernel.DepthwiseRowsF32(data[float32](s, dst)[o:], data[float32](s, src)[i:], d, k, lo, hi)
	}
}

// at returns the offset of the first pixel of line y of picture b.
func (v *value) at(b, y int) int { return v.base() + b*v.image() + y*v.row() }

// pixel returns the offset of pixel i of the first picture, counted row by row without the halo.
func (v *value) pixel(i int) int {
	width := v.shape[3]
	return v.at(0, i/width) + i%width*v.shape[1]
}

// under returns the offset in v of the top left pixel of w's window for output line y, column 0, of picture b. The pixel may be in v's
// halo.
func (v *value) under(b, y int, w window) int {
	return v.at(b, 0) + (y*w.sh-w.pt)*v.row() - w.pl*v.shape[1]
}
