package kernel_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/sightline-dev/sightline/core/predict/nn/kernel"
	"github.com/sightline-dev/sightline/core/predict/nn/kernel/kerneltest"
)

// testRows compares the rows of one call with their definition.
func testRows(t *testing.T, b *kerneltest.Block, w *kernel.PackedS8) {
	t.Helper()
	same(t, b, make([]uint8, b.DstLen()), func(dst []uint8) {
		kernel.ConvRowsU8(dst, b.LDD, b.Src, b.StepX, b.SrcStride, b.M, b.R, w, b.Q)
	}, b.Fill)
}

func TestConvRowsU8(t *testing.T) {
	atEveryLevel(t, func(t *testing.T) {
		seeds(t, 100, func(t *testing.T, rng *rand.Rand) {
			b := kerneltest.NewBlock(rng)
			testRows(t, b, kernel.PackConvS8(b.W, b.N, b.Segs, b.Seg))
		})
	})
}

func TestConv3x3U8(t *testing.T) {
	atEveryLevel(t, func(t *testing.T) {
		seeds(t, 40, func(t *testing.T, rng *rand.Rand) {
			b := kerneltest.NewConv3x3(rng)
			w := kernel.PackConv3x3S8(b.W, b.N, b.StepX)
			testRows(t, b, w)
			b.R.SrcStep = rng.IntN(b.R.SrcStep) // the rows are no longer adjacent
			testRows(t, b, w)
		})
	})
}

func TestConv3x3U8Extremes(t *testing.T) {
	atEveryLevel(t, func(t *testing.T) {
		for _, c := range []int{112, 128} {
			for b := range kerneltest.Extremes(rand.New(rand.NewPCG(5, 5)), c) {
				testRows(t, b, kernel.PackConv3x3S8(b.W, b.N, c))
			}
		}
	})
}

// testConvRowsF32 compares rows of a 3×3 convolution with the contract, with scratch memory that is not zero and without any.
func testConvRowsF32(t *testing.T, rng *rand.Rand, p *kerneltest.SquaresF32) {
	t.Helper()
	w := kernel.PackConvF32Squares(p.W, p.Bias, p.N, p.C)
	r := kernel.Rows{Rows: p.Rows, DstStep: p.DstStep, SrcStep: p.Row}
	for _, scratch := range [][]float32{kerneltest.Floats(rng, w.Scratch(p.M)), nil} {
		buf, dst := guardedCopy(slices.Repeat([]float32{guard}, p.DstLen()))
		kernel.ConvRowsF32(dst, p.LDD, p.Src, p.C, p.Row, p.M, r, w, p.Lo, p.Hi, scratch)
		for i := range p.Rows * p.M * p.N {
			y, x, j := i/(p.M*p.N), i/p.N%p.M, i%p.N
			got := &dst[y*p.DstStep+x*p.LDD+j]
			if !p.Near(y, x, j, *got) {
				t.Fatalf("%v: result %d of pixel %d, %d is %v", p, j, y, x, *got)
			}
			*got = guard
		}
		if at := slices.IndexFunc(buf, func(v float32) bool { return v != guard }); at >= 0 {
			t.Fatalf("%v: wrote outside, at %d of %d", p, at-margin, len(dst))
		}
	}
}

func TestConvRowsF32(t *testing.T) {
	atEveryLevel(t, func(t *testing.T) {
		seeds(t, 60, func(t *testing.T, rng *rand.Rand) {
			n, c := 1+rng.IntN(40), 1+rng.IntN(20)
			if rng.IntN(4) > 0 {
				n, c = 8*(1+rng.IntN(4)), 8*(1+rng.IntN(2))
			}
			testConvRowsF32(t, rng, kerneltest.NewSquaresF32(rng, 1+rng.IntN(5), 1+rng.IntN(9), n, c))
		})
		rng := rand.New(rand.NewPCG(3, 3))
		testConvRowsF32(t, rng, kerneltest.NewSquaresF32(rng, 3, 5, 264, 8)) // more columns than are transformed at a time
	})
}

func TestConvRowsU8ShortSlices(t *testing.T) {
	w := kernel.PackS8(make([]int8, 12), 3, 4)
	q := &kernel.Requant{Bias: make([]int32, 3), Scale: make([]float32, 3)}
	for name, r := range map[string]kernel.Rows{
		"dst":           {Rows: 3, DstStep: 7, SrcStep: 8},
		"src":           {Rows: 3, DstStep: 6, SrcStep: 9},
		"negative step": {Rows: 3, DstStep: -6, SrcStep: 8},
		"past int":      {Rows: 1 << 30, DstStep: 6, SrcStep: 1 << 30},
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			kernel.ConvRowsU8(make([]uint8, 18), 3, make([]uint8, 24), 4, 0, 2, r, w, q)
		})
	}
}
