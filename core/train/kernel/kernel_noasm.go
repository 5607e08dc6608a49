//go:build (purego || !(amd64 || arm64)) && !(wasip1 && lent)

package kernel

func product(dst []float32, ldd int, a []float32, lda, m int, panel []float32, k int) {
	productGeneric(dst, ldd, a, lda, m, panel, k)
}

func dot(a, b []float32) float32 { return dotGeneric(a, b) }

func axpy(y []float32, f float32, x []float32) { axpyGeneric(y, f, x) }

func residual(r, z []float32, bias float32, w, y []float32) { residualGeneric(r, z, bias, w, y) }

func raise(top, z []float32, bias float32) { raiseGeneric(top, z, bias) }

func exp(z []float32, bias float32, top, sum []float32) { expGeneric(z, bias, top, sum) }

func share(r, e, sum, w, y []float32) { shareGeneric(r, e, sum, w, y) }

func rows(dst, w []float32, q []int16) { rowsGeneric(dst, w, q) }
