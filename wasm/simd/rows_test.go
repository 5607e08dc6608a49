package simd_test

import (
	"math/rand/v2"
	"testing"

	"github.com/sightline-dev/sightline/core/predict/nn/kernel"
	"github.com/sightline-dev/sightline/core/predict/nn/kernel/kerneltest"
)

// TestConvRows holds several rows in one call to their definition.
func TestConvRows(t *testing.T) {
	rounds(t, 40, func(t *testing.T, rng *rand.Rand) {
		a := newArena(t, rng)
		p := kerneltest.NewProduct(rng, 1+rng.IntN(20), 1+rng.IntN(40), 1+rng.IntN(3), 1+rng.IntN(40))
		r := kernel.Rows{Rows: rng.IntN(5), DstStep: p.DstLen() + rng.IntN(9), SrcStep: rng.IntN(len(p.Src) + 9)}
		src := kerneltest.Bytes(rng, max(0, r.Rows-1)*r.SrcStep+len(p.Src))
		h := a.pack(1, put(a, p.W), p.N, p.Segs*p.Seg, p.Segs)
		want := make([]uint8, max(0, r.Rows-1)*r.DstStep+p.DstLen())
		dst := put(a, want)
		for y := range r.Rows {
			row := *p
			row.Src = src[y*r.SrcStep:]
			row.Fill(want[y*r.DstStep:])
			a.may(dst+uint32(y*r.DstStep), p.M, p.LDD, p.N)
		}
		a.call("conv_rows_u8", h, dst, p.LDD, last(a, src), p.StepX, p.SrcStride, p.M, a.putQ(p.Q), r.Rows, r.DstStep, r.SrcStep)
		equal(a.t, "conv_rows_u8", get[uint8](a, dst, len(want)), want)
	})
}
