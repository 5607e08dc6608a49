package nn

import "github.com/sightline-dev/sightline/core/predict/nn/kernel"

// product is a matrix product over pixels. It computes float32 results (f is set) or bytes from bytes (q is set).
type product struct {
	dst, src, res *value // res may be nil

	ldd, ldr       int // elements between results, between residuals
	stepX, stepRow int // elements between the inputs of neighbouring results, between kernel rows

	f      *kernel.PackedF32
	lo, hi float32
	temp   *value // scratch memory of block; nil if it needs none

	q   *kernel.PackedS8
	req *kernel.Requant
	add *kernel.Add // scales of the residual add; nil if there is no residual
}

// product packs the weights of group g of n's groups as rows of segs×seg. n has the weights in ONNX's order,
// (out, in, kh, kw). A packed row is (kh, kw, in), the order of the inputs in a window.
func (c *compiler) product(n *node, src, dst *value, g, groups, segs, seg int) *product {
	outs, ins := n.Shape[0]/groups, n.Shape[1]
	taps := n.Shape[2] * n.Shape[3]
	p := &product{dst: dst, src: src, res: n.add, ldd: n.Shape[0], ldr: n.Shape[0], lo: n.Lo, hi: n.Hi}
	depth := ins * taps
	if n.in.typ == Float32 {
		w, bias := arrange(slab(n.Weights, g, outs*depth), outs, ins, taps), slab(n.Bias, g, outs)
		if segs == 1 || !n.squares() {
			p.f = kernel.PackConvF32(w, bias, outs, segs, seg)
			return p
		}
		p.f = kernel.PackConvF32Squares(w, bias, outs, ins)
		if size := p.f.Scratch(n.out.shape[3]); size > 0 {
			p.temp = scratch(Float32, size)
		}
		return p
	}
	w := arrange(slab(n.Bytes, g, outs*depth), outs, ins, taps)
	if n.slide.adjacent() && n.add == nil {
		p.q = kernel.PackConv3x3S8(w, outs, ins)
	} else {
		p.q = kernel.PackConvS8(w, outs, segs, seg)
	}
	p.req = n.requant(p.q.Sum, g*outs)
	if n.add != nil {
		p.add = residual(n.Before, n.add.Quantisation, n.To)
	}
	return p
}

// requant returns the constants that turn accumulators into bytes, for len(sum) outputs starting at from. sum is Σw of each output.
func (n *node) requant(sum []int32, from int) *kernel.Requant {
	to := n.Node.product()
	r := &kernel.Requant{Bias: make([]int32, len(sum)), Zero: to.Zero, Hi: 255}
	for j := range sum {
		r.Bias[j] = n.Offsets[from+j] - n.in.Zero*sum[j]
	}
	r.Scale = requantScales(n.in.Quantisation, n.Scales[from:from+len(sum)], to)
	return r
}

// requantScales returns the factors that convert accumulators to steps of out, for operands with levels in and weights with the scales
// weights. It rounds each factor twice, as ONNX Runtime does, so that the bytes are the same.
func requantScales(in Quantisation, weights []float32, out Quantisation) []float32 {
	s := make([]float32, len(weights))
	for j, w := range weights {
		s[j] = float32(in.Scale*w) / out.Scale
	}
	return s
}

// residual returns the constants of the sum of bytes with levels y and r as bytes with levels out.
func residual(y, r, out Quantisation) *kernel.Add {
	return &kernel.Add{
		ScaleY: float32(float64(y.Scale) / float64(out.Scale)), ZeroY: y.Zero,
		ScaleR: float32(float64(r.Scale) / float64(out.Scale)), ZeroR: r.Zero,
		Zero: out.Zero, Hi: 255,
	}
}

// slab returns the elements of b that belong to group g. A group has size elements.
func slab[T any](b []T, g, size int) []T { return b[g*size : (g+1)*size] }

// arrange transposes w (outs, ins, taps) to (outs, taps, ins).
func arrange[T any](w []T, outs, ins, taps int) []T {
	if taps == 1 {
		return w
	}
	r := make([]T, len(w))
	for o := range outs {
		for i := range ins {
			for t := range taps {
				r[(o*taps+t)*ins+i] = w[(o*ins+i)*taps+t]
			}
		}
	}
	return r
}

// reads returns the values that p reads.
func (p *product) reads() []*value {
	if p.res == nil {
		return []*value{p.src}
	}
	return []*value{p.src, p.res}
}

// rows computes m results. It writes to dst[d:], and reads src[x:] and, with a residual, res[r:].
func (p *product) rows(s *Session, d, x, r, m int) {
	if p.f != nil {
		var res []float32
		if p.res != nil {
			res = data[float32](s, p.res)[r:]
		}
		kernel.ConvRowF32(data[float32](s, p.dst)[d:], p.ldd, data[float32](s, p.src)[x:], p.stepX, p.stepRow, m, p.f, res, p.ldr, p.lo, p.hi)
		return
	}
	if p.add == nil {
		kernel.ConvRowU8(data[uint8](s, p.dst)[d:], p.ldd, data[uint8](s, p.src)[x:], p.stepX, p.stepRow, m, p.q, p.req, nil)
		return
	}
	s.add = *p.add
	s.add.R, s.add.LDR = data[uint8](s, p.res)[r:], p.ldr
	kernel.ConvRowU8(data[uint8](s, p.dst)[d:], p.ldd, data[uint8](s, p.src)[x:], p.stepX, p.stepRow, m, p.q, p.req, &s.add)
}

// block computes h rows of m results each, for a product without a residual. For row y it writes to
// dst[d+y*dStep:] and reads src[x+y*xStep:].
func (p *product) block(s *Session, d, dStep, x, xStep, h, m int) {
	r := kernel.Rows{Rows: h, DstStep: dStep, SrcStep: xStep}
	if p.f == nil {
		kernel.ConvRowsU8(data[uint8](s, p.dst)[d:], p.ldd, data[uint8](s, p.src)[x:], p.stepX, p.stepRow, m, r, p.q, p.req)
		return
	}
	var temp []float32
	if p.temp != nil {
		temp = data[float32](s, p.temp)
	}
	kernel.ConvRowsF32(data[float32](s, p.dst)[d:], p.ldd, data[float32](s, p.src)[x:], p.stepX, p.stepRow, m, r, p.f, p.lo, p.hi, temp)
}

// temps returns the scratch memory that block needs.
func (p *product) temps() []*value {
	if p.temp == nil {
		return nil
	}
	return []*value{p.temp}
}

// squares reports whether convolution n is 3×3 with stride and dilation 1, without groups or a residual.
func (n *node) squares() bool {
	w := n.slide
	return w.kh == 3 && w.kw == 3 && w.sh == 1 && w.sw == 1 && w.dh == 1 && w.dw == 1 && w.group == 1 && n.add == nil
}
