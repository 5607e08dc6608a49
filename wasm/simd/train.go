package simd

import "github.com/sightline-dev/sightline/wasm/simd/emit"

// The functions of core/train/kernel. A vector of 32 lanes takes eight registers. Each product is rounded before it is added.

const lanes = 32

// defineTraining defines product, dot, axpy, residual, raise, exp, share and rows.
func (k *kernels) defineTraining() {
	k.defineProduct()
	k.defineDot()
	k.defineRowsOfWeights()
	k.defineSteps()
}

// defineProduct defines product(dst, ldd, a, lda, m, panel, depth). A panel has 32 columns, which are four tiles of eight.
func (k *kernels) defineProduct() {
	tile, single := k.defineProductTile(tileRows), k.defineProductTile(1)
	f := k.Func("product", ints(7))
	dst, ldd, a, lda, m := f.Param(0), f.Let(f.Param(1).Shl(2)), f.Param(2), f.Let(f.Param(3).Shl(2)), f.Param(4)
	panel, depth := f.Param(5), f.Param(6)
	j := f.Local(i32)
	take := func(rows int, kernel *emit.Func) {
		f.While(m.GeS(rows), func() {
			f.Set(j, 0)
			each(f, j, emit.C(4*lanes), 4*tileCols, func() {
				f.Call(kernel, dst.Add(j), ldd, a, lda, panel.Add(j), depth)
			})
			f.Inc(dst, ldd.Mul(rows))
			f.Inc(a, lda.Mul(rows))
			f.Inc(m, -rows)
		})
	}
	take(tileRows, tile)
	take(1, single)
}

// defineProductTile defines (dst, ldd, a, lda, panel, depth), which computes a tile of a number of rows by eight columns. ldd and lda are
// in bytes. Each element is a sum in ascending order of k, starting at +0. Each product is rounded before it is added.
func (k *kernels) defineProductTile(rows int) *emit.Func {
	f := k.Func("", ints(6))
	dst, ldd, first, lda, panel, depth := f.Param(0), f.Param(1), f.Param(2), f.Param(3), f.Param(4), f.Param(5)
	a, acc := make([]value, rows), make([][2]value, rows)
	for r := range a {
		if a[r] = first; r > 0 {
			a[r] = f.Let(a[r-1].Add(lda))
		}
		acc[r] = [2]value{f.Let(i32x4.Splat(0)), f.Let(i32x4.Splat(0))}
	}
	w0, w1, x := f.Local(v128), f.Local(v128), f.Local(v128)
	f.While(depth, func() {
		f.Set(w0, panel.Load(v128, 0))
		f.Set(w1, panel.Load(v128, 16))
		for r := range a {
			f.Set(x, a[r].Load32Splat(0))
			f.Set(acc[r][0], f32x4.Add(acc[r][0], f32x4.Mul(x, w0)))
			f.Set(acc[r][1], f32x4.Add(acc[r][1], f32x4.Mul(x, w1)))
			f.Inc(a[r], 4)
		}
		f.Inc(panel, 4*lanes)
		f.Inc(depth, -1)
	})
	for r := range a {
		f.Store(dst, 0, acc[r][0])
		f.Store(dst, 16, acc[r][1])
		f.Inc(dst, ldd)
	}
	return f
}

// fold32 returns the sum of 32 lanes. It adds the upper half of the lanes to the lower half until one lane is left.
func fold32(f *emit.Func, s *[8]value) value {
	for half := 4; half > 0; half /= 2 {
		for i := range half {
			f.Set(s[i], f32x4.Add(s[i], s[i+half]))
		}
	}
	f.Set(s[0], f32x4.Add(s[0], emit.Shuffle32(s[0], s[0], 2, 3, 2, 3)))
	return f32x4.Lane(f32x4.Add(s[0], emit.Shuffle32(s[0], s[0], 1, 1, 1, 1)), 0)
}

func lanesOf(f *emit.Func) (s [8]value) {
	for i := range s {
		s[i] = f.Local(v128)
	}
	return s
}

func clearLanes(f *emit.Func, s *[8]value) {
	for i := range s {
		f.Set(s[i], i32x4.Splat(0))
	}
}

// defineDot defines dot(a, b, n).
func (k *kernels) defineDot() {
	f := k.Func("dot", ints(3), f32)
	a, b, n := f.Param(0), f.Param(1), f.Param(2)
	s := lanesOf(f)
	f.While(n.GtS(0), func() {
		for i := range s {
			f.Set(s[i], f32x4.Add(s[i], f32x4.Mul(a.Load(v128, 16*i), b.Load(v128, 16*i))))
		}
		f.Inc(a, 4*lanes)
		f.Inc(b, 4*lanes)
		f.Inc(n, -lanes)
	})
	f.Return(fold32(f, &s))
}

// defineRowsOfWeights defines rows(dst, n, w, d, q).
func (k *kernels) defineRowsOfWeights() {
	f := k.Func("rows", ints(5))
	dst, n, w, d, q := f.Param(0), f.Param(1), f.Param(2), f.Param(3), f.Param(4)
	s, at := lanesOf(f), f.Local(i32)
	f.While(n.GtS(0), func() {
		clearLanes(f, &s)
		f.Set(at, 0)
		each(f, at, d, lanes, func() {
			for i := range s {
				x := f32x4.Convert(q.Load16x4S(8 * i))
				f.Set(s[i], f32x4.Add(s[i], f32x4.Mul(x, w.Add(at.Shl(2)).Load(v128, 16*i))))
			}
			f.Inc(q, 2*lanes)
		})
		f.Store(dst, 0, fold32(f, &s))
		f.Inc(dst, 4)
		f.Inc(n, -1)
	})
}

// Constants of the exponential.
const (
	expLimit = float32(87)
	log2e    = float32(0x1.715476p+0)
	ln2Hi    = float32(0x1.62e4p-1)
	ln2Lo    = float32(0x1.7f7d1cp-20)
)

var taylor = []float32{0x1.6c16c16c16c17p-10, 0x1.1111111111111p-7, 0x1.5555555555555p-5, 0x1.5555555555555p-3, 0.5, 1, 1}

// defineExponential defines the exponential of four numbers, with the same steps as core/train/kernel/kernel_generic.go.
func (k *kernels) defineExponential() *emit.Func {
	f := k.Func("", emit.Params(v128), v128)
	c := f32x4.Splat
	x, t, p := f.Param(0), f.Local(v128), f.Local(v128)
	f.Set(x, f32x4.PMax(c(-expLimit), x))
	f.Set(x, f32x4.PMin(c(expLimit), x))
	f.Set(t, f32x4.Add(f32x4.Mul(x, c(log2e)), c(magic)))
	n := f.Let(f32x4.Sub(t, c(magic)))
	f.Set(x, f32x4.Sub(x, f32x4.Mul(n, c(ln2Hi))))
	f.Set(x, f32x4.Sub(x, f32x4.Mul(n, c(ln2Lo))))
	f.Set(p, c(taylor[0]))
	for _, v := range taylor[1:] {
		f.Set(p, f32x4.Add(f32x4.Mul(p, x), c(v)))
	}
	power := i32x4.Shl(i32x4.Sub(t, i32x4.Splat(magicBits)), 23)
	f.Return(i32x4.Add(p, power))
	return f
}

// defineSteps defines the functions of whole slices: axpy(y, f, x, n), residual(r, z, bias, w, y, n),
// raise(top, z, bias, n), exp(z, bias, top, sum, n) and share(r, e, sum, w, y, n).
func (k *kernels) defineSteps() {
	exponential := k.defineExponential()

	f := k.Func("axpy", emit.Params(i32, f32, i32, i32))
	y, x, factor := f.Param(0), f.Param(2), f.Let(f32x4.Splat(f.Param(1)))
	along(f, f.Param(3), []value{y, x}, func() {
		f.Store(y, 0, f32x4.Add(y.Load(v128, 0), f32x4.Mul(factor, x.Load(v128, 0))))
	})

	f = k.Func("residual", emit.Params(i32, i32, f32, i32, i32, i32))
	r, z, bias, w, y := f.Param(0), f.Param(1), f.Let(f32x4.Splat(f.Param(2))), f.Param(3), f.Param(4)
	one := f.Let(f32x4.Splat(float32(1)))
	f1 := f
	along(f, f.Param(5), []value{r, z, w, y}, func() {
		e := f1.CallValue(exponential, f32x4.Neg(f32x4.Add(z.Load(v128, 0), bias)))
		p := f32x4.Div(one, f32x4.Add(one, e))
		f1.Store(r, 0, f32x4.Mul(w.Load(v128, 0), f32x4.Sub(p, y.Load(v128, 0))))
	})

	f = k.Func("raise", emit.Params(i32, i32, f32, i32))
	top, z, bias := f.Param(0), f.Param(1), f.Let(f32x4.Splat(f.Param(2)))
	along(f, f.Param(3), []value{top, z}, func() {
		f.Store(top, 0, f32x4.PMax(top.Load(v128, 0), f32x4.Add(z.Load(v128, 0), bias)))
	})

	f = k.Func("exp", emit.Params(i32, f32, i32, i32, i32))
	z, bias, top = f.Param(0), f.Let(f32x4.Splat(f.Param(1))), f.Param(2)
	sum, e := f.Param(3), f.Local(v128)
	along(f, f.Param(4), []value{z, top, sum}, func() {
		v := f32x4.Sub(f32x4.Add(z.Load(v128, 0), bias), top.Load(v128, 0))
		f.Set(e, f.CallValue(exponential, v))
		f.Store(z, 0, e)
		f.Store(sum, 0, f32x4.Add(sum.Load(v128, 0), e))
	})

	f = k.Func("share", ints(6))
	r, e, sum, w, y = f.Param(0), f.Param(1), f.Param(2), f.Param(3), f.Param(4)
	along(f, f.Param(5), []value{r, e, sum, w, y}, func() {
		p := f32x4.Div(e.Load(v128, 0), sum.Load(v128, 0))
		f.Store(r, 0, f32x4.Mul(w.Load(v128, 0), f32x4.Sub(p, y.Load(v128, 0))))
	})
}

// along runs body for every four of n elements. After each run it moves the pointers to the next four.
func along(f *emit.Func, n value, pointers []value, body func()) {
	f.While(n.GtS(0), func() {
		body()
		for _, p := range pointers {
			f.Inc(p, 16)
		}
		f.Inc(n, -4)
	})
}
