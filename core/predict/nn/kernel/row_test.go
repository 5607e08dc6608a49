package kernel

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/sightline-dev/sightline/core/cpu"
)

// window is random rows of a depthwise convolution: its geometry and its kernel.
type window struct {
	Depthwise
	c, kh, kw int
}

func windowOf(rng *rand.Rand, c int) window {
	s := window{Depthwise{Rows: 1 + rng.IntN(3), Width: 1 + rng.IntN(9), StrideX: 1 + rng.IntN(3), DilationX: 1}, c, 3, 3}
	if rng.IntN(3) == 0 {
		s.kh, s.kw, s.DilationX = 1+rng.IntN(6), 1+rng.IntN(6), 1+rng.IntN(2)
	}
	if rng.IntN(40) == 0 {
		s.kh, s.kw = 12, 12 // more taps than the assembly takes
	}
	s.SrcStride = ((s.Width-1)*s.StrideX+(s.kw-1)*s.DilationX+1)*c + rng.IntN(9)
	s.SrcStep = rng.IntN(3) * s.SrcStride
	s.DstStep = s.Width*c + rng.IntN(9)
	return s
}

func (s window) dstLen() int { return (s.Rows-1)*s.DstStep + s.Width*s.c }

func (s window) srcLen() int {
	return (s.Rows-1)*s.SrcStep + (s.kh-1)*s.SrcStride + ((s.Width-1)*s.StrideX+(s.kw-1)*s.DilationX+1)*s.c
}

// eachTap calls f with the source offset and the weight offset of output y, x, c.
func (s window) eachTap(y, x, c int, f func(src, w int)) {
	for ky := range s.kh {
		for kx := range s.kw {
			f(y*s.SrcStep+ky*s.SrcStride+(x*s.StrideX+kx*s.DilationX)*s.c+c, (c*s.kh+ky)*s.kw+kx)
		}
	}
}

// eachOutput calls f for each output and its offset, until f returns false.
func (s window) eachOutput(f func(y, x, c, at int) bool) {
	for y := range s.Rows {
		for i := range s.Width * s.c {
			if !f(y, i/s.c, i%s.c, y*s.DstStep+i) {
				return
			}
		}
	}
}

func testDepthwiseU8(t *testing.T, rng *rand.Rand, s window) {
	t.Helper()
	src, w, q := bytesOf(rng, s.srcLen()), int8sOf(rng, s.c*s.kh*s.kw), requantOf(rng, s.c)
	dst, check := guarded(s.dstLen(), s.DstStep, s.Width*s.c)
	DepthwiseRowsU8(dst, src, s.Depthwise, PackDepthwiseS8(w, s.c, s.kh, s.kw), q)
	check(t)
	s.eachOutput(func(y, x, c, at int) bool {
		acc := q.Bias[c]
		s.eachTap(y, x, c, func(a, b int) { acc += int32(src[a]) * int32(w[b]) })
		want := byteFor(q, acc, c)
		if dst[at] != want {
			t.Errorf("DepthwiseRowsU8(%+v)[%d,%d,%d] = %d, want %d", s, y, x, c, dst[at], want)
		}
		return dst[at] == want
	})
}

func testDepthwiseF32(t *testing.T, rng *rand.Rand, s window) {
	t.Helper()
	src, w, bias := floatsOf(rng, s.srcLen()), floatsOf(rng, s.c*s.kh*s.kw), floatsOf(rng, s.c)
	dst := make([]float32, s.dstLen()+65)
	for i := range dst {
		dst[i] = guard
	}
	DepthwiseRowsF32(dst[:s.dstLen()], src, s.Depthwise, PackDepthwiseF32(w, bias, s.c, s.kh, s.kw), -1, 2)
	s.eachOutput(func(y, x, c, at int) bool {
		want, mass := float64(bias[c]), math.Abs(float64(bias[c]))
		s.eachTap(y, x, c, func(a, b int) {
			term := float64(src[a]) * float64(w[b])
			want, mass = want+term, mass+math.Abs(term)
		})
		want = math.Min(math.Max(want, -1), 2)
		good := within(dst[at], want, mass, s.kh*s.kw)
		if !good {
			t.Errorf("DepthwiseRowsF32(%+v)[%d,%d,%d] = %v, want %v", s, y, x, c, dst[at], want)
		}
		dst[at] = guard
		return good
	})
	for i, v := range dst {
		if v != guard && !t.Failed() {
			t.Errorf("DepthwiseRowsF32(%+v) wrote outside, at %d", s, i)
		}
	}
}

func TestDepthwise(t *testing.T) {
	atEveryLevel(t, func(t *testing.T) {
		rng := rand.New(rand.NewPCG(5, 5))
		for c := 1; c <= 257 && !t.Failed(); c++ {
			for range 3 {
				testDepthwiseU8(t, rng, windowOf(rng, c))
				testDepthwiseF32(t, rng, windowOf(rng, c))
			}
		}
		// More than one pass over the channels: input rows of a large part of a chunk.
		tall := window{Depthwise{Rows: 5, Width: 60, StrideX: 2, DilationX: 1}, 259, 3, 3}
		tall.SrcStride, tall.DstStep = 121*tall.c, tall.Width*tall.c
		tall.SrcStep = 3 * tall.SrcStride
		testDepthwiseU8(t, rng, tall)
		testDepthwiseF32(t, rng, tall)
	})
}

func addOf(rng *rand.Rand) *Add {
	a := &Add{
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
		a.ScaleY = 1e9
	}
	return a
}

func addByte(p *Add, y, r uint8) uint8 {
	s := float32(float32(int32(y)-p.ZeroY)*p.ScaleY) + float32(float32(int32(r)-p.ZeroR)*p.ScaleR)
	return clampByte(math.RoundToEven(float64(s))+float64(p.Zero), p.Lo, p.Hi)
}

func TestAddU8(t *testing.T) {
	atEveryLevel(t, func(t *testing.T) {
		rng := rand.New(rand.NewPCG(5, 5))
		for n := 0; n <= 257; n++ {
			p := addOf(rng)
			y, r := bytesOf(rng, n), bytesOf(rng, n)
			dst, check := guarded(n, n+1, n)
			AddU8(dst, y, r, p)
			check(t)
			for i, got := range dst {
				if want := addByte(p, y[i], r[i]); got != want {
					t.Fatalf("AddU8(n=%d, %+v)[%d] of %d, %d = %d, want %d", n, p, i, y[i], r[i], got, want)
				}
			}
		}
	})
}

func TestAddU8EveryPair(t *testing.T) {
	atEveryLevel(t, func(t *testing.T) {
		seeds(t, 8, func(t *testing.T, rng *rand.Rand) {
			p := addOf(rng)
			y, r, dst := make([]uint8, 1<<16), make([]uint8, 1<<16), make([]uint8, 1<<16)
			for i := range y {
				y[i], r[i] = uint8(i), uint8(i>>8)
			}
			AddU8(dst, y, r, p)
			for i, got := range dst {
				if want := addByte(p, y[i], r[i]); got != want {
					t.Errorf("AddU8(%+v) of %d, %d = %d, want %d", p, y[i], r[i], got, want)
					return
				}
			}
		})
	})
}

func TestElementwiseF32(t *testing.T) {
	atEveryLevel(t, func(t *testing.T) {
		rng := rand.New(rand.NewPCG(5, 5))
		for n := 0; n <= 257; n++ {
			a, b := floatsOf(rng, n), floatsOf(rng, n)
			if n > 0 {
				a[rng.IntN(n)] = float32(math.NaN())
			}
			sum := make([]float32, n+1)
			sum[n] = guard
			AddF32(sum[:n], a, b, -1, 1)
			for i := range n {
				if want := clamp(a[i]+b[i], -1, 1); math.Float32bits(sum[i]) != math.Float32bits(want) {
					t.Fatalf("AddF32(n=%d)[%d] = %v, want %v", n, i, sum[i], want)
				}
			}
			if sum[n] != guard {
				t.Fatalf("n=%d: wrote past the end", n)
			}
		}
	})
}

func TestSumRows(t *testing.T) {
	atEveryLevel(t, func(t *testing.T) {
		rng := rand.New(rand.NewPCG(5, 5))
		for n := 0; n <= 257; n++ {
			lds, rows := n+rng.IntN(4), rng.IntN(60)
			bytes, floats := bytesOf(rng, rows*lds+n), floatsOf(rng, rows*lds+n)
			sums, fsums := make([]uint32, n+1), make([]float32, n+1)
			sums[n], fsums[n] = guard, guard
			SumRowsU8(sums[:n], bytes, lds, rows)
			SumRowsF32(fsums[:n], floats, lds, rows)
			for c := range n {
				var want uint32
				var fwant float32
				for i := range rows {
					want += uint32(bytes[i*lds+c])
					fwant += floats[i*lds+c]
				}
				if sums[c] != want || fsums[c] != fwant {
					t.Fatalf("SumRows(n=%d rows=%d)[%d] = %d, %v, want %d, %v", n, rows, c, sums[c], fsums[c], want, fwant)
				}
			}
			if sums[n] != guard || fsums[n] != guard {
				t.Fatalf("n=%d: wrote past the end", n)
			}
		}
	})
}

// TestShortSlicesPanic keeps the assembly from ever seeing a shape its slices do not hold.
func TestShortSlicesPanic(t *testing.T) {
	w8, w32 := PackS8(make([]int8, 12), 3, 4), PackF32(make([]float32, 12), nil, 3, 4)
	dw := PackDepthwiseS8(make([]int8, 27), 3, 3, 3)
	q := &Requant{Bias: make([]int32, 3), Scale: make([]float32, 3)}
	b := func(n int) []uint8 { return make([]uint8, n) }
	tests := []struct {
		name string
		call func()
	}{
		{"dst", func() { GemmU8(b(5), 3, b(8), 4, 2, w8, q, nil) }},
		{"src", func() { GemmU8(b(6), 3, b(7), 4, 2, w8, q, nil) }},
		{"requant", func() { GemmU8(b(6), 3, b(8), 4, 2, w8, &Requant{}, nil) }},
		{"residual", func() { GemmU8(b(6), 3, b(8), 4, 2, w8, q, &Add{R: b(5), LDR: 3}) }},
		{"zero point", func() { GemmU8(b(6), 3, b(8), 4, 2, w8, &Requant{Bias: q.Bias, Scale: q.Scale, Zero: 256}, nil) }},
		{"rows past int", func() { GemmU8(b(6), 3, b(8), math.MaxInt/2, 4, w8, q, nil) }},
		{"negative stride", func() { GemmU8(b(6), 3, b(8), -4, 2, w8, q, nil) }},
		{"float dst", func() { GemmF32(make([]float32, 5), 3, make([]float32, 8), 4, 2, w32, nil, 0, 0, 0) }},
		{"segments", func() { ConvRowU8(b(6), 3, b(9), 4, 4, 2, PackConvS8(make([]int8, 12), 3, 2, 2), q, nil) }},
		{"depthwise src", func() { DepthwiseRowU8(b(6), b(35), 12, 2, 1, 1, dw, q) }},
		{"gemv", func() { GemvU16(make([]int64, 3), make([]uint16, 3), w8, nil) }},
		{"level", func() { Levels.Force(cpu.Lent + 1) }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			tt.call()
		})
	}
}

func TestNothingAllocates(t *testing.T) {
	atEveryLevel(t, func(t *testing.T) {
		rng := rand.New(rand.NewPCG(5, 5))
		w8, w32 := PackS8(int8sOf(rng, 48*30), 48, 30), PackF32(floatsOf(rng, 48*30), nil, 48, 30)
		d8, d32 := PackDepthwiseS8(int8sOf(rng, 48*9), 48, 3, 3), PackDepthwiseF32(floatsOf(rng, 48*9), nil, 48, 3, 3)
		q, add := requantOf(rng, 48), addOf(rng)
		bytes, floats, sums := bytesOf(rng, 48*100), floatsOf(rng, 48*100), make([]int64, 48)
		dst, fdst := make([]uint8, 48*20), make([]float32, 48*20)
		add.R, add.LDR = bytes, 48
		allocs := testing.AllocsPerRun(10, func() {
			GemmU8(dst, 48, bytes, 30, 20, w8, q, nil)
			GemmU8(dst, 48, bytes, 30, 20, w8, q, add)
			GemmF32(fdst, 48, floats, 30, 20, w32, nil, 0, 0, 1)
			DepthwiseRowU8(dst, bytes, 480, 8, 1, 1, d8, q)
			DepthwiseRowF32(fdst, floats, 480, 8, 1, 1, d32, 0, 6)
			GemvU16(sums, make([]uint16, 30), w8, nil)
		})
		if allocs != 0 {
			t.Errorf("one round allocates %v times", allocs)
		}
	})
}
