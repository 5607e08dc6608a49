package kernel

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/sightline-dev/sightline/core/cpu"
)

// atEveryLevel runs f at each level of this machine.
func atEveryLevel(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	for level := range Levels.Each() {
		t.Run(level.String(), f)
	}
}

// random returns n numbers of mixed sizes that begin off elements after an aligned one.
func random(rng *rand.Rand, n, off int) []float32 {
	x := make([]float32, n+off)[off:]
	for i := range x {
		x[i] = float32(rng.NormFloat64() * math.Exp(4*rng.Float64()-2))
	}
	return x
}

// odd replaces some elements of x with values that break naive arithmetic, and returns x.
func odd(rng *rand.Rand, x []float32) []float32 {
	inf := float32(math.Inf(1))
	values := []float32{0, float32(math.Copysign(0, -1)), inf, -inf, float32(math.NaN()), 87, -87, 88, -200, math.MaxFloat32, math.SmallestNonzeroFloat32}
	for i := range x {
		if rng.IntN(4) == 0 {
			x[i] = values[rng.IntN(len(values))]
		}
	}
	return x
}

// same compares bits. It accepts any NaN for any other, since the payload depends on the processor.
func same(a, b []float32) error {
	for i := range a {
		if math.Float32bits(a[i]) != math.Float32bits(b[i]) && !(a[i] != a[i] && b[i] != b[i]) {
			return fmt.Errorf("element %d of %d is %v, want %v", i, len(a), a[i], b[i])
		}
	}
	return nil
}

func check(t *testing.T, name string, got, want []float32) {
	t.Helper()
	if err := same(got, want); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
}

// TestProductSumsInOrder compares products with the sum that their contract states.
func TestProductSumsInOrder(t *testing.T) {
	atEveryLevel(t, func(t *testing.T) {
		rng := rand.New(rand.NewPCG(1, 1))
		for m := range 20 {
			for _, k := range []int{0, 1, 2, 3, 4, 5, 7, 8, 31, 64, 67} {
				off := rng.IntN(4)
				lda, ldd := k+rng.IntN(3), Lanes+rng.IntN(3)
				a, panel := random(rng, m*lda+off, off), random(rng, k*Lanes, off)
				got := random(rng, m*ldd+off, off)
				want := slices.Clone(got)
				Product(got, ldd, a, lda, m, panel, k)
				for i := range m {
					for j := range Lanes {
						sum := float32(0)
						for p := range k {
							sum += float32(a[i*lda+p] * panel[p*Lanes+j])
						}
						want[i*ldd+j] = sum
					}
				}
				check(t, fmt.Sprintf("m=%d k=%d", m, k), got, want)
			}
		}
	})
}

func TestSlicesEqualGeneric(t *testing.T) {
	atEveryLevel(t, func(t *testing.T) {
		rng := rand.New(rand.NewPCG(3, 1))
		for round := range 60 {
			n, off := Lanes*(round%9), rng.IntN(4)
			x, y, w, u := random(rng, n, off), random(rng, n, 0), random(rng, n, off), random(rng, n, 1)
			if round%2 == 0 {
				x, y = odd(rng, x), odd(rng, y)
			}
			f := float32(rng.NormFloat64())
			if got, want := Dot(x, y), dotGeneric(x, y); same([]float32{got}, []float32{want}) != nil {
				t.Fatalf("Dot of %d = %v, want %v", n, got, want)
			}
			got, want := slices.Clone(w), slices.Clone(w)
			Axpy(got, f, x)
			axpyGeneric(want, f, x)
			check(t, "Axpy", got, want)

			LogisticResidual(got, x, f, w, u)
			residualGeneric(want, x, f, w, u)
			check(t, "Residual", got, want)

			Max(got, x, f)
			raiseGeneric(want, x, f)
			check(t, "Max", got, want)

			e, eWant, uWant := slices.Clone(x), slices.Clone(x), slices.Clone(u)
			Exp(e, f, got, u)
			expGeneric(eWant, f, want, uWant)
			check(t, "Exp", e, eWant)
			check(t, "sums of Exp", u, uWant)

			SoftmaxResidual(got, e, uWant, w, y)
			shareGeneric(want, eWant, uWant, w, y)
			check(t, "Share", got, want)
		}
	})
}

func TestRowsEqualGeneric(t *testing.T) {
	atEveryLevel(t, func(t *testing.T) {
		rng := rand.New(rand.NewPCG(5, 1))
		for _, d := range []int{0, 32, 64, 128, 256, 512} {
			for n := range 6 {
				w, q := random(rng, d, n%3), make([]int16, n*d)
				for i := range q {
					q[i] = int16(rng.Uint32())
				}
				got, want := random(rng, n, 0), random(rng, n, 0)
				Rows(got, w, q)
				rowsGeneric(want, w, q)
				check(t, fmt.Sprintf("%d rows of %d", n, d), got, want)
			}
		}
	})
}

func TestExponentialIsClose(t *testing.T) {
	worst := 0.0
	for x := -87.0; x <= 87; x += 0.00137 {
		f := float32(x)
		want := math.Exp(float64(f))
		worst = max(worst, math.Abs(float64(exponential(f))-want)/want)
	}
	t.Logf("largest relative error %.3g", worst)
	if worst > 3e-7 {
		t.Errorf("exponential is off by %.3g, want at most 3e-7", worst)
	}
	for _, tt := range []struct{ x, want float32 }{{-1e9, exponential(-87)}, {1e9, exponential(87)}, {0, 1}} {
		if got := exponential(tt.x); got != tt.want {
			t.Errorf("exponential(%v) = %v, want %v", tt.x, got, tt.want)
		}
	}
}

// TestBitsAreTheSameEverywhere compares a hash of the bits of every function with the one that every host must compute.
func TestBitsAreTheSameEverywhere(t *testing.T) {
	atEveryLevel(t, func(t *testing.T) {
		rng := rand.New(rand.NewPCG(6, 1))
		uniform := func(n int) []float32 { // without functions of package math, whose results depend on the machine
			x := make([]float32, n)
			for i := range x {
				x[i] = float32(8*rng.Float64() - 4)
			}
			return x
		}
		const n = 512
		x, y, w, top, sum := uniform(n), uniform(n), uniform(n), uniform(n), uniform(n)
		dst := make([]float32, 7*Lanes)
		Product(dst, Lanes, uniform(7*64), 64, 7, uniform(64*Lanes), 64)
		dst = append(dst, Dot(x, y))
		Axpy(x, 0.3, y)
		Max(top, x, 0.1)
		Exp(x, 0.1, top, sum)
		SoftmaxResidual(y, x, sum, w, top)
		LogisticResidual(w, y, 0.7, x, top)
		q := make([]int16, 3*n)
		for i := range q {
			q[i] = int16(rng.Uint32())
		}
		line := make([]float32, 3)
		Rows(line, x, q)
		sumBits := uint64(14695981039346656037)
		for _, v := range slices.Concat(dst, x, y, w, top, sum, line) {
			sumBits = (sumBits ^ uint64(math.Float32bits(v))) * 1099511628211
		}
		if want := uint64(0x691b77d9141d19f1); sumBits != want {
			t.Errorf("fold of all bits = %#x, want %#x", sumBits, want)
		}
	})
}

func TestWrongLengthsPanic(t *testing.T) {
	x := make([]float32, 64)
	for name, f := range map[string]func(){
		"no multiple":     func() { Dot(x[:33], x[:33]) },
		"short":           func() { Axpy(x, 1, x[:32]) },
		"rows":            func() { Rows(x[:1], x[:5], make([]int16, 5)) },
		"too few rows":    func() { Rows(x[:2], x[:32], make([]int16, 63)) },
		"product's panel": func() { Product(x, 32, x, 2, 2, x[:63], 2) },
		"product's dst":   func() { Product(x[:63], 32, x, 2, 2, x, 2) },
		"a level":         func() { Levels.Force(cpu.Lent + 1) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			f()
		}()
	}
}

func BenchmarkProduct(b *testing.B) {
	rng := rand.New(rand.NewPCG(7, 1))
	for _, m := range []int{2, 20} {
		const k = 512
		a, panel, dst := random(rng, m*k, 0), random(rng, k*Lanes, 0), make([]float32, m*Lanes)
		for l := range Levels.Each() {
			b.Run(fmt.Sprintf("level=%s/m=%d", l, m), func(b *testing.B) {
				for b.Loop() {
					Product(dst, Lanes, a, k, m, panel, k)
				}
				b.ReportMetric(float64(m*k*Lanes)*float64(b.N)/b.Elapsed().Seconds()/1e9, "Gmac/s")
			})
		}
	}
}

func BenchmarkRows(b *testing.B) {
	const n, d = 1000, 256
	w, q, dst := make([]float32, d), make([]int16, n*d), make([]float32, n)
	for l := range Levels.Each() {
		b.Run("level="+l.String(), func(b *testing.B) {
			for b.Loop() {
				Rows(dst, w, q)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(n)/float64(b.N), "ns/row")
		})
	}
}
