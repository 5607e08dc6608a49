package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// distances2 is distancesGeneric, a row at a time in four lanes of which one counts: bytes widened to
// 16 bits, where products of pairs cannot overflow.
func distances2() {
	TEXT("distancesAVX2", NOSPLIT, "func(a *byte)")
	Pragma("noescape")
	p := Load(Param("a"), GP64())
	rows, left, dst, stride := load(p, argRows), load(p, argN), load(p, argDst), load(p, argStride)
	high, meta := load(p, argHigh), load(p, argMeta)
	weight := XMM()
	w := load(p, argWeight)
	VMOVSS(Mem{Base: w}, weight)
	lo, hi, far := word("lo2", 0xce400000), word("hi2", 0x4e400000), word("far2", 1<<30)
	min, max := XMM(), XMM()
	VMOVSS(lo, min)
	VMOVSS(hi, max)
	offset := XMM()
	VMOVD(at(p, argOffset), offset)

	Label("row")
	row, of := GP64(), GP64()
	MOVL(Mem{Base: rows}, row.As32())
	LEAQ(Mem{Base: meta, Index: row, Scale: 8}, of)
	h := GP64()
	address(h, row, high, stride)
	q, blocks := load(p, argCodes), load(p, argBlocks)
	// Σ a·b and Σ b apart: Σ (a+128)·b as the generic level writes it is Σ a·b + 128·Σ b,
	// and meta holds −510·Σ b.
	acc := [4]VecVirtual{YMM(), YMM(), YMM(), YMM()}
	for _, a := range acc {
		VPXOR(a, a, a)
	}
	Label("block")
	for i, a := range acc {
		query, code := YMM(), YMM()
		VPMOVSXBW(at(q, 16*i), query)
		VPMOVSXBW(at(h, 16*i), code)
		VPADDW(bias(), query, query)
		VPMADDWD(code, query, query)
		VPADDD(query, a, a)
	}
	ADDQ(Imm(64), q)
	ADDQ(Imm(64), h)
	DECQ(blocks)
	JNZ(LabelRef("block"))
	VPADDD(acc[1], acc[0], acc[0])
	VPADDD(acc[3], acc[2], acc[2])
	VPADDD(acc[2], acc[0], acc[0])
	sum, o := XMM(), XMM()
	VEXTRACTI128(Imm(1), acc[0], sum)
	VPADDD(acc[0].AsX(), sum, sum)
	VPSRLDQ(Imm(8), sum, o)
	VPADDD(o, sum, sum)
	VPSRLDQ(Imm(4), sum, o)
	VPADDD(o, sum, sum)
	VPSLLD(Imm(2), sum, sum)
	of32 := XMM()
	VMOVD(at(of, 0), of32)
	VPADDD(of32, sum, sum)
	VPADDD(offset, sum, sum)
	VCVTDQ2PS(sum, sum)
	VMULSS(at(of, 4), sum, sum)
	VMULSS(weight, sum, sum)
	VMAXSS(min, sum, sum)
	VMINSS(max, sum, sum)
	VCVTPS2DQ(sum, sum)
	out := XMM()
	VMOVD(far, out)
	VPSUBD(sum, out, out)
	VMOVD(out, at(dst, 0))
	ADDQ(Imm(4), dst)
	ADDQ(Imm(4), rows)
	DECQ(left)
	JNZ(LabelRef("row"))
	VZEROUPPER()
	RET()
}

var biasData *Mem

// bias is 128 in sixteen lanes of 16 bits.
func bias() Mem {
	if biasData == nil {
		m := GLOBL("bias", RODATA|NOPTR)
		for i := range 16 {
			DATA(2*i, U16(128))
		}
		biasData = &m
	}
	return *biasData
}

// dots2 is dotsGeneric, as dots512.
func dots2() {
	TEXT("dotsAVX2", NOSPLIT, "func(a *byte)")
	Pragma("noescape")
	p := Load(Param("a"), GP64())
	rows, left, dst, stride := load(p, argRows), load(p, argN), load(p, argDst), load(p, argStride)
	high, low := load(p, argHigh), load(p, argLow)
	Label("row")
	row, again := GP64(), GP64()
	MOVL(Mem{Base: rows}, row.As32())
	MOVQ(row, again)
	h, l := GP64(), GP64()
	address(h, row, high, stride)
	address(l, again, low, stride)
	q, blocks := load(p, argCodes), load(p, argBlocks)
	acc := [2]VecVirtual{YMM(), YMM()}
	for _, a := range acc {
		VPXOR(a, a, a)
	}
	Label("block")
	for i := range 4 {
		query, hi, lo := YMM(), YMM(), YMM()
		VMOVDQU(at(q, 32*i), query)
		VPMOVSXBW(at(h, 16*i), hi)
		VPMOVZXBW(at(l, 16*i), lo)
		VPMADDWD(query, hi, hi)
		VPMADDWD(query, lo, lo)
		VPADDD(hi, acc[0], acc[0])
		VPADDD(lo, acc[1], acc[1])
	}
	ADDQ(Imm(128), q)
	ADDQ(Imm(64), h)
	ADDQ(Imm(64), l)
	DECQ(blocks)
	JNZ(LabelRef("block"))
	var sums [2]VecVirtual
	for i, a := range acc {
		half, wide, more := XMM(), YMM(), YMM()
		VEXTRACTI128(Imm(1), a, half)
		VPMOVSXDQ(half, more)
		VPMOVSXDQ(a.AsX(), wide)
		VPADDQ(more, wide, wide)
		sums[i] = wide
	}
	VPSLLQ(Imm(8), sums[0], sums[0])
	VPADDQ(sums[1], sums[0], sums[0])
	storeSum64(sums[0], dst)
	ADDQ(Imm(8), dst)
	ADDQ(Imm(4), rows)
	DECQ(left)
	JNZ(LabelRef("row"))
	VZEROUPPER()
	RET()
}

// The fields of kernel.findArgs, in order.
const (
	findRows   = 8 * iota
	findN      // how many, at least 1
	findChunks // table of chunks
	findBlocks // registers in a list
	findStride // bytes of a list
	findX
)

// find2 is findGeneric; beyond a list's room there is only NoRow.
func find2() {
	TEXT("findAVX2", NOSPLIT, "func(a *byte) int")
	Pragma("noescape")
	p := Load(Param("a"), GP64())
	rows, n, chunks, stride := load(p, findRows), load(p, findN), load(p, findChunks), load(p, findStride)
	x := YMM()
	VPBROADCASTD(at(p, findX), x)
	i := GP64()
	XORQ(i, i)
	Label("row")
	row, list := GP64(), GP64()
	MOVL(Mem{Base: rows, Index: i, Scale: 4}, row.As32())
	address(list, row, chunks, stride)
	blocks := load(p, findBlocks)
	found := YMM()
	VPXOR(found, found, found)
	Label("block")
	v := YMM()
	VPCMPEQD(at(list, 0), x, v)
	VPOR(v, found, found)
	ADDQ(Imm(32), list)
	DECQ(blocks)
	JNZ(LabelRef("block"))
	VPTEST(found, found)
	JNZ(LabelRef("done"))
	INCQ(i)
	CMPQ(i, n)
	JLT(LabelRef("row"))
	MOVQ(I32(-1), i)
	Label("done")
	VZEROUPPER()
	Store(i, ReturnIndex(0))
	RET()
}
