package kernel_test

import (
	"math/rand/v2"
	"syscall"
	"testing"
	"unsafe"

	"github.com/sightline-dev/sightline/core/predict/nn/kernel"
	"github.com/sightline-dev/sightline/core/predict/nn/kernel/kerneltest"
)

// arena hands out slices that end where an unreadable page begins, so that a read
// or write past the end is a fault.
type arena struct {
	t     *testing.T
	pages [][]byte
}

func (a *arena) bytes(from []uint8) []uint8 {
	page := syscall.Getpagesize()
	size := (len(from)+page-1)/page*page + page
	m, err := syscall.Mmap(-1, 0, size, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		a.t.Fatal(err)
	}
	if err := syscall.Mprotect(m[size-page:], syscall.PROT_NONE); err != nil {
		a.t.Fatal(err)
	}
	a.pages = append(a.pages, m)
	b := m[size-page-len(from) : size-page : size-page]
	copy(b, from)
	return b
}

func (a *arena) free() {
	for _, m := range a.pages {
		if err := syscall.Munmap(m); err != nil {
			a.t.Error(err)
		}
	}
	a.pages = nil
}

// guardWords does the same as arena.bytes for elements of four bytes.
func guardWords[T int32 | uint32 | float32](a *arena, from []T) []T {
	if len(from) == 0 {
		return from
	}
	b := a.bytes(unsafe.Slice((*uint8)(unsafe.Pointer(&from[0])), 4*len(from)))
	return unsafe.Slice((*T)(unsafe.Pointer(&b[0])), len(from))
}

func (a *arena) requant(q *kernel.Requant) *kernel.Requant {
	guarded := *q
	guarded.Bias, guarded.Scale = guardWords(a, q.Bias), guardWords(a, q.Scale)
	return &guarded
}

func TestKernelsStayWithinSlices(t *testing.T) {
	atEveryLevel(t, func(t *testing.T) {
		a := &arena{t: t}
		seeds(t, 150, func(t *testing.T, rng *rand.Rand) {
			defer a.free()
			p := kerneltest.NewProduct(rng, 1+rng.IntN(33), 1+rng.IntN(70), 1+rng.IntN(3), 1+rng.IntN(40))
			dst := make([]uint8, p.DstLen())
			w := kernel.PackConvS8(p.W, p.N, p.Segs, p.Seg)
			src := a.bytes(p.Src)
			kernel.ConvRowU8(a.bytes(dst), p.LDD, src, p.StepX, p.SrcStride, p.M, w, a.requant(p.Q), nil)
			floats := guardWords(a, kerneltest.Floats(rng, len(p.Src)))
			res := guardWords(a, kerneltest.Floats(rng, len(dst)))
			wf := kernel.PackConvF32(kerneltest.Floats(rng, len(p.W)), nil, p.N, p.Segs, p.Seg)
			kernel.ConvRowF32(guardWords(a, make([]float32, len(dst))), p.LDD, floats, p.StepX, p.SrcStride, p.M, wf, res, p.LDD, -1, 1)

			b := kerneltest.NewConv3x3(rng)
			w3 := kernel.PackConv3x3S8(b.W, b.N, b.StepX)
			kernel.ConvRowsU8(a.bytes(make([]uint8, b.DstLen())), b.LDD, a.bytes(b.Src), b.StepX, b.SrcStride, b.M, b.R, w3, a.requant(b.Q))

			square := kerneltest.NewSquaresF32(rng, 1+rng.IntN(4), 1+rng.IntN(6), 8*(1+rng.IntN(3)), 8*(1+rng.IntN(2)))
			ws := kernel.PackConvF32Squares(square.W, guardWords(a, square.Bias), square.N, square.C)
			rows := kernel.Rows{Rows: square.Rows, DstStep: square.DstStep, SrcStep: square.Row}
			kernel.ConvRowsF32(guardWords(a, make([]float32, square.DstLen())), square.LDD, guardWords(a, square.Src), square.C, square.Row,
				square.M, rows, ws, -1, 1, guardWords(a, make([]float32, ws.Scratch(square.M))))

			s := kerneltest.NewWindow(rng, 1+rng.IntN(140))
			d8 := kernel.PackDepthwiseS8(kerneltest.Int8s(rng, s.Taps()), s.C, s.KH, s.KW)
			in, q := a.bytes(kerneltest.Bytes(rng, s.SrcLen())), a.requant(kerneltest.NewRequant(rng, s.C))
			kernel.DepthwiseRowsU8(a.bytes(make([]uint8, s.DstLen())), in, s.Depthwise, d8, q)
			df := kernel.PackDepthwiseF32(kerneltest.Floats(rng, s.Taps()), nil, s.C, s.KH, s.KW)
			df.MoveWeights(func(v []float32) []float32 { return guardWords(a, v) })
			inF := guardWords(a, kerneltest.Floats(rng, s.SrcLen()))
			kernel.DepthwiseRowsF32(guardWords(a, make([]float32, s.DstLen())), inF, s.Depthwise, df, 0, 6)

			n := 1 + rng.IntN(200)
			x, f := a.bytes(kerneltest.Bytes(rng, n)), guardWords(a, kerneltest.Floats(rng, n))
			kernel.AddU8(a.bytes(make([]uint8, n)), x, x, kerneltest.NewAdd(rng))
			kernel.AddF32(guardWords(a, make([]float32, n)), f, f)
			kernel.SumRowsU8(guardWords(a, make([]uint32, n)), x, 0, 3)
			kernel.SumRowsF32(guardWords(a, make([]float32, n)), f, 0, 3)
		})
	})
}
