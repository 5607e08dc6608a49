package kernel_test

import (
	"math/rand/v2"
	"testing"

	"github.com/sightline-dev/sightline/core/predict/nn/kernel"
	"github.com/sightline-dev/sightline/core/predict/nn/kernel/kerneltest"
)

func TestConvRowsU8(t *testing.T) {
	atEveryLevel(t, func(t *testing.T) {
		seeds(t, 100, func(t *testing.T, rng *rand.Rand) {
			p := kerneltest.NewProduct(rng, 1+rng.IntN(20), 1+rng.IntN(70), 1+rng.IntN(3), 1+rng.IntN(40))
			if rng.IntN(20) == 0 {
				p = kerneltest.NewProduct(rng, 7, 17, 1, longSeg)
			}
			w := kernel.PackConvS8(p.W, p.N, p.Segs, p.Seg)
			r := kernel.Rows{Rows: rng.IntN(6), DstStep: p.M*p.LDD + rng.IntN(4), SrcStep: rng.IntN(len(p.Src) + 9)}
			in := kerneltest.Bytes(rng, max(0, r.Rows-1)*r.SrcStep+len(p.Src))
			same(t, p, make([]uint8, max(0, r.Rows-1)*r.DstStep+p.DstLen()), func(dst []uint8) {
				kernel.ConvRowsU8(dst, p.LDD, in, p.StepX, p.SrcStride, p.M, r, w, p.Q)
			}, func(dst []uint8) {
				for y := range r.Rows {
					row := *p
					row.Src = in[y*r.SrcStep:]
					row.Fill(dst[y*r.DstStep:])
				}
			})
		})
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
