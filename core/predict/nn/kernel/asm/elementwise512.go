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
	elN      // blocks or rows
	elStep   // bytes between rows
	elMask   // one bit per column, or per float of the last block
	elScaleX // float32 bits
	elScaleY
	elZeroX // zero point
	elZeroY
	elLo // float32 bits, or a byte
	elHi // float32 bits
	elZero
)

// broadcast fills v with the dword of a field.
func broadcast(p Register, field int, v VecVirtual) VecVirtual {
	VPBROADCASTD(at(p, field), v)
	return v
}

// addU8 emits the quantised add of elN blocks of 64 bytes.
func addU8(perm Mem) {
	p := begin("addU8AVX512")
	dst, x, y, n := load(p, elDst), load(p, elX), load(p, elY), load(p, elN)
	scale := [2]VecVirtual{broadcast(p, elScaleX, ZMM()), broadcast(p, elScaleY, ZMM())}
	zero := [2]VecVirtual{broadcast(p, elZeroX, ZMM()), broadcast(p, elZeroY, ZMM())}
	out := &requant{p: p, hi: broadcast(p, elHi, ZMM()), zero: ZMM(), lo: ZMM(), permData: perm}
	VPBROADCASTW(at(p, elZero), out.zero)
	VPBROADCASTB(at(p, elLo), out.lo)
	out.addBlocks([2]Register{x, y}, dst, n, scale, zero, out.perm(), func(z VecVirtual) { VMOVDQU32(z, at(dst, 0)) })
}

// addBlocks emits the add of n blocks of bytes at xy, and ends the function. A block fills one register. index is the VPERMD index that
// restores the order of the bytes after pack.
func (q *requant) addBlocks(xy [2]Register, dst, n Register, scale, zero [2]VecVirtual, index VecVirtual, store func(z VecVirtual)) {
	lanes := int(q.hi.Size()) / 4
	Label("loop")
	sums := make([]VecVirtual, 4)
	for i := range sums {
		var term [2]VecVirtual
		for o, from := range xy {
			v := like(q.hi)
			VPMOVZXBD(at(from, lanes*i), v)
			VPSUBD(zero[o], v, v)
			VCVTDQ2PS(v, v)
			VMULPS(scale[o], v, v)
			term[o] = v
		}
		VADDPS(term[1], term[0], term[0])
		q.steps(term[0])
		sums[i] = term[0]
	}
	z := q.pack(sums)
	VPERMD(z, index, z)
	store(z)
	for _, p := range []Register{xy[0], xy[1], dst} {
		ADDQ(Imm(uint64(4*lanes)), p)
	}
	DECQ(n)
	JNZ(LabelRef("loop"))
	asm.End()
}

// masks returns the four 16-bit parts of the 64-bit mask in a field.
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

// rowSums emits the sums of elN rows. The columns fill four accumulators.
type rowSums struct {
	size   int // bytes of an input
	vec    func() VecVirtual
	masked bool
	zero   func(v VecVirtual)
	add    func(m Mem, k OpmaskVirtual, acc VecVirtual)
	store  func(v VecVirtual, k OpmaskVirtual, m Mem)
}

func (s rowSums) emit(name string) {
	p := begin(name)
	dst, x, n, step := load(p, elDst), load(p, elX), load(p, elN), load(p, elStep)
	var ks [4]OpmaskVirtual
	if s.masked {
		ks = masks(p, elMask)
	}
	acc := [4]VecVirtual{s.vec(), s.vec(), s.vec(), s.vec()}
	bytes := int(acc[0].Size())
	for _, v := range acc {
		s.zero(v)
	}
	Label("loop")
	for i, v := range acc {
		s.add(at(x, bytes/4*s.size*i), ks[i], v)
	}
	ADDQ(step, x)
	DECQ(n)
	JNZ(LabelRef("loop"))
	for i, v := range acc {
		s.store(v, ks[i], at(dst, bytes*i))
	}
	asm.End()
}

func elementwise512(perm Mem) {
	addU8(perm)
	s := rowSums{
		size: 1, vec: ZMM, masked: true, zero: func(v VecVirtual) { VPXORD(v, v, v) },
		add: func(m Mem, k OpmaskVirtual, acc VecVirtual) {
			x := ZMM()
			VPMOVZXBD_Z(m, k, x)
			VPADDD(x, acc, acc)
		},
		store: func(v VecVirtual, k OpmaskVirtual, m Mem) { VMOVDQU32(v, k, m) },
	}
	s.emit("sumRowsU8AVX512")
	s.size, s.store = 4, func(v VecVirtual, k OpmaskVirtual, m Mem) { VMOVUPS(v, k, m) }
	s.add = func(m Mem, k OpmaskVirtual, acc VecVirtual) {
		x := ZMM()
		VMOVUPS_Z(m, k, x)
		VADDPS(x, acc, acc)
	}
	s.emit("sumRowsF32AVX512")
	emitClampedOp("addF32AVX512", func(x VecVirtual, y Mem, k OpmaskVirtual) {
		v := ZMM()
		VMOVUPS_Z(y, k, v)
		VADDPS(v, x, x)
	})
}

// emitClampedOp emits a function that applies op to elN blocks of 16 floats and clamps the results. elMask masks the last block.
func emitClampedOp(name string, op func(x VecVirtual, y Mem, k OpmaskVirtual)) {
	p := begin(name)
	dst, x, y, n := load(p, elDst), load(p, elX), load(p, elY), load(p, elN)
	lo, hi := broadcast(p, elLo, ZMM()), broadcast(p, elHi, ZMM())
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
