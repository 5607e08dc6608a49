package simd_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/sightline-dev/sightline/core/predict/nn/kernel/kerneltest"
	train "github.com/sightline-dev/sightline/core/train/kernel"
)

// sameBits fails the test unless got has want's bits. All NaNs count as equal.
func sameBits(t testing.TB, name string, got, want []float32) {
	t.Helper()
	for i := range want {
		if math.Float32bits(got[i]) != math.Float32bits(want[i]) && !(got[i] != got[i] && want[i] != want[i]) {
			t.Fatalf("%s: [%d] of %d = %x, want %x", name, i, len(want), math.Float32bits(got[i]), math.Float32bits(want[i]))
		}
	}
}

func TestPackRefusesOtherKinds(t *testing.T) {
	a := newArena(t, rand.New(rand.NewPCG(1, 1)))
	for _, kind := range []int{0, 4, -1} {
		if room := a.call("pack_room", kind, 8, 8, 1); room != 0 {
			t.Errorf("pack_room(%d) = %d, want 0", kind, room)
		}
		if h := a.call("pack", kind, 64, 8, 8, 1, 64); h != 0 {
			t.Errorf("pack(%d) = %d, want 0", kind, h)
		}
	}
}

func TestProduct(t *testing.T) {
	rounds(t, 50, func(t *testing.T, rng *rand.Rand) {
		a, m, k := newArena(t, rng), 1+rng.IntN(20), rng.IntN(40)
		ldd, lda := train.Lanes+rng.IntN(5), k+rng.IntN(5)
		x, panel, want := kerneltest.Floats(rng, (m-1)*lda+k), kerneltest.Floats(rng, k*train.Lanes), make([]float32, (m-1)*ldd+train.Lanes)
		train.Product(want, ldd, x, lda, m, panel, k)
		dst := put(a, make([]float32, len(want)))
		a.may(dst, m, 4*ldd, 4*train.Lanes)
		a.call("product", dst, ldd, last(a, x), lda, m, put(a, panel), k)
		sameBits(t, "product", get[float32](a, dst, len(want)), want)
	})
}

// TestTrainingSteps compares all kernels for training with the Go functions, bit by bit.
func TestTrainingSteps(t *testing.T) {
	rounds(t, 50, func(t *testing.T, rng *rand.Rand) {
		a, n := newArena(t, rng), train.Lanes*rng.IntN(6)
		x, y, z, w := kerneltest.Floats(rng, n), kerneltest.Floats(rng, n), kerneltest.Floats(rng, n), kerneltest.Floats(rng, n)
		for i := range z {
			z[i] *= 60 // beyond the limits of the exponential
			if rng.IntN(50) == 0 {
				z[i] = float32(math.NaN())
			}
		}
		bias := float32(rng.NormFloat64())

		got := float32frombits(a.call("dot", put(a, x), last(a, y), n))
		sameBits(t, "dot", []float32{got}, []float32{train.Dot(x, y)})

		// step runs one kernel on copies of dst, which both sides change.
		step := func(kernel string, dst []float32, want func(dst []float32), args func(at uint32) []any) {
			t.Helper()
			at := put(a, dst)
			a.may(at, 1, 0, 4*n)
			dst = append([]float32(nil), dst...)
			want(dst)
			a.call(kernel, args(at)...)
			sameBits(t, kernel, get[float32](a, at, n), dst)
		}
		step("axpy", y, func(d []float32) { train.Axpy(d, bias, x) }, func(at uint32) []any { return []any{at, bias, last(a, x), n} })
		step("residual", x, func(d []float32) { train.LogisticResidual(d, z, bias, w, y) }, func(at uint32) []any {
			return []any{at, put(a, z), bias, put(a, w), last(a, y), n}
		})
		step("raise", x, func(d []float32) { train.Max(d, z, bias) }, func(at uint32) []any { return []any{at, last(a, z), bias, n} })
		step("share", x, func(d []float32) { train.SoftmaxResidual(d, z, w, x, y) }, func(at uint32) []any {
			return []any{at, put(a, z), put(a, w), put(a, x), last(a, y), n}
		})
		sum := append([]float32(nil), y...)
		sums := put(a, y)
		a.may(sums, 1, 0, 4*n)
		step("exp", z, func(d []float32) { train.Exp(d, bias, x, sum) }, func(at uint32) []any { return []any{at, bias, last(a, x), sums, n} })
		sameBits(t, "exp's sums", get[float32](a, sums, n), sum)
	})
}

func float32frombits(v uint64) float32 { return math.Float32frombits(uint32(v)) }

func TestRows(t *testing.T) {
	rounds(t, 30, func(t *testing.T, rng *rand.Rand) {
		a, n, d := newArena(t, rng), rng.IntN(9), train.Lanes*(1+rng.IntN(9))
		w, q, want := kerneltest.Floats(rng, d), int16sOf(rng, n*d), make([]float32, n)
		train.Rows(want, w, q)
		dst := a.out(1, 0, 4*n)
		a.call("rows", dst, n, put(a, w), d, last(a, q))
		sameBits(t, "rows", get[float32](a, dst, n), want)
	})
}

func int16sOf(rng *rand.Rand, n int) []int16 {
	v := make([]int16, n)
	extreme := rng.IntN(3) == 0
	for i := range v {
		if v[i] = int16(rng.Uint32()); extreme {
			v[i] = math.MinInt16
		}
	}
	return v
}
