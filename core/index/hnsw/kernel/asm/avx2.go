package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"

	"github.com/sightline-dev/sightline/core/cpu/asm"
)

var constants2 struct{ lo, hi, far, sign, low, ones, sixteens Mem }

// distances2 emits distancesGeneric for rows of blocks lines. If blocks is 0, the rows may have any number of lines.
//
// A byte a+128 of the query is split into two numbers of 4 bits, 16·u + l. A pair of products with either is within ±3840, so 16 bits hold
// the sum of eight pairs: those of four lines. VPMADDUBSW never saturates here.
func distances2(name string, blocks int) {
	if constants2.lo.Base == nil {
		constants2.lo, constants2.hi = asm.Dwords("lo2", 0xce400000, 1), asm.Dwords("hi2", 0x4e400000, 1)
		constants2.far, constants2.sign = asm.Dwords("far2", 1<<30, 1), asm.Dwords("sign2", 0x80808080, 8)
		constants2.low, constants2.ones = asm.Dwords("low2", 0x0f0f0f0f, 8), asm.Dwords("ones2", 0x00010001, 8)
		constants2.sixteens = asm.Dwords("sixteens2", 0x00100010, 8)
	}
	p := begin(name)
	g := newGroup(p)
	lines := blocks
	if blocks == 0 {
		lines = 4
	}
	g.aheadFirst(lines)
	codes := load(p, argCodes)
	var halves Mem
	if blocks > 0 {
		halves = storedHalves(codes, blocks)
	}

	Label("group")
	g.addresses()
	g.ahead(lines)
	var sums [4]VecVirtual
	if blocks > 0 {
		sums = g.sums(halves, blocks)
	} else {
		sums = g.anySums(codes)
	}
	scaling := g.loadScaling(constants2.lo, constants2.hi, constants2.far)
	out := g.finish(fourSums2(sums), scaling)
	CMPQ(g.left, I8(-3))
	JEQ(LabelRef("one"))
	VMOVQ(out, at(g.dst, 0))
	CMPQ(g.left, I8(-2))
	JEQ(LabelRef("done"))
	VPEXTRD(Imm(2), out, at(g.dst, 8))
	JMP(LabelRef("done"))
	Label("one")
	VMOVD(out, at(g.dst, 0))
	Label("done")
	asm.End()
}

// storedHalves stores the nibbles of the query on the stack: for each 32 bytes the upper ones, then the lower ones.
func storedHalves(codes Register, blocks int) Mem {
	halves := AllocLocal(128 * blocks)
	for i := range 2 * blocks {
		u, l := nibbles(at(codes, 32*i))
		VMOVDQU(u, halves.Offset(64*i))
		VMOVDQU(l, halves.Offset(64*i+32))
	}
	return halves
}

// sums returns the dot products of the four rows, of blocks lines each, with the query in halves. Each product is spread over eight lanes.
func (g *group) sums(halves Mem, blocks int) [4]VecVirtual {
	var acc halfSums
	for i := range 2 * blocks {
		u, l := YMM(), YMM()
		VMOVDQU(halves.Offset(64*i), u)
		VMOVDQU(halves.Offset(64*i+32), l)
		acc.add(u, l, g.row, 32*i, i == 0)
	}
	for i := range acc.u {
		whole(acc.u[i], acc.l[i])
	}
	return acc.u
}

// anySums returns the dot products of the four rows, of any number of lines, with the query at codes.
func (g *group) anySums(codes Register) (sums [4]VecVirtual) {
	from, left := GP64(), load(g.p, argBlocks)
	MOVQ(codes, from)
	for i := range sums {
		sums[i] = YMM()
		VPXOR(sums[i], sums[i], sums[i])
	}
	Label("block")
	var u, l [2]VecVirtual
	for i := range u {
		u[i], l[i] = nibbles(at(from, 32*i))
	}
	for i, row := range g.row {
		code, product := [2]VecVirtual{YMM(), YMM()}, [2]VecVirtual{YMM(), YMM()}
		for j := range code {
			VMOVDQU(at(row, 32*j), code[j])
			VPMADDUBSW(code[j], u[j], product[j])
			VPMADDUBSW(code[j], l[j], code[j])
		}
		VPADDW(product[1], product[0], product[0])
		VPADDW(code[1], code[0], code[0])
		whole(product[0], code[0])
		VPADDD(product[0], sums[i], sums[i])
		ADDQ(Imm(64), row)
	}
	ADDQ(Imm(64), from)
	DECQ(left)
	JNZ(LabelRef("block"))
	return sums
}

// nibbles returns the upper and the lower four bits of each of 32 bytes plus 128.
func nibbles(m Mem) (u, l VecVirtual) {
	u, l = YMM(), YMM()
	VMOVDQU(m, l)
	VPXOR(constants2.sign, l, l)
	VPSRLW(Imm(4), l, u)
	VPAND(constants2.low, l, l)
	VPAND(constants2.low, u, u)
	return u, l
}

// halfSums are the products of four rows with the upper and the lower four bits, in 16 bits.
type halfSums struct{ u, l [4]VecVirtual }

// add adds 32 bytes of each row.
func (s *halfSums) add(u, l VecVirtual, rows [4]GPVirtual, disp int, first bool) {
	for i, row := range rows {
		code := YMM()
		VMOVDQU(at(row, disp), code)
		if first {
			s.u[i], s.l[i] = YMM(), YMM()
			VPMADDUBSW(code, u, s.u[i])
			VPMADDUBSW(code, l, s.l[i])
			continue
		}
		product := YMM()
		VPMADDUBSW(code, u, product)
		VPADDW(product, s.u[i], s.u[i])
		VPMADDUBSW(code, l, code)
		VPADDW(code, s.l[i], s.l[i])
	}
}

// whole sets u to 16·u + l, in 32 bits.
func whole(u, l Register) {
	VPMADDWD(constants2.sixteens, u, u)
	VPMADDWD(constants2.ones, l, l)
	VPADDD(l, u, u)
}

// fourSums2 returns the sums of the eight lanes of each of four registers, in one XMM.
func fourSums2(acc [4]VecVirtual) VecVirtual {
	pairs := [2]VecVirtual{YMM(), YMM()}
	for i := range pairs {
		hi := YMM()
		VPUNPCKHDQ(acc[2*i+1], acc[2*i], hi)
		VPUNPCKLDQ(acc[2*i+1], acc[2*i], pairs[i])
		VPADDD(hi, pairs[i], pairs[i])
	}
	four, hi, half := YMM(), YMM(), XMM()
	VPUNPCKLQDQ(pairs[1], pairs[0], four)
	VPUNPCKHQDQ(pairs[1], pairs[0], hi)
	VPADDD(hi, four, four)
	VEXTRACTI128(Imm(1), four, half)
	VPADDD(four.AsX(), half, half)
	return half
}

// aheadGroups is the distance, in groups, between the rows that are prefetched and the rows that are read.
const aheadGroups = 2

// aheadFirst prefetches the rows of the first groups.
func (g *group) aheadFirst(lines int) {
	i, n := GP64(), GP64()
	XORQ(i, i)
	MOVQ(U32(4*aheadGroups), n)
	CMPQ(g.left, n)
	CMOVQLT(g.left, n)
	Label("first")
	row := GP64()
	MOVL(Mem{Base: g.rows, Index: i, Scale: 4}, row.As32())
	g.fetch(row, lines)
	INCQ(i)
	CMPQ(i, n)
	JLT(LabelRef("first"))
}

// ahead prefetches the four rows that are aheadGroups groups ahead. Beyond the last row it prefetches the last row.
func (g *group) ahead(lines int) {
	CMPQ(g.left, Imm(4*aheadGroups))
	JLE(LabelRef("rows"))
	last := GP64()
	LEAQ(at(g.left, -1), last)
	for i := range g.row {
		row, place := GP64(), GP64()
		MOVQ(U32(uint32(4*aheadGroups+i)), place)
		CMPQ(last, place)
		CMOVQLT(last, place)
		MOVL(Mem{Base: g.rows, Index: place, Scale: 4}, row.As32())
		g.fetch(row, lines)
	}
	Label("rows")
}

// fetch prefetches a row and its meta. It overwrites row.
func (g *group) fetch(row Register, lines int) {
	PREFETCHT0(Mem{Base: g.meta, Index: row, Scale: 8})
	to := GP64()
	address(to, row, g.high, g.stride)
	fetchLines(to, lines)
}

// dots2 emits dotsGeneric for AVX2, as dots512 does for AVX-512.
func dots2() {
	p := begin("dotsAVX2")
	rows, left, dst, stride := load(p, argRows), load(p, argN), load(p, argDst), load(p, argStride)
	high, low := load(p, argHigh), load(p, argLow)
	ahead := GP64()
	XORQ(ahead, ahead)
	Label("fetch") // at first the rows up to dotsAhead, then one for each row
	next, lowNext, line := GP64(), GP64(), GP64()
	MOVL(Mem{Base: rows, Index: ahead, Scale: 4}, next.As32())
	MOVQ(next, lowNext)
	address(line, next, high, stride)
	fetchLines(line, 4)
	address(line, lowNext, low, stride)
	fetchLines(line, 4)
	INCQ(ahead)
	CMPQ(ahead, left)
	JGE(LabelRef("row"))
	CMPQ(ahead, Imm(dotsAhead))
	JLT(LabelRef("fetch"))
	Label("row")
	row, rowCopy := GP64(), GP64()
	MOVL(Mem{Base: rows}, row.As32())
	MOVQ(row, rowCopy)
	h, l := GP64(), GP64()
	address(h, row, high, stride)
	address(l, rowCopy, low, stride)
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
	JZ(LabelRef("done"))
	DECQ(ahead)
	CMPQ(ahead, left)
	JLT(LabelRef("fetch"))
	JMP(LabelRef("row"))
	Label("done")
	asm.End()
}

// dotsAhead is the distance, in rows, between the row that is prefetched and the row that is read.
const dotsAhead = 4

// fetchLines prefetches the first cache lines of a row. Prefetching beyond the end of a shorter row is harmless.
func fetchLines(row Register, lines int) {
	for i := range lines {
		PREFETCHT0(at(row, 64*i))
	}
}

// The fields of kernel.findArgs, in order.
const (
	findRows   = 8 * iota
	findN      // number of lists, at least 1
	findChunks // table of chunks
	findBlocks // registers in a list
	findStride // bytes of a list
	findX
)

// find2 emits findGeneric. Behind the end of a list's links there is only NoRow.
func find2() {
	asm.Begin("findAVX2", "func(a *byte) int")
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

// The fields of kernel.splitArgs, in order.
const (
	splitHigh   = 8 * iota
	splitLow    // bytes
	splitQ      // int16
	splitBlocks // groups of 32 elements, at least 1
	splitSums   // address of the sums
)

// split2 emits splitGeneric. It stores the sums in lanes: 8 int32 of high bytes, 4 uint64 of squares, 8 uint32 of squared rests.
func split2() {
	ones, bytes, middle := asm.Dwords("splitOnes2", 0x00010001, 8), asm.Dwords("splitBytes2", 0x00ff00ff, 8), asm.Dwords("splitMiddle2", 0x00800080, 8)
	even := asm.Dwords("splitHalf2", 0xffffffff, 1)
	p := begin("splitAVX2")
	high, low, q, left := load(p, splitHigh), load(p, splitLow), load(p, splitQ), load(p, splitBlocks)
	mask, sum, squares, rests := YMM(), YMM(), YMM(), YMM()
	VMOVD(even, mask.AsX())
	VPBROADCASTQ(mask.AsX(), mask)
	for _, r := range []VecVirtual{sum, squares, rests} {
		VPXOR(r, r, r)
	}
	Label("block")
	var h, l [2]VecVirtual
	for i := range h {
		v, t := YMM(), YMM()
		h[i], l[i] = YMM(), YMM()
		VMOVDQU(at(q, 32*i), v)
		VPSRAW(Imm(8), v, h[i])
		VPAND(bytes, v, l[i])
		VPMADDWD(ones, h[i], t)
		VPADDD(t, sum, sum)
		VPSUBW(middle, l[i], t)
		VPMADDWD(t, t, t)
		VPADDD(t, rests, rests)
		VPMADDWD(v, v, v) // up to 2³¹, so the lanes are unsigned
		VPAND(mask, v, t)
		VPADDQ(t, squares, squares)
		VPSRLQ(Imm(32), v, v)
		VPADDQ(v, squares, squares)
	}
	VPACKSSWB(h[1], h[0], h[0])
	VPERMQ(Imm(0xd8), h[0], h[0])
	VMOVDQU(h[0], at(high, 0))
	VPACKUSWB(l[1], l[0], l[0])
	VPERMQ(Imm(0xd8), l[0], l[0])
	VMOVDQU(l[0], at(low, 0))
	ADDQ(Imm(64), q)
	ADDQ(Imm(32), high)
	ADDQ(Imm(32), low)
	DECQ(left)
	JNZ(LabelRef("block"))
	sums := load(p, splitSums)
	VMOVDQU(sum, at(sums, 0))
	VMOVDQU(squares, at(sums, 32))
	VMOVDQU(rests, at(sums, 64))
	asm.End()
}

// fetch2 emits a prefetch of the two lines of a list of 32.
func fetch2() {
	asm.Begin("fetchSSE", "func(list *byte)")
	list := Load(Param("list"), GP64())
	PREFETCHT0(at(list, 0))
	PREFETCHT0(at(list, 64))
	RET()
}
