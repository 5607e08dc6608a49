package simd

import "github.com/sightline-dev/sightline/wasm/simd/emit"

// defineText defines quote and base64, and what this module does not compute, since the guest does: a picture's headers
// and all that a network is used for.
func (k *kernels) defineText() {
	k.Func("inspect", ints(3), i32).Return(emit.C(0))
	k.Func("network", ints(1), i32).Return(emit.C(0))
	k.Func("recognise", ints(8), i32).Return(emit.C(0))
	k.Func("cells", ints(5), i64).Return(emit.I64.Int(0))
	k.defineQuote()
	k.defineBase64()
}

// defineQuote defines quote(src, n): the bytes before the first that a JSON string may not hold as it is,
// or that is outside ASCII.
func (k *kernels) defineQuote() {
	f := k.Func("quote", ints(2), i32)
	src, n := f.Param(0), f.Param(1)
	at, mask, x, c := f.Local(i32), f.Local(i32), f.Local(v128), f.Local(i32)
	each(f, at, n, 16, func() {
		f.Set(x, src.Add(at).Load(v128, 0))
		special := emit.BitOr(i8x16.Eq(x, i8x16.Splat('"')), i8x16.Eq(x, i8x16.Splat('\\')))
		// Signed, so that bytes from 0x80 on are below 0x20, too.
		f.Set(mask, i8x16.Bitmask(emit.BitOr(special, i8x16.LtS(x, i8x16.Splat(0x20)))))
		f.If(mask, func() { f.Return(at.Add(mask.Ctz())) })
	})
	each(f, at, n, 1, func() {
		f.Set(c, src.Add(at).Load8S(0))
		f.If(c.LtS(0x20).Or(c.Eq('"')).Or(c.Eq('\\')), func() { f.Return(at) })
	})
	f.Return(at)
}

// defineBase64 defines base64(dst, cap, src, n). It decodes sixteen characters into twelve bytes, as long as all belong to an alphabet
// and the bytes fit. A character's range determines the number to add to it (Muła and Lemire 2018). Comparisons find the range, since
// here they are as short as tables.
func (k *kernels) defineBase64() {
	f := k.Func("base64", ints(4), i64)
	dst, room, src, n := f.Param(0), f.Param(1), f.Param(2), f.Param(3)
	ate, made, good := f.Local(i32), f.Local(i32), f.Local(v128)
	x, v, m := f.Local(v128), f.Local(v128), f.Local(v128)
	c := func(n int) value { return i8x16.Splat(n) }
	f.Block(func(end emit.Label) {
		f.While(n.Sub(ate).GeS(16).And(room.Sub(made).GeS(12)), func() {
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
			// a b c d, six bits each, to 24: a<<6|b and c<<6|d in words, then both in 32 bits.
			f.Set(v, emit.BitOr(i16x8.ShrU(v, 8), i16x8.Shl(emit.BitAnd(v, i16x8.Splat(255)), 6)))
			f.Set(v, i32x4.Dot(v, i32x4.Splat(1<<16|1<<12)))
			f.Set(v, emit.Shuffle(v, v, [16]byte{2, 1, 0, 6, 5, 4, 10, 9, 8, 14, 13, 12, 0, 0, 0, 0}))
			f.StoreLane(dst.Add(made), 0, v, 8, 0)
			f.StoreLane(dst.Add(made), 8, v, 4, 2)
			f.Inc(ate, 16)
			f.Inc(made, 12)
		})
	})
	f.Return(ate.ExtendU().Shl(32).Or(made.ExtendU()))
}
