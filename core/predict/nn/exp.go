package nn

import "math"

// exp returns e**x, correct to float32 and the same bits on every machine: Cody and Waite's
// reduction to |r| ≤ ln2/2, then Taylor's series, in float64 with every product rounded.
// The standard library's differs between architectures.
func exp(x float32) float32 {
	const (
		ln2Hi = 6.93147180369123816490e-01
		ln2Lo = 1.90821492927058770002e-10
	)
	v := float64(x)
	switch {
	case x != x:
		return x
	case v > 89:
		return float32(math.Inf(1))
	case v < -104:
		return 0
	}
	k := math.RoundToEven(v * math.Log2E)
	r := v - float64(k*ln2Hi)
	r -= float64(k * ln2Lo)
	sum := 1.0
	for i := 12.0; i >= 1; i-- {
		sum = 1 + float64(sum*r)/i
	}
	return float32(sum * math.Float64frombits(uint64(int64(k)+1023)<<52))
}

func sigmoid(x float32) float32 { return 1 / (1 + exp(-x)) }

func relu(x float32) float32 {
	if x < 0 {
		return 0
	}
	return x
}

func sqrt(x float32) float32 { return float32(math.Sqrt(float64(x))) }

func hardSwish(x float32) float32 {
	return x * min(max(float32(x*(1.0/6))+0.5, 0), 1)
}

// power returns x**y for the exponents that networks use.
func power(y float32) (func(x float32) float32, bool) {
	switch y {
	case 0.5:
		return sqrt, true
	case 1:
		return func(x float32) float32 { return x }, true
	case 2:
		return func(x float32) float32 { return x * x }, true
	case 3:
		return func(x float32) float32 { return float32(x*x) * x }, true
	case -0.5:
		return func(x float32) float32 { return 1 / sqrt(x) }, true
	case -1:
		return func(x float32) float32 { return 1 / x }, true
	}
	return nil, false
}
