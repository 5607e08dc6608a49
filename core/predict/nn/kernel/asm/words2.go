package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"

	"github.com/sightline-dev/sightline/core/cpu/asm"
)

// widenRowsAVX2 writes argTiles rows of bytes at argA as words to argC, argLDC bytes per segment: argK blocks of 16 bytes
// of each. The next segment overwrites the surplus of the last block.
func widenRowsAVX2() {
	p := begin("widenRowsAVX2")
	cur := newCursor(p, argA, argTiles)
	to, from, segs, k := load(p, argC), GP64(), GP64(), GP64()
	off := GP64()
	Label("row")
	MOVQ(cur.at(argA), from)
	MOVQ(at(p, argSegs), segs)
	Label("segment")
	MOVQ(at(p, argK), k)
	XORQ(off, off)
	Label("block")
	x := YMM()
	VPMOVZXBW(Mem{Base: from, Index: off, Scale: 1}, x)
	VMOVDQU(x, Mem{Base: to, Index: off, Scale: 2})
	ADDQ(Imm(16), off)
	DECQ(k)
	JNZ(LabelRef("block"))
	ADDQ(at(p, argSegStep), from)
	ADDQ(at(p, argLDC), to)
	DECQ(segs)
	JNZ(LabelRef("segment"))
	cur.skip(argA, argLDA, 1)
	DECQ(cur.at(argTiles))
	JNZ(LabelRef("row"))
	asm.End()
}

// widenPanelAVX2 writes argK groups of four of the panel at argB to argC as pairs of words: of each pair, columns 0 to 15.
// It fetches the next panel meanwhile.
func widenPanelAVX2() {
	p := begin("widenPanelAVX2")
	from, to, k, step := load(p, argB), load(p, argC), load(p, argK), load(p, argBStep)
	Label("group")
	PREFETCHT1(Mem{Base: from, Index: step, Scale: 1})
	for half := range 2 {
		x, y := YMM(), YMM()
		VPMOVSXBW(at(from, 32*half), x)
		VPMOVSXBW(at(from, 32*half+16), y)
		for pair, pick := range []int{0x88, 0xdd} {
			z := YMM()
			VSHUFPS(Imm(uint64(pick)), y, x, z)
			VPERMQ(Imm(0xd8), z, z)
			VMOVDQU(z, at(to, 64*pair+32*half))
		}
	}
	ADDQ(Imm(64), from)
	ADDQ(U32(128), to)
	DECQ(k)
	JNZ(LabelRef("group"))
	asm.End()
}

// words emits a product of words, height rows by 16 columns: of argK groups of four, rows of
// widenRowsAVX2 against a panel of widenPanelAVX2. VPMADDWD sums the products of pairs exactly.
func words(height int, zip Mem) {
	p := begin(fmt.Sprintf("gemmU8Tile%dx16AVX2", height))
	cur := newCursor(p, argA, argC, argTiles)
	rows := newRows(p, argLDA, height)
	b, k := GP64(), GP64()
	Label("tile")
	bias := load(p, argBias)
	acc := make([][2]VecVirtual, height)
	for r := range acc {
		for v := range acc[r] {
			acc[r][v] = YMM()
			VMOVDQU(at(bias, 32*v), acc[r][v])
		}
	}
	rows.start(cur.load(argA))
	MOVQ(at(p, argB), b)
	MOVQ(at(p, argK), k)
	Label("group")
	for pair := range 2 {
		w := [2]VecVirtual{YMM(), YMM()}
		for v := range w {
			VMOVDQU(at(b, 64*pair+32*v), w[v])
		}
		for r := range acc {
			x, y := YMM(), YMM()
			VPBROADCASTD(rows.row(r, 4*pair), x)
			VPMADDWD(w[0], x, y)
			VPADDD(y, acc[r][0], acc[r][0])
			VPMADDWD(w[1], x, x)
			VPADDD(x, acc[r][1], acc[r][1])
		}
	}
	rows.advance(8)
	ADDQ(U32(128), b)
	DECQ(k)
	JNZ(LabelRef("group"))
	end := storeWords(p, cur, acc, zip)
	cur.skip(argA, argLDA, height)
	cur.skip(argC, argLDC, height)
	DECQ(cur.at(argTiles))
	JNZ(LabelRef("tile"))
	asm.End()
	end()
}

// storeWords requantises the sums of a tile and stores them, two rows together.
func storeWords(p Register, cur *cursor, acc [][2]VecVirtual, zip Mem) (end func()) {
	scale, c, ldc := load(p, argScale), cur.load(argC), load(p, argLDC)
	out := newRequant2(p, argLo, argHi, argZero)
	out.mayShift(argLo, argZero)
	for r := 0; r < len(acc); r += 2 {
		var group []VecVirtual
		for i := r; i < min(r+2, len(acc)); i++ {
			for v, x := range acc[i] {
				VCVTDQ2PS(x, x)
				VMULPS(at(scale, 32*v), x, x)
				out.steps(x)
				group = append(group, x)
			}
		}
		z := out.pack(group)
		index := YMM()
		VMOVDQU(zip, index)
		VPERMD(z, index, z)
		VMOVDQU(z.AsX(), at(c, 0))
		ADDQ(ldc, c)
		if r+1 < len(acc) {
			VEXTRACTI128(Imm(1), z, at(c, 0))
			ADDQ(ldc, c)
		}
	}
	return out.end
}
