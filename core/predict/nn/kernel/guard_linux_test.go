package kernel

import (
	"math/rand/v2"
	"syscall"
	"testing"
	"unsafe"
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

// guardWords is arena.bytes for elements of four bytes.
func guardWords[T int32 | uint32 | float32](a *arena, from []T) []T {
	if len(from) == 0 {
		return from
	}
	b := a.bytes(unsafe.Slice((*uint8)(unsafe.Pointer(&from[0])), 4*len(from)))
	return unsafe.Slice((*T)(unsafe.Pointer(&b[0])), len(from))
}

func (a *arena) requant(q *Requant) *Requant {
	guarded := *q
	guarded.Bias, guarded.Scale = guardWords(a, q.Bias), guardWords(a, q.Scale)
	return &guarded
}

func TestNothingBeyondTheEndIsTouched(t *testing.T) {
	atEveryLevel(t, func(t *testing.T) {
		a := &arena{t: t}
		seeds(t, 150, func(t *testing.T, rng *rand.Rand) {
			defer a.free()
			p := newProduct(rng, 1+rng.IntN(33), 1+rng.IntN(70), 1+rng.IntN(3), 1+rng.IntN(40))
			dst := make([]uint8, (p.m-1)*p.ldd+p.n)
			w := PackConvS8(p.w, p.n, p.segs, p.seg)
			src := a.bytes(p.src)
			ConvRowU8(a.bytes(dst), p.ldd, src, p.stepX, p.srcStride, p.m, w, a.requant(p.q), nil)
			floats := guardWords(a, floatsOf(rng, len(p.src)))
			res := guardWords(a, floatsOf(rng, len(dst)))
			wf := PackConvF32(floatsOf(rng, len(p.w)), nil, p.n, p.segs, p.seg)
			ConvRowF32(guardWords(a, make([]float32, len(dst))), p.ldd, floats, p.stepX, p.srcStride, p.m, wf, res, p.ldd, -1, 1)

			s := windowOf(rng, 1+rng.IntN(140))
			d8 := PackDepthwiseS8(int8sOf(rng, s.c*s.kh*s.kw), s.c, s.kh, s.kw)
			DepthwiseRowsU8(a.bytes(make([]uint8, s.dstLen())), a.bytes(bytesOf(rng, s.srcLen())), s.Depthwise, d8, a.requant(requantOf(rng, s.c)))
			df := PackDepthwiseF32(floatsOf(rng, s.c*s.kh*s.kw), nil, s.c, s.kh, s.kw)
			df.w, df.Bias = guardWords(a, df.w), guardWords(a, df.Bias)
			DepthwiseRowsF32(guardWords(a, make([]float32, s.dstLen())), guardWords(a, floatsOf(rng, s.srcLen())), s.Depthwise, df, 0, 6)

			n := 1 + rng.IntN(200)
			x, f := a.bytes(bytesOf(rng, n)), guardWords(a, floatsOf(rng, n))
			AddU8(a.bytes(make([]uint8, n)), x, x, addOf(rng))
			AddF32(guardWords(a, make([]float32, n)), f, f, 0, 1)
			SumRowsU8(guardWords(a, make([]uint32, n)), x, 0, 3)
			SumRowsF32(guardWords(a, make([]float32, n)), f, 0, 3)
		})
	})
}
