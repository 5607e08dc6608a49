//go:build (purego || !(amd64 || arm64)) && !(wasip1 && lent)

package kernel

func gemmF32(dst []float32, ldd int, a []float32, lda, segStride, m int, w *PackedF32, res []float32, ldr int, lo, hi float32) {
	gemmF32Generic(dst, ldd, a, lda, segStride, m, w, res, ldr, lo, hi)
}

func gemmU8(dst []uint8, ldd int, a []uint8, lda, segStride, m int, w *PackedS8, q *Requant) {
	gemmU8Generic(dst, ldd, a, lda, segStride, m, w, q)
}

func gemmAddU8(dst []uint8, ldd int, a []uint8, lda, segStride, m int, w *PackedS8, q *Requant, add *Add) {
	gemmAddGeneric(dst, ldd, a, lda, segStride, m, w, q, add)
}

func gemmRowsU8(dst []uint8, ldd int, a []uint8, lda, segStride, m int, r *Rows, w *PackedS8, q *Requant) {
	gemmRowsGeneric(dst, ldd, a, lda, segStride, m, r, w, q)
}

func gemvU16(dst []int64, a []uint16, w *PackedS8, bias []int32) {
	gemvU16Generic(dst, a, w, bias)
}

func depthwiseF32(dst, src []float32, d *Depthwise, w *DepthwiseF32, lo, hi float32) {
	depthwiseF32Generic(dst, src, d, w, 0, lo, hi)
}

func depthwiseU8(dst, src []uint8, d *Depthwise, w *DepthwiseS8, q *Requant) {
	depthwiseU8Generic(dst, src, d, w, 0, q)
}

func addU8(dst, y, r []uint8, p *Add) { addU8Generic(dst, y, r, p) }

func addF32(dst, a, b []float32) { addF32Generic(dst, a, b) }

func sumRowsU8(dst []uint32, src []uint8, lds, rows int) { sumRowsU8Generic(dst, src, lds, rows) }

func sumRowsF32(dst, src []float32, lds, rows int) { sumRowsF32Generic(dst, src, lds, rows) }
