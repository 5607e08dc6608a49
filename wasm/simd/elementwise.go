package simd

import "github.com/sightline-dev/sightline/wasm/simd/emit"

// defineElementwise defines add_u8 and sum_rows_u8.
func (k *kernels) defineElementwise() {
	k.defineAdd()
	k.defineSumRows()
}

// rounding holds the constants of add_u8. roundingOf reads them from memory with the layout of kernel.Add.
type rounding struct {
	scaleY, scaleR, zeroY, zeroR, hi, lo, bits value
}

func roundingOf(f *emit.Func, p value) *rounding {
	zero := p.Load(i32, 16)
	bound := func(offset int) value { return f.Let(f32x4.Splat(p.Load(i32, offset).Sub(zero).ToFloat())) }
	return &rounding{
		f.Let(p.Load32Splat(0)), f.Let(p.Load32Splat(4)), f.Let(p.Load32Splat(8)), f.Let(p.Load32Splat(12)),
		bound(24), bound(20), f.Let(i32x4.Splat(emit.C(magicBits).Sub(zero))),
	}
}

// of returns the requantised sums of four numbers of y and four of r, each a byte in 32 bits.
func (a *rounding) of(y, r value) value {
	y = f32x4.Mul(f32x4.Convert(i32x4.Sub(y, a.zeroY)), a.scaleY)
	r = f32x4.Mul(f32x4.Convert(i32x4.Sub(r, a.zeroR)), a.scaleR)
	return i32x4.Sub(clampAndRound(f32x4.Add(y, r), a.hi, a.lo), a.bits)
}

// defineAdd defines add_u8(dst, y, r, n, add).
func (k *kernels) defineAdd() {
	f := k.Func("add_u8", ints(5))
	dst, y, r, n := f.Param(0), f.Param(1), f.Param(2), f.Param(3)
	a := roundingOf(f, f.Param(4))
	at, v, w := f.Local(i32), f.Local(v128), f.Local(v128)
	each(f, at, n, 8, func() {
		f.Set(v, y.Add(at).Load8x8U(0))
		f.Set(w, r.Add(at).Load8x8U(0))
		words := i16x8.NarrowS(a.of(i32x4.LowU(v), i32x4.LowU(w)), a.of(i32x4.HighU(v), i32x4.HighU(w)))
		f.StoreLane(dst.Add(at), 0, i8x16.NarrowU(words, i32x4.Splat(0)), 8, 0)
	})
	each(f, at, n, 1, func() {
		f.Set(v, a.of(i32x4.Splat(y.Add(at).Load8U(0)), i32x4.Splat(r.Add(at).Load8U(0))))
		f.StoreLane(dst.Add(at), 0, v, 1, 0)
	})
}

// defineSumRows defines sum_rows_u8(dst, src, lds, rows, n). It sums up to 257 rows in 16 bits, since 257·255 still fits, and then adds
// the result to sums of 32 bits.
func (k *kernels) defineSumRows() {
	f := k.Func("sum_rows_u8", ints(5))
	dst, src, lds, rows, n := f.Param(0), f.Param(1), f.Param(2), f.Param(3), f.Param(4)
	c, i, p, left, sum := f.Local(i32), f.Local(i32), f.Local(i32), f.Local(i32), f.Local(i32)
	words, lo, hi := f.Local(v128), f.Local(v128), f.Local(v128)
	each(f, c, n, 8, func() {
		f.Set(p, src.Add(c))
		f.Set(left, rows)
		f.Set(lo, i32x4.Splat(0))
		f.Set(hi, i32x4.Splat(0))
		f.While(left.GtS(0), func() {
			f.Set(words, i32x4.Splat(0))
			f.Set(i, emit.Min(left, emit.C(257)))
			f.Set(left, left.Sub(i))
			f.DoWhile(func() {
				f.Set(words, i16x8.Add(words, p.Load8x8U(0)))
				f.Inc(p, lds)
				f.Inc(i, -1)
			}, i)
			f.Set(lo, i32x4.Add(lo, i32x4.LowU(words)))
			f.Set(hi, i32x4.Add(hi, i32x4.HighU(words)))
		})
		f.Store(dst.Add(c.Shl(2)), 0, lo)
		f.Store(dst.Add(c.Shl(2)), 16, hi)
	})
	each(f, c, n, 1, func() {
		f.Set(p, src.Add(c))
		f.Set(i, rows)
		f.Set(sum, 0)
		f.While(i.GtS(0), func() {
			f.Inc(sum, p.Load8U(0))
			f.Inc(p, lds)
			f.Inc(i, -1)
		})
		f.Store(dst.Add(c.Shl(2)), 0, sum)
	})
}
