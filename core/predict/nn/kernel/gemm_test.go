package kernel_test

import (
	"bytes"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/sightline-dev/sightline/core/predict/nn/kernel"
	"github.com/sightline-dev/sightline/core/predict/nn/kernel/kerneltest"
)

// testConvU8 compares one product with the contract.
func testConvU8(t *testing.T, p *kerneltest.Product) {
	t.Helper()
	w := kernel.PackConvS8(p.W, p.N, p.Segs, p.Seg)
	same(t, p, make([]uint8, p.DstLen()), func(dst []uint8) {
		kernel.ConvRowU8(dst, p.LDD, p.Src, p.StepX, p.SrcStride, p.M, w, p.Q, nil)
	}, p.Fill)
}

func TestConvU8AtRandom(t *testing.T) {
	atEveryLevel(t, func(t *testing.T) {
		seeds(t, 500, func(t *testing.T, rng *rand.Rand) {
			testConvU8(t, kerneltest.NewProduct(rng, 1+rng.IntN(33), 1+rng.IntN(70), 1+rng.IntN(3), 1+rng.IntN(40)))
		})
	})
}

func TestConvU8Sums(t *testing.T) {
	atEveryLevel(t, func(t *testing.T) {
		rng := rand.New(rand.NewPCG(3, 3))
		for p := range kerneltest.Sums(rng) {
			if testConvU8(t, p); t.Failed() {
				return
			}
		}
		for _, v := range []int8{-128, -127, 127} {
			for _, a := range []uint8{0, 255} {
				p := kerneltest.NewProduct(rng, 5, 17, 2, 91)
				p.W, p.Src = slices.Repeat([]int8{v}, len(p.W)), bytes.Repeat([]byte{a}, len(p.Src))
				testConvU8(t, p)
			}
		}
	})
}

func TestConvU8EveryLength(t *testing.T) {
	atEveryLevel(t, func(t *testing.T) {
		rng := rand.New(rand.NewPCG(3, 3))
		for size := 1; size <= 257 && !t.Failed(); size++ {
			testConvU8(t, kerneltest.NewProduct(rng, 3, 5, 1, size))
			testConvU8(t, kerneltest.NewProduct(rng, size, 5, 1, 4))
			testConvU8(t, kerneltest.NewProduct(rng, 3, size, 1, 9))
		}
		testConvU8(t, kerneltest.NewProduct(rng, 41, 21, 1, kerneltest.LongSeg))
		for _, seg := range []int{512, 513, 1030} {
			testConvU8(t, kerneltest.NewProduct(rng, 3, 9, 2, seg))
		}
	})
}

func TestGemmU8ThenAdd(t *testing.T) {
	atEveryLevel(t, func(t *testing.T) {
		seeds(t, 200, func(t *testing.T, rng *rand.Rand) {
			p := kerneltest.NewProduct(rng, 1+rng.IntN(40), 1+rng.IntN(70), 1, 1+rng.IntN(40))
			if rng.IntN(20) == 0 {
				p = kerneltest.NewProduct(rng, 3, 4100, 1, 3)
			}
			testGemmAdd(t, rng, p, rng.IntN(2) == 0)
		})
		rng := rand.New(rand.NewPCG(3, 3))
		dense := kerneltest.NewProduct(rng, 41, 5, 1, kerneltest.LongSeg)
		testGemmAdd(t, rng, dense, false)
		dense.LDD = dense.N
		testGemmAdd(t, rng, dense, true)
	})
}

// testGemmAdd compares product p with an add with the contract. If inPlace, the result replaces the second operand.
func testGemmAdd(t *testing.T, rng *rand.Rand, p *kerneltest.Product, inPlace bool) {
	t.Helper()
	p.DrawAdd(rng)
	before := kerneltest.Bytes(rng, p.DstLen())
	if inPlace {
		p.Add.R, p.Add.LDR = before, p.LDD
	}
	same(t, p, before, func(dst []uint8) {
		add := *p.Add
		if inPlace {
			add.R = dst
		}
		kernel.GemmU8(dst, p.LDD, p.Src, p.StepX, p.M, kernel.PackS8(p.W, p.N, p.Seg), p.Q, &add)
	}, p.Fill)
}

func TestGemvU16IsExact(t *testing.T) {
	atEveryLevel(t, func(t *testing.T) {
		seeds(t, 300, func(t *testing.T, rng *rand.Rand) {
			n, k := 1+rng.IntN(70), 1+rng.IntN(257)
			if rng.IntN(10) == 0 {
				k = 1280 + rng.IntN(1500)
			}
			w := kerneltest.Int8s(rng, n*k)
			a := make([]uint16, k)
			for i := range a {
				if a[i] = uint16(rng.Uint32()); rng.IntN(3) == 0 {
					a[i] = math.MaxUint16
				}
			}
			bias := make([]int32, n)
			for j := range bias {
				bias[j] = int32(rng.Uint32())
			}
			got := make([]int64, n)
			kernel.GemvU16(got, a, kernel.PackS8(w, n, k), bias)
			for j := range n {
				want := int64(bias[j])
				for i, v := range a {
					want += int64(v) * int64(w[j*k+i])
				}
				if got[j] != want {
					t.Errorf("GemvU16(n=%d k=%d)[%d] = %d, want %d", n, k, j, got[j], want)
					return
				}
			}
		})
	})
}

func testConvF32(t *testing.T, p *kerneltest.ProductF32) {
	t.Helper()
	w := kernel.PackConvF32(p.W, p.Bias, p.N, p.Segs, p.Seg)
	near(t, p, p.M, p.N, p.LDD, func(dst []float32) {
		kernel.ConvRowF32(dst, p.LDD, p.Src, p.StepX, p.SrcStride, p.M, w, p.Res, p.LDR, p.Lo, p.Hi)
	}, p.Want)
}

func TestConvF32(t *testing.T) {
	atEveryLevel(t, func(t *testing.T) {
		seeds(t, 500, func(t *testing.T, rng *rand.Rand) {
			testConvF32(t, kerneltest.NewProductF32(rng, 1+rng.IntN(33), 1+rng.IntN(70), 1+rng.IntN(3), 1+rng.IntN(40)))
		})
		rng := rand.New(rand.NewPCG(3, 3))
		for size := 1; size <= 257 && !t.Failed(); size++ {
			testConvF32(t, kerneltest.NewProductF32(rng, 3, 5, 1, size))
			testConvF32(t, kerneltest.NewProductF32(rng, size, 5, 1, 4))
			testConvF32(t, kerneltest.NewProductF32(rng, 3, size, 1, 9))
		}
	})
}

func TestGemmF32AddsInPlace(t *testing.T) {
	atEveryLevel(t, func(t *testing.T) {
		const m, k, n = 17, 3, 37
		rng := rand.New(rand.NewPCG(1, 1))
		a, w := kerneltest.Floats(rng, m*k), kernel.PackF32(kerneltest.Floats(rng, n*k), nil, n, k)
		dst := kerneltest.Floats(rng, m*n)
		want := make([]float32, m*n)
		inf := float32(math.Inf(1))
		kernel.GemmF32(want, n, a, k, m, w, dst, n, -inf, inf)
		kernel.GemmF32(dst, n, a, k, m, w, dst, n, -inf, inf)
		for i := range dst {
			if dst[i] != want[i] {
				t.Fatalf("GemmF32 in place [%d] = %v, want %v", i, dst[i], want[i])
			}
		}
	})
}
