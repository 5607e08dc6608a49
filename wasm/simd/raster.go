package simd

import "github.com/sightline-dev/sightline/wasm/simd/emit"

// defineRaster defines add_rows, across and ycbcr, the inner loops of core/predict/raster. It also defines decode, which always returns
// -1, so that the guest decodes pictures itself.
func (k *kernels) defineRaster() {
	k.defineAddRows()
	k.defineAcross()
	k.defineColours()
	f := k.Func("decode", ints(6), i64)
	f.Return(i64.Int(-1))
}

// defineAddRows defines add_rows(sums, pix, stride, w, taps, n). It adds all taps to sixteen sums before it continues with the next
// sixteen.
func (k *kernels) defineAddRows() {
	f := k.Func("add_rows", ints(6))
	sums, pix, stride, w, taps, n := f.Param(0), f.Param(1), f.Param(2), f.Param(3), f.Param(4), f.Param(5)
	i, p, q, left, sum := f.Local(i32), f.Local(i32), f.Local(i32), f.Local(i32), f.Local(i32)
	factor, x, y := f.Local(v128), f.Local(v128), f.Local(v128)
	var s [4]value
	for j := range s {
		s[j] = f.Local(v128)
	}
	eachTap := func(body func()) {
		f.Set(p, pix.Add(i))
		f.Set(q, w)
		f.Set(left, taps)
		f.While(left.GtS(0), func() {
			body()
			f.Inc(p, stride)
			f.Inc(q, 4)
			f.Inc(left, -1)
		})
	}
	each(f, i, n, 16, func() {
		for j := range s {
			f.Set(s[j], sums.Load(v128, 16*j))
		}
		eachTap(func() {
			f.Set(factor, q.Load32Splat(0))
			f.Set(x, p.Load8x8U(0))
			f.Set(y, p.Load8x8U(8))
			for j, v := range []value{i32x4.LowU(x), i32x4.HighU(x), i32x4.LowU(y), i32x4.HighU(y)} {
				f.Set(s[j], i32x4.Add(s[j], i32x4.Mul(v, factor)))
			}
		})
		for j := range s {
			f.Store(sums, 16*j, s[j])
		}
		f.Inc(sums, 64)
	})
	each(f, i, n, 1, func() {
		f.Set(sum, sums.Load(i32, 0))
		eachTap(func() { f.Inc(sum, p.Load8U(0).Mul(q.Load(i32, 0))) })
		f.Store(sums, 0, sum)
		f.Inc(sums, 4)
	})
}

// defineAcross defines across(out, sums, first, w, taps, n, half i64, m i64). It computes one sample at a time, because the sums of
// neighbouring samples can begin at any distance.
func (k *kernels) defineAcross() {
	f := k.Func("across", ints(6, i64, i64))
	out, sums, first, w, taps, n := f.Param(0), f.Param(1), f.Param(2), f.Param(3), f.Param(4), f.Param(5)
	half, m := f.Param(6), f.Param(7)
	p, left, sum := f.Local(i32), f.Local(i32), f.Local(i32)
	f.While(n.GtS(0), func() {
		f.Set(p, sums.Add(first.Load(i32, 0).Shl(2)))
		f.Set(sum, 0)
		f.Set(left, taps)
		f.While(left.GtS(0), func() {
			f.Inc(sum, p.Load(i32, 0).Mul(w.Load(i32, 0)))
			f.Inc(p, 4)
			f.Inc(w, 4)
			f.Inc(left, -1)
		})
		f.Store8(out, 0, sum.ExtendU().Add(half).Mul(m).ShrU(56).Wrap())
		f.Inc(first, 4)
		f.Inc(out, 1)
		f.Inc(n, -1)
	})
}

// defineColours defines ycbcr(dst, y, cb, cr, n). It converts four pixels at a time, in sums of 32 bits. The narrowing instructions clamp
// each sum >> 16 to a byte.
func (k *kernels) defineColours() {
	f := k.Func("ycbcr", ints(5))
	dst, y, cb, cr, n := f.Param(0), f.Param(1), f.Param(2), f.Param(3), f.Param(4)
	yy, b, r, out := f.Local(v128), f.Local(v128), f.Local(v128), f.Local(v128)
	c := func(v int) value { return i32x4.Splat(v) }
	convert := func(load func(address value) value) {
		f.Set(yy, i32x4.Mul(load(y), c(0x10101)))
		f.Set(b, i32x4.Sub(load(cb), c(128)))
		f.Set(r, i32x4.Sub(load(cr), c(128)))
		red := i32x4.Add(yy, i32x4.Mul(r, c(91881)))
		green := i32x4.Sub(i32x4.Sub(yy, i32x4.Mul(b, c(22554))), i32x4.Mul(r, c(46802)))
		blue := i32x4.Add(yy, i32x4.Mul(b, c(116130)))
		f.Set(out, i16x8.NarrowS(i32x4.ShrS(red, 16), i32x4.ShrS(green, 16)))
		f.Set(out, i8x16.NarrowU(out, i16x8.NarrowS(i32x4.ShrS(blue, 16), i32x4.Splat(0)))) // rrrrggggbbbb
		f.Set(out, emit.Shuffle(out, out, [16]byte{0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11, 0, 0, 0, 0}))
	}
	f.While(n.GeS(4), func() {
		convert(func(a value) value { return i32x4.LowU(i16x8.LowU(a.Load32Zero(0))) })
		f.StoreLane(dst, 0, out, 8, 0)
		f.StoreLane(dst, 8, out, 4, 2)
		f.Inc(dst, 12)
		for _, p := range []value{y, cb, cr} {
			f.Inc(p, 4)
		}
		f.Inc(n, -4)
	})
	f.While(n.GtS(0), func() {
		convert(func(a value) value { return i32x4.Splat(a.Load8U(0)) })
		f.StoreLane(dst, 0, out, 2, 0)
		f.StoreLane(dst, 2, out, 1, 2)
		f.Inc(dst, 3)
		for _, p := range []value{y, cb, cr} {
			f.Inc(p, 1)
		}
		f.Inc(n, -1)
	})
}
