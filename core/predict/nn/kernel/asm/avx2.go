package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

func avx2() {
	zip := interleaveHalves()
	for _, height := range []int{6, 4, 2, 1} {
		(&tile2{height: height, vecs: 2}).f32()
	}
	for _, height := range []int{2, 1} {
		(&tile2{height: height, vecs: 4, zip: zip}).u8()
	}
	for _, height := range []int{2, 1} {
		(&tile2{height: height, vecs: 4}).i32()
	}
	depthwiseU8AVX2()
	depthwiseF32AVX2()
	elementwise2(zip)
}

// interleaveHalves is the VPERMD index that takes dwords from the two halves in turn.
func interleaveHalves() Mem {
	m := GLOBL("interleaveHalves", RODATA|NOPTR)
	for d := range 8 {
		DATA(4*d, U32(d%2*4+d/2))
	}
	return m
}

// tile2 is a block of height rows by 16 columns in vecs registers per row.
type tile2 struct {
	height, vecs int
	zip          Mem
	p            Register
	cur          *cursor
	acc          [][]VecVirtual
}

// frame emits the function around a tile: for each of argTiles tiles, clear the
// accumulators, take a step for each k of each segment, and finish.
func (t *tile2) frame(name string, unroll int, step func(rows *rowsOf, b Register, u int), finish func()) {
	TEXT(fmt.Sprintf("%s%dx16AVX2", name, t.height), NOSPLIT, "func(p *byte)")
	Pragma("noescape")
	t.p = Load(Param("p"), GP64())
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
	MOVQ(t.cur.at(argA), a)
	MOVQ(at(p, argB), b)
	MOVQ(at(p, argSegs), segs)
	Label("segment")
	rows.start(a)
	MOVQ(at(p, argK), k)
	SUBQ(Imm(uint64(unroll)), k)
	JLT(LabelRef("tail"))
	Label("loop")
	for u := range unroll {
		step(rows, b, u)
	}
	rows.advance(unroll * 4)
	ADDQ(U32(unroll*64), b)
	SUBQ(Imm(uint64(unroll)), k)
	JGE(LabelRef("loop"))
	Label("tail")
	ADDQ(Imm(uint64(unroll)), k)
	JZ(LabelRef("done"))
	Label("tailloop")
	step(rows, b, 0)
	rows.advance(4)
	ADDQ(Imm(64), b)
	DECQ(k)
	JNZ(LabelRef("tailloop"))
	Label("done")
	ADDQ(at(p, argSegStep), a)
	DECQ(segs)
	JNZ(LabelRef("segment"))
	finish()
	t.cur.skip(argA, argLDA, t.height)
	t.cur.skip(argC, argLDC, t.height)
	t.cur.skip(argRes, argLDR, t.height)
	DECQ(t.cur.at(argTiles))
	JNZ(LabelRef("tile"))
	VZEROUPPER()
	RET()
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
		whole := func(v int, x VecVirtual) { VMOVUPS(x, at(c, v*32)) }
		none := func(int, VecVirtual) {}
		TESTQ(mask, mask)
		JNZ(LabelRef("edge"))
		TESTQ(res, res)
		JZ(LabelRef("store"))
		put(whole, func(v int, x VecVirtual) { VADDPS(at(res, v*32), x, x) })
		JMP(LabelRef("next"))
		Label("store")
		put(whole, none)
		JMP(LabelRef("next"))
		Label("edge")
		ms := []VecVirtual{YMM(), YMM()}
		for v := range ms {
			VMOVDQU(at(mask, v*32), ms[v])
		}
		part := func(v int, x VecVirtual) { VMASKMOVPS(x, ms[v], at(c, v*32)) }
		TESTQ(res, res)
		JZ(LabelRef("edgestore"))
		// The tallest tile leaves no register for the residual: borrow lo.
		for r := range t.acc {
			for v, x := range t.acc[r] {
				VMASKMOVPS(at(res, v*32), ms[v], lo)
				VADDPS(lo, x, x)
			}
			ADDQ(ldr, res)
		}
		VBROADCASTSS(at(t.p, argLo), lo)
		Label("edgestore")
		put(part, none)
		Label("next")
	})
}

// madd is the step of the byte products: four bytes of each row, widened, against
// four bytes of each of 16 columns, widened. Products of pairs are exact in
// VPMADDWD. Register v of a row holds columns 4v to 4v+3, two sums each.
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

// join adds the two sums of each column of row r and the bias, and returns columns
// 0 to 7 and 8 to 15.
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

func (t *tile2) u8() {
	t.frame("gemmU8Tile", 2, t.madd, func() {
		bias, c, ldc := load(t.p, argBias), t.cur.load(argC), load(t.p, argLDC)
		sp := load(t.p, argScale)
		out := newRequant2(t.p, argLo, argHi, argZero)
		for r := range t.acc {
			x := t.join(r, bias)
			for h := range x {
				VCVTDQ2PS(x[h], x[h])
				VMULPS(at(sp, 32*h), x[h], x[h])
				out.steps(x[h])
			}
			z := out.pack(x[:])
			index := YMM()
			VMOVDQU(t.zip, index)
			VPERMD(z, index, z)
			VMOVDQU(z.AsX(), at(c, 0))
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

// depthwiseU8AVX2 is output rows of a block of 16 channels. Two taps of a
// channel share a dword, widened to words, so that VPMADDWD sums them exactly:
// the first register holds channels 0–3 and 8–11, the second 4–7 and 12–15.
func depthwiseU8AVX2() {
	TEXT("depthwiseU8Tapsx16AVX2", NOSPLIT, "func(p *byte)")
	Pragma("noescape")
	p := Load(Param("p"), GP64())
	gather := func(field int) [2]VecVirtual {
		from, first, out := load(p, field), YMM(), [2]VecVirtual{YMM(), YMM()}
		VMOVDQU(at(from, 0), first)
		VPERM2I128(Imm(0x20), at(from, 32), first, out[0])
		VPERM2I128(Imm(0x31), at(from, 32), first, out[1])
		return out
	}
	bias, scale := gather(rowBias), gather(rowScale)
	out := newRequant2(p, rowLo, rowHi, rowZero)
	next, step := load(p, rowNext), load(p, rowOut)
	w, taps, n, off := GP64(), GP64(), GP64(), GP64()
	acc := [2]VecVirtual{YMM(), YMM()}
	eachRow(p, func(src, dst, width Register) {
		Label("pixel")
		for v := range acc {
			VMOVDQA(bias[v], acc[v])
		}
		MOVQ(at(p, rowW), w)
		MOVQ(at(p, rowTaps), taps)
		MOVQ(at(p, rowCount), n)
		Label("pair")
		var r [2]VecVirtual
		for i := range r {
			r[i] = YMM()
			MOVQ(at(taps, 8*i), off)
			VPMOVZXBW(Mem{Base: src, Index: off, Scale: 1}, r[i])
		}
		lo, hi := YMM(), YMM()
		VPUNPCKLWD(r[1], r[0], lo)
		VPUNPCKHWD(r[1], r[0], hi)
		for v, x := range []VecVirtual{lo, hi} {
			VPMADDWD(at(w, 32*v), x, x)
			VPADDD(x, acc[v], acc[v])
		}
		ADDQ(Imm(16), taps)
		ADDQ(Imm(64), w)
		DECQ(n)
		JNZ(LabelRef("pair"))
		for v := range acc {
			out.scale(acc[v], scale[v])
		}
		z := out.pack(acc[:])
		VPERMQ(Imm(0x08), z, z)
		VMOVDQU(z.AsX(), at(dst, 0))
		ADDQ(next, src)
		ADDQ(step, dst)
		DECQ(width)
		JNZ(LabelRef("pixel"))
	})
}

// depthwiseF32AVX2 is output rows of a block of 8 channels: with the weights of
// a 3x3 kernel in registers, and with any taps.
func depthwiseF32AVX2() {
	begin := func(name string) (p Register, lo, hi VecVirtual) {
		TEXT(name, NOSPLIT, "func(p *byte)")
		Pragma("noescape")
		p = Load(Param("p"), GP64())
		lo, hi = YMM(), YMM()
		VBROADCASTSS(at(p, rowLo), lo)
		VBROADCASTSS(at(p, rowHi), hi)
		return p, lo, hi
	}
	p, lo, hi := begin("depthwiseF32Threex8AVX2")
	bias := YMM()
	VMOVUPS(at(load(p, rowBias), 0), bias)
	wp, out := load(p, rowW), load(p, rowOut)
	w := make([]VecVirtual, 9)
	for t := range w {
		w[t] = YMM()
		VMOVUPS(at(wp, 0), w[t])
		ADDQ(out, wp)
	}
	next, step, col := load(p, rowNext), load(p, rowStep), load(p, rowCol)
	eachRow(p, func(src, dst, width Register) {
		rows := []Register{src, GP64(), GP64()}
		LEAQ(Mem{Base: rows[0], Index: step, Scale: 1}, rows[1])
		LEAQ(Mem{Base: rows[0], Index: step, Scale: 2}, rows[2])
		Label("pixel")
		acc := YMM()
		VMOVAPS(bias, acc)
		for ky, r := range rows {
			for kx := range 3 {
				m := Mem{Base: r}
				if kx > 0 {
					m.Index, m.Scale = col, uint8(kx)
				}
				VFMADD231PS(m, w[ky*3+kx], acc)
			}
		}
		VMAXPS(acc, lo, acc)
		VMINPS(acc, hi, acc)
		VMOVUPS(acc, at(dst, 0))
		for _, r := range rows {
			ADDQ(next, r)
		}
		ADDQ(out, dst)
		DECQ(width)
		JNZ(LabelRef("pixel"))
	})

	p, lo, hi = begin("depthwiseF32Tapsx8AVX2")
	bp := load(p, rowBias)
	next, out = load(p, rowNext), load(p, rowOut)
	w8, taps, n, off := GP64(), GP64(), GP64(), GP64()
	eachRow(p, func(src, dst, width Register) {
		Label("pixel")
		acc := YMM()
		VMOVUPS(at(bp, 0), acc)
		MOVQ(at(p, rowW), w8)
		MOVQ(at(p, rowTaps), taps)
		MOVQ(at(p, rowCount), n)
		Label("tap")
		MOVQ(at(taps, 0), off)
		x := YMM()
		VMOVUPS(at(w8, 0), x)
		VFMADD231PS(Mem{Base: src, Index: off, Scale: 1}, x, acc)
		ADDQ(Imm(8), taps)
		ADDQ(out, w8)
		DECQ(n)
		JNZ(LabelRef("tap"))
		VMAXPS(acc, lo, acc)
		VMINPS(acc, hi, acc)
		VMOVUPS(acc, at(dst, 0))
		ADDQ(next, src)
		ADDQ(out, dst)
		DECQ(width)
		JNZ(LabelRef("pixel"))
	})
}

// elementwise2 is addU8 in blocks of 32 bytes and the sums of 32 columns.
func elementwise2(zip Mem) {
	TEXT("addU8AVX2", NOSPLIT, "func(p *byte)")
	Pragma("noescape")
	p := Load(Param("p"), GP64())
	dst, x, y, n := load(p, elDst), load(p, elX), load(p, elY), load(p, elN)
	out := newRequant2(p, elLo, elHi, elZero)
	broadcast2 := func(field int) VecVirtual {
		v := YMM()
		VPBROADCASTD(at(p, field), v)
		return v
	}
	scale := [2]VecVirtual{broadcast2(elScaleX), broadcast2(elScaleY)}
	zero := [2]VecVirtual{broadcast2(elZeroX), broadcast2(elZeroY)}
	index := YMM()
	VMOVDQU(zip, index)
	Label("loop")
	sums := make([]VecVirtual, 4)
	for i := range sums {
		var term [2]VecVirtual
		for o, from := range []Register{x, y} {
			v := YMM()
			VPMOVZXBD(at(from, 8*i), v)
			VPSUBD(zero[o], v, v)
			VCVTDQ2PS(v, v)
			VMULPS(scale[o], v, v)
			term[o] = v
		}
		VADDPS(term[1], term[0], term[0])
		out.steps(term[0])
		sums[i] = term[0]
	}
	z := out.pack(sums)
	VPERMD(z, index, z)
	VMOVDQU(z, at(dst, 0))
	ADDQ(Imm(32), x)
	ADDQ(Imm(32), y)
	ADDQ(Imm(32), dst)
	DECQ(n)
	JNZ(LabelRef("loop"))
	VZEROUPPER()
	RET()

	sumRows2("sumRowsU8AVX2", 1, func(m Mem, acc VecVirtual) {
		v := YMM()
		VPMOVZXBD(m, v)
		VPADDD(v, acc, acc)
	})
	sumRows2("sumRowsF32AVX2", 4, func(m Mem, acc VecVirtual) { VADDPS(m, acc, acc) })
}

func sumRows2(name string, size int, add func(m Mem, acc VecVirtual)) {
	TEXT(name, NOSPLIT, "func(p *byte)")
	Pragma("noescape")
	p := Load(Param("p"), GP64())
	dst, x, n, step := load(p, elDst), load(p, elX), load(p, elN), load(p, elStep)
	acc := [4]VecVirtual{YMM(), YMM(), YMM(), YMM()}
	for _, v := range acc {
		VXORPS(v, v, v)
	}
	Label("loop")
	for i, v := range acc {
		add(at(x, 8*size*i), v)
	}
	ADDQ(step, x)
	DECQ(n)
	JNZ(LabelRef("loop"))
	for i, v := range acc {
		VMOVUPS(v, at(dst, 32*i))
	}
	VZEROUPPER()
	RET()
}
