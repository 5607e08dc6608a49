//go:build !purego

package kernel

import (
	"math"
	"unsafe"
)

// args holds the operands of the assembly: fields of 8 bytes in the order of the arg…
// constants of asm/arm64/main.go.
type args struct {
	dst, a, b unsafe.Pointer
	ldd, lda  int // bytes between rows
	m         int // tiles or rows
	n         int // elements
	f         uint64
	x, y      unsafe.Pointer
	constants unsafe.Pointer
}

func (a *args) ptr() *byte { return (*byte)(unsafe.Pointer(a)) }

func product(dst []float32, ldd int, a []float32, lda, m int, panel []float32, k int) {
	g := args{b: unsafe.Pointer(&panel[0]), ldd: 4 * ldd, lda: 4 * lda, n: k}
	if g.m = m / 2; g.m > 0 {
		g.dst, g.a = unsafe.Pointer(&dst[0]), unsafe.Pointer(&a[0])
		product2NEON(g.ptr())
	}
	if i := m - 1; m%2 == 1 {
		g.dst, g.a, g.m = unsafe.Pointer(&dst[i*ldd]), unsafe.Pointer(&a[i*lda]), 1
		product1NEON(g.ptr())
	}
}

func dot(a, b []float32) float32 {
	var s float32
	g := args{dst: unsafe.Pointer(&s), a: unsafe.Pointer(&a[0]), b: unsafe.Pointer(&b[0]), n: len(a)}
	dotNEON(g.ptr())
	return s
}

func axpy(y []float32, f float32, x []float32) {
	g := args{dst: unsafe.Pointer(&y[0]), a: unsafe.Pointer(&x[0]), n: len(y), f: uint64(math.Float32bits(f))}
	axpyNEON(g.ptr())
}

func rows(dst, w []float32, q []int16) {
	g := args{dst: unsafe.Pointer(&dst[0]), a: unsafe.Pointer(&q[0]), b: unsafe.Pointer(&w[0]), m: len(dst), n: len(w)}
	rowsNEON(g.ptr())
}

// exponentials are the constants of [exponential], in the order in which the assembly reads them.
var exponentials = [...]float32{-expLimit, expLimit, log2e, shifter, ln2Hi, ln2Lo, expC6, expC5, expC4, expC3, expC2, 1}

// onSlices returns the common operands of a function on slices.
func onSlices(dst, a []float32, f float32) args {
	return args{
		dst: unsafe.Pointer(&dst[0]), a: unsafe.Pointer(&a[0]), n: len(dst), f: uint64(math.Float32bits(f)),
		constants: unsafe.Pointer(&exponentials),
	}
}

func residual(r, z []float32, bias float32, w, y []float32) {
	g := onSlices(r, z, bias)
	g.b, g.x = unsafe.Pointer(&w[0]), unsafe.Pointer(&y[0])
	residualNEON(g.ptr())
}

func raise(top, z []float32, bias float32) {
	g := onSlices(top, z, bias)
	raiseNEON(g.ptr())
}

func exp(z []float32, bias float32, top, sum []float32) {
	g := onSlices(z, top, bias)
	g.b = unsafe.Pointer(&sum[0])
	expNEON(g.ptr())
}

func share(r, e, sum, w, y []float32) {
	g := onSlices(r, e, 0)
	g.b, g.x, g.y = unsafe.Pointer(&w[0]), unsafe.Pointer(&y[0]), unsafe.Pointer(&sum[0])
	shareNEON(g.ptr())
}
