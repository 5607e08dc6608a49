package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"

	"github.com/sightline-dev/sightline/core/cpu/asm"
)

// addF32AVX2 emits the add of elN blocks of eight floats.
func addF32AVX2() {
	p := begin("addF32AVX2")
	dst, x, y, n := load(p, elDst), load(p, elX), load(p, elY), load(p, elN)
	off := GP64()
	XORQ(off, off)
	Label("loop")
	v := YMM()
	VMOVUPS(Mem{Base: x, Index: off, Scale: 1}, v)
	VADDPS(Mem{Base: y, Index: off, Scale: 1}, v, v)
	VMOVUPS(v, Mem{Base: dst, Index: off, Scale: 1})
	ADDQ(Imm(32), off)
	DECQ(n)
	JNZ(LabelRef("loop"))
	asm.End()
}
