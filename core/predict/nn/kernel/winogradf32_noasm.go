//go:build purego || !amd64

package kernel

func convRowsF32(dst []float32, ldd int, src []float32, stepX, srcStride, m int, r *Rows, w *PackedF32, lo, hi float32, _ []float32) {
	convRowsF32Direct(dst, ldd, src, stepX, srcStride, m, r, w, lo, hi)
}

func packWinogradF32([]float32, int, int) []winogradF32 { return nil }

// Scratch returns 0: without assembly, ConvRowsF32 needs no scratch.
func (w *PackedF32) Scratch(int) int { return 0 }
