// Package elementary computes the exponential, the logarithm and the logistic function in
// float64 to the same bits on every host.
//
// math.Exp and math.Log are assembly on some processors and fuse multiply and add on others, so their last bit depends on the machine. Here
// every function is one fixed sequence of additions, multiplications and divisions, each rounded once to nearest even. The code converts
// every product explicitly before it adds something to it, because Go's specification forbids fusing across a conversion.
//
//	x ─▶ k·ln 2 + r, |r| ≤ ln 2 / 2 ─▶ Taylor of eʳ ─▶ · 2ᵏ            Exp
//	x ─▶ 2ᵏ·m, √½ ≤ m < √2 ─▶ s = (m−1)/(m+1) ─▶ 2·artanh s + k·ln 2    Log
//
// If the result is a normal number, its relative error is at most 4·10⁻¹⁶ (Logistic 7·10⁻¹⁶). The errors of package math are below
// 2.3·10⁻¹⁶.
package elementary

import "math"

const (
	ln2Hi = 0x1.62e42fee00000p-1  // upper bits of ln 2: k·ln2Hi is exact for |k| < 2²⁰
	ln2Lo = 0x1.a39ef35793c76p-33 // ln 2 − ln2Hi
	log2e = 0x1.71547652b82fep+0  // 1 / ln 2

	maxExp = 0x1.62e42fefa39efp+9  // ln of the largest float64
	minExp = -0x1.74910d52d3051p+9 // ln of half the smallest positive float64
)

// inverse[n] is 1/n!.
var inverse = [...]float64{
	1, 1, 1.0 / 2, 1.0 / 6, 1.0 / 24, 1.0 / 120, 1.0 / 720, 1.0 / 5040, 1.0 / 40320, 1.0 / 362880,
	1.0 / 3628800, 1.0 / 39916800, 1.0 / 479001600, 1.0 / 6227020800,
}

// Exp returns eˣ. It returns +Inf or 0 if eˣ is beyond the range of float64, and NaN for NaN.
func Exp(x float64) float64 {
	v := [1]float64{x}
	Exps(v[:])
	return v[0]
}

// Exps replaces every x[i] by [Exp] of x[i]. It takes a slice, because a function call per element would take as long as the arithmetic,
// and longer in a guest.
func Exps(x []float64) {
	for i, v := range x {
		switch {
		case math.IsNaN(v):
			continue
		case v > maxExp:
			x[i] = math.Inf(1)
			continue
		case v < minExp:
			x[i] = 0
			continue
		}
		k := math.RoundToEven(v * log2e)
		hi := v - float64(k*ln2Hi) // exact
		lo := float64(k * ln2Lo)
		r := hi - lo
		c := float64(hi-r) - lo // rounding error of r

		// eʳ − 1 − r = r²·(1/2! + r/3! + …); the first omitted term is below 2·10⁻¹⁸.
		p := float64(inverse[13]*r) + inverse[12]
		p = float64(p*r) + inverse[11]
		p = float64(p*r) + inverse[10]
		p = float64(p*r) + inverse[9]
		p = float64(p*r) + inverse[8]
		p = float64(p*r) + inverse[7]
		p = float64(p*r) + inverse[6]
		p = float64(p*r) + inverse[5]
		p = float64(p*r) + inverse[4]
		p = float64(p*r) + inverse[3]
		p = float64(p*r) + inverse[2]
		tail := float64(float64(r*r) * p)
		sum := 1 + (r + (tail + float64(c+float64(c*r))))
		if math.Abs(k) < 1000 { // 2ᵏ and the product are normal numbers, since sum is between 0.7 and 1.5
			x[i] = sum * math.Float64frombits(uint64(int64(k)+1023)<<52)
		} else {
			x[i] = math.Ldexp(sum, int(k))
		}
	}
}

// odd[n] is 1/(2n+1).
var odd = [...]float64{
	1, 1.0 / 3, 1.0 / 5, 1.0 / 7, 1.0 / 9, 1.0 / 11, 1.0 / 13, 1.0 / 15, 1.0 / 17, 1.0 / 19, 1.0 / 21, 1.0 / 23,
}

// Log returns the natural logarithm of x. It returns −Inf for 0, and NaN for NaN and negative numbers.
func Log(x float64) float64 {
	v := [1]float64{x}
	Logs(v[:])
	return v[0]
}

// Logs replaces every x[i] by [Log] of x[i].
func Logs(x []float64) {
	for i, v := range x {
		switch {
		case math.IsNaN(v) || v < 0:
			x[i] = math.NaN()
			continue
		case v == 0:
			x[i] = math.Inf(-1)
			continue
		case v > math.MaxFloat64:
			continue
		}
		m, e := frexp(v) // ½ ≤ m < 1
		if m < math.Sqrt2/2 {
			m, e = m*2, e-1
		}
		k := float64(e)
		f := m - 1 // exact
		s := f / (2 + f)
		z := float64(s * s)
		// ln m = 2s + 2s³/3 + 2s⁵/5 + …, and 2s = f − s·f. So ln m = f − s·(f − R) with R = 2z/3 + 2z²/5 + …
		// The rounding errors of s·(f − R) are small compared with f.
		p := float64(odd[11]*z) + odd[10]
		p = float64(p*z) + odd[9]
		p = float64(p*z) + odd[8]
		p = float64(p*z) + odd[7]
		p = float64(p*z) + odd[6]
		p = float64(p*z) + odd[5]
		p = float64(p*z) + odd[4]
		p = float64(p*z) + odd[3]
		p = float64(p*z) + odd[2]
		p = float64(p*z) + odd[1]
		rest := float64(float64(2*z) * p)
		if k == 0 {
			x[i] = f - float64(s*(f-rest))
		} else {
			x[i] = float64(k*ln2Hi) - ((float64(s*(f-rest)) - float64(k*ln2Lo)) - f)
		}
	}
}

// frexp returns the results of [math.Frexp]. x must be positive.
func frexp(x float64) (m float64, e int) {
	b := math.Float64bits(x)
	if b>>52 == 0 {
		return math.Frexp(x)
	}
	return math.Float64frombits(b&(1<<52-1) | 1022<<52), int(b>>52) - 1022
}

// Logistic returns the sigmoid 1/(1+e⁻ˣ). It is computed from e⁻|ˣ|, so that it never overflows and small results keep their relative
// accuracy.
func Logistic(x float64) float64 {
	return logistic(x, Exp(-math.Abs(x)))
}

func logistic(x, e float64) float64 {
	if x < 0 {
		return e / (1 + e)
	}
	return 1 / (1 + e)
}

// Logistics replaces every x[i] by [Logistic] of x[i].
func Logistics(x []float64) {
	var block [64]float64
	for len(x) > 0 {
		e := block[:min(len(x), len(block))]
		for i := range e {
			e[i] = -math.Abs(x[i])
		}
		Exps(e)
		for i, p := range e {
			x[i] = logistic(x[i], p)
		}
		x = x[len(e):]
	}
}
