//go:build wasip1 && lent

package kernel

// wasm/README.md describes these imports.

//go:wasmimport kernel product
//go:noescape
func hostProduct(dst *float32, ldd int32, a *float32, lda, m int32, panel *float32, k int32)

//go:wasmimport kernel dot
//go:noescape
func hostDot(a, b *float32, n int32) float32

//go:wasmimport kernel axpy
//go:noescape
func hostAxpy(y *float32, f float32, x *float32, n int32)

//go:wasmimport kernel residual
//go:noescape
func hostResidual(r, z *float32, bias float32, w, y *float32, n int32)

//go:wasmimport kernel raise
//go:noescape
func hostRaise(top, z *float32, bias float32, n int32)

//go:wasmimport kernel exp
//go:noescape
func hostExp(z *float32, bias float32, top, sum *float32, n int32)

//go:wasmimport kernel share
//go:noescape
func hostShare(r, e, sum, w, y *float32, n int32)

//go:wasmimport kernel rows
//go:noescape
func hostRows(dst *float32, n int32, w *float32, d int32, q *int16)

func product(dst []float32, ldd int, a []float32, lda, m int, panel []float32, k int) {
	hostProduct(&dst[0], int32(ldd), &a[0], int32(lda), int32(m), &panel[0], int32(k))
}

func dot(a, b []float32) float32 {
	return hostDot(&a[0], &b[0], int32(len(a)))
}

func axpy(y []float32, f float32, x []float32) {
	hostAxpy(&y[0], f, &x[0], int32(len(y)))
}

func residual(r, z []float32, bias float32, w, y []float32) {
	hostResidual(&r[0], &z[0], bias, &w[0], &y[0], int32(len(r)))
}

func raise(top, z []float32, bias float32) {
	hostRaise(&top[0], &z[0], bias, int32(len(z)))
}

func exp(z []float32, bias float32, top, sum []float32) {
	hostExp(&z[0], bias, &top[0], &sum[0], int32(len(z)))
}

func share(r, e, sum, w, y []float32) {
	hostShare(&r[0], &e[0], &sum[0], &w[0], &y[0], int32(len(r)))
}

func rows(dst, w []float32, q []int16) {
	hostRows(&dst[0], int32(len(dst)), &w[0], int32(len(w)), &q[0])
}
