package simd

import "github.com/sightline-dev/sightline/wasm/simd/emit"

// The float32 product: tiles like those of bytes, on the rows as they lie. An element is summed in
// ascending k from its bias, each product rounded before it is added.

// floatTile is the tile for a number of rows: (a, stepX, srcStride, segs, seg, w, wStep, bias, dst, ldd, lo, hi).
//
// a to the first row, all steps in bytes; seg is the elements of a segment; wStep lies between
// the weights of successive k. Eight columns are written.
func (k *kernels) defineFloatTile(rows int) *emit.Func {
	f := k.Func("", ints(10, f32, f32))
	a0, stepX, stride, segs, seg := f.Param(0), f.Param(1), f.Param(2), f.Param(3), f.Param(4)
	w, wStep, bias, dst, ldd := f.Param(5), f.Param(6), f.Param(7), f.Param(8), f.Param(9)
	a, acc := make([]value, rows), make([][2]value, rows)
	for r := range a {
		if a[r] = a0; r > 0 {
			a[r] = f.Let(a[r-1].Add(stepX))
		}
		acc[r] = [2]value{f.Let(bias.Load(v128, 0)), f.Let(bias.Load(v128, 16))}
	}
	w0, w1, x, t := f.Local(v128), f.Local(v128), f.Local(v128), f.Local(i32)
	next := f.Let(stride.Sub(seg.Shl(2)))
	f.While(segs.GtS(0), func() {
		f.Set(t, seg)
		f.While(t.GtS(0), func() {
			f.Set(w0, w.Load(v128, 0))
			f.Set(w1, w.Load(v128, 16))
			for r := range a {
				f.Set(x, a[r].Load32Splat(0))
				f.Set(acc[r][0], f32x4.Add(acc[r][0], f32x4.Mul(x, w0)))
				f.Set(acc[r][1], f32x4.Add(acc[r][1], f32x4.Mul(x, w1)))
			}
			for r := range a {
				f.Inc(a[r], 4)
			}
			f.Inc(w, wStep)
			f.Inc(t, -1)
		})
		for r := range a {
			f.Inc(a[r], next)
		}
		f.Inc(segs, -1)
	})
	lo, hi := f.Let(f32x4.Splat(f.Param(10))), f.Let(f32x4.Splat(f.Param(11)))
	for r := range a {
		for v := range 2 {
			f.Store(dst, 16*v, f32x4.PMin(f32x4.PMax(acc[r][v], lo), hi))
		}
		f.Inc(dst, ldd)
	}
	return f
}

func (k *kernels) defineFloat() {
}
