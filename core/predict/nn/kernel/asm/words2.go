package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"

	"github.com/sightline-dev/sightline/core/cpu/asm"
)

// widenRowsAVX2 emits a function that widens argTiles rows of bytes at argA to words at argC. It reads argK blocks of 16 bytes of
// each segment and writes the segments argLDC bytes apart. The next segment overwrites the surplus of the last block.
func widenRowsAVX2() {
	p := begin("widenRowsAVX2")
	row, to, rows := load(p, argA), load(p, argC), load(p, argTiles)
	lda, ldc, segStep := load(p, argLDA), load(p, argLDC), load(p, argSegStep)
	from, segs, k, off := GP64(), GP64(), GP64(), GP64()
	Label("row")
	MOVQ(row, from)
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
	ADDQ(segStep, from)
	ADDQ(ldc, to)
	DECQ(segs)
	JNZ(LabelRef("segment"))
	ADDQ(lda, row)
	DECQ(rows)
	JNZ(LabelRef("row"))
	asm.End()
}

// widenPanelAVX2 emits a function that widens argK groups of four weights of the panel at argB to two pairs of words at argC. A
// pair has columns 0 to 15. The function also prefetches the next panel.
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

// words emits a product of height rows by 16 columns over argK groups of four words. The rows come
// from widenRowsAVX2, the panel from widenPanelAVX2. VPMADDWD sums pairs of products exactly.
func words(height int, zip Mem) {
	p := begin(fmt.Sprintf("gemmU8Tile%dx16AVX2", height))
	rows := newRows(p, argLDA, height)
	a, b, c, k, tiles := load(p, argA), GP64(), load(p, argC), GP64(), load(p, argTiles)
	bias, scale, ldc := load(p, argBias), load(p, argScale), load(p, argLDC)
	out := &requant{p: p, loField: argLo, zeroField: argZero}
	out.mayShift(argLo, argZero)
	Label("tile")
	acc := make([][2]VecVirtual, height)
	for r := range acc {
		for v := range acc[r] {
			acc[r][v] = YMM()
			VMOVDQU(at(bias, 32*v), acc[r][v])
		}
	}
	rows.start(a)
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
	out.hi = YMM()
	VBROADCASTSS(at(p, argHi), out.hi)
	for r := 0; r < height; r += 2 {
		out.storeWords(acc[r:min(r+2, height)], scale, c, ldc, zip)
	}
	for range height {
		ADDQ(rows.s1, a)
	}
	DECQ(tiles)
	JNZ(LabelRef("tile"))
	asm.End()
	out.end()
}

// storeWords emits the requantisation of the sums of one or two rows of 16 columns. It stores the bytes at c and advances c past the rows.
func (q *requant) storeWords(acc [][2]VecVirtual, scale, c, ldc Register, zip Mem) {
	var group []VecVirtual
	for _, row := range acc {
		for v, x := range row {
			VCVTDQ2PS(x, x)
			VMULPS(at(scale, 32*v), x, x)
			q.steps(x)
			group = append(group, x)
		}
	}
	z, index := q.pack(group), YMM()
	VMOVDQU(zip, index)
	VPERMD(z, index, z)
	VMOVDQU(z.AsX(), at(c, 0))
	ADDQ(ldc, c)
	if len(acc) > 1 {
		VEXTRACTI128(Imm(1), z, at(c, 0))
		ADDQ(ldc, c)
	}
}
