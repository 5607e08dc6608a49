package kernel_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/sightline-dev/sightline/core/cpu"
	"github.com/sightline-dev/sightline/core/predict/nn/kernel"
	"github.com/sightline-dev/sightline/core/predict/nn/kernel/kerneltest"
)

func testDepthwiseU8(t *testing.T, rng *rand.Rand, s kerneltest.Window) {
	t.Helper()
	src, w, q := kerneltest.Bytes(rng, s.SrcLen()), kerneltest.Int8s(rng, s.Taps()), kerneltest.NewRequant(rng, s.C)
	packed := kernel.PackDepthwiseS8(w, s.C, s.KH, s.KW)
	same(t, s, make([]uint8, s.DstLen()), func(dst []uint8) { kernel.DepthwiseRowsU8(dst, src, s.Depthwise, packed, q) },
		func(dst []uint8) { s.Fill(dst, src, w, q) })
}

func testDepthwiseF32(t *testing.T, rng *rand.Rand, s kerneltest.Window) {
	t.Helper()
	src, w, bias := kerneltest.Floats(rng, s.SrcLen()), kerneltest.Floats(rng, s.Taps()), kerneltest.Floats(rng, s.C)
	packed := kernel.PackDepthwiseF32(w, bias, s.C, s.KH, s.KW)
	near(t, s, s.Rows, s.Width*s.C, s.DstStep, func(dst []float32) { kernel.DepthwiseRowsF32(dst, src, s.Depthwise, packed, -1, 2) },
		func(y, i int) (want, tolerance float64) { return s.Want(y, i, src, w, bias, -1, 2) })
}

func TestDepthwise(t *testing.T) {
	atEveryLevel(t, func(t *testing.T) {
		rng := rand.New(rand.NewPCG(5, 5))
		for c := 1; c <= 257 && !t.Failed(); c++ {
			for range 3 {
				testDepthwiseU8(t, rng, kerneltest.NewWindow(rng, c))
				testDepthwiseF32(t, rng, kerneltest.NewWindow(rng, c))
			}
		}
		// More than one pass over the channels: input rows of a large part of a chunk.
		tall := kerneltest.Window{Depthwise: kernel.Depthwise{Rows: 5, Width: 60, StrideX: 2, DilationX: 1}, C: 259, KH: 3, KW: 3}
		tall.SrcStride, tall.DstStep = 121*tall.C, tall.Width*tall.C
		tall.SrcStep = 3 * tall.SrcStride
		testDepthwiseU8(t, rng, tall)
		testDepthwiseF32(t, rng, tall)
	})
}

func TestAddU8(t *testing.T) {
	atEveryLevel(t, func(t *testing.T) {
		rng := rand.New(rand.NewPCG(5, 5))
		for n := 0; n <= 257; n++ {
			p := kerneltest.NewAdd(rng)
			y, r := kerneltest.Bytes(rng, n), kerneltest.Bytes(rng, n)
			same(t, p, make([]uint8, n), func(dst []uint8) { kernel.AddU8(dst, y, r, p) }, func(dst []uint8) {
				for i := range dst {
					dst[i] = kerneltest.AddResidual(p, y[i], r[i])
				}
			})
		}
	})
}

func TestAddU8EveryPair(t *testing.T) {
	atEveryLevel(t, func(t *testing.T) {
		seeds(t, 8, func(t *testing.T, rng *rand.Rand) {
			p := kerneltest.NewAdd(rng)
			y, r, dst := make([]uint8, 1<<16), make([]uint8, 1<<16), make([]uint8, 1<<16)
			for i := range y {
				y[i], r[i] = uint8(i), uint8(i>>8)
			}
			kernel.AddU8(dst, y, r, p)
			for i, got := range dst {
				if want := kerneltest.AddResidual(p, y[i], r[i]); got != want {
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
			a, b := kerneltest.Floats(rng, n), kerneltest.Floats(rng, n)
			if n > 0 {
				a[rng.IntN(n)] = float32(math.NaN())
			}
			sum := make([]float32, n+1)
			sum[n] = guard
			kernel.AddF32(sum[:n], a, b)
			for i := range n {
				if want := a[i] + b[i]; math.Float32bits(sum[i]) != math.Float32bits(want) {
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
			bytes, floats := kerneltest.Bytes(rng, rows*lds+n), kerneltest.Floats(rng, rows*lds+n)
			sums, fsums := make([]uint32, n+1), make([]float32, n+1)
			sums[n], fsums[n] = guard, guard
			kernel.SumRowsU8(sums[:n], bytes, lds, rows)
			kernel.SumRowsF32(fsums[:n], floats, lds, rows)
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

// TestShortSlicesPanic checks that slices that are too short for their shape panic before assembly sees them.
func TestShortSlicesPanic(t *testing.T) {
	w8, w32 := kernel.PackS8(make([]int8, 12), 3, 4), kernel.PackF32(make([]float32, 12), nil, 3, 4)
	dw := kernel.PackDepthwiseS8(make([]int8, 27), 3, 3, 3)
	q := &kernel.Requant{Bias: make([]int32, 3), Scale: make([]float32, 3)}
	b := func(n int) []uint8 { return make([]uint8, n) }
	tests := []struct {
		name string
		call func()
	}{
		{"dst", func() { kernel.GemmU8(b(5), 3, b(8), 4, 2, w8, q, nil) }},
		{"src", func() { kernel.GemmU8(b(6), 3, b(7), 4, 2, w8, q, nil) }},
		{"requant", func() { kernel.GemmU8(b(6), 3, b(8), 4, 2, w8, &kernel.Requant{}, nil) }},
		{"residual", func() { kernel.GemmU8(b(6), 3, b(8), 4, 2, w8, q, &kernel.Add{R: b(5), LDR: 3}) }},
		{"zero point", func() {
			kernel.GemmU8(b(6), 3, b(8), 4, 2, w8, &kernel.Requant{Bias: q.Bias, Scale: q.Scale, Zero: 256}, nil)
		}},
		{"rows past int", func() { kernel.GemmU8(b(6), 3, b(8), math.MaxInt/2, 4, w8, q, nil) }},
		{"negative stride", func() { kernel.GemmU8(b(6), 3, b(8), -4, 2, w8, q, nil) }},
		{"float dst", func() { kernel.GemmF32(make([]float32, 5), 3, make([]float32, 8), 4, 2, w32, nil, 0, 0, 0) }},
		{"segments", func() { kernel.ConvRowU8(b(6), 3, b(9), 4, 4, 2, kernel.PackConvS8(make([]int8, 12), 3, 2, 2), q, nil) }},
		{"depthwise src", func() { kernel.DepthwiseRowU8(b(6), b(35), 12, 2, 1, 1, dw, q) }},
		{"gemv", func() { kernel.GemvU16(make([]int64, 3), make([]uint16, 3), w8, nil) }},
		{"level", func() { kernel.Levels.Force(cpu.Lent + 1) }},
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

func TestKernelsAllocateNothing(t *testing.T) {
	atEveryLevel(t, func(t *testing.T) {
		rng := rand.New(rand.NewPCG(5, 5))
		w8, w32 := kernel.PackS8(kerneltest.Int8s(rng, 48*30), 48, 30), kernel.PackF32(kerneltest.Floats(rng, 48*30), nil, 48, 30)
		d8 := kernel.PackDepthwiseS8(kerneltest.Int8s(rng, 48*9), 48, 3, 3)
		d32 := kernel.PackDepthwiseF32(kerneltest.Floats(rng, 48*9), nil, 48, 3, 3)
		w3 := kernel.PackConv3x3S8(kerneltest.Int8s(rng, 16*9*16), 16, 16)
		q, add := kerneltest.NewRequant(rng, 48), kerneltest.NewAdd(rng)
		bytes, floats, sums := kerneltest.Bytes(rng, 48*100), kerneltest.Floats(rng, 48*100), make([]int64, 48)
		squares := kernel.PackConvF32Squares(kerneltest.Floats(rng, 48*9*8), nil, 48, 8)
		scratch := make([]float32, squares.Scratch(5))
		dst, fdst := make([]uint8, 48*20), make([]float32, 48*20)
		add.R, add.LDR = bytes, 48
		allocs := testing.AllocsPerRun(10, func() {
			kernel.GemmU8(dst, 48, bytes, 30, 20, w8, q, nil)
			kernel.GemmU8(dst, 48, bytes, 30, 20, w8, q, add)
			kernel.ConvRowsU8(dst, 16, bytes, 16, 6*16, 4, kernel.Rows{Rows: 4, DstStep: 64, SrcStep: 6 * 16}, w3, q)
			kernel.GemmF32(fdst, 48, floats, 30, 20, w32, nil, 0, 0, 1)
			kernel.ConvRowsF32(fdst, 48, floats, 8, 56, 5, kernel.Rows{Rows: 3, DstStep: 240, SrcStep: 56}, squares, 0, 1, scratch)
			kernel.DepthwiseRowU8(dst, bytes, 480, 8, 1, 1, d8, q)
			kernel.DepthwiseRowF32(fdst, floats, 480, 8, 1, 1, d32, 0, 6)
			kernel.GemvU16(sums, make([]uint16, 30), w8, nil)
		})
		if allocs != 0 {
			t.Errorf("one round allocates %v times", allocs)
		}
	})
}
