package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"

	"github.com/sightline-dev/sightline/core/cpu/asm"
)

func avx2() {
	zip := interleaveHalves()
	for _, height := range []int{6, 4, 2, 1} {
		(&tile2{height: height, vecs: 2}).f32()
	}
	widenRowsAVX2()
	widenPanelAVX2()
	for _, height := range []int{6, 4, 2, 1} {
		words(height, zip)
	}
	(&tile2{height: 2, vecs: 4}).i32()
	depthwiseU8AVX2()
	for _, side := range []int{3, 5} {
		for _, stride := range []int{1, 2} {
			(&columns2{side: side, stride: stride}).emit()
		}
	}
	d := depthwiseF32{vecs: 1, vec: YMM, suffix: "x8AVX2"}
	d.three()
	d.general()
	elementwise2(zip)
	winogradIn()
	(&winograd{vec: YMM, suffix: "x16AVX2", tall: 6, order: zip}).emit()
	winogradF32()
	addF32AVX2()
}

// interleaveHalves returns the VPERMD index that takes dwords from the two halves alternately.
func interleaveHalves() Mem {
	m := GLOBL("interleaveHalves", RODATA|NOPTR)
	for d := range 8 {
		DATA(4*d, U32(d%2*4+d/2))
	}
	return m
}

// tile2 emits a tile of height rows by 16 columns with vecs accumulators per row.
type tile2 struct {
	height, vecs int
	p            Register
	cur          *cursor
	acc          [][]VecVirtual
}

// frame emits a function. For each of argTiles tiles it clears the accumulators, runs step
// for each k of each segment, and then finish.
func (t *tile2) frame(name string, unroll int, step func(rows *rowsOf, b Register, u int), finish func()) {
	t.p = begin(fmt.Sprintf("%s%dx16AVX2", name, t.height))
	p := t.p
	t.cur = newCursor(p, argA, argC, argRes, argTiles)
	rows := newRows(p, argLDA, t.height)
	a, b, k, segs := GP64(), GP64(), GP64(), GP64()

	Label("tile")
	t.acc = make([][]VecVirtual, t.height)
	for r := range t.acc {
		t.acc[r] = make([]VecVirtual, t.vecs)
		for v := range t.acc[r] {
			t.acc[r][v] = YMM()
			VXORPS(t.acc[r][v], t.acc[r][v], t.acc[r][v])
		}
	}
	walk(p, t.cur, rows, [4]Register{a, b, k, segs}, unroll, func(u int) { step(rows, b, u) }, func(int) {})
	finish()
	t.cur.skip(argA, argLDA, t.height)
	t.cur.skip(argC, argLDC, t.height)
	t.cur.skip(argRes, argLDR, t.height)
	DECQ(t.cur.at(argTiles))
	JNZ(LabelRef("tile"))
	asm.End()
}

func (t *tile2) f32() {
	step := func(rows *rowsOf, b Register, u int) {
		bv := []VecVirtual{YMM(), YMM()}
		for v := range bv {
			VMOVUPS(at(b, u*64+v*32), bv[v])
		}
		for r := range t.acc {
			av := YMM()
			VBROADCASTSS(rows.row(r, u*4), av)
			for v := range bv {
				VFMADD231PS(bv[v], av, t.acc[r][v])
			}
		}
	}
	t.frame("gemmF32Tile", 2, step, func() {
		bias := load(t.p, argBias)
		for r := range t.acc {
			for v, x := range t.acc[r] {
				VADDPS(at(bias, v*32), x, x)
			}
		}
		lo, hi := YMM(), YMM()
		VBROADCASTSS(at(t.p, argLo), lo)
		VBROADCASTSS(at(t.p, argHi), hi)
		res, c := t.cur.load(argRes), t.cur.load(argC)
		ldr, ldc := load(t.p, argLDR), load(t.p, argLDC)
		mask := load(t.p, argMaskVec)
		put := func(store, add func(v int, x VecVirtual)) {
			for r := range t.acc {
				for v, x := range t.acc[r] {
					add(v, x)
					VMAXPS(x, lo, x)
					VMINPS(x, hi, x)
					store(v, x)
				}
				ADDQ(ldr, res)
				ADDQ(ldc, c)
			}
		}
		full := func(v int, x VecVirtual) { VMOVUPS(x, at(c, v*32)) }
		noop := func(int, VecVirtual) {}
		TESTQ(mask, mask)
		JNZ(LabelRef("edge"))
		TESTQ(res, res)
		JZ(LabelRef("store"))
		put(full, func(v int, x VecVirtual) { VADDPS(at(res, v*32), x, x) })
		JMP(LabelRef("next"))
		Label("store")
		put(full, noop)
		JMP(LabelRef("next"))
		Label("edge")
		ms := []VecVirtual{YMM(), YMM()}
		for v := range ms {
			VMOVDQU(at(mask, v*32), ms[v])
		}
		part := func(v int, x VecVirtual) { VMASKMOVPS(x, ms[v], at(c, v*32)) }
		TESTQ(res, res)
		JZ(LabelRef("edgestore"))
		// The tallest tile leaves no register for the residual, so the code uses lo and reloads it.
		for r := range t.acc {
			for v, x := range t.acc[r] {
				VMASKMOVPS(at(res, v*32), ms[v], lo)
				VADDPS(lo, x, x)
			}
			ADDQ(ldr, res)
		}
		VBROADCASTSS(at(t.p, argLo), lo)
		Label("edgestore")
		put(part, noop)
		Label("next")
	})
}

// madd emits a step of a byte product. It widens four bytes of each row and four bytes of
// each of 16 columns to words and multiplies them. VPMADDWD sums pairs of products exactly.
// Accumulator v of a row holds columns 4v to 4v+3, two sums each.
func (t *tile2) madd(rows *rowsOf, b Register, u int) {
	av := make([]VecVirtual, t.height)
	for r := range av {
		x := XMM()
		VPBROADCASTD(rows.row(r, u*4), x)
		av[r] = YMM()
		VPMOVZXBW(x, av[r])
	}
	for v := range t.vecs {
		bv := YMM()
		VPMOVSXBW(at(b, u*64+v*16), bv)
		for r := range av {
			x := YMM()
			VPMADDWD(bv, av[r], x)
			VPADDD(x, t.acc[r][v], t.acc[r][v])
		}
	}
}

// join adds the two sums of each column of row r and the bias. It returns registers with
// columns 0 to 7 and 8 to 15.
func (t *tile2) join(r int, bias Register) [2]VecVirtual {
	acc := t.acc[r]
	var out [2]VecVirtual
	for h := range out {
		x := acc[2*h]
		VPHADDD(acc[2*h+1], x, x)
		VPERMQ(Imm(0xd8), x, x)
		VPADDD(at(bias, 32*h), x, x)
		out[h] = x
	}
	return out
}

func (t *tile2) i32() {
	t.frame("gemmI32Tile", 2, t.madd, func() {
		bias, c, ldc := load(t.p, argBias), t.cur.load(argC), load(t.p, argLDC)
		for r := range t.acc {
			for h, x := range t.join(r, bias) {
				VMOVDQU(x, at(c, 32*h))
			}
			ADDQ(ldc, c)
		}
	})
}

// newRequant2 loads the constants of a requantisation into AVX2 registers.
func newRequant2(p Register, lo, hi, zero int) *requant {
	q := &requant{p: p, hi: YMM(), zero: YMM(), lo: YMM()}
	VBROADCASTSS(at(p, hi), q.hi)
	VPBROADCASTW(at(p, zero), q.zero)
	VPBROADCASTB(at(p, lo), q.lo)
	return q
}
