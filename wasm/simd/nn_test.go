package simd_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sightline-dev/sightline/core/cpu"
	"github.com/sightline-dev/sightline/core/predict/nn/kernel"
)

// product is the shape and the operands of a byte product.
type product struct {
	m, n, segs, seg       int
	stepX, srcStride, ldd int
	src                   []uint8
	w                     []int8
	q                     *kernel.Requant
	add                   *kernel.Add
}

func newProduct(rng *rand.Rand, m, n, segs, seg int) *product {
	p := &product{m: m, n: n, segs: segs, seg: seg, stepX: rng.IntN(seg + 9), ldd: n + rng.IntN(7)}
	p.srcStride = (m-1)*p.stepX + seg + rng.IntN(5)
	p.src = bytesOf(rng, (m-1)*p.stepX+(segs-1)*p.srcStride+seg)
	p.w, p.q = int8sOf(rng, n*segs*seg), requantOf(rng, n)
	if rng.IntN(2) == 0 {
		p.add = addOf(rng)
		p.add.LDR = n + rng.IntN(5)
		p.add.R = bytesOf(rng, (m-1)*p.add.LDR+n)
	}
	return p
}

func bytesOf(rng *rand.Rand, n int) []uint8 {
	b := make([]uint8, n)
	extreme := rng.IntN(4) == 0
	for i := range b {
		b[i] = uint8(rng.Uint32())
		if extreme {
			b[i] = 255 * uint8(rng.IntN(2)|rng.IntN(2))
		}
	}
	return b
}

func int8sOf(rng *rand.Rand, n int) []int8 {
	w := make([]int8, n)
	extreme := rng.IntN(4) == 0
	for i := range w {
		w[i] = int8(rng.Uint32())
		if extreme {
			w[i] = [...]int8{-128, 127}[rng.IntN(2)]
		}
	}
	return w
}

func floatsOf(rng *rand.Rand, n int) []float32 {
	f := make([]float32, n)
	for i := range f {
		f[i] = float32(rng.NormFloat64())
	}
	return f
}

// requantOf returns constants whose results fall below, inside and above the clamp, some beyond
// int32, some exactly halfway.
func requantOf(rng *rand.Rand, n int) *kernel.Requant {
	q := &kernel.Requant{Bias: make([]int32, n), Scale: make([]float32, n), Hi: 255}
	for j := range n {
		q.Bias[j] = int32(rng.IntN(1<<16) - 1<<15)
		q.Scale[j] = float32(math.Exp2(rng.Float64()*24 - 22))
		switch rng.IntN(12) {
		case 0:
			q.Bias[j] = int32(rng.Uint32())
		case 1:
			q.Scale[j] = 1.0 / 1024
		case 2:
			q.Scale[j] = -q.Scale[j]
		case 3:
			q.Scale[j] = 1e30
		}
	}
	if rng.IntN(2) == 0 {
		q.Zero = int32(rng.IntN(256))
		q.Lo = uint8(rng.IntN(256))
		q.Hi = q.Lo + uint8(rng.IntN(256-int(q.Lo)))
	}
	return q
}

func addOf(rng *rand.Rand) *kernel.Add {
	a := &kernel.Add{
		ScaleY: float32(math.Exp2(rng.Float64()*8 - 5)), ScaleR: float32(math.Exp2(rng.Float64()*8 - 5)),
		ZeroY: int32(rng.IntN(256)), ZeroR: int32(rng.IntN(256)), Zero: int32(rng.IntN(256)), Hi: 255,
	}
	switch rng.IntN(4) {
	case 0:
		a.Lo = uint8(rng.IntN(256))
		a.Hi = a.Lo + uint8(rng.IntN(256-int(a.Lo)))
	case 1:
		a.ScaleY, a.ScaleR = 0.5, 0.25 // halves
	case 2:
		a.ScaleY, a.ScaleR = 3e38, -3e38 // ∞ - ∞
	}
	return a
}

// putQ places a Requant as a structure of the ABI.
func (a *arena) putQ(q *kernel.Requant) uint32 {
	return put(a, []uint32{put(a, q.Bias), put(a, q.Scale), uint32(q.Zero), uint32(q.Lo), uint32(q.Hi)})
}

func (a *arena) putAdd(p *kernel.Add, r uint32) uint32 {
	return put(a, []uint32{
		math.Float32bits(p.ScaleY), math.Float32bits(p.ScaleR), uint32(p.ZeroY), uint32(p.ZeroR), uint32(p.Zero),
		uint32(p.Lo), uint32(p.Hi), r, uint32(p.LDR),
	})
}

// equal fails the test unless got is want.
func equal[T any](t testing.TB, what string, got, want []T) {
	t.Helper()
	for i := range want {
		if !cmp.Equal(got[i], want[i]) {
			t.Fatalf("%s: [%d] of %d = %v, want %v", what, i, len(want), got[i], want[i])
		}
	}
}

func (p *product) testU8(a *arena) {
	a.t.Helper()
	defer kernel.Levels.Force(cpu.Generic)() // the definition
	packed := kernel.PackConvS8(p.w, p.n, p.segs, p.seg)
	want := make([]uint8, (p.m-1)*p.ldd+p.n)
	kernel.ConvRowU8(want, p.ldd, p.src, p.stepX, p.srcStride, p.m, packed, p.q, p.add)
	h := a.pack(1, put(a, p.w), 0, p.n, p.segs*p.seg, p.segs)
	add := uint32(0)
	if p.add != nil {
		add = a.putAdd(p.add, put(a, p.add.R))
	}
	dst := put(a, make([]uint8, len(want)))
	a.may(dst, p.m, p.ldd, p.n)
	a.call("conv_u8", h, dst, p.ldd, last(a, p.src), p.stepX, p.srcStride, p.m, a.putQ(p.q), add)
	equal(a.t, "conv_u8", get[uint8](a, dst, len(want)), want)
}

func TestConv(t *testing.T) {
	rounds(t, 150, func(t *testing.T, rng *rand.Rand) {
		a := newArena(t, rng)
		m, n, segs, seg := 1+rng.IntN(40), 1+rng.IntN(40), 1+rng.IntN(3), 1+rng.IntN(40)
		newProduct(rng, m, n, segs, seg).testU8(a)
	})
}

func TestGemv(t *testing.T) {
	rounds(t, 50, func(t *testing.T, rng *rand.Rand) {
		a := newArena(t, rng)
		n, k := 1+rng.IntN(40), 1+rng.IntN(300)
		w, bias, v, want := int8sOf(rng, n*k), requantOf(rng, n).Bias, make([]uint16, k), make([]int64, n)
		for i := range v {
			v[i] = uint16(rng.Uint32())
		}
		h := a.pack(1, put(a, w), 0, n, k, 1)
		for _, bias := range [][]int32{nil, bias} {
			kernel.GemvU16(want, v, kernel.PackS8(w, n, k), bias)
			at := uint32(0)
			if bias != nil {
				at = put(a, bias)
			}
			dst := a.out(1, 0, 8*n)
			a.call("gemv_u16", h, dst, last(a, v), at)
			equal(t, "gemv_u16", get[int64](a, dst, n), want)
		}
	})
}

// window is rows of a depthwise convolution.
type window struct {
	kernel.Depthwise
	c, kh, kw int
}

func windowOf(rng *rand.Rand) window {
	s := window{kernel.Depthwise{Rows: 1 + rng.IntN(3), Width: 1 + rng.IntN(9), StrideX: 1 + rng.IntN(3), DilationX: 1}, 1 + rng.IntN(50), 3, 3}
	if rng.IntN(3) == 0 {
		s.kh, s.kw, s.DilationX = 1+rng.IntN(6), 1+rng.IntN(6), 1+rng.IntN(2)
	}
	s.SrcStride = ((s.Width-1)*s.StrideX+(s.kw-1)*s.DilationX+1)*s.c + rng.IntN(9)
	s.SrcStep = rng.IntN(3) * s.SrcStride
	s.DstStep = s.Width*s.c + rng.IntN(9)
	return s
}

func (s window) dstLen() int { return (s.Rows-1)*s.DstStep + s.Width*s.c }

func (s window) srcLen() int {
	return (s.Rows-1)*s.SrcStep + (s.kh-1)*s.SrcStride + ((s.Width-1)*s.StrideX+(s.kw-1)*s.DilationX+1)*s.c
}

func (a *arena) putWindow(s window) uint32 {
	return put(a, []uint32{
		uint32(s.Rows), uint32(s.Width), uint32(s.DstStep), uint32(s.SrcStep), uint32(s.SrcStride), uint32(s.StrideX), uint32(s.DilationX),
	})
}

func (s window) testU8(a *arena) {
	a.t.Helper()
	src, w, q := bytesOf(a.rng, s.srcLen()), int8sOf(a.rng, s.c*s.kh*s.kw), requantOf(a.rng, s.c)
	want := make([]uint8, s.dstLen())
	kernel.DepthwiseRowsU8(want, src, s.Depthwise, kernel.PackDepthwiseS8(w, s.c, s.kh, s.kw), q)
	h := a.pack(2, put(a, w), 0, s.c, s.kh*s.kw, s.kh)
	dst := put(a, make([]uint8, len(want)))
	a.may(dst, s.Rows, s.DstStep, s.Width*s.c)
	a.call("depthwise_u8", h, dst, last(a, src), a.putWindow(s), a.putQ(q))
	equal(a.t, "depthwise_u8", get[uint8](a, dst, len(want)), want)
}

func TestDepthwise(t *testing.T) {
	defer kernel.Levels.Force(cpu.Generic)()
	rounds(t, 200, func(t *testing.T, rng *rand.Rand) { windowOf(rng).testU8(newArena(t, rng)) })
}

func TestAddU8(t *testing.T) {
	rounds(t, 100, func(t *testing.T, rng *rand.Rand) {
		a, n := newArena(t, rng), rng.IntN(100)
		p, y, r, want := addOf(rng), bytesOf(rng, n), bytesOf(rng, n), make([]uint8, n)
		defer kernel.Levels.Force(cpu.Generic)()
		kernel.AddU8(want, y, r, p)
		dst := a.out(1, 0, n)
		a.call("add_u8", dst, put(a, y), last(a, r), n, a.putAdd(p, 0))
		equal(t, "add_u8", get[uint8](a, dst, n), want)
	})
}

func TestSumRowsU8(t *testing.T) {
	rounds(t, 50, func(t *testing.T, rng *rand.Rand) {
		a, n, rows := newArena(t, rng), 1+rng.IntN(40), rng.IntN(1000)
		lds := n + rng.IntN(9)
		src, want := bytesOf(rng, max(rows-1, 0)*lds+n), make([]uint32, n)
		kernel.SumRowsU8(want, src, lds, rows)
		dst := a.out(1, 0, 4*n)
		a.call("sum_rows_u8", dst, last(a, src), lds, rows, n)
		equal(t, "sum_rows_u8", get[uint32](a, dst, n), want)
	})
}
