package simd_test

import (
	"math/rand/v2"
	"testing"

	"github.com/sightline-dev/sightline/core/cpu"
	"github.com/sightline-dev/sightline/core/predict/nn/kernel"
)

// TestConvRows holds several rows in one call to Go's.
func TestConvRows(t *testing.T) {
	defer kernel.Levels.Force(cpu.Generic)() // the definition
	rounds(t, 40, func(t *testing.T, rng *rand.Rand) {
		a := newArena(t, rng)
		p := newProduct(rng, 1+rng.IntN(20), 1+rng.IntN(40), 1+rng.IntN(3), 1+rng.IntN(40))
		size := (p.m-1)*p.ldd + p.n
		r := kernel.Rows{Rows: rng.IntN(5), DstStep: size + rng.IntN(9), SrcStep: rng.IntN(len(p.src) + 9)}
		src := bytesOf(rng, max(0, r.Rows-1)*r.SrcStep+len(p.src))
		want := make([]uint8, max(0, r.Rows-1)*r.DstStep+size)
		packed := kernel.PackConvS8(p.w, p.n, p.segs, p.seg)
		kernel.ConvRowsU8(want, p.ldd, src, p.stepX, p.srcStride, p.m, r, packed, p.q)
		h := a.pack(1, put(a, p.w), 0, p.n, p.segs*p.seg, p.segs)
		dst := put(a, make([]uint8, len(want)))
		for y := range r.Rows {
			a.may(dst+uint32(y*r.DstStep), p.m, p.ldd, p.n)
		}
		a.call("conv_rows_u8", h, dst, p.ldd, last(a, src), p.stepX, p.srcStride, p.m, a.putQ(p.q), r.Rows, r.DstStep, r.SrcStep)
		equal(a.t, "conv_rows_u8", get[uint8](a, dst, len(want)), want)
	})
}
