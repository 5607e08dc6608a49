package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"

	"github.com/sightline-dev/sightline/core/cpu/asm"
)

var constants512 struct{ lo, hi, far, sign Mem }

// distances512 emits distancesGeneric for rows of blocks lines. If blocks is 0, the rows may have any number of lines.
func distances512(name string, blocks int) {
	if name == "distances2AVX512" {
		constants512.lo, constants512.hi = asm.Dwords("lo", 0xce400000, 1), asm.Dwords("hi", 0x4e400000, 1)
		constants512.far, constants512.sign = asm.Dwords("far", 1<<30, 1), asm.Dwords("sign", 0x80808080, 1)
	}
	p := begin(name)
	g := newGroup(p)
	codes := load(p, argCodes)
	scaling := g.loadScaling(constants512.lo, constants512.hi, constants512.far)
	sign := ZMM()
	VPBROADCASTD(constants512.sign, sign)
	query := make([]VecVirtual, blocks)
	for i := range query {
		query[i] = ZMM()
		VMOVDQU64(at(codes, 64*i), query[i])
		VPXORQ(sign, query[i], query[i])
	}

	Label("group")
	g.addresses()
	var acc [4]VecVirtual
	for i := range acc {
		acc[i] = ZMM()
		VPXORQ(acc[i], acc[i], acc[i])
	}
	if blocks > 0 {
		for b, q := range query {
			for i, row := range g.row {
				asm.Raw("VPDPBUSD", at(row, 64*b), q, acc[i])
			}
		}
	} else {
		from, left := GP64(), GP64()
		MOVQ(codes, from)
		MOVQ(at(p, argBlocks), left)
		Label("block")
		q := ZMM()
		VMOVDQU64(at(from, 0), q)
		VPXORQ(sign, q, q)
		for i, row := range g.row {
			asm.Raw("VPDPBUSD", at(row, 0), q, acc[i])
			ADDQ(Imm(64), row)
		}
		ADDQ(Imm(64), from)
		DECQ(left)
		JNZ(LabelRef("block"))
	}
	out := g.finish(fourSums(acc), scaling)
	ADDQ(Imm(4), g.left)
	ones := GP64()
	MOVQ(I32(-1), ones)
	BZHIQ(g.left, ones, ones)
	k := K()
	KMOVW(ones.As32(), k)
	VMOVDQU32(out, k, at(g.dst, 0))
	Label("done")
	asm.End()
}

// fourSums returns the sums of the sixteen lanes of each of four registers, in one XMM.
func fourSums(acc [4]VecVirtual) VecVirtual {
	pairs := [2]VecVirtual{ZMM(), ZMM()}
	for i := range pairs {
		hi := ZMM()
		VPUNPCKHDQ(acc[2*i+1], acc[2*i], hi)
		VPUNPCKLDQ(acc[2*i+1], acc[2*i], pairs[i])
		VPADDD(hi, pairs[i], pairs[i])
	}
	four, hi := ZMM(), ZMM()
	VPUNPCKLQDQ(pairs[1], pairs[0], four)
	VPUNPCKHQDQ(pairs[1], pairs[0], hi)
	VPADDD(hi, four, four)
	half := YMM()
	VEXTRACTI64X4(Imm(1), four, half)
	VPADDD(half, four.AsY(), half)
	quarter := XMM()
	VEXTRACTI64X2(Imm(1), half, quarter)
	VPADDD(half.AsX(), quarter, quarter)
	return quarter
}

// dots512 emits dotsGeneric, one row at a time. It sums high and low bytes apart, each in sixteen lanes of 32 bits that cannot overflow up
// to kernel.MaxDim.
func dots512() {
	p := begin("dotsAVX512")
	rows, left, dst, stride := load(p, argRows), load(p, argN), load(p, argDst), load(p, argStride)
	high, low := load(p, argHigh), load(p, argLow)
	Label("row")
	row, rowCopy := GP64(), GP64()
	MOVL(Mem{Base: rows}, row.As32())
	MOVQ(row, rowCopy)
	h, l := GP64(), GP64()
	address(h, row, high, stride)
	address(l, rowCopy, low, stride)
	q, blocks := load(p, argCodes), load(p, argBlocks)
	acc := [2]VecVirtual{ZMM(), ZMM()}
	for _, a := range acc {
		VPXORQ(a, a, a)
	}
	Label("block")
	for half := range 2 {
		query, hi, lo := ZMM(), ZMM(), ZMM()
		VMOVDQU64(at(q, 64*half), query)
		VPMOVSXBW(at(h, 32*half), hi)
		VPMOVZXBW(at(l, 32*half), lo)
		asm.Raw("VPDPWSSD", hi, query, acc[0])
		asm.Raw("VPDPWSSD", lo, query, acc[1])
	}
	ADDQ(Imm(128), q)
	ADDQ(Imm(64), h)
	ADDQ(Imm(64), l)
	DECQ(blocks)
	JNZ(LabelRef("block"))
	var sums [2]VecVirtual
	for i, a := range acc {
		half, wide, more := YMM(), ZMM(), ZMM()
		VEXTRACTI64X4(Imm(1), a, half)
		VPMOVSXDQ(half, more)
		VPMOVSXDQ(a.AsY(), wide)
		VPADDQ(more, wide, wide)
		sums[i] = wide
	}
	VPSLLQ(Imm(8), sums[0], sums[0])
	VPADDQ(sums[1], sums[0], sums[0])
	half := YMM()
	VEXTRACTI64X4(Imm(1), sums[0], half)
	VPADDQ(half, sums[0].AsY(), half)
	storeSum64(half, dst)
	ADDQ(Imm(8), dst)
	ADDQ(Imm(4), rows)
	DECQ(left)
	JNZ(LabelRef("row"))
	asm.End()
}

// storeSum64 emits a store of the sum of the four lanes of v.
func storeSum64(v VecVirtual, dst Register) {
	q, o := XMM(), XMM()
	VEXTRACTI128(Imm(1), v, q) // registers are few here, so all are below 16
	VPADDQ(v.AsX(), q, q)
	VPSRLDQ(Imm(8), q, o)
	VPADDQ(o, q, q)
	VMOVQ(q, at(dst, 0))
}
