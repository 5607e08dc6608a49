package kernel

import (
	"bytes"
	"math/rand/v2"
	"testing"
)

// TestConvRowsU8 holds several rows in one call to as many calls of the same rows.
func TestConvRowsU8(t *testing.T) {
	atEveryLevel(t, func(t *testing.T) {
		seeds(t, 100, func(t *testing.T, rng *rand.Rand) {
			p := newProduct(rng, 1+rng.IntN(20), 1+rng.IntN(70), 1+rng.IntN(3), 1+rng.IntN(40))
			w := PackConvS8(p.w, p.n, p.segs, p.seg)
			r := Rows{Rows: rng.IntN(6), DstStep: p.m*p.ldd + rng.IntN(9), SrcStep: rng.IntN(len(p.src) + 9)}
			in := bytesOf(rng, max(0, r.Rows-1)*r.SrcStep+len(p.src))
			size := (p.m-1)*p.ldd + p.n
			got, want := make([]uint8, max(0, r.Rows-1)*r.DstStep+size), make([]uint8, max(0, r.Rows-1)*r.DstStep+size)
			ConvRowsU8(got, p.ldd, in, p.stepX, p.srcStride, p.m, r, w, p.q)
			for y := range r.Rows {
				ConvRowU8(want[y*r.DstStep:], p.ldd, in[y*r.SrcStep:], p.stepX, p.srcStride, p.m, w, p.q, nil)
			}
			if !bytes.Equal(got, want) {
				t.Errorf("%+v: rows in one call differ from rows one by one (m=%d n=%d segs=%d seg=%d)", r, p.m, p.n, p.segs, p.seg)
			}
		})
	})
}

func TestConvRowsU8ShortSlices(t *testing.T) {
	w := PackS8(make([]int8, 12), 3, 4)
	q := &Requant{Bias: make([]int32, 3), Scale: make([]float32, 3)}
	for name, r := range map[string]Rows{
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
			ConvRowsU8(make([]uint8, 18), 3, make([]uint8, 24), 4, 0, 2, r, w, q)
		})
	}
}
