package simd

import (
	"encoding/binary"

	"github.com/sightline-dev/sightline/wasm/simd/emit"
)

// shaK has the constants of the 64 rounds (FIPS 180-4, 4.2.2).
var shaK = [64]uint32{
	0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
	0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
	0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
	0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
	0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
	0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
	0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
	0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
}

var shaStart = [8]uint32{
	0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19,
}

// defineSum defines sha256(src, n, dst), which writes the hash of n bytes to dst. Until the end, dst holds the state with little-endian
// words.
func (k *kernels) defineSum() {
	compress, word := k.defineCompress(), k.defineWord()
	f := k.Func("sha256", ints(3))
	src, n, dst := f.Param(0), f.Param(1), f.Param(2)
	for i, v := range shaStart {
		f.Store(dst, 4*i, emit.C(int(int32(v))))
	}
	at := f.Local(i32)
	args := func(w func(i int) value) []value {
		out := []value{dst}
		for i := range 16 {
			out = append(out, w(i))
		}
		return out
	}
	var x [4]value
	for i := range x {
		x[i] = f.Local(v128)
	}
	each(f, at, n, 64, func() {
		for i := range x {
			f.Set(x[i], src.Add(at).Load(v128, 16*i))
			f.Set(x[i], swapBytes(x[i]))
		}
		f.Call(compress, args(func(i int) value { return i32x4.Lane(x[i/4], i%4) })...)
	})
	// The last one or two blocks: the rest of the message, a one bit, zeros and the length in bits.
	f.DoWhile(func() {
		f.Call(compress, args(func(i int) value { return f.CallValue(word, src, n, at.Add(4*i), at.Add(64)) })...)
		f.Inc(at, 64)
	}, at.LtU(n.Add(9)))
	for i := range 2 {
		f.Set(x[i], dst.Load(v128, 16*i))
		f.Store(dst, 16*i, swapBytes(x[i]))
	}
}

// swapBytes returns the words of x with their bytes in reverse order.
func swapBytes(x value) value {
	return emit.Shuffle(x, x, [16]byte{3, 2, 1, 0, 7, 6, 5, 4, 11, 10, 9, 8, 15, 14, 13, 12})
}

// defineWord defines (src, n, at, end), which returns the word at byte offset at of the padded message. end is the end of its block.
func (k *kernels) defineWord() *emit.Func {
	f := k.Func("", ints(4), i32)
	src, n, at, end := f.Param(0), f.Param(1), f.Param(2), f.Param(3)
	w, i := f.Local(i32), f.Local(i32)
	// The length takes the last eight bytes of the last block.
	f.If(end.GeU(n.Add(9)), func() {
		f.If(at.Add(4).Eq(end), func() { f.Return(n.Shl(3)) })
		f.If(at.Add(8).Eq(end), func() { f.Return(n.ShrU(29)) })
	})
	each(f, i, emit.C(4), 1, func() {
		f.Set(w, w.Shl(8))
		f.If(at.LtU(n), func() { f.Set(w, w.Or(src.Add(at).Load8U(0))) }, func() {
			f.If(at.Eq(n), func() { f.Set(w, w.Or(0x80)) })
		})
		f.Inc(at, 1)
	})
	f.Return(w)
	return f
}

// defineCompress defines (dst, w0, …, w15), which updates the state at dst by a block of sixteen words. The code has sixteen rounds, in a
// loop that runs four times.
func (k *kernels) defineCompress() *emit.Func {
	f := k.Func("", ints(17))
	dst, w := f.Param(0), f.Args()[1:]
	var s [8]value
	for i := range s {
		s[i] = f.Let(dst.Load(i32, 4*i))
	}
	var constants [4]value
	for i := range constants {
		constants[i] = f.Local(v128)
	}
	round, t := f.Local(i32), f.Local(i32)
	f.DoWhile(func() {
		for r := range 4 {
			f.If(round.Eq(r), func() {
				for i := range constants {
					var b [16]byte
					for j := range 4 {
						binary.LittleEndian.PutUint32(b[4*j:], shaK[16*r+4*i+j])
					}
					f.Set(constants[i], emit.Bytes(b))
				}
			})
		}
		v := s
		for i := range 16 {
			a, b, c, e, g, h := v[0], v[1], v[2], v[4], v[6], v[7]
			sum := h.Add(xorRotations(e, 6, 11, 25)).Add(v[5].Xor(g).And(e).Xor(g))
			f.Set(t, sum.Add(i32x4.Lane(constants[i/4], i%4)).Add(w[i]))
			f.Set(v[3], v[3].Add(t))
			f.Set(h, t.Add(xorRotations(a, 2, 13, 22)).Add(a.Xor(b).And(b.Xor(c)).Xor(b)))
			v = [8]value{h, a, b, c, v[3], e, v[5], g}
		}
		f.If(round.Ne(3), func() {
			for i := range 16 {
				x, y := w[(i+1)%16], w[(i+14)%16]
				s0 := x.RotR(7).Xor(x.RotR(18)).Xor(x.ShrU(3))
				s1 := y.RotR(17).Xor(y.RotR(19)).Xor(y.ShrU(10))
				f.Set(w[i], w[i].Add(s0).Add(w[(i+9)%16]).Add(s1))
			}
		})
		f.Inc(round, 1)
	}, round.Ne(4))
	for i := range s {
		f.Store(dst, 4*i, dst.Load(i32, 4*i).Add(s[i]))
	}
	return f
}

// xorRotations returns the XOR of x rotated right by a, b and c bits.
func xorRotations(x value, a, b, c int) value {
	return x.RotR(a).Xor(x.RotR(b)).Xor(x.RotR(c))
}
