// Command asm writes the amd64 assembly of package jpg:
//
//	go run ./asm -out inverse_amd64.s -stubs stubs_amd64.go -pkg jpg
package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"

	"github.com/sightline-dev/sightline/core/cpu/asm"
)

func main() {
	asm.Generator(func() {
		inverse8()
		inverse4()
	})
}

// vector returns a 32-byte constant of eight equal dwords.
func vector(name string, v int32) Mem { return asm.Dwords(name, uint32(v), 8) }

// rotation holds the three factors of function rotate in inverse8.go.
type rotation struct{ cos, diff, sum Mem }

func newRotation(name string, cos, sin int32) rotation {
	return rotation{vector(name+"Cos", cos), vector(name+"Diff", sin-cos), vector(name+"Sum", cos+sin)}
}

// rotate emits code that replaces x0 and x1 by their rotation.
func (r rotation) rotate(x0, x1 VecVirtual) {
	sum := YMM()
	VPADDD(x0, x1, sum)
	VPMULLD(r.cos, sum, sum)
	VPMULLD(r.diff, x1, x1)
	VPMULLD(r.sum, x0, x0)
	VPADDD(sum, x1, x1)
	VPSUBD(x0, sum, sum)
	VMOVDQA(x1, x0)
	VMOVDQA(sum, x1)
}

// butterfly emits code that replaces a and b by a+b and a-b.
func butterfly(a, b VecVirtual) {
	t := YMM()
	VPSUBD(b, a, t)
	VPADDD(b, a, a)
	VMOVDQA(t, b)
}

// args emits the loads of the arguments. All but stride are pointers.
func args() (dst, stride, b, quant Register) {
	return Load(Param("dst"), GP64()), Load(Param("stride"), GP64()), Load(Param("b"), GP64()), Load(Param("quant"), GP64())
}

// inverse8 emits inverse8AVX2, which computes inverse8Generic. The registers have the names of
// inverseRow8's variables. b and quant are in transform order, so each load reads the same
// coefficient of all eight rows.
func inverse8() {
	asm.Begin("inverse8AVX2", "func(dst *byte, stride int, b, quant *[64]int32)")
	dst, stride, b, quant := args()
	var x [8]VecVirtual
	zero := YMM()
	VPXOR(zero, zero, zero)
	// Element k of a row is x[place[k]], as in inverseRow8.
	place := [8]int{0, 7, 2, 5, 1, 6, 3, 4}
	for k, p := range place {
		x[p] = YMM()
		VMOVDQU(Mem{Base: b, Disp: 32 * k}, x[p])
		VPMULLD(Mem{Base: quant, Disp: 32 * k}, x[p], x[p])
		VMOVDQU(zero, Mem{Base: b, Disp: 32 * k})
	}
	cos3, cos1 := newRotation("cos3", 3406, -2276), newRotation("cos1", 4017, -799)

	Comment("Rows.")
	VPSLLD(U8(17), x[0], x[0])
	VPSLLD(U8(17), x[1], x[1])
	butterfly(x[0], x[1])
	newRotation("cos6Row", 70936, -171254).rotate(x[2], x[3])
	butterfly(x[1], x[2])
	butterfly(x[0], x[3])
	VPSLLD(U8(7), x[4], x[4])
	VPSLLD(U8(7), x[7], x[7])
	butterfly(x[7], x[4])
	half8 := vector("sqrtHalfRow", 181)
	VPMULLD(half8, x[5], x[5])
	VPMULLD(half8, x[6], x[6])
	odd(x, 2, cos3, cos1)

	transpose8(&x)

	Comment("Columns.")
	rows := x
	for k, p := range place {
		x[p] = rows[k]
	}
	VPADDD(vector("roundColumn", 1<<19), x[0], x[0])
	butterfly(x[0], x[1])
	VPSRAD(U8(2), x[0], x[0])
	VPSRAD(U8(2), x[1], x[1])
	VPSRAD(U8(13), x[2], x[2])
	VPSRAD(U8(13), x[3], x[3])
	newRotation("cos6Column", 1108, -2676).rotate(x[2], x[3])
	butterfly(x[1], x[2])
	butterfly(x[0], x[3])
	butterfly(x[7], x[4])
	half14 := vector("sqrtHalfColumn", 11585)
	VPSRAD(U8(13), x[5], x[5])
	VPSRAD(U8(13), x[6], x[6])
	VPMULLD(half14, x[5], x[5])
	VPMULLD(half14, x[6], x[6])
	odd(x, 14, cos3, cos1)
	for i := range x {
		VPSRAD(U8(18), x[i], x[i])
	}
	store8(x, dst, stride)
	asm.End()
}

// odd completes the odd half and combines it with the even half. Then x[0] to x[7] are the
// results in order.
func odd(x [8]VecVirtual, shift uint8, cos3, cos1 rotation) {
	butterfly(x[7], x[5])
	butterfly(x[4], x[6])
	for _, i := range []int{4, 7, 5, 6} {
		VPSRAD(U8(shift), x[i], x[i])
	}
	cos3.rotate(x[4], x[7])
	cos1.rotate(x[5], x[6])
	for i := range 4 {
		butterfly(x[i], x[7-i])
	}
}

// transpose8 emits the transposition of eight registers of eight dwords.
func transpose8(x *[8]VecVirtual) {
	Comment("Transpose.")
	for i := 0; i < 8; i += 2 {
		lo := YMM()
		VPUNPCKLDQ(x[i+1], x[i], lo)
		VPUNPCKHDQ(x[i+1], x[i], x[i+1])
		x[i] = lo
	}
	var q [8]VecVirtual
	for i := 0; i < 8; i += 4 {
		for h := range 2 {
			q[i+2*h], q[i+2*h+1] = YMM(), x[i+2+h]
			VPUNPCKLQDQ(x[i+2+h], x[i+h], q[i+2*h])
			VPUNPCKHQDQ(x[i+2+h], x[i+h], q[i+2*h+1])
		}
	}
	for i := range 4 {
		low := YMM()
		VPERM2I128(U8(0x20), q[4+i], q[i], low)
		VPERM2I128(U8(0x31), q[4+i], q[i], q[4+i])
		x[i], x[4+i] = low, q[4+i]
	}
}

// store8 emits code that saturates eight rows to bytes and stores them.
func store8(x [8]VecVirtual, dst, stride Register) {
	Comment("Saturate to int8, add 128, store.")
	order := GLOBL("rowOrder", RODATA|NOPTR)
	for i, d := range []uint32{0, 4, 1, 5, 2, 6, 3, 7} {
		DATA(4*i, U32(d))
	}
	index, sign := YMM(), YMM()
	VMOVDQU(order, index)
	VMOVDQU(vector("signBits", -0x7f7f7f80), sign)
	for i := 0; i < 8; i += 4 {
		VPACKSSDW(x[i+1], x[i], x[i])
		VPACKSSDW(x[i+3], x[i+2], x[i+2])
		VPACKSSWB(x[i+2], x[i], x[i])
		VPERMD(x[i], index, x[i])
		VPXOR(sign, x[i], x[i])
		high := XMM()
		VEXTRACTI128(U8(1), x[i], high)
		for _, half := range []Register{x[i].AsX(), high} {
			VMOVQ(half, Mem{Base: dst})
			VPEXTRQ(U8(1), half, Mem{Base: dst, Index: stride, Scale: 1})
			LEAQ(Mem{Base: dst, Index: stride, Scale: 2}, dst)
		}
	}
}

// inverse4 emits inverse4AVX2, which computes inverse4Generic: rows, transposition, columns. Each has four dwords.
func inverse4() {
	asm.Begin("inverse4AVX2", "func(dst *byte, stride int, b, quant *[64]int32)")
	dst, stride, b, quant := args()
	zero := YMM()
	VPXOR(zero, zero, zero)
	var x [4]VecVirtual
	for i := range x {
		x[i] = XMM()
		VMOVDQU(Mem{Base: b, Disp: 16 * i}, x[i])
		VPMULLD(Mem{Base: quant, Disp: 16 * i}, x[i], x[i])
	}
	VMOVDQU(zero, Mem{Base: b})
	VMOVDQU(zero, Mem{Base: b, Disp: 32})
	a, c := vector("cos1x4", 10703), vector("cos3x4", 4433)
	pass4(&x, a, c, vector("round10", 1<<10), 11)
	transpose4(&x)
	pass4(&x, a, c, vector("round17", 1<<17), 18)
	Comment("Saturate to int8, add 128, store.")
	VPACKSSDW(x[1], x[0], x[0])
	VPACKSSDW(x[3], x[2], x[2])
	VPACKSSWB(x[2], x[0], x[0])
	VPXOR(NewDataAddr(Symbol{Name: "signBits", Static: true}, 0), x[0], x[0])
	for i := range 4 {
		if i == 0 {
			VMOVD(x[0], Mem{Base: dst})
		} else {
			VPEXTRD(U8(uint8(i)), x[0], Mem{Base: dst})
		}
		if i < 3 {
			ADDQ(stride, dst)
		}
	}
	asm.End()
}

// pass4 emits inverseRow4, the addition of round and the right shift of the results by shift.
func pass4(x *[4]VecVirtual, a, c, round Mem, shift uint8) {
	e0, e1, o0, o1, t := XMM(), XMM(), XMM(), XMM(), XMM()
	VPADDD(x[2], x[0], e0)
	VPSUBD(x[2], x[0], e1)
	VPSLLD(U8(13), e0, e0)
	VPSLLD(U8(13), e1, e1)
	VPADDD(round, e0, e0)
	VPADDD(round, e1, e1)
	VPMULLD(a, x[1], o0)
	VPMULLD(c, x[3], t)
	VPADDD(t, o0, o0)
	VPMULLD(c, x[1], o1)
	VPMULLD(a, x[3], t)
	VPSUBD(t, o1, o1)
	VPADDD(o0, e0, x[0])
	VPADDD(o1, e1, x[1])
	VPSUBD(o1, e1, x[2])
	VPSUBD(o0, e0, x[3])
	for i := range x {
		VPSRAD(U8(shift), x[i], x[i])
	}
}

// transpose4 emits the transposition of four registers of four dwords.
func transpose4(x *[4]VecVirtual) {
	l, h, m, n := XMM(), XMM(), XMM(), XMM()
	VPUNPCKLDQ(x[1], x[0], l)
	VPUNPCKHDQ(x[1], x[0], h)
	VPUNPCKLDQ(x[3], x[2], m)
	VPUNPCKHDQ(x[3], x[2], n)
	VPUNPCKLQDQ(m, l, x[0])
	VPUNPCKHQDQ(m, l, x[1])
	VPUNPCKLQDQ(n, h, x[2])
	VPUNPCKHQDQ(n, h, x[3])
}
