package kernel_test

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/sightline-dev/sightline/core/predict/nn/kernel"
	"github.com/sightline-dev/sightline/core/predict/nn/kernel/kerneltest"
)

// FuzzLevelsAgree compares the integer results of every level with the generic ones, for shapes and operands that the fuzzer chooses.
func FuzzLevelsAgree(f *testing.F) {
	f.Add(uint64(1), uint16(14), uint16(32), uint8(1), uint16(16))
	f.Add(uint64(2), uint16(49), uint16(160), uint8(1), uint16(255))
	f.Add(uint64(3), uint16(13), uint16(24), uint8(3), uint16(9))
	f.Add(uint64(4), uint16(1), uint16(1), uint8(1), uint16(1))
	f.Add(uint64(5), uint16(29), uint16(49), uint8(7), uint16(3))
	f.Fuzz(func(t *testing.T, seed uint64, m, n uint16, segs uint8, seg uint16) {
		rng := rand.New(rand.NewPCG(seed, 7))
		p := kerneltest.NewProduct(rng, 1+int(m%70), 1+int(n%200), 1+int(segs%8), 1+int(seg%300))
		win := kerneltest.NewWindow(rng, 1+int(n%200))
		w, d := kernel.PackConvS8(p.W, p.N, p.Segs, p.Seg), kernel.PackDepthwiseS8(kerneltest.Int8s(rng, win.Taps()), win.C, win.KH, win.KW)
		rows := kerneltest.NewConv3x3(rng)
		in, q := kerneltest.Bytes(rng, win.SrcLen()), kerneltest.NewRequant(rng, win.C)
		var want []byte
		for level := range kernel.Levels.Each() {
			got := make([]byte, p.DstLen()+win.DstLen()+rows.DstLen())
			kernel.ConvRowU8(got, p.LDD, p.Src, p.StepX, p.SrcStride, p.M, w, p.Q, nil)
			kernel.DepthwiseRowsU8(got[p.DstLen():], in, win.Depthwise, d, q)
			w3 := kernel.PackConv3x3S8(rows.W, rows.N, rows.StepX)
			kernel.ConvRowsU8(got[p.DstLen()+win.DstLen():], rows.LDD, rows.Src, rows.StepX, rows.SrcStride, rows.M, rows.R, w3, rows.Q)
			if want == nil {
				want = got
			} else if !bytes.Equal(got, want) {
				t.Fatalf("level %s differs from the fastest one (%v, rows %+v, %v)", level, p, win, rows)
			}
		}
	})
}
