package nn

import (
	"math"

	"github.com/sightline-dev/sightline/core/predict/nn/kernel"
	"github.com/sightline-dev/sightline/core/predict/onnx"
)

// product is a matrix product over pixels, in one of three arithmetics: float32, bytes to
// bytes, or bytes to float32 through raw accumulators.
type product struct {
	dst, src, res *value // res may be nil

	ldd, ldr       int // elements between results, between residuals
	stepX, stepRow int // elements between the inputs of neighbours, between kernel rows

	f      *kernel.PackedF32
	lo, hi float32

	q     *kernel.PackedS8
	req   *kernel.Requant // bytes to bytes
	add   *kernel.Add     // the residual's scales; nil: none
	bias  []int32         // bytes to floats
	scale []float32
	acc   *value // accumulators of some rows, bytes to floats
}

// accumulators bounds the int32 scratch of a product whose result is not quantised.
const accumulators = 1 << 14

// product packs the weights of group g of groups of n as segs×seg rows. The weights lie as ONNX's,
// (out, in, kh, kw); a row is (kh, kw, in), the order of the bytes under a window.
func (c *compiler) product(n *node, src, dst *value, g, groups, segs, seg int) *product {
	shape := n.weightShape()
	outs, ins := shape[0]/groups, shape[1]
	taps := shape[2] * shape[3]
	p := &product{dst: dst, src: src, res: n.fuse.add, ldd: shape[0], ldr: shape[0]}
	p.lo, p.hi = n.clamp()
	depth := ins * taps
	if n.q == nil {
		w, bias := n.floatWeights()
		p.f = kernel.PackConvF32(arrange(w[g*outs*depth:(g+1)*outs*depth], outs, ins, taps), slab(bias, g, outs), outs, segs, seg)
		return p
	}
	w := n.q.weights
	p.q = kernel.PackConvS8(arrange(w[g*outs*depth:(g+1)*outs*depth], outs, ins, taps), outs, segs, seg)
	q := n.q.group(g, outs)
	if q.out != nil {
		p.req = q.requant(p.q.Sum)
		if n.fuse.add != nil {
			p.add = q.add
		}
		return p
	}
	p.bias, p.scale = q.folded(p.q.Sum), q.scales()
	p.acc = scratch(onnx.Int32, max(1, accumulators/outs)*outs)
	return p
}

// slab returns b's elements of group g, or nil.
func slab[T any](b []T, g, size int) []T {
	if b == nil {
		return nil
	}
	return b[g*size : (g+1)*size]
}

// arrange turns w (outs, ins, taps) into (outs, taps, ins).
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

// reads returns the values p reads.
func (p *product) reads() []*value {
	if p.res == nil {
		return []*value{p.src}
	}
	return []*value{p.src, p.res}
}

// temps returns p's scratch.
func (p *product) temps() []*value {
	if p.acc == nil {
		return nil
	}
	return []*value{p.acc}
}

// rows computes m results from dst[d:], reading src[x:] and, with a residual, res[r:].
func (p *product) rows(s *Session, d, x, r, m int) {
	if p.f != nil {
		var res []float32
		if p.res != nil {
			res = data[float32](s, p.res)[r:]
		}
		kernel.ConvRowF32(data[float32](s, p.dst)[d:], p.ldd, data[float32](s, p.src)[x:], p.stepX, p.stepRow, m, p.f, res, p.ldr, p.lo, p.hi)
		return
	}
	if p.req == nil {
		p.unquantised(s, d, x, m)
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

// block computes h rows of m results each without a residual: row y from dst[d+y*dStep:], reading
// src[x+y*xStep:].
func (p *product) block(s *Session, d, dStep, x, xStep, h, m int) {
	if p.req != nil && p.add == nil {
		r := kernel.Rows{Rows: h, DstStep: dStep, SrcStep: xStep}
		kernel.ConvRowsU8(data[uint8](s, p.dst)[d:], p.ldd, data[uint8](s, p.src)[x:], p.stepX, p.stepRow, m, r, p.q, p.req)
		return
	}
	for y := range h {
		p.rows(s, d+y*dStep, x+y*xStep, 0, m)
	}
}

// unquantised computes clamp(float32(acc)·scale), a few rows of accumulators at a time.
func (p *product) unquantised(s *Session, d, x, m int) {
	n := p.q.N
	acc := data[int32](s, p.acc)
	chunk := p.acc.shape[0] / n
	dst := data[float32](s, p.dst)
	for m > 0 {
		now := min(m, chunk)
		kernel.ConvRowI32(acc, n, data[uint8](s, p.src)[x:], p.stepX, p.stepRow, now, p.q, p.bias)
		for i := range now {
			to := dst[d+i*p.ldd:][:n]
			for j, a := range acc[i*n : (i+1)*n] {
				to[j] = min(max(float32(a)*p.scale[j], p.lo), p.hi)
			}
		}
		d, x, m = d+now*p.ldd, x+now*p.stepX, m-now
	}
}

// clamp returns the bounds of n's activation, infinite where it has none.
func (n *node) clamp() (lo, hi float32) {
	if n.fuse.act {
		return n.fuse.lo, n.fuse.hi
	}
	return float32(math.Inf(-1)), float32(math.Inf(1))
}

// weighted reports whether n's weights and bias are known now.
func (n *node) weighted() bool {
	if n.q != nil {
		return true
	}
	bias := n.input(2)
	return n.in[1].con != nil && n.in[1].typ == onnx.Float32 && (bias == nil || (bias.con != nil && bias.typ == onnx.Float32))
}

// weightShape returns the shape of n's weights as (out, in, kh, kw).
func (n *node) weightShape() []int {
	if n.q != nil {
		return n.q.shape
	}
	if n.fuse.shape != nil {
		return n.fuse.shape
	}
	return n.in[1].shape
}

// floatWeights returns n's weights as ONNX has them and its bias or nil, batch norm folded in.
func (n *node) floatWeights() (w, bias []float32) {
	if n.fuse.weights == nil {
		n.fuse.weights = n.in[1].con.Float32s()
	}
	if b := n.input(2); n.fuse.bias == nil && b != nil {
		n.fuse.bias = b.con.Float32s()
	}
	return n.fuse.weights, n.fuse.bias
}
