package kernel

import (
	"bytes"
	"math/rand/v2"
	"testing"
)

// FuzzLevelsAgree holds the integer results of every level to the generic ones,
// for shapes and operands that the fuzzer chooses.
func FuzzLevelsAgree(f *testing.F) {
	f.Add(uint64(1), uint16(14), uint16(32), uint8(1), uint16(16))
	f.Add(uint64(2), uint16(49), uint16(160), uint8(1), uint16(255))
	f.Add(uint64(3), uint16(13), uint16(24), uint8(3), uint16(9))
	f.Add(uint64(4), uint16(1), uint16(1), uint8(1), uint16(1))
	f.Add(uint64(5), uint16(29), uint16(49), uint8(7), uint16(3))
	f.Fuzz(func(t *testing.T, seed uint64, m, n uint16, segs uint8, seg uint16) {
		rng := rand.New(rand.NewPCG(seed, 7))
		p := newProduct(rng, 1+int(m%70), 1+int(n%200), 1+int(segs%8), 1+int(seg%300))
		win := windowOf(rng, 1+int(n%200))
		w, d := PackConvS8(p.w, p.n, p.segs, p.seg), PackDepthwiseS8(int8sOf(rng, win.c*win.kh*win.kw), win.c, win.kh, win.kw)
		in, q := bytesOf(rng, win.srcLen()), requantOf(rng, win.c)
		var want []byte
		for level := range Levels.Each() {
			got := make([]byte, (p.m-1)*p.ldd+p.n+win.dstLen())
			ConvRowU8(got, p.ldd, p.src, p.stepX, p.srcStride, p.m, w, p.q, nil)
			DepthwiseRowsU8(got[(p.m-1)*p.ldd+p.n:], in, win.Depthwise, d, q)
			if want == nil {
				want = got
			} else if !bytes.Equal(got, want) {
				t.Fatalf("level %s differs from the fastest one (m=%d n=%d segs=%d seg=%d, rows %+v)", level, p.m, p.n, p.segs, p.seg, win)
			}
		}
	})
}
