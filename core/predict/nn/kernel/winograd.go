package kernel

import "github.com/sightline-dev/sightline/core/cpu"

// A 3×3 convolution at stride 1 needs 144 multiplications for 4×4 outputs of a channel pair. Winograd's F(4×4, 3×3) needs 36, one at each
// place of a transformed tile: with matrices G (6×3), B (6×6) and A (4×6),
//
//	outputs = A·Σ_c (G·weights·Gᵀ) ∘ (B·window·Bᵀ)·Aᵀ
//
// G is usually rational. These matrices have whole numbers, and the result is 24² = 576 times the sums (A is the usual matrix with 2
// for its last 1; B is the usual matrix). G is:
//
//	   6  0  0
//	  −4 −4 −4
//	  −4  4 −4
//	   1  2  4
//	   1 −2  4
//	   0  0 12
//
// Transformed weights are at most 12·12·128 = 18,432 in size and bytes at most 17,340, so both are int16. Sums may wrap: all later steps
// are exact modulo 2³². The result times the inverse of 9 is 64 times the sum, so its upper 26 bits are the sum. This holds for sums
// within ±2²⁵, which all sums of 9·112 products of a byte and a weight are.

// maxWinograd is the maximum number of channels for which the sums fit. The kernels transform 16 at a time.
const maxWinograd = 112

var winogradG = [6][3]int32{{6, 0, 0}, {-4, -4, -4}, {-4, 4, -4}, {1, 2, 4}, {1, -2, 4}, {0, 0, 12}}

// winogradKernel returns the numbers of tiles and columns that this level's kernels process at once.
func winogradKernel() (tiles, cols int) {
	switch Levels.Current() {
	case cpu.AVX512VNNI:
		return 7, 2 * panel
	case cpu.AVX2:
		return 6, panel
	case cpu.NEON:
		return 4, panel
	}
	return 0, 0
}

// packWinograd packs transformed weights, of w (N, 3, 3, c), into panels, where the level has kernels for them. The layout of panels is
// (N/16, 36, c, 16) for NEON, which multiplies by one channel at a time, and (N/16, 36, c/2, 16, 2) otherwise.
func (w *PackedS8) packWinograd(from []int8, c int) {
	_, cols := winogradKernel()
	if cols == 0 || w.N%cols != 0 || c == 0 || c%16 != 0 || c > maxWinograd {
		return
	}
	together := 2
	if Levels.Current() == cpu.NEON {
		together = 1
	}
	w.winograd = make([]int16, w.N*36*c)
	for j := range w.N {
		panels := w.winograd[j/panel*panel*36*c:]
		for ch := range c {
			at := ch/together*panel*together + j%panel*together + ch%together
			for place, u := range winogradWeights(from[j*w.K+ch:], c) {
				panels[place*c*panel+at] = u
			}
		}
	}
}

// winogradWeights is G·g·Gᵀ of the 3×3 weights g, which are c elements apart.
func winogradWeights(g []int8, c int) [36]int16 {
	var columns [6][3]int32
	for i, row := range winogradG {
		for x := range 3 {
			for y, v := range row {
				columns[i][x] += v * int32(g[(y*3+x)*c])
			}
		}
	}
	var u [36]int16
	for i := range 6 {
		for j, row := range winogradG {
			u[6*i+j] = int16(row[0]*columns[i][0] + row[1]*columns[i][1] + row[2]*columns[i][2])
		}
	}
	return u
}
