package nn

import (
	"math"

	"github.com/sightline-dev/sightline/core/predict/elementary"
)

func exp(x float32) float32 { return float32(elementary.Exp(float64(x))) }

func sigmoid(x float32) float32 { return float32(elementary.Logistic(float64(x))) }

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
