package simd

import (
	"math"

	"github.com/sightline-dev/sightline/wasm/simd/emit"
)

// The float32 product: tiles like those of bytes, on the rows as they lie. An element is summed in
// ascending k from its bias, each product rounded before it is added. Training uses the same tiles.

// floatTile is what a tile of floats is called with, all steps in bytes.
type floatTile struct {
	a, stepX, srcStride value // the first row, to the next row, to the next segment
	segs, seg           value // segments, elements of one
	w, wStep            value // the weights of eight columns, to the next k
	bias, dst, ldd      value
	res, ldr            value // 0: none
	lo, hi              value
}

func (t *floatTile) args() []value {
	return []value{t.a, t.stepX, t.srcStride, t.segs, t.seg, t.w, t.wStep, t.bias, t.dst, t.ldd, t.res, t.ldr, t.lo, t.hi}
}

// defineFloatTile defines the tile for a number of rows by eight columns.
func (k *kernels) defineFloatTile(rows int) *emit.Func {
	f := k.Func("", ints(12, f32, f32))
	p := f.Args()
	t := floatTile{p[0], p[1], p[2], p[3], p[4], p[5], p[6], p[7], p[8], p[9], p[10], p[11], p[12], p[13]}
	a, acc := make([]value, rows), make([][2]value, rows)
	for r := range a {
		if a[r] = t.a; r > 0 {
			a[r] = f.Let(a[r-1].Add(t.stepX))
		}
		acc[r] = [2]value{f.Let(t.bias.Load(v128, 0)), f.Let(t.bias.Load(v128, 16))}
	}
	w0, w1, x, left := f.Local(v128), f.Local(v128), f.Local(v128), f.Local(i32)
	next := f.Let(t.srcStride.Sub(t.seg.Shl(2)))
	f.While(t.segs.GtS(0), func() {
		f.Set(left, t.seg)
		f.While(left, func() {
			f.Set(w0, t.w.Load(v128, 0))
			f.Set(w1, t.w.Load(v128, 16))
			for r := range a {
				f.Set(x, a[r].Load32Splat(0))
				f.Set(acc[r][0], f32x4.Add(acc[r][0], f32x4.Mul(x, w0)))
				f.Set(acc[r][1], f32x4.Add(acc[r][1], f32x4.Mul(x, w1)))
				f.Inc(a[r], 4)
			}
			f.Inc(t.w, t.wStep)
			f.Inc(left, -1)
		})
		for r := range a {
			f.Inc(a[r], next)
		}
		f.Inc(t.segs, -1)
	})
	f.If(t.res, func() {
		for r := range a {
			for v := range 2 {
				f.Set(acc[r][v], f32x4.Add(acc[r][v], t.res.Load(v128, 16*v)))
			}
			f.Inc(t.res, t.ldr)
		}
	})
	lo, hi := f.Let(f32x4.Splat(t.lo)), f.Let(f32x4.Splat(t.hi))
	for r := range a {
		for v := range 2 {
			f.Store(t.dst, 16*v, clamped(acc[r][v], lo, hi))
		}
		f.Inc(t.dst, t.ldd)
	}
	return f
}

// clamped is v within lo and hi; what is not a number stays.
func clamped(v, lo, hi value) value { return f32x4.PMin(f32x4.PMax(v, lo), hi) }

// infinity clamps nothing.
var infinity = float32(math.Inf(1))

// defineFloat defines conv_f32 and depthwise_f32, and returns the tiles.
func (k *kernels) defineFloat() (tile, single *emit.Func) {
	tile, single = k.defineFloatTile(tileRows), k.defineFloatTile(1)
	k.defineConvFloat(tile, single)
	k.defineDepthwiseFloat()
	return tile, single
}

// defineConvFloat defines conv_f32(h, dst, ldd, src, stepX, srcStride, m, res, ldr, lo, hi).
func (k *kernels) defineConvFloat(tile, single *emit.Func) {
	finish := k.defineFloatEdge()
	f := k.Func("conv_f32", ints(9, f32, f32))
	h, dst, ldd := f.Param(0), f.Param(1), f.Let(f.Param(2).Shl(2))
	src, stepX, stride := f.Param(3), f.Let(f.Param(4).Shl(2)), f.Let(f.Param(5).Shl(2))
	m, res, ldr, lo, hi := f.Param(6), f.Param(7), f.Let(f.Param(8).Shl(2)), f.Param(9), f.Param(10)
	n, panel := f.Let(h.Load(i32, hN)), f.Let(h.Load(i32, hK).Shl(5))
	tail := f.Let(h.Load(i32, hTail))
	i, j, cols, w, r := f.Local(i32), f.Local(i32), f.Local(i32), f.Local(i32), f.Local(i32)
	t := func() *floatTile {
		return &floatTile{
			a: src, stepX: stepX, srcStride: stride, segs: h.Load(i32, hSegs), seg: h.Load(i32, hSeg), w: w, wStep: emit.C(32),
			bias: h.Load(i32, hBias).Add(j.Shl(2)), dst: dst.Add(j.Shl(2)), ldd: ldd,
			res: emit.Select(res, res.Add(j.Shl(2)), emit.C(0)), ldr: ldr, lo: lo, hi: hi,
		}
	}
	take := func(rows int, kernel *emit.Func) {
		f.While(m.GeS(rows), func() {
			f.Set(w, h.Load(i32, hWeights))
			f.Set(j, 0)
			f.While(j.LtS(n), func() {
				f.Set(cols, emit.Min(n.Sub(j), emit.C(tileCols)))
				f.If(cols.Eq(tileCols), func() { f.Call(kernel, t().args()...) }, func() {
					// Row by row by way of the tail, where there is room for eight columns.
					f.Set(i, 0)
					each(f, i, emit.C(rows), 1, func() {
						one := t()
						f.Set(r, one.res)
						one.a = src.Add(i.Mul(stepX))
						one.dst, one.ldd, one.res = tail, emit.C(0), emit.C(0)
						one.lo, one.hi = emit.Float(-infinity), emit.Float(infinity)
						f.Call(single, one.args()...)
						f.If(res, func() { f.Inc(r, i.Mul(ldr)) })
						f.Call(finish, dst.Add(i.Mul(ldd)).Add(j.Shl(2)), tail, cols, r, lo, hi)
					})
				})
				f.Inc(w, panel)
				f.Inc(j, tileCols)
			})
			f.Inc(dst, ldd.Mul(rows))
			f.Inc(src, stepX.Mul(rows))
			f.If(res, func() { f.Inc(res, ldr.Mul(rows)) })
			f.Inc(m, -rows)
		})
	}
	take(tileRows, tile)
	take(1, single)
}

// defineFloatEdge defines (dst, sums, cols, res, lo, hi): the end of a row, one column at a time.
func (k *kernels) defineFloatEdge() *emit.Func {
	f := k.Func("", ints(4, f32, f32))
	dst, sums, cols, res := f.Param(0), f.Param(1), f.Param(2), f.Param(3)
	lo, hi := f.Let(f32x4.Splat(f.Param(4))), f.Let(f32x4.Splat(f.Param(5)))
	v := f.Local(v128)
	f.While(cols, func() {
		f.Set(v, sums.Load32Zero(0))
		f.If(res, func() {
			f.Set(v, f32x4.Add(v, res.Load32Zero(0)))
			f.Inc(res, 4)
		})
		f.StoreLane(dst, 0, clamped(v, lo, hi), 4, 0)
		f.Inc(dst, 4)
		f.Inc(sums, 4)
		f.Inc(cols, -1)
	})
	return f
}

// defineDepthwiseFloat defines depthwise_f32(h, dst, src, d, lo, hi): four channels at a time, and one where there are fewer.
func (k *kernels) defineDepthwiseFloat() {
	f := k.Func("depthwise_f32", ints(4, f32, f32))
	g := geometryOf(f, f.Param(3))
	lo, hi := f.Let(f32x4.Splat(f.Param(4))), f.Let(f32x4.Splat(f.Param(5)))
	taps, bias := f.Let(g.h.Load(i32, hK)), f.Let(g.h.Load(i32, hBias))
	table := g.setOffsets(f, 2)
	w, p, t, at, c, b := f.Local(i32), f.Local(i32), f.Local(i32), f.Local(i32), f.Local(i32), f.Local(i32)
	acc := f.Local(v128)
	sum := func(load func(address value) value) {
		f.Set(p, table)
		f.Set(t, taps)
		f.While(t, func() {
			f.Set(acc, f32x4.Add(acc, f32x4.Mul(load(at.Add(p.Load(i32, 0))), w.Load(v128, 0))))
			f.Inc(w, 16)
			f.Inc(p, 4)
			f.Inc(t, -1)
		})
	}
	g.eachOutput(f, 2, func(out, in value) {
		f.Set(w, g.h.Load(i32, hWeights))
		f.If(g.ch.LtS(4), func() {
			f.Set(c, 0)
			each(f, c, g.ch, 1, func() {
				f.Set(at, in.Add(c.Shl(2)))
				f.Set(w, g.h.Load(i32, hWeights).Add(c.Shl(2)))
				f.Set(acc, bias.Add(c.Shl(2)).Load32Zero(0))
				f.Set(p, table)
				f.Set(t, taps)
				f.While(t, func() {
					f.Set(acc, f32x4.Add(acc, f32x4.Mul(at.Add(p.Load(i32, 0)).Load32Zero(0), w.Load32Zero(0))))
					f.Inc(w, 16)
					f.Inc(p, 4)
					f.Inc(t, -1)
				})
				f.StoreLane(out.Add(c.Shl(2)), 0, clamped(acc, lo, hi), 4, 0)
			})
		}, func() {
			f.Set(b, bias)
			g.eachBlock(f, w, emit.C(0), 4, func(c value) {
				f.Set(at, in.Add(c.Shl(2)))
				f.Set(acc, b.Load(v128, 0))
				f.Inc(b, 16)
				sum(func(address value) value { return address.Load(v128, 0) })
				f.Store(out.Add(c.Shl(2)), 0, clamped(acc, lo, hi))
			})
		})
	})
}
