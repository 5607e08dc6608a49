// Command asm generates the AVX2 forms of jsonio's two inner loops.
package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

func main() {
	ConstraintExpr("!purego")
	plain()
	decode()
	Generate()
}

// repeatByte returns a register with one byte in all lanes.
func repeatByte(name string, b byte) VecVirtual {
	m := GLOBL(name, RODATA|NOPTR)
	DATA(0, U8(b))
	v := YMM()
	VPBROADCASTB(m, v)
	return v
}

// lanes returns a register with the same 16 bytes in both lanes.
func lanes(name string, bytes ...int) VecVirtual {
	m := GLOBL(name, RODATA|NOPTR)
	for i := range 32 {
		DATA(i, U8(byte(bytes[i%16])))
	}
	v := YMM()
	VMOVDQU(m, v)
	return v
}

// plain emits plainAVX2, which checks 64 bytes per step. A byte is special if, as a signed number, it is below the space, or if it is a
// quote or a backslash. Control characters and bytes outside ASCII are below the space.
func plain() {
	TEXT("plainAVX2", NOSPLIT, "func(b []byte) int")
	Doc("plainAVX2 is plainGeneric over the whole blocks of 64 bytes of b; without a special",
		"byte in them it returns their length.")
	p := Load(Param("b").Base(), GP64())
	n := Load(Param("b").Len(), GP64())
	space, quote, slash := repeatByte("space", ' '), repeatByte("quote", '"'), repeatByte("slash", '\\')
	i := GP64()
	XORQ(i, i)
	ANDQ(I8(-64), n)

	Label("block")
	CMPQ(i, n)
	JGE(LabelRef("done"))
	var special [2]VecVirtual
	for k := range special {
		v, q, s := YMM(), YMM(), YMM()
		VMOVDQU(Mem{Base: p, Index: i, Scale: 1, Disp: 32 * k}, v)
		VPCMPEQB(v, quote, q)
		VPCMPEQB(v, slash, s)
		VPCMPGTB(v, space, v)
		VPOR(q, v, v)
		VPOR(s, v, v)
		special[k] = v
	}
	union := YMM()
	VPOR(special[0], special[1], union)
	VPTEST(union, union)
	JNZ(LabelRef("found"))
	ADDQ(I8(64), i)
	JMP(LabelRef("block"))

	Label("found")
	lo, hi := GP64(), GP64()
	VPMOVMSKB(special[0], lo.As32())
	VPMOVMSKB(special[1], hi.As32())
	SHLQ(U8(32), hi)
	ORQ(hi, lo)
	TZCNTQ(lo, lo)
	ADDQ(lo, i)
	Label("done")
	VZEROUPPER()
	Store(i, ReturnIndex(0))
	RET()
}

// decode emits decodeAVX2, which turns 32 characters per step into 24 bytes by Muła and Lemire's method (arXiv:1704.00605). The high nibble
// of a character selects the number to add to make it a sextet. Two tables over both nibbles detect characters outside the standard
// alphabet. Two multiply-adds join four sextets.
func decode() {
	TEXT("decodeAVX2", NOSPLIT, "func(dst, src []byte) (ate, made int)")
	Doc("decodeAVX2 decodes groups of 32 characters of the standard alphabet, as long as that",
		"many are left in src and 32 bytes are left in dst, of which it makes 24.")
	to := Load(Param("dst").Base(), GP64())
	room := Load(Param("dst").Len(), GP64())
	from := Load(Param("src").Base(), GP64())
	left := Load(Param("src").Len(), GP64())
	low := lanes("lowNibble", 0x15, 0x11, 0x11, 0x11, 0x11, 0x11, 0x11, 0x11, 0x11, 0x11, 0x13, 0x1a, 0x1b, 0x1b, 0x1b, 0x1a)
	high := lanes("highNibble", 0x10, 0x10, 0x01, 0x02, 0x04, 0x08, 0x04, 0x08, 0x10, 0x10, 0x10, 0x10, 0x10, 0x10, 0x10, 0x10)
	roll := lanes("roll", 0, 16, 19, 4, -65, -65, -71, -71, 0, 0, 0, 0, 0, 0, 0, 0)
	order := lanes("order", 2, 1, 0, 6, 5, 4, 10, 9, 8, 14, 13, 12, 0x80, 0x80, 0x80, 0x80)
	pairs := lanes("pairs", 0x40, 1, 0x40, 1, 0x40, 1, 0x40, 1, 0x40, 1, 0x40, 1, 0x40, 1, 0x40, 1)
	quads := lanes("quads", 0, 0x10, 1, 0, 0, 0x10, 1, 0, 0, 0x10, 1, 0, 0, 0x10, 1, 0)
	stroke := repeatByte("stroke", '/')
	words := GLOBL("words", RODATA|NOPTR)
	for i, w := range []uint32{0, 1, 2, 4, 5, 6, 7, 7} {
		DATA(4*i, U32(w))
	}
	squeeze := YMM()
	VMOVDQU(words, squeeze)
	start, end := GP64(), GP64()
	MOVQ(from, start)
	MOVQ(to, end)

	Label("group")
	CMPQ(left, U8(32))
	JLT(LabelRef("stop"))
	CMPQ(room, U8(32))
	JLT(LabelRef("stop"))
	v, hi, lo, kind, isStroke := YMM(), YMM(), YMM(), YMM(), YMM()
	VMOVDQU(Mem{Base: from}, v)
	VPSRLD(U8(4), v, hi)
	VPAND(stroke, hi, hi)
	VPAND(stroke, v, lo)
	VPSHUFB(lo, low, lo)
	VPSHUFB(hi, high, kind)
	VPTEST(lo, kind)
	JNZ(LabelRef("stop"))
	VPCMPEQB(stroke, v, isStroke)
	VPADDB(isStroke, hi, hi)
	VPSHUFB(hi, roll, hi)
	VPADDB(hi, v, v)
	VPMADDUBSW(pairs, v, v)
	VPMADDWD(quads, v, v)
	VPSHUFB(order, v, v)
	VPERMD(v, squeeze, v)
	VMOVDQU(v, Mem{Base: to})
	ADDQ(U8(32), from)
	SUBQ(U8(32), left)
	ADDQ(U8(24), to)
	SUBQ(U8(24), room)
	JMP(LabelRef("group"))

	Label("stop")
	VZEROUPPER()
	SUBQ(start, from)
	SUBQ(end, to)
	Store(from, Return("ate"))
	Store(to, Return("made"))
	RET()
}
