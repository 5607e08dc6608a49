package elementary

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
)

// relative returns the error of got relative to want.
func relative(got, want float64) float64 {
	if got == want {
		return 0
	}
	return math.Abs(got-want) / math.Abs(want)
}

func TestConstants(t *testing.T) {
	if got := ln2Hi + ln2Lo; got != math.Ln2 {
		t.Errorf("ln2Hi + ln2Lo = %v, want %v", got, math.Ln2)
	}
	factorial := big.NewRat(1, 1)
	for n := range inverse {
		if n > 0 {
			factorial.Mul(factorial, big.NewRat(int64(n), 1))
		}
		if want, _ := new(big.Rat).Inv(factorial).Float64(); inverse[n] != want {
			t.Errorf("inverse[%d] = %v, want %v", n, inverse[n], want)
		}
	}
	for n := range odd {
		if want := 1 / float64(2*n+1); odd[n] != want {
			t.Errorf("odd[%d] = %v, want %v", n, odd[n], want)
		}
	}
}

func TestExp(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	worst, at := 0.0, 0.0
	for _, width := range []float64{1e-18, 1e-8, 0.1, 0.35, 1, 20, 700} {
		for range 20_000 {
			x := (2*rng.Float64() - 1) * width
			if d := relative(Exp(x), math.Exp(x)); d > worst {
				worst, at = d, x
			}
		}
	}
	t.Logf("largest difference from math.Exp: %.3g at %v", worst, at)
	if worst > 4.5e-16 {
		t.Errorf("Exp(%v) is off by %.3g relative, want at most two units in the last place", at, worst)
	}
}

func TestLog(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 1))
	worst, at := 0.0, 0.0
	check := func(x float64) {
		if d := relative(Log(x), math.Log(x)); d > worst {
			worst, at = d, x
		}
	}
	for range 100_000 {
		check(math.Float64frombits(rng.Uint64()>>2 | 1<<52)) // positive and normal, up to 2
		check(rng.Float64() * 10)
		check(1 + (2*rng.Float64()-1)*1e-6)
		check(1 + (2*rng.Float64()-1)*0.3)
		check(math.Exp(1000*rng.Float64() - 290))
	}
	t.Logf("largest difference from math.Log: %.3g at %v", worst, at)
	if worst > 4.5e-16 {
		t.Errorf("Log(%v) is off by %.3g relative, want at most two units in the last place", at, worst)
	}
}

func TestLogistic(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 1))
	worst, at := 0.0, 0.0
	for range 100_000 {
		x := (2*rng.Float64() - 1) * 40
		got := Logistic(x)
		if d := relative(got, 1/(1+math.Exp(-x))); d > worst {
			worst, at = d, x
		}
		if sum := got + Logistic(-x); math.Abs(sum-1) > 3e-16 {
			t.Errorf("Logistic(%v) + Logistic(-x) = %v, want 1", x, sum)
		}
	}
	t.Logf("largest difference from math: %.3g at %v", worst, at)
	if worst > 1e-15 {
		t.Errorf("Logistic(%v) is off by %.3g relative", at, worst)
	}
}

func TestEnds(t *testing.T) {
	inf, nan := math.Inf(1), math.NaN()
	tests := []struct {
		name      string
		got, want float64
	}{
		{"Exp(0)", Exp(0), 1},
		{"Exp(-0)", Exp(math.Copysign(0, -1)), 1},
		{"Exp(+Inf)", Exp(inf), inf},
		{"Exp(-Inf)", Exp(-inf), 0},
		{"Exp(NaN)", Exp(nan), nan},
		{"Exp(709.79)", Exp(709.79), inf},
		{"Exp(-745.2)", Exp(-745.2), 0},
		{"Exp(-745)", Exp(-745), math.SmallestNonzeroFloat64},
		{"Exp just above 0", Exp(math.SmallestNonzeroFloat64), 1},
		{"Log(0)", Log(0), -inf},
		{"Log(-0)", Log(math.Copysign(0, -1)), -inf},
		{"Log(-1)", Log(-1), nan},
		{"Log(-Inf)", Log(-inf), nan},
		{"Log(NaN)", Log(nan), nan},
		{"Log(1)", Log(1), 0},
		{"Log(2)", Log(2), math.Ln2},
		{"Log(+Inf)", Log(inf), inf},
		{"Log of the smallest", Log(math.SmallestNonzeroFloat64), -744.4400719213812}, // math.Log of amd64 is wrong here
		{"Log of the largest", Log(math.MaxFloat64), math.Log(math.MaxFloat64)},
		{"Logistic(0)", Logistic(0), 0.5},
		{"Logistic(+Inf)", Logistic(inf), 1},
		{"Logistic(-Inf)", Logistic(-inf), 0},
		{"Logistic(NaN)", Logistic(nan), nan},
	}
	for _, tt := range tests {
		if tt.got != tt.want && !(math.IsNaN(tt.got) && math.IsNaN(tt.want)) {
			t.Errorf("%s = %v, want %v", tt.name, tt.got, tt.want)
		}
	}
}

// TestBitsAreTheSameEverywhere compares a hash of the bits of 20,000 results with the one that every host must compute. The tests run
// natively, without assembly, as arm64 and as wasip1.
func TestBitsAreTheSameEverywhere(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 1))
	sum := uint64(14695981039346656037) // FNV-1a over 64-bit words
	for range 20_000 {
		x := (2*rng.Float64() - 1) * 30
		for _, y := range []float64{Exp(x), Log(math.Abs(x)), Logistic(x)} {
			sum = (sum ^ math.Float64bits(y)) * 1099511628211
		}
	}
	if want := uint64(0x6c2e115471cd7f9b); sum != want {
		t.Errorf("fold of all bits = %#x, want %#x", sum, want)
	}
}

func BenchmarkExp(b *testing.B) {
	x, sum := 0.0, 0.0
	for b.Loop() {
		sum += Exp(-x)
		if x += 0.01; x > 20 {
			x = 0
		}
	}
	if sum < 0 {
		b.Fatal(sum)
	}
}
