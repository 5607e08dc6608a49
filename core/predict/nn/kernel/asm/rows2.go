package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// depthwiseU8AVX2 emits output rows of a block of 16 channels. Two taps of a channel,
// widened to words, share a dword, so that VPMADDWD sums their products exactly. The
// first register holds channels 0–3 and 8–11, the second 4–7 and 12–15.
func depthwiseU8AVX2() {
	p := begin("depthwiseU8Tapsx16AVX2")
	gather := func(field int) [2]VecVirtual {
		from, first, out := load(p, field), YMM(), [2]VecVirtual{YMM(), YMM()}
		VMOVDQU(at(from, 0), first)
		VPERM2I128(Imm(0x20), at(from, 32), first, out[0])
		VPERM2I128(Imm(0x31), at(from, 32), first, out[1])
		return out
	}
	bias, scale := gather(rowBias), gather(rowScale)
	out := newRequant2(p, rowLo, rowHi, rowZero)
	next, step := load(p, rowNext), load(p, rowOut)
	w, taps, n, off := GP64(), GP64(), GP64(), GP64()
	acc := [2]VecVirtual{YMM(), YMM()}
	eachRow(p, func(src, dst, width Register) {
		Label("pixel")
		for v := range acc {
			VMOVDQA(bias[v], acc[v])
		}
		MOVQ(at(p, rowW), w)
		MOVQ(at(p, rowTaps), taps)
		MOVQ(at(p, rowCount), n)
		Label("pair")
		var r [2]VecVirtual
		for i := range r {
			r[i] = YMM()
			MOVQ(at(taps, 8*i), off)
			VPMOVZXBW(Mem{Base: src, Index: off, Scale: 1}, r[i])
		}
		lo, hi := YMM(), YMM()
		VPUNPCKLWD(r[1], r[0], lo)
		VPUNPCKHWD(r[1], r[0], hi)
		for v, x := range []VecVirtual{lo, hi} {
			VPMADDWD(at(w, 32*v), x, x)
			VPADDD(x, acc[v], acc[v])
		}
		ADDQ(Imm(16), taps)
		ADDQ(Imm(64), w)
		DECQ(n)
		JNZ(LabelRef("pair"))
		for v := range acc {
			out.scale(acc[v], scale[v])
		}
		z := out.pack(acc[:])
		VPERMQ(Imm(0x08), z, z)
		VMOVDQU(z.AsX(), at(dst, 0))
		ADDQ(next, src)
		ADDQ(step, dst)
		DECQ(width)
		JNZ(LabelRef("pixel"))
	})
}

// elementwise2 emits addU8AVX2 in blocks of 32 bytes, and the sums of 32 columns of bytes or floats.
func elementwise2(zip Mem) {
	p := begin("addU8AVX2")
	dst, x, y, n := load(p, elDst), load(p, elX), load(p, elY), load(p, elN)
	out := newRequant2(p, elLo, elHi, elZero)
	scale := [2]VecVirtual{broadcast(p, elScaleX, YMM()), broadcast(p, elScaleY, YMM())}
	zero := [2]VecVirtual{broadcast(p, elZeroX, YMM()), broadcast(p, elZeroY, YMM())}
	index := YMM()
	VMOVDQU(zip, index)
	out.addBlocks([2]Register{x, y}, dst, n, scale, zero, index, func(z VecVirtual) { VMOVDQU(z, at(dst, 0)) })

	s := rowSums{
		size: 1, vec: YMM, zero: func(v VecVirtual) { VXORPS(v, v, v) },
		add: func(m Mem, _ OpmaskVirtual, acc VecVirtual) {
			v := YMM()
			VPMOVZXBD(m, v)
			VPADDD(v, acc, acc)
		},
		store: func(v VecVirtual, _ OpmaskVirtual, m Mem) { VMOVUPS(v, m) },
	}
	s.emit("sumRowsU8AVX2")
	s.size, s.add = 4, func(m Mem, _ OpmaskVirtual, acc VecVirtual) { VADDPS(m, acc, acc) }
	s.emit("sumRowsF32AVX2")
}
