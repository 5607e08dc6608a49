package simd

import "github.com/sightline-dev/sightline/wasm/simd/emit"

// defineText defines quote and base64. It also defines inspect, network, recognise and cells, which return 0, so that the guest reads the
// headers of pictures and runs networks itself.
func (k *kernels) defineText() {
	k.Func("inspect", ints(3), i32).Return(emit.C(0))
	k.Func("network", ints(1), i32).Return(emit.C(0))
	k.Func("recognise", ints(8), i32).Return(emit.C(0))
	k.Func("cells", ints(5), i64).Return(emit.I64.Int(0))
	k.defineQuote()
	k.defineBase64()
}

// defineQuote defines quote(src, n), which returns the number of bytes before the first byte that a JSON string must escape or that is not
// ASCII.
func (k *kernels) defineQuote() {
	f := k.Func("quote", ints(2), i32)
	src, n := f.Param(0), f.Param(1)
	at, mask, x, c := f.Local(i32), f.Local(i32), f.Local(v128), f.Local(i32)
	each(f, at, n, 16, func() {
		f.Set(x, src.Add(at).Load(v128, 0))
		special := emit.BitOr(i8x16.Eq(x, i8x16.Splat('"')), i8x16.Eq(x, i8x16.Splat('\\')))
		// The comparison is signed, so that bytes of 0x80 and more are below 0x20, too.
		f.Set(mask, i8x16.Bitmask(emit.BitOr(special, i8x16.LtS(x, i8x16.Splat(0x20)))))
		f.If(mask, func() { f.Return(at.Add(mask.Ctz())) })
	})
	each(f, at, n, 1, func() {
		f.Set(c, src.Add(at).Load8S(0))
		f.If(c.LtS(0x20).Or(c.Eq('"')).Or(c.Eq('\\')), func() { f.Return(at) })
	})
	f.Return(at)
}

// defineBase64 defines base64(dst, cap, src, n), which returns read characters << 32 | written bytes. It decodes sixteen characters at a
// time into twelve bytes. It stops at a character outside the two alphabets of base64, or if the bytes do not fit. A character's range
// determines the number to add to it (Muła and Lemire 2018). Comparisons find the range, since here they are as short as tables.
func (k *kernels) defineBase64() {
	f := k.Func("base64", ints(4), i64)
	dst, room, src, n := f.Param(0), f.Param(1), f.Param(2), f.Param(3)
	ate, written, good := f.Local(i32), f.Local(i32), f.Local(v128)
	x, v, m := f.Local(v128), f.Local(v128), f.Local(v128)
	c := func(n int) value { return i8x16.Splat(n) }
	f.Block(func(end emit.Label) {
		f.While(n.Sub(ate).GeS(16).And(room.Sub(written).GeS(12)), func() {
			f.Set(x, src.Add(ate).Load(v128, 0))
			f.Set(v, i32x4.Splat(0))
			f.Set(good, v)
			for _, r := range []struct {
				first, count, worth int
			}{{'A', 26, 0}, {'a', 26, 26}, {'0', 10, 52}, {'+', 1, 62}, {'-', 1, 62}, {'/', 1, 63}, {'_', 1, 63}} {
				if r.count == 1 {
					f.Set(m, i8x16.Eq(x, c(r.first)))
				} else {
					f.Set(m, i8x16.GtU(c(r.count), i8x16.Sub(x, c(r.first))))
				}
				f.Set(v, emit.BitOr(v, emit.BitAnd(m, i8x16.Sub(x, c(r.first-r.worth)))))
				f.Set(good, emit.BitOr(good, m))
			}
			f.BreakIf(end, i8x16.Bitmask(good).Ne(0xffff))
			// Joins a b c d, of six bits each, to 24 bits: first a<<6|b and c<<6|d in 16 bits each, then both in 32 bits.
			f.Set(v, emit.BitOr(i16x8.ShrU(v, 8), i16x8.Shl(emit.BitAnd(v, i16x8.Splat(255)), 6)))
			f.Set(v, i32x4.Dot(v, i32x4.Splat(1<<16|1<<12)))
			f.Set(v, emit.Shuffle(v, v, [16]byte{2, 1, 0, 6, 5, 4, 10, 9, 8, 14, 13, 12, 0, 0, 0, 0}))
			f.StoreLane(dst.Add(written), 0, v, 8, 0)
			f.StoreLane(dst.Add(written), 8, v, 4, 2)
			f.Inc(ate, 16)
			f.Inc(written, 12)
		})
	})
	f.Return(ate.ExtendU().Shl(32).Or(written.ExtendU()))
}
