package simd

import "github.com/sightline-dev/sightline/wasm/simd/emit"

// defineConvRows defines conv_rows_u8(h, dst, ldd, src, stepX, srcStride, m, q, rows, dstStep, srcStep). For windows at stride 1, it
// computes four rows at a time in tiles. conv, which is conv_u8, computes the remaining outputs of each row.
func (k *kernels) defineConvRows(conv *emit.Func) {
	tiles := k.defineWinograd()
	f := k.Func("conv_rows_u8", ints(11))
	h, dst, ldd, src, stepX := f.Param(0), f.Param(1), f.Param(2), f.Param(3), f.Param(4)
	stride, m, q, rows, dstStep, srcStep := f.Param(5), f.Param(6), f.Param(7), f.Param(8), f.Param(9), f.Param(10)
	// Tiles can compute the first wide outputs of a row. They have computed the first done outputs of the next ready rows.
	wide, done, ready := f.Local(i32), f.Local(i32), f.Local(i32)
	adjacent := stepX.Mul(3).Eq(h.Load(i32, hSeg)).And(stride.Eq(srcStep))
	f.If(h.Load(i32, hTiles), func() { f.If(adjacent, func() { f.Set(wide, m.And(-4)) }) })
	f.While(rows.GtS(0), func() {
		f.If(ready.LeS(0), func() {
			f.Set(done, 0)
			f.If(wide.Ne(0).And(rows.GeS(4)), func() {
				f.Call(tiles, h, dst, ldd, src, stride, wide, q, dstStep)
				f.Set(done, wide)
				f.Set(ready, 4)
			})
		})
		f.If(done.LtS(m), func() {
			f.Call(conv, h, dst.Add(done.Mul(ldd)), ldd, src.Add(done.Mul(stepX)), stepX, stride, m.Sub(done), q, emit.C(0))
		})
		f.Inc(ready, -1)
		f.Inc(dst, dstStep)
		f.Inc(src, srcStep)
		f.Inc(rows, -1)
	})
}
