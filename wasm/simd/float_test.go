package simd_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/sightline-dev/sightline/core/cpu"
	"github.com/sightline-dev/sightline/core/predict/nn/kernel"
	"github.com/sightline-dev/sightline/core/predict/nn/kernel/kerneltest"
	train "github.com/sightline-dev/sightline/core/train/kernel"
)

// sameBits fails the test unless got has want's bits; all that is not a number counts as one.
func sameBits(t testing.TB, what string, got, want []float32) {
	t.Helper()
	for i := range want {
		if math.Float32bits(got[i]) != math.Float32bits(want[i]) && !(got[i] != got[i] && want[i] != want[i]) {
			t.Fatalf("%s: [%d] of %d = %x, want %x", what, i, len(want), math.Float32bits(got[i]), math.Float32bits(want[i]))
		}
	}
}

func TestConvF32(t *testing.T) {
	defer kernel.Levels.Force(cpu.Generic)()
	rounds(t, 100, func(t *testing.T, rng *rand.Rand) {
		a, p := newArena(t, rng), kerneltest.NewProductF32(rng, 1+rng.IntN(20), 1+rng.IntN(30), 1+rng.IntN(3), 1+rng.IntN(20))
		p.Src[rng.IntN(len(p.Src))] = float32(math.NaN())
		res := uint32(0)
		if p.Res != nil {
			res = put(a, p.Res)
		}
		want := make([]float32, p.DstLen())
		packed := kernel.PackConvF32(p.W, p.Bias, p.N, p.Segs, p.Seg)
		kernel.ConvRowF32(want, p.LDD, p.Src, p.StepX, p.SrcStride, p.M, packed, p.Res, p.LDR, p.Lo, p.Hi)
		h := a.pack(3, put(a, p.W), put(a, p.Bias), p.N, p.Segs*p.Seg, p.Segs)
		dst := put(a, make([]float32, len(want)))
		a.may(dst, p.M, 4*p.LDD, 4*p.N)
		a.call("conv_f32", h, dst, p.LDD, last(a, p.Src), p.StepX, p.SrcStride, p.M, res, p.LDR, p.Lo, p.Hi)
		sameBits(t, "conv_f32", get[float32](a, dst, len(want)), want)
	})
}

func TestDepthwiseF32(t *testing.T) {
	defer kernel.Levels.Force(cpu.Generic)()
	rounds(t, 100, func(t *testing.T, rng *rand.Rand) {
		a, s := newArena(t, rng), kerneltest.NewWindow(rng, 1+rng.IntN(50))
		src, w, bias := kerneltest.Floats(rng, s.SrcLen()), kerneltest.Floats(rng, s.Taps()), kerneltest.Floats(rng, s.C)
		want := make([]float32, s.DstLen())
		kernel.DepthwiseRowsF32(want, src, s.Depthwise, kernel.PackDepthwiseF32(w, bias, s.C, s.KH, s.KW), -1, 2)
		h := a.pack(4, put(a, w), put(a, bias), s.C, s.KH*s.KW, s.KH)
		dst := put(a, make([]float32, len(want)))
		a.may(dst, s.Rows, 4*s.DstStep, 4*s.Width*s.C)
		a.call("depthwise_f32", h, dst, last(a, src), a.putWindow(s), float32(-1), float32(2))
		sameBits(t, "depthwise_f32", get[float32](a, dst, len(want)), want)
	})
}

// A packing without biases has none.
func TestNoBias(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	a := newArena(t, rng)
	w, src := kerneltest.Floats(rng, 3*5), kerneltest.Floats(rng, 5)
	want := make([]float32, 3)
	kernel.ConvRowF32(want, 3, src, 5, 0, 1, kernel.PackConvF32(w, nil, 3, 1, 5), nil, 0, -9, 9)
	h := a.pack(3, put(a, w), 0, 3, 5, 1)
	dst := a.out(1, 0, 12)
	a.call("conv_f32", h, dst, 3, put(a, src), 5, 0, 1, 0, 0, float32(-9), float32(9))
	for i, got := range get[float32](a, dst, 3) {
		if math.Abs(float64(got-want[i])) > 1e-5 {
			t.Fatalf("[%d] = %v, want %v", i, got, want[i])
		}
	}
}

func TestPackRefusesOtherKinds(t *testing.T) {
	a := newArena(t, rand.New(rand.NewPCG(1, 1)))
	for _, kind := range []int{0, 5, -1} {
		if room := a.call("pack_room", kind, 8, 8, 1); room != 0 {
			t.Errorf("pack_room(%d) = %d, want 0", kind, room)
		}
		if h := a.call("pack", kind, 64, 0, 8, 8, 1, 64); h != 0 {
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

// TestTrainingSteps holds all that goes along slices to the bits of Go.
func TestTrainingSteps(t *testing.T) {
	rounds(t, 50, func(t *testing.T, rng *rand.Rand) {
		a, n := newArena(t, rng), train.Lanes*rng.IntN(6)
		x, y, z, w := kerneltest.Floats(rng, n), kerneltest.Floats(rng, n), kerneltest.Floats(rng, n), kerneltest.Floats(rng, n)
		for i := range z {
			z[i] *= 60 // beyond the exponential's clip
			if rng.IntN(50) == 0 {
				z[i] = float32(math.NaN())
			}
		}
		bias := float32(rng.NormFloat64())

		got := float32frombits(a.call("dot", put(a, x), last(a, y), n))
		sameBits(t, "dot", []float32{got}, []float32{train.Dot(x, y)})

		// step runs one kernel on copies of dst, which both sides change.
		step := func(what string, dst []float32, want func(dst []float32), args func(at uint32) []any) {
			t.Helper()
			at := put(a, dst)
			a.may(at, 1, 0, 4*n)
			dst = append([]float32(nil), dst...)
			want(dst)
			a.call(what, args(at)...)
			sameBits(t, what, get[float32](a, at, n), dst)
		}
		step("axpy", y, func(d []float32) { train.Axpy(d, bias, x) }, func(at uint32) []any { return []any{at, bias, last(a, x), n} })
		step("residual", x, func(d []float32) { train.Residual(d, z, bias, w, y) }, func(at uint32) []any {
			return []any{at, put(a, z), bias, put(a, w), last(a, y), n}
		})
		step("raise", x, func(d []float32) { train.Max(d, z, bias) }, func(at uint32) []any { return []any{at, last(a, z), bias, n} })
		step("share", x, func(d []float32) { train.Share(d, z, w, x, y) }, func(at uint32) []any {
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
