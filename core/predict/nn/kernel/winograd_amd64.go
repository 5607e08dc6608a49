//go:build !purego

package kernel

// winogradMuls is the number of products that the largest kernel writes for a place: 7 tiles by 2 panels.
const winogradMuls = 7 * 2 * panel

// transform writes the transformed windows of src to v.
func (w *winogradArgs) transform() { winogradInAVX2(w.ptr()) }

// bound sets the fields that control how the assembly converts sums of n columns to bytes.
func (w *winogradArgs) bound(q *Requant, n int) {
	w.hi = bits(float32(int32(q.Hi) - q.Zero))
	if q.packs(n) {
		w.form = int(formPacked)
	}
}

// run multiplies the transformed tiles by the weights of cols columns and stores the outputs.
func (w *winogradArgs) run(cols int) {
	if cols == panel {
		w.runAVX2()
	} else {
		w.runAVX512()
	}
}

func (w *winogradArgs) runAVX2() {
	p := w.ptr()
	switch w.tiles {
	case 6:
		winogradMul6x16AVX2(p)
	case 5:
		winogradMul5x16AVX2(p)
	case 4:
		winogradMul4x16AVX2(p)
	case 3:
		winogradMul3x16AVX2(p)
	case 2:
		winogradMul2x16AVX2(p)
	default:
		winogradMul1x16AVX2(p)
	}
	winogradOutx16AVX2(p)
}

func (w *winogradArgs) runAVX512() {
	p := w.ptr()
	switch w.tiles {
	case 7:
		winogradMul7x32AVX512(p)
	case 6:
		winogradMul6x32AVX512(p)
	case 5:
		winogradMul5x32AVX512(p)
	case 4:
		winogradMul4x32AVX512(p)
	case 3:
		winogradMul3x32AVX512(p)
	case 2:
		winogradMul2x32AVX512(p)
	default:
		winogradMul1x32AVX512(p)
	}
	winogradOutx32AVX512(p)
}
