// Command asm writes the amd64 assembly of package kernel, once per level:
//
//	go run ./asm -level avx512 -out kernel_avx512_amd64.s -stubs stubs_avx512_amd64.go -pkg kernel
//
// Every function takes one pointer to the struct args of kernel_amd64.go, whose fields have 8
// bytes, so a field's offset is 8 times its place.
package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"

	"github.com/sightline-dev/sightline/core/cpu/asm"
)

func main() { asm.Levels(map[string]func(){"avx512": avx512, "avx2": avx2}) }

func avx512() {
	distances512("distances2AVX512", 2)
	distances512("distances4AVX512", 4)
	distances512("distancesAVX512", 0)
	dots512()
}

func avx2() {
	distances2("distances1AVX2", 1)
	distances2("distances2AVX2", 2)
	distances2("distances4AVX2", 4)
	distances2("distancesAVX2", 0)
	dots2()
	find2()
	split2()
	fetch2()
}

// begin begins a function, and returns its parameter.
func begin(name string) Register {
	asm.Begin(name, "func(a *byte)")
	return asm.Params("a")[0]
}

// The fields of kernel.args, in order.
const (
	argDst    = 8 * iota
	argRows   // row numbers
	argN      // number of rows, at least 1
	argCodes  // the query's bytes, or int16
	argHigh   // table of chunks
	argLow    // table of chunks
	argMeta   // offset and scale of each row
	argBlocks // lines of a row
	argStride // bytes of a row
	argOffset // of the query
	argWeight // address of the query's float32
)

// A chunk's rows, as in kernel.go.
const (
	chunkShift = 12
	chunkMask  = 1<<chunkShift - 1
)

var (
	at   = asm.At
	load = asm.Field
)

// address sets to to the address of the first byte of row in the chunks of table. It overwrites row.
func address(to, row, table, stride Register) {
	MOVQ(row, to)
	SHRQ(Imm(chunkShift), to)
	MOVQ(Mem{Base: table, Index: to, Scale: 8}, to)
	ANDQ(U32(chunkMask), row)
	IMULQ(stride, row)
	ADDQ(row, to)
}

// group generates the part of a distances function around its products. The function handles four rows at a time; the last group repeats
// its last row.
type group struct {
	p, rows, left, high, stride, meta, dst Register
	row                                    [4]GPVirtual // addresses
	metas                                  [2]VecVirtual
}

func newGroup(p Register) *group {
	return &group{
		p: p, rows: load(p, argRows), left: load(p, argN), high: load(p, argHigh),
		stride: load(p, argStride), meta: load(p, argMeta), dst: load(p, argDst),
	}
}

// addresses finds the next four rows and loads their metas.
func (g *group) addresses() {
	g.metas = [2]VecVirtual{XMM(), XMM()}
	last := GP64()
	LEAQ(at(g.left, -1), last)
	for i := range g.row {
		row, at := GP64(), GP64()
		if i == 0 {
			MOVL(Mem{Base: g.rows}, row.As32())
		} else {
			MOVQ(U32(uint32(i)), at)
			CMPQ(last, at)
			CMOVQLT(last, at)
			MOVL(Mem{Base: g.rows, Index: at, Scale: 4}, row.As32())
		}
		m := Mem{Base: g.meta, Index: row, Scale: 8}
		if i%2 == 0 {
			VMOVQ(m, g.metas[i/2])
		} else {
			VMOVHPS(m, g.metas[i/2], g.metas[i/2])
		}
		g.row[i] = GP64()
		address(g.row[i], row, g.high, g.stride)
	}
}

// scaling holds the numbers by which finish multiplies and clips.
type scaling struct{ weight, offset, lo, hi, far VecVirtual }

// loadScaling loads the query's weight and offset, and the constants of distanceOf.
func (g *group) loadScaling(lo, hi, far Mem) scaling {
	s := scaling{XMM(), XMM(), XMM(), XMM(), XMM()}
	VBROADCASTSS(Mem{Base: load(g.p, argWeight)}, s.weight)
	VPBROADCASTD(at(g.p, argOffset), s.offset)
	VBROADCASTSS(lo, s.lo)
	VBROADCASTSS(hi, s.hi)
	VPBROADCASTD(far, s.far)
	return s
}

// finish turns the four dot products of sums into distances as distanceOf of kernel_generic.go does. It stores four distances and jumps to
// the next group, or to the label done. After done, the caller stores the last one to three distances of the returned register; their
// number is left + 4.
func (g *group) finish(sums VecVirtual, s scaling) VecVirtual {
	offsets, scales := XMM(), XMM()
	VSHUFPS(Imm(0x88), g.metas[1], g.metas[0], offsets)
	VSHUFPS(Imm(0xdd), g.metas[1], g.metas[0], scales)
	VPSLLD(Imm(2), sums, sums)
	VPADDD(offsets, sums, sums)
	VPADDD(s.offset, sums, sums)
	VCVTDQ2PS(sums, sums)
	VMULPS(scales, sums, sums)
	VMULPS(s.weight, sums, sums)
	VMAXPS(s.lo, sums, sums)
	VMINPS(s.hi, sums, sums)
	VCVTPS2DQ(sums, sums)
	out := XMM()
	VPSUBD(sums, s.far, out)
	SUBQ(Imm(4), g.left)
	JL(LabelRef("tail"))
	VMOVDQU(out, at(g.dst, 0))
	ADDQ(Imm(16), g.dst)
	ADDQ(Imm(16), g.rows)
	TESTQ(g.left, g.left)
	JNZ(LabelRef("group"))
	JMP(LabelRef("done"))
	Label("tail")
	return out
}
