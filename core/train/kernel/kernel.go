// Package kernel computes the arithmetic of training in float32, with the same bits on every host.
//
//	B, packed in panels of 32 columns         A·B, one panel after the other
//
//	        ◀─ 32 ─▶◀─ 32 ─▶                  ◀──── k ────▶   ┌────────┐ ▲
//	k = 0   ████████▒▒▒▒▒▒▒▒           A (m)  ───────────── · │ panel  │ k
//	k = 1   ████████▒▒▒▒▒▒▒▒                  ─────────────   └────────┘ ▼
//	…       ████████▒▒▒▒▒▒▒▒                                  ◀── 32 ──▶
//
// kernel_generic.go is the definition; the assembly does the same operations in the same order. Every product is rounded before it is
// added (no fused multiply-add). An element of a matrix product is summed in ascending k, starting from +0. A sum along a slice has 32
// lanes, and element i belongs to lane i mod 32. Each lane sums in ascending order, starting from +0. At the end the upper half of the
// lanes is added to the lower, five times.
//
// No function allocates or retains its arguments. All are safe for concurrent use.
package kernel

import "github.com/sightline-dev/sightline/core/cpu"

//go:generate go run ./asm/arm64 -out kernel_arm64.s -stubs stubs_arm64.go -pkg kernel

// Lanes is the number of columns of a panel. The lengths of slices are multiples of it.
const Lanes = 32

// Levels selects the instruction set of the functions of this package. They give the same results
// at each level.
var Levels = cpu.Choose(cpu.AVX2, cpu.AVX512, cpu.NEON, cpu.Lent)

// Product computes one panel of a matrix product:
//
//	dst[i*ldd+j] = Σ a[i*lda+p]·panel[p*32+j] over p < k, for i < m, j < 32
//
// dst must hold (m-1)*ldd+32 elements, a (m-1)*lda+k and panel k*32. Product panics if one is shorter.
func Product(dst []float32, ldd int, a []float32, lda, m int, panel []float32, k int) {
	if m <= 0 {
		return
	}
	if len(dst) < (m-1)*ldd+Lanes || len(a) < (m-1)*lda+k || len(panel) < k*Lanes {
		panic("kernel: a matrix is too short")
	}
	if isGeneric(k) {
		productGeneric(dst, ldd, a, lda, m, panel, k)
		return
	}
	product(dst, ldd, a, lda, m, panel, k)
}

// isGeneric reports whether plain Go code computes n elements. The other levels read the address of an operand's first element, so
// plain Go code also handles n = 0.
func isGeneric(n int) bool { return n == 0 || Levels.Current() == cpu.Generic }

// Dot returns Σ a[i]·b[i] in 32 lanes. The lengths are equal and a multiple of 32.
func Dot(a, b []float32) float32 {
	b = whole(a, b)
	if isGeneric(len(a)) {
		return dotGeneric(a, b)
	}
	return dot(a, b)
}

// Axpy adds f·x[i] to y[i]. The lengths are equal and a multiple of 32.
func Axpy(y []float32, f float32, x []float32) {
	x = whole(y, x)
	if isGeneric(len(y)) {
		axpyGeneric(y, f, x)
		return
	}
	axpy(y, f, x)
}

// LogisticResidual writes the slope of the weighted logistic loss:
//
//	r[i] = w[i]·(sigmoid(z[i]+bias) − y[i])
//
// The lengths are equal and a multiple of 32; r may be z. The sigmoid is within 3·10⁻⁷ of the true value.
func LogisticResidual(r, z []float32, bias float32, w, y []float32) {
	z, w, y = whole(r, z), whole(r, w), whole(r, y)
	if isGeneric(len(r)) {
		residualGeneric(r, z, bias, w, y)
		return
	}
	residual(r, z, bias, w, y)
}

// Max raises top[i] to z[i]+bias if that is larger. The lengths are equal and a multiple of 32.
func Max(top, z []float32, bias float32) {
	z = whole(top, z)
	if isGeneric(len(z)) {
		raiseGeneric(top, z, bias)
		return
	}
	raise(top, z, bias)
}

// Exp replaces z[i] by e^(z[i]+bias−top[i]) and adds it to sum[i]. The exponent is clipped to
// −87…87; the result is within 3·10⁻⁷ relative. The lengths are equal and a multiple of 32.
func Exp(z []float32, bias float32, top, sum []float32) {
	top, sum = whole(z, top), whole(z, sum)
	if isGeneric(len(z)) {
		expGeneric(z, bias, top, sum)
		return
	}
	exp(z, bias, top, sum)
}

// SoftmaxResidual writes the slope of the weighted cross entropy of a softmax, from its exponentials and their sum:
// r[i] = w[i]·(e[i]/sum[i] − y[i]). The lengths are equal and a multiple of 32; r may be e.
func SoftmaxResidual(r, e, sum, w, y []float32) {
	e, sum, w, y = whole(r, e), whole(r, sum), whole(r, w), whole(r, y)
	if isGeneric(len(r)) {
		shareGeneric(r, e, sum, w, y)
		return
	}
	share(r, e, sum, w, y)
}

// Rows evaluates one weight row on many vectors of integers:
//
//	dst[r] = Σ float32(q[r*d+i])·w[i] over i < d, in 32 lanes, where d = len(w)
//
// d is a multiple of 32 and q holds len(dst)*d elements.
func Rows(dst, w []float32, q []int16) {
	if len(w)%Lanes != 0 || len(q) < len(dst)*len(w) {
		panic("kernel: length is not a multiple of 32, or rows are missing")
	}
	if isGeneric(min(len(dst), len(w))) {
		rowsGeneric(dst, w, q)
		return
	}
	rows(dst, w, q)
}

// whole returns b. It panics unless a and b have the same length, a multiple of 32.
func whole(a, b []float32) []float32 {
	if len(a)%Lanes != 0 || len(a) != len(b) {
		panic("kernel: lengths differ or are not multiples of 32")
	}
	return b
}
