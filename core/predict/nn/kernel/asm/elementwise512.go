package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"

	"github.com/sightline-dev/sightline/core/cpu/asm"
)

// The fields of kernel.elementArgs, in order.
const (
	elDst    = 8 * iota
	elX      // first operand
	elY      // second operand
	elN      // blocks, rows or elements
	elStep   // bytes between rows
	elMask   // one bit per element
	elScaleX // float32 bits
	elScaleY
	elZeroX // zero points
	elZeroY
	elLo // float32 bits, or a byte
	elHi // float32 bits
	elZero
)

func broadcast(p Register, field int) VecVirtual {
	v := ZMM()
	VPBROADCASTD(at(p, field), v)
	return v
}

// addU8 is the quantised add of elN blocks of 64 bytes.
func addU8(perm Mem) {
	p := begin("addU8AVX512")
	dst, x, y, n := load(p, elDst), load(p, elX), load(p, elY), load(p, elN)
	scale := [2]VecVirtual{broadcast(p, elScaleX), broadcast(p, elScaleY)}
	zero := [2]VecVirtual{broadcast(p, elZeroX), broadcast(p, elZeroY)}
	out := &requant{p: p, hi: broadcast(p, elHi), zero: ZMM(), lo: ZMM(), permData: perm}
	VPBROADCASTW(at(p, elZero), out.zero)
	VPBROADCASTB(at(p, elLo), out.lo)
	index := out.perm()
	Label("loop")
	sums := make([]VecVirtual, 4)
	for i := range sums {
		var term [2]VecVirtual
		for o, from := range []Register{x, y} {
			v := ZMM()
			VPMOVZXBD(at(from, 16*i), v)
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
	VMOVDQU32(z, at(dst, 0))
	ADDQ(Imm(64), x)
	ADDQ(Imm(64), y)
	ADDQ(Imm(64), dst)
	DECQ(n)
	JNZ(LabelRef("loop"))
	asm.End()
}

// masks splits a 64-bit mask into four.
func masks(p Register, field int) [4]OpmaskVirtual {
	m := load(p, field)
	var ks [4]OpmaskVirtual
	for i := range ks {
		ks[i] = K()
		KMOVW(m.As32(), ks[i])
		SHRQ(Imm(16), m)
	}
	return ks
}

// sumRows adds up elN rows of up to 64 columns.
func sumRows(name string, size int, zero func(v VecVirtual), add func(m Mem, k OpmaskVirtual, acc VecVirtual), store func(v VecVirtual, k OpmaskVirtual, m Mem)) {
	p := begin(name)
	dst, x, n, step := load(p, elDst), load(p, elX), load(p, elN), load(p, elStep)
	ks := masks(p, elMask)
	acc := [4]VecVirtual{ZMM(), ZMM(), ZMM(), ZMM()}
	for _, v := range acc {
		zero(v)
	}
	Label("loop")
	for i, v := range acc {
		add(at(x, 16*size*i), ks[i], v)
	}
	ADDQ(step, x)
	DECQ(n)
	JNZ(LabelRef("loop"))
	for i, v := range acc {
		store(v, ks[i], at(dst, 64*i))
	}
	asm.End()
}

func elementwise512(perm Mem) {
	addU8(perm)
	sumRows("sumRowsU8AVX512", 1,
		func(v VecVirtual) { VPXORD(v, v, v) },
		func(m Mem, k OpmaskVirtual, acc VecVirtual) {
			x := ZMM()
			VPMOVZXBD_Z(m, k, x)
			VPADDD(x, acc, acc)
		},
		func(v VecVirtual, k OpmaskVirtual, m Mem) { VMOVDQU32(v, k, m) })
	sumRows("sumRowsF32AVX512", 4,
		func(v VecVirtual) { VPXORD(v, v, v) },
		func(m Mem, k OpmaskVirtual, acc VecVirtual) {
			x := ZMM()
			VMOVUPS_Z(m, k, x)
			VADDPS(x, acc, acc)
		},
		func(v VecVirtual, k OpmaskVirtual, m Mem) { VMOVUPS(v, k, m) })
	clamped("addF32AVX512", func(x VecVirtual, y Mem, k OpmaskVirtual) {
		v := ZMM()
		VMOVUPS_Z(y, k, v)
		VADDPS(v, x, x)
	})
}

// clamped applies op to elN blocks of 16 floats, the last one masked, and clamps.
func clamped(name string, op func(x VecVirtual, y Mem, k OpmaskVirtual)) {
	p := begin(name)
	dst, x, y, n := load(p, elDst), load(p, elX), load(p, elY), load(p, elN)
	lo, hi := broadcast(p, elLo), broadcast(p, elHi)
	k, ones := K(), GP32()
	MOVL(U32(0xffff), ones)
	KMOVW(ones, k)
	off := GP64()
	XORQ(off, off)
	Label("loop")
	DECQ(n)
	JNZ(LabelRef("full"))
	KMOVW(load(p, elMask).As32(), k)
	Label("full")
	v := ZMM()
	VMOVUPS_Z(Mem{Base: x, Index: off, Scale: 1}, k, v)
	op(v, Mem{Base: y, Index: off, Scale: 1}, k)
	VMAXPS(v, lo, v)
	VMINPS(v, hi, v)
	VMOVUPS(v, k, Mem{Base: dst, Index: off, Scale: 1})
	ADDQ(Imm(64), off)
	TESTQ(n, n)
	JNZ(LabelRef("loop"))
	asm.End()
}
