package simd_test

import (
	"math/rand/v2"
	"testing"

	"github.com/sightline-dev/sightline/core/predict/nn/kernel/kerneltest"
)

// testRows compares a call for several rows with their definition. kind is the kind of packing.
func testRows(a *arena, b *kerneltest.Block, kind int) {
	a.t.Helper()
	h := a.pack(kind, put(a, b.W), b.N, b.Segs*b.Seg, b.Segs)
	want := make([]uint8, b.DstLen())
	dst := put(a, want)
	b.Fill(want)
	for y := range b.R.Rows {
		a.may(dst+uint32(y*b.R.DstStep), b.M, b.LDD, b.N)
	}
	a.call("conv_rows_u8", h, dst, b.LDD, last(a, b.Src), b.StepX, b.SrcStride, b.M, a.putQ(b.Q), b.R.Rows, b.R.DstStep, b.R.SrcStep)
	equal(a.t, "conv_rows_u8", get[uint8](a, dst, len(want)), want)
}

func TestConvRows(t *testing.T) {
	rounds(t, 40, func(t *testing.T, rng *rand.Rand) { testRows(newArena(t, rng), kerneltest.NewBlock(rng), 1) })
}

func TestConv3x3(t *testing.T) {
	rounds(t, 40, func(t *testing.T, rng *rand.Rand) {
		b := kerneltest.NewConv3x3(rng)
		testRows(newArena(t, rng), b, 3)
		b.R.SrcStep = rng.IntN(b.R.SrcStep) // no longer side by side
		testRows(newArena(t, rng), b, 3)
	})
}

func TestConv3x3Extremes(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 5))
	for _, c := range []int{112, 128} {
		for b := range kerneltest.Extremes(rng, c) {
			testRows(newArena(t, rng), b, 3)
		}
	}
}
