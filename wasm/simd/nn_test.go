package simd_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sightline-dev/sightline/core/predict/nn/kernel"
	"github.com/sightline-dev/sightline/core/predict/nn/kernel/kerneltest"
)

// putQ writes a Requant as a structure of the ABI, and returns its address.
func (a *arena) putQ(q *kernel.Requant) uint32 {
	return put(a, []uint32{put(a, q.Bias), put(a, q.Scale), uint32(q.Zero), uint32(q.Lo), uint32(q.Hi)})
}

func (a *arena) putAdd(p *kernel.Add, r uint32) uint32 {
	return put(a, []uint32{
		math.Float32bits(p.ScaleY), math.Float32bits(p.ScaleR), uint32(p.ZeroY), uint32(p.ZeroR), uint32(p.Zero),
		uint32(p.Lo), uint32(p.Hi), r, uint32(p.LDR),
	})
}

// equal fails the test unless got begins with the elements of want.
func equal[T any](t testing.TB, name string, got, want []T) {
	t.Helper()
	for i := range want {
		if !cmp.Equal(got[i], want[i]) {
			t.Fatalf("%s: [%d] of %d = %v, want %v", name, i, len(want), got[i], want[i])
		}
	}
}

func testConv(a *arena, p *kerneltest.Product) {
	a.t.Helper()
	want := make([]uint8, p.DstLen())
	p.Fill(want)
	h := a.pack(1, put(a, p.W), p.N, p.Segs*p.Seg, p.Segs)
	add := uint32(0)
	if p.Add != nil {
		add = a.putAdd(p.Add, put(a, p.Add.R))
	}
	dst := put(a, make([]uint8, len(want)))
	a.may(dst, p.M, p.LDD, p.N)
	a.call("conv_u8", h, dst, p.LDD, last(a, p.Src), p.StepX, p.SrcStride, p.M, a.putQ(p.Q), add)
	equal(a.t, "conv_u8", get[uint8](a, dst, len(want)), want)
}

func TestConv(t *testing.T) {
	rounds(t, 150, func(t *testing.T, rng *rand.Rand) {
		a := newArena(t, rng)
		p := kerneltest.NewProduct(rng, 1+rng.IntN(40), 1+rng.IntN(40), 1+rng.IntN(3), 1+rng.IntN(40))
		if rng.IntN(2) == 0 {
			p.DrawAdd(rng)
		}
		testConv(a, p)
	})
}

func TestGemv(t *testing.T) {
	rounds(t, 50, func(t *testing.T, rng *rand.Rand) {
		a := newArena(t, rng)
		n, k := 1+rng.IntN(40), 1+rng.IntN(300)
		w, bias, v, want := kerneltest.Int8s(rng, n*k), kerneltest.NewRequant(rng, n).Bias, make([]uint16, k), make([]int64, n)
		for i := range v {
			v[i] = uint16(rng.Uint32())
		}
		h := a.pack(1, put(a, w), n, k, 1)
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

func (a *arena) putWindow(s kerneltest.Window) uint32 {
	return put(a, []uint32{
		uint32(s.Rows), uint32(s.Width), uint32(s.DstStep), uint32(s.SrcStep), uint32(s.SrcStride), uint32(s.StrideX), uint32(s.DilationX),
	})
}

func testDepthwise(a *arena, s kerneltest.Window) {
	a.t.Helper()
	src, w, q := kerneltest.Bytes(a.rng, s.SrcLen()), kerneltest.Int8s(a.rng, s.Taps()), kerneltest.NewRequant(a.rng, s.C)
	want := make([]uint8, s.DstLen())
	s.Fill(want, src, w, q)
	h := a.pack(2, put(a, w), s.C, s.KH*s.KW, s.KH)
	dst := put(a, make([]uint8, len(want)))
	a.may(dst, s.Rows, s.DstStep, s.Width*s.C)
	a.call("depthwise_u8", h, dst, last(a, src), a.putWindow(s), a.putQ(q))
	equal(a.t, "depthwise_u8", get[uint8](a, dst, len(want)), want)
}

func TestDepthwise(t *testing.T) {
	rounds(t, 200, func(t *testing.T, rng *rand.Rand) {
		testDepthwise(newArena(t, rng), kerneltest.NewWindow(rng, 1+rng.IntN(50)))
	})
}

func TestAddU8(t *testing.T) {
	rounds(t, 100, func(t *testing.T, rng *rand.Rand) {
		a, n := newArena(t, rng), rng.IntN(100)
		p, y, r, want := kerneltest.NewAdd(rng), kerneltest.Bytes(rng, n), kerneltest.Bytes(rng, n), make([]uint8, n)
		for i := range want {
			want[i] = kerneltest.AddResidual(p, y[i], r[i])
		}
		dst := a.out(1, 0, n)
		a.call("add_u8", dst, put(a, y), last(a, r), n, a.putAdd(p, 0))
		equal(t, "add_u8", get[uint8](a, dst, n), want)
	})
}

func TestSumRowsU8(t *testing.T) {
	rounds(t, 50, func(t *testing.T, rng *rand.Rand) {
		a, n, rows := newArena(t, rng), 1+rng.IntN(40), rng.IntN(1000)
		lds := n + rng.IntN(9)
		src, want := kerneltest.Bytes(rng, max(rows-1, 0)*lds+n), make([]uint32, n)
		kernel.SumRowsU8(want, src, lds, rows)
		dst := a.out(1, 0, 4*n)
		a.call("sum_rows_u8", dst, last(a, src), lds, rows, n)
		equal(t, "sum_rows_u8", get[uint32](a, dst, n), want)
	})
}
