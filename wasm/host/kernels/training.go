package kernels

import (
	"math"

	"github.com/sightline-dev/sightline/core/train/kernel"
)

// lanes returns a length for the training kernels. If it is not a multiple of kernel.Lanes, lanes ends the instance.
func lanes(v uint64) int {
	n := count(v)
	if n%kernel.Lanes != 0 {
		wild()
	}
	return n
}

// product(dst, ldd, a, lda, m, panel, k)
func (in *Instance) product(s []uint64) {
	ldd, lda, m, k := count(s[1]), count(s[3]), count(s[4]), count(s[6])
	if m == 0 {
		return
	}
	in.work(m, kernel.Lanes, k)
	dst := view[float32](in, s[0], extent(m, ldd, kernel.Lanes))
	a := view[float32](in, s[2], extent(m, lda, k))
	kernel.Product(dst, ldd, a, lda, m, view[float32](in, s[5], times(k, kernel.Lanes)), k)
}

// dot(a, b, n) → f32
func (in *Instance) dot(s []uint64) {
	n := lanes(s[2])
	s[0] = uint64(math.Float32bits(kernel.Dot(view[float32](in, s[0], n), view[float32](in, s[1], n))))
}

// axpy(y, f, x, n)
func (in *Instance) axpy(s []uint64) {
	n := lanes(s[3])
	kernel.Axpy(view[float32](in, s[0], n), float(s[1]), view[float32](in, s[2], n))
}

// residual(r, z, bias, w, y, n)
func (in *Instance) residual(s []uint64) {
	n := lanes(s[5])
	kernel.LogisticResidual(view[float32](in, s[0], n), view[float32](in, s[1], n), float(s[2]), view[float32](in, s[3], n), view[float32](in, s[4], n))
}

// raise(top, z, bias, n)
func (in *Instance) raise(s []uint64) {
	n := lanes(s[3])
	kernel.Max(view[float32](in, s[0], n), view[float32](in, s[1], n), float(s[2]))
}

// exp(z, bias, top, sum, n)
func (in *Instance) exp(s []uint64) {
	n := lanes(s[4])
	kernel.Exp(view[float32](in, s[0], n), float(s[1]), view[float32](in, s[2], n), view[float32](in, s[3], n))
}

// share(r, e, sum, w, y, n)
func (in *Instance) share(s []uint64) {
	n := lanes(s[5])
	kernel.SoftmaxResidual(view[float32](in, s[0], n), view[float32](in, s[1], n), view[float32](in, s[2], n), view[float32](in, s[3], n), view[float32](in, s[4], n))
}

// evaluate implements rows(dst, n, w, d, q)
func (in *Instance) evaluate(s []uint64) {
	n, d := count(s[1]), lanes(s[3])
	kernel.Rows(view[float32](in, s[0], n), view[float32](in, s[2], d), view[int16](in, s[4], times(n, d)))
}
