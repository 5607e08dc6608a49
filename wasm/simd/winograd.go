package simd

import "github.com/sightline-dev/sightline/wasm/simd/emit"

// This file computes a 3×3 convolution at stride 1 by tiles of 4×4 outputs, with the transforms of core/predict/nn/kernel/winograd.go: 36
// products replace 144. The scratch of a packing of windows has three arrays for it:
//
//	u (⌈n/8⌉, 36, c/2, 8, 2) int16: transformed weights, in panels like those of a product
//	v (36, winogradStep/2)  int16: transformed windows, of c channels each
//	m (36, 4, 8)            int32: products of four tiles with a panel
const (
	maxWinograd   = 112       // maximum number of channels
	winogradRoom  = 1024      // bytes of v in use at each place
	winogradStep  = 1024 + 64 // bytes from place to place; at a power of two all places would share lines of the L1 cache
	winogradSums  = 4 * tileCols * tileRows
	winogradBytes = 36 * (winogradStep + winogradSums) // v and m
)

// defineTransform defines (h, w), which writes the transformed weights u and stores their address at h + hTiles. It does nothing unless n
// and c are multiples of 8 and c is at most maxWinograd.
func (k *kernels) defineTransform() *emit.Func {
	store := k.defineStoreWeights()
	f := k.Func("", ints(2))
	h, w := f.Param(0), f.Param(1)
	n, c := f.Let(h.Load(i32, hN)), f.Let(h.Load(i32, hK).DivU(9))
	f.If(c.GtS(maxWinograd).Or(c.Or(n).And(7)), func() { f.Return() })
	u := f.Let(h.Load(i32, hScratch).Add(h.Load(i32, hRounds).Mul(roundBytes * k.by.block())))
	f.Store(h, hTiles, u)
	step := f.Let(c.Shl(4)) // from place to place
	columns := f.Let(u.Add(n.Mul(h.Load(i32, hK)).Shl(3)))
	rows := f.Let(columns.Add(16 * 18))
	j, ch, at, g, i, to := f.Local(i32), f.Local(i32), f.Local(i32), f.Local(i32), f.Local(i32), f.Local(i32)
	v := f.Local(v128)
	each(f, j, n, 1, func() {
		f.Set(ch, 0)
		f.Set(at, u.Add(j.ShrU(3).Mul(step).Mul(36)).Add(j.And(7).Shl(2)))
		each(f, ch, c, 8, func() {
			f.Set(g, w.Add(ch))
			f.Set(i, 0)
			each(f, i, emit.C(3*16), 16, func() {
				row := func(y int) value { return g.Add(c.Mul(3 * y)).Load8x8S(0) }
				f.Call(store, columns.Add(i), emit.C(3*16), row(0), row(1), row(2))
				f.Inc(g, c)
			})
			f.Set(i, 0)
			each(f, i, emit.C(6), 1, func() {
				f.Set(g, columns.Add(i.Mul(3*16)))
				f.Call(store, rows.Add(i.Mul(6*16)), emit.C(16), g.Load(v128, 0), g.Load(v128, 16), g.Load(v128, 32))
			})
			f.Set(to, at)
			f.Set(i, 0)
			each(f, i, emit.C(36*16), 16, func() {
				f.Set(v, rows.Add(i).Load(v128, 0))
				for lane := range 4 {
					f.StoreLane(to, 32*lane, v, 4, lane)
				}
				f.Inc(to, step)
			})
			f.Inc(at, 4*32)
		})
		f.Inc(w, h.Load(i32, hK))
	})
	return f
}

// defineStoreWeights defines (to, step, a, b, c), which stores the products of the six rows of G with (a, b, c), step bytes apart.
func (k *kernels) defineStoreWeights() *emit.Func {
	f := k.Func("", ints(2, v128, v128, v128))
	to, a, b, c := f.Param(0), f.Param(2), f.Param(3), f.Param(4)
	four := func(v value) value { return i16x8.Sub(i16x8.Splat(0), i16x8.Shl(v, 2)) }
	ends, far, twice := f.Let(i16x8.Add(a, c)), f.Let(i16x8.Add(a, i16x8.Shl(c, 2))), f.Let(i16x8.Shl(b, 1))
	for _, v := range []value{
		i16x8.Mul(a, i16x8.Splat(6)), four(i16x8.Add(ends, b)), four(i16x8.Sub(ends, b)),
		i16x8.Add(far, twice), i16x8.Sub(far, twice), i16x8.Mul(c, i16x8.Splat(12)),
	} {
		f.Store(to, 0, v)
		f.Inc(to, f.Param(1))
	}
	return f
}

// locals declares n locals.
func locals(f *emit.Func, n int) []value {
	v := make([]value, n)
	for i := range v {
		v[i] = f.Local(v128)
	}
	return v
}

// defineWinogradIn defines (v, src, stride, c, tiles), which transforms windows of src to v: first their columns, then their rows, in v.
func (k *kernels) defineWinogradIn() *emit.Func {
	store := k.defineStoreInputs()
	f := k.Func("", ints(5))
	v, src, stride, c, tiles := f.Param(0), f.Param(1), f.Param(2), f.Param(3), f.Param(4)
	ch, from, to, left := f.Local(i32), f.Local(i32), f.Local(i32), f.Local(i32)
	six := func(d func(i int) value) []value { return []value{d(0), d(1), d(2), d(3), d(4), d(5)} }
	f.While(tiles, func() {
		f.Set(ch, 0)
		each(f, ch, c, 8, func() {
			f.Set(from, src.Add(ch))
			f.Set(to, v.Add(ch.Shl(1)))
			f.Set(left, 6)
			f.DoWhile(func() {
				d := six(func(i int) value { return from.Add(stride.Mul(i)).Load8x8U(0) })
				f.Call(store, append([]value{to, emit.C(6 * winogradStep)}, d...)...)
				f.Inc(from, c)
				f.Inc(to, winogradStep)
				f.Inc(left, -1)
			}, left)
			f.Set(to, v.Add(ch.Shl(1)))
			f.Set(left, 6)
			f.DoWhile(func() {
				d := six(func(j int) value { return to.Load(v128, j*winogradStep) })
				f.Call(store, append([]value{to, emit.C(winogradStep)}, d...)...)
				f.Inc(to, 6*winogradStep)
				f.Inc(left, -1)
			}, left)
		})
		f.Inc(src, c.Shl(2))
		f.Inc(v, c.Shl(1))
		f.Inc(tiles, -1)
	})
	return f
}

// defineStoreInputs defines (to, step, d0, …, d5), which stores the products of the six rows of B with (d0, …, d5), step bytes apart.
func (k *kernels) defineStoreInputs() *emit.Func {
	f := k.Func("", ints(2, v128, v128, v128, v128, v128, v128))
	to, d := f.Param(0), f.Args()[2:]
	a, b := f.Let(i16x8.Sub(d[4], i16x8.Shl(d[2], 2))), f.Let(i16x8.Sub(d[3], i16x8.Shl(d[1], 2)))
	c, e := f.Let(i16x8.Sub(d[4], d[2])), f.Let(i16x8.Shl(i16x8.Sub(d[3], d[1]), 1))
	for _, v := range []value{
		i16x8.Add(i16x8.Shl(i16x8.Sub(d[0], d[2]), 2), c), i16x8.Add(a, b), i16x8.Sub(a, b), i16x8.Add(c, e), i16x8.Sub(c, e),
		i16x8.Sub(i16x8.Sub(d[5], d[3]), i16x8.Shl(e, 1)),
	} {
		f.Store(to, 0, v)
		f.Inc(to, f.Param(1))
	}
	return f
}

// defineWinogradMul defines (m, v, u, c), which multiplies a number of tiles by a panel of eight columns, at each of the 36 places.
func (k *kernels) defineWinogradMul(tiles int) *emit.Func {
	f := k.Func("", ints(4))
	m, v, u, c := f.Param(0), f.Param(1), f.Param(2), f.Param(3)
	pitch := f.Let(c.Shl(1))
	a, acc := make([]value, tiles), make([][]value, tiles)
	for r := range a {
		if a[r] = v; r > 0 {
			a[r] = f.Let(a[r-1].Add(pitch))
		}
		acc[r] = locals(f, 2)
	}
	w0, w1, x := f.Local(v128), f.Local(v128), f.Local(v128)
	next, places, left := f.Let(emit.C(winogradStep).Sub(pitch)), f.Let(emit.C(36)), f.Local(i32)
	f.While(places, func() {
		for r := range a {
			f.Set(acc[r][0], i32x4.Splat(0))
			f.Set(acc[r][1], i32x4.Splat(0))
		}
		f.Set(left, c)
		f.While(left, func() {
			f.Set(w0, u.Load(v128, 0))
			f.Set(w1, u.Load(v128, 16))
			for r := range a {
				f.Set(x, a[r].Load32Splat(0))
				f.Set(acc[r][0], i32x4.Add(acc[r][0], i32x4.Dot(x, w0)))
				f.Set(acc[r][1], i32x4.Add(acc[r][1], i32x4.Dot(x, w1)))
			}
			for r := range a {
				f.Inc(a[r], 4)
			}
			f.Inc(u, 4*tileCols)
			f.Inc(left, -2)
		})
		for r := range a {
			f.Store(m, 32*r, acc[r][0])
			f.Store(m, 32*r+16, acc[r][1])
			f.Inc(a[r], next)
		}
		f.Inc(m, winogradSums)
		f.Inc(places, -1)
	})
	return f
}

// defineWinogradOut defines (h, m, dst, ldd, dstStep, q, column, tiles), which turns the products m into the output bytes of eight columns.
// column is 4 times the first column. It transforms first the columns of a tile, in m, and then its rows, which are 576 times the sums.
func (k *kernels) defineWinogradOut() *emit.Func {
	f := k.Func("", ints(8))
	h, m, dst, ldd, dstStep := f.Param(0), f.Param(1), f.Param(2), f.Param(3), f.Param(4)
	q, column, tiles := f.Param(5), f.Param(6), f.Param(7)
	hi, lo, bits := f.Let(h.Load32Splat(cHi)), f.Let(h.Load32Splat(cLo)), f.Let(h.Load32Splat(cBits))
	at, to, line, left, half := f.Local(i32), f.Local(i32), f.Local(i32), f.Local(i32), f.Local(i32)
	b, s, t, y := f.Local(v128), f.Local(v128), locals(f, 4), locals(f, 4)
	f.While(tiles, func() {
		f.Set(half, 0)
		each(f, half, emit.C(2*16), 16, func() {
			f.Set(at, m.Add(half))
			f.Set(left, 6)
			f.DoWhile(func() {
				setOutputs(f, y, at, 6*winogradSums, t)
				for i := range y {
					f.Store(at, 6*winogradSums*i, y[i])
				}
				f.Inc(at, winogradSums)
				f.Inc(left, -1)
			}, left)
			f.Set(b, q.Load(i32, 0).Add(column).Add(half).Load(v128, 0))
			f.Set(s, q.Load(i32, 4).Add(column).Add(half).Load(v128, 0))
			f.Set(at, m.Add(half))
			f.Set(line, dst.Add(half.ShrU(2)))
			f.Set(left, 4)
			f.DoWhile(func() {
				setOutputs(f, y, at, winogradSums, t)
				for _, y := range y {
					f.Set(y, i32x4.ShrS(i32x4.Mul(y, i32x4.Splat(0x38e38e39)), 6)) // times the inverse of 9, by 64
					f.Set(y, i32x4.Sub(clampAndRound(f32x4.Mul(f32x4.Convert(i32x4.Add(y, b)), s), hi, lo), bits))
				}
				f.Set(y[0], i8x16.NarrowU(i16x8.NarrowS(y[0], y[1]), i16x8.NarrowS(y[2], y[3])))
				f.Set(to, line)
				for x := range 4 {
					f.StoreLane(to, 0, y[0], 4, x)
					f.Inc(to, ldd)
				}
				f.Inc(line, dstStep)
				f.Inc(at, 6*winogradSums)
				f.Inc(left, -1)
			}, left)
		})
		f.Inc(m, 4*tileCols)
		f.Inc(dst, ldd.Shl(2))
		f.Inc(tiles, -1)
	})
	return f
}

// setOutputs sets y to the products of the four rows of A with the six numbers at address at, step bytes apart. It overwrites t.
func setOutputs(f *emit.Func, y []value, at value, step int, t []value) {
	m := func(i int) value { return at.Load(v128, i*step) }
	s1, d1, s2, d2 := t[0], t[1], t[2], t[3]
	f.Set(y[0], m(1))
	f.Set(y[1], m(2))
	f.Set(s1, i32x4.Add(y[0], y[1]))
	f.Set(d1, i32x4.Sub(y[0], y[1]))
	f.Set(y[0], m(3))
	f.Set(y[1], m(4))
	f.Set(s2, i32x4.Add(y[0], y[1]))
	f.Set(d2, i32x4.Shl(i32x4.Sub(y[0], y[1]), 1))
	f.Set(y[0], i32x4.Add(i32x4.Add(m(0), s1), s2))
	f.Set(y[1], i32x4.Add(d1, d2))
	f.Set(y[2], i32x4.Add(s1, i32x4.Shl(s2, 2)))
	f.Set(y[3], i32x4.Add(i32x4.Add(d1, i32x4.Shl(d2, 2)), i32x4.Shl(m(5), 1)))
}

// defineWinograd defines (h, dst, ldd, src, stride, wide, q, dstStep), which computes four rows of wide outputs each. wide is a multiple of
// four.
func (k *kernels) defineWinograd() *emit.Func {
	in, out := k.defineWinogradIn(), k.defineWinogradOut()
	four, three, one := k.defineWinogradMul(4), k.defineWinogradMul(3), k.defineWinogradMul(1)
	f := k.Func("", ints(8))
	h, dst, ldd, src, stride := f.Param(0), f.Param(1), f.Param(2), f.Param(3), f.Param(4)
	wide, q, dstStep := f.Param(5), f.Param(6), f.Param(7)
	n, c, u := f.Let(h.Load(i32, hN)), f.Let(h.Load(i32, hSeg).DivU(3)), f.Let(h.Load(i32, hTiles))
	panel := f.Let(c.Mul(36 * 2 * tileCols))
	v := f.Let(u.Add(n.ShrU(3).Mul(panel)))
	m := f.Let(v.Add(36 * winogradStep))
	tiles, left, now, j, w, from, to := f.Local(i32), f.Local(i32), f.Local(i32), f.Local(i32), f.Local(i32), f.Local(i32), f.Local(i32)
	setConstants(f, h, q, 8, cHi, cLo, cBits)
	f.While(wide, func() {
		f.Set(tiles, emit.Min(wide.ShrU(2), emit.C(winogradRoom/2).DivU(c)))
		f.Call(in, v, src, stride, c, tiles)
		f.Set(w, u)
		f.Set(j, 0)
		each(f, j, n, tileCols, func() {
			f.Set(left, tiles)
			f.Set(from, v)
			f.Set(to, dst.Add(j))
			f.While(left, func() {
				mul := func(tiles int, by *emit.Func) {
					f.Set(now, tiles)
					f.Call(by, m, from, w, c)
				}
				f.If(left.LtS(3), func() { mul(1, one) }, func() {
					f.If(left.Eq(4).Or(left.GtS(6)), func() { mul(4, four) }, func() { mul(3, three) })
				})
				f.Call(out, h, m, to, ldd, dstStep, q, j.Shl(2), now)
				f.Inc(from, now.Mul(c).Shl(1))
				f.Inc(to, now.Mul(ldd).Shl(2))
				f.Set(left, left.Sub(now))
			})
			f.Inc(w, panel)
		})
		f.Set(now, tiles.Shl(2))
		f.Inc(src, now.Mul(c))
		f.Inc(dst, now.Mul(ldd))
		f.Set(wide, wide.Sub(now))
	})
	return f
}
