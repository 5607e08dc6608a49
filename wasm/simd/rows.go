package simd

import "github.com/sightline-dev/sightline/wasm/simd/emit"

// defineConvRows defines conv_rows_u8(h, dst, ldd, src, stepX, srcStride, m, q, rows, dstStep, srcStep): conv, which
// is conv_u8, for each row.
func (k *kernels) defineConvRows(conv *emit.Func) {
	f := k.Func("conv_rows_u8", ints(11))
	dst, src, rows := f.Param(1), f.Param(3), f.Param(8)
	f.While(rows.GtS(0), func() {
		f.Call(conv, f.Param(0), dst, f.Param(2), src, f.Param(4), f.Param(5), f.Param(6), f.Param(7), emit.C(0))
		f.Inc(dst, f.Param(9))
		f.Inc(src, f.Param(10))
		f.Inc(rows, -1)
	})
}
