package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"

	"github.com/sightline-dev/sightline/core/cpu/asm"
)

// depthwiseU8AVX2 is output rows of a block of 16 channels. Two taps of a
// channel share a dword, widened to words, so that VPMADDWD sums them exactly:
// the first register holds channels 0–3 and 8–11, the second 4–7 and 12–15.
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

// depthwiseF32AVX2 is output rows of a block of 8 channels: with the weights of
// a 3x3 kernel in registers, and with any taps.
func depthwiseF32AVX2() {
	begin := func(name string) (p Register, lo, hi VecVirtual) {
		p = begin(name)
		lo, hi = YMM(), YMM()
		VBROADCASTSS(at(p, rowLo), lo)
		VBROADCASTSS(at(p, rowHi), hi)
		return p, lo, hi
	}
	p, lo, hi := begin("depthwiseF32Threex8AVX2")
	bias := YMM()
	VMOVUPS(at(load(p, rowBias), 0), bias)
	wp, out := load(p, rowW), load(p, rowOut)
	w := make([]VecVirtual, 9)
	for t := range w {
		w[t] = YMM()
		VMOVUPS(at(wp, 0), w[t])
		ADDQ(out, wp)
	}
	next, step, col := load(p, rowNext), load(p, rowStep), load(p, rowCol)
	eachRow(p, func(src, dst, width Register) {
		rows := []Register{src, GP64(), GP64()}
		LEAQ(Mem{Base: rows[0], Index: step, Scale: 1}, rows[1])
		LEAQ(Mem{Base: rows[0], Index: step, Scale: 2}, rows[2])
		Label("pixel")
		acc := YMM()
		VMOVAPS(bias, acc)
		for ky, r := range rows {
			for kx := range 3 {
				m := Mem{Base: r}
				if kx > 0 {
					m.Index, m.Scale = col, uint8(kx)
				}
				VFMADD231PS(m, w[ky*3+kx], acc)
			}
		}
		VMAXPS(acc, lo, acc)
		VMINPS(acc, hi, acc)
		VMOVUPS(acc, at(dst, 0))
		for _, r := range rows {
			ADDQ(next, r)
		}
		ADDQ(out, dst)
		DECQ(width)
		JNZ(LabelRef("pixel"))
	})

	p, lo, hi = begin("depthwiseF32Tapsx8AVX2")
	bp := load(p, rowBias)
	next, out = load(p, rowNext), load(p, rowOut)
	w8, taps, n, off := GP64(), GP64(), GP64(), GP64()
	eachRow(p, func(src, dst, width Register) {
		Label("pixel")
		acc := YMM()
		VMOVUPS(at(bp, 0), acc)
		MOVQ(at(p, rowW), w8)
		MOVQ(at(p, rowTaps), taps)
		MOVQ(at(p, rowCount), n)
		Label("tap")
		MOVQ(at(taps, 0), off)
		x := YMM()
		VMOVUPS(at(w8, 0), x)
		VFMADD231PS(Mem{Base: src, Index: off, Scale: 1}, x, acc)
		ADDQ(Imm(8), taps)
		ADDQ(out, w8)
		DECQ(n)
		JNZ(LabelRef("tap"))
		VMAXPS(acc, lo, acc)
		VMINPS(acc, hi, acc)
		VMOVUPS(acc, at(dst, 0))
		ADDQ(next, src)
		ADDQ(out, dst)
		DECQ(width)
		JNZ(LabelRef("pixel"))
	})
}

// elementwise2 is addU8 in blocks of 32 bytes and the sums of 32 columns.
func elementwise2(zip Mem) {
	p := begin("addU8AVX2")
	dst, x, y, n := load(p, elDst), load(p, elX), load(p, elY), load(p, elN)
	out := newRequant2(p, elLo, elHi, elZero)
	broadcast2 := func(field int) VecVirtual {
		v := YMM()
		VPBROADCASTD(at(p, field), v)
		return v
	}
	scale := [2]VecVirtual{broadcast2(elScaleX), broadcast2(elScaleY)}
	zero := [2]VecVirtual{broadcast2(elZeroX), broadcast2(elZeroY)}
	index := YMM()
	VMOVDQU(zip, index)
	Label("loop")
	sums := make([]VecVirtual, 4)
	for i := range sums {
		var term [2]VecVirtual
		for o, from := range []Register{x, y} {
			v := YMM()
			VPMOVZXBD(at(from, 8*i), v)
			VPSUBD(zero[o], v, v)
			VCVTDQ2PS(v, v)
			VMULPS(scale[o], v, v)
			term[o] = v
		}
		VADDPS(term[1], term[0], term[0])
		out.steps(term[0])
		sums[i] = term[0]
	}
	z := out.pack(sums)
	VPERMD(z, index, z)
	VMOVDQU(z, at(dst, 0))
	ADDQ(Imm(32), x)
	ADDQ(Imm(32), y)
	ADDQ(Imm(32), dst)
	DECQ(n)
	JNZ(LabelRef("loop"))
	asm.End()

	sumRows2("sumRowsU8AVX2", 1, func(m Mem, acc VecVirtual) {
		v := YMM()
		VPMOVZXBD(m, v)
		VPADDD(v, acc, acc)
	})
	sumRows2("sumRowsF32AVX2", 4, func(m Mem, acc VecVirtual) { VADDPS(m, acc, acc) })
}

func sumRows2(name string, size int, add func(m Mem, acc VecVirtual)) {
	p := begin(name)
	dst, x, n, step := load(p, elDst), load(p, elX), load(p, elN), load(p, elStep)
	acc := [4]VecVirtual{YMM(), YMM(), YMM(), YMM()}
	for _, v := range acc {
		VXORPS(v, v, v)
	}
	Label("loop")
	for i, v := range acc {
		add(at(x, 8*size*i), v)
	}
	ADDQ(step, x)
	DECQ(n)
	JNZ(LabelRef("loop"))
	for i, v := range acc {
		VMOVUPS(v, at(dst, 32*i))
	}
	asm.End()
}
