package kernel

// The functions below compute a matrix product and a single row, for tests. Package nn calls the general functions.

// GemmF32 computes the matrix product of a (m, lda) with w by [ConvRowF32].
func GemmF32(dst []float32, ldd int, a []float32, lda, m int, w *PackedF32, res []float32, ldr int, lo, hi float32) {
	ConvRowF32(dst, ldd, a, lda, 0, m, w, res, ldr, lo, hi)
}

// GemmU8 computes the matrix product of a (m, lda) with w by [ConvRowU8].
func GemmU8(dst []uint8, ldd int, a []uint8, lda, m int, w *PackedS8, q *Requant, add *Add) {
	ConvRowU8(dst, ldd, a, lda, 0, m, w, q, add)
}

// PackF32 packs w (n, k), row-major, for [GemmF32]. bias is (n) or nil for zero.
func PackF32(w, bias []float32, n, k int) *PackedF32 { return PackConvF32(w, bias, n, 1, k) }

// DepthwiseRowF32 calls [DepthwiseRowsF32] for one row.
func DepthwiseRowF32(dst, src []float32, srcStride, width, strideX, dilationX int, w *DepthwiseF32, lo, hi float32) {
	DepthwiseRowsF32(dst, src, Depthwise{Rows: 1, Width: width, SrcStride: srcStride, StrideX: strideX, DilationX: dilationX}, w, lo, hi)
}

// DepthwiseRowU8 calls [DepthwiseRowsU8] for one row.
func DepthwiseRowU8(dst, src []uint8, srcStride, width, strideX, dilationX int, w *DepthwiseS8, q *Requant) {
	DepthwiseRowsU8(dst, src, Depthwise{Rows: 1, Width: width, SrcStride: srcStride, StrideX: strideX, DilationX: dilationX}, w, q)
}

// MoveWeights replaces w's weights and biases with the copies that move returns.
func (w *DepthwiseF32) MoveWeights(move func([]float32) []float32) {
	w.w, w.Bias = move(w.w), move(w.Bias)
}
