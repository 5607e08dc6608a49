package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"

	"github.com/sightline-dev/sightline/core/cpu/asm"
)

// The fields of kernel.winogradArgs, in order.
const (
	wiSrc     = 8 * iota // window of the first tile
	wiRow                // bytes between rows of src
	wiC                  // channels
	wiPitch              // bytes between tiles of wiV: twice the channels
	wiTiles              // number of tiles in a row
	wiV                  // transformed windows
	wiU                  // transformed weights of a panel
	wiStep               // bytes to the weights of the next panel (AVX-512)
	wiM                  // products of windows and weights
	wiDst                // first output
	wiLDD                // bytes between outputs
	wiDstStep            // bytes between rows of outputs
	wiBias               // bias of the first column
	wiScale              // scale of the first column
	wiLo                 // lower bound of an output, a byte
	wiHi                 // upper bound of an output, float32 bits
	wiZero               // zero point
	wiForm               // conversion of outputs to bytes: formClamp or formPacked (AVX-512)
)

// stepV is the number of bytes from one of the 36 places of a transformed tile to the next. If it were a power of two, the places
// would share sets of the first-level cache.
const stepV = 1024 + 64

// winograd emits a 3×3 convolution at stride 1 by tiles of 4×4 outputs (../winograd.go). A kernel multiplies up to tall tiles by two
// registers of columns. The registers hold one panel with AVX2 and two with AVX-512.
type winograd struct {
	vec    func() VecVirtual
	suffix string
	tall   int
	order  Mem // indices that put the packed bytes in order
	ninth  Mem
}

func (w *winograd) emit() {
	for height := w.tall; height > 0; height-- {
		w.mul(height)
	}
	if w.wide() {
		w.outWide()
	} else {
		w.out()
	}
}

// bytes returns the size of a register.
func (w *winograd) bytes() int { return int(w.vec().Size()) }

// step returns the number of bytes from the products of one place to those of the next.
func (w *winograd) step() int { return w.tall * 2 * w.bytes() }

// wide reports whether the level is AVX-512.
func (w *winograd) wide() bool { return w.bytes() == 64 }

func (w *winograd) load(m Op, v VecVirtual) {
	if w.wide() {
		VMOVDQU32(m, v)
	} else {
		VMOVDQU(m, v)
	}
}

func (w *winograd) store(v VecVirtual, m Mem) {
	if w.wide() {
		VMOVDQU32(v, m)
	} else {
		VMOVDQU(v, m)
	}
}

// winogradIn transforms the windows for 16 channels at a time. It writes the transformed columns to v and then transforms the rows of v.
func winogradIn() {
	p := begin("winogradInAVX2")
	src, v, tiles := load(p, wiSrc), load(p, wiV), load(p, wiTiles)
	row, c := load(p, wiRow), load(p, wiC)
	from, low, to, left := GP64(), GP64(), GP64(), GP64()
	place := func(i, j int) Mem { return at(to, (6*i+j)*stepV) }
	Label("tile")
	MOVQ(c, left)
	MOVQ(src, from)
	MOVQ(v, to)
	Label("channels")
	LEAQ(Mem{Base: from, Index: row, Scale: 2}, low)
	ADDQ(row, low)
	for j := range 6 {
		var d [6]VecVirtual
		for i := range d {
			m := Mem{Base: []Register{from, low}[i/3]}
			if i%3 > 0 {
				m.Index, m.Scale = row, uint8(i%3)
			}
			d[i] = YMM()
			VPMOVZXBW(m, d[i])
		}
		for i, x := range inputs(d) {
			VMOVDQU(x, place(i, j))
		}
		ADDQ(c, from)
		ADDQ(c, low)
	}
	for i := range 6 {
		var d [6]VecVirtual
		for j := range d {
			d[j] = YMM()
			VMOVDQU(place(i, j), d[j])
		}
		for j, x := range inputs(d) {
			VMOVDQU(x, place(i, j))
		}
	}
	LEAQ(Mem{Base: c, Index: c, Scale: 2}, low)
	ADDQ(low, low)
	SUBQ(low, from)
	ADDQ(Imm(16), from)
	ADDQ(Imm(32), to)
	SUBQ(Imm(16), left)
	JNZ(LabelRef("channels"))
	LEAQ(Mem{Base: src, Index: c, Scale: 4}, src)
	LEAQ(Mem{Base: v, Index: c, Scale: 2}, v)
	DECQ(tiles)
	JNZ(LabelRef("tile"))
	asm.End()
}

// inputs returns the six numbers d, multiplied by the rows of
//
//	4  0 −5  0  1  0
//	0 −4 −4  1  1  0
//	0  4 −4 −1  1  0
//	0 −2 −1  2  1  0
//	0  2 −1 −2  1  0
//	0  4  0 −5  0  1
func inputs(d [6]VecVirtual) [6]VecVirtual {
	var r [6]VecVirtual
	for i := range r {
		r[i] = YMM()
	}
	a, b, c, e := YMM(), YMM(), YMM(), YMM()
	VPSUBW(d[2], d[4], c)
	VPSUBW(d[2], d[0], r[0])
	VPSLLW(Imm(2), r[0], r[0])
	VPADDW(c, r[0], r[0])
	VPSLLW(Imm(2), d[2], a)
	VPSUBW(a, d[4], a)
	VPSLLW(Imm(2), d[1], b)
	VPSUBW(b, d[3], b)
	VPADDW(b, a, r[1])
	VPSUBW(b, a, r[2])
	VPSUBW(d[1], d[3], e)
	VPADDW(e, e, e)
	VPADDW(e, c, r[3])
	VPSUBW(e, c, r[4])
	VPSUBW(d[3], d[5], r[5])
	VPADDW(e, e, e)
	VPSUBW(e, r[5], r[5])
	return r
}

// mul multiplies height transformed tiles by the columns, at each of the 36 places.
func (w *winograd) mul(height int) {
	p := begin(fmt.Sprintf("winogradMul%d%s", height, w.suffix))
	rows := newRows(p, wiPitch, height)
	v, b, m := load(p, wiV), load(p, wiU), load(p, wiM)
	places, k := GP64(), GP64()
	columns := [2]Mem{at(b, 0), at(b, w.bytes())}
	if w.wide() {
		columns[1] = Mem{Base: b, Index: load(p, wiStep), Scale: 1}
	}
	MOVQ(U32(36), places)
	Label("place")
	acc := make([][2]VecVirtual, height)
	for r := range acc {
		for h := range 2 {
			acc[r][h] = w.vec()
			VXORPS(acc[r][h].AsY(), acc[r][h].AsY(), acc[r][h].AsY())
		}
	}
	rows.start(v)
	MOVQ(at(p, wiC), k)
	Label("loop")
	const unroll = 4 // pairs of channels
	for u := range unroll {
		by := [2]VecVirtual{w.vec(), w.vec()}
		for h := range by {
			w.load(columns[h].Offset(64*u), by[h])
		}
		for r := range acc {
			a := w.vec()
			VPBROADCASTD(rows.row(r, 4*u), a)
			w.multiply(a, by, acc[r])
		}
	}
	rows.advance(4 * unroll)
	ADDQ(U32(64*unroll), b)
	SUBQ(Imm(2*unroll), k)
	JNZ(LabelRef("loop"))
	for r := range acc {
		for h, x := range acc[r] {
			w.store(x, at(m, w.bytes()*(2*r+h)))
		}
	}
	ADDQ(U32(stepV), v)
	ADDQ(U32(w.step()), m)
	DECQ(places)
	JNZ(LabelRef("place"))
	asm.End()
}

// multiply adds the dot products of the pairs of int16 in a and in by to acc.
func (w *winograd) multiply(a VecVirtual, by, acc [2]VecVirtual) {
	if w.wide() {
		for h := range by {
			asm.Raw("VPDPWSSD", by[h], a, acc[h])
		}
		return
	}
	x := w.vec()
	VPMADDWD(by[0], a, x)
	VPADDD(x, acc[0], acc[0])
	VPMADDWD(by[1], a, a)
	VPADDD(a, acc[1], acc[1])
}

// out converts the products of tiles to bytes. It transforms the columns of a tile in m and then its rows. The results are 576 times the
// sums.
func (w *winograd) out() {
	p := begin("winogradOut" + w.suffix)
	m, dst, tiles := load(p, wiM), load(p, wiDst), load(p, wiTiles)
	ldd, bias, scale := load(p, wiLDD), load(p, wiBias), load(p, wiScale)
	q := &requant{p: p, hi: broadcast(p, wiHi, w.vec()), zero: w.vec(), lo: w.vec()}
	VPBROADCASTW(at(p, wiZero), q.zero)
	VPBROADCASTB(at(p, wiLo), q.lo)
	ninth := w.vec()
	VPBROADCASTD(asm.Dwords("ninth", 0x38e38e39, 1), ninth) // 9·ninth = 1 modulo 2^32
	place := func(i, j, half int) Mem { return at(m, (6*i+j)*w.step()+w.bytes()*half) }
	line, c := GP64(), GP64()
	Label("tile")
	for half := range 2 {
		for j := range 6 {
			y := w.outputs(func(i int) Op { return place(i, j, half) })
			for i := range y {
				w.store(y[i], place(i, j, half))
			}
		}
	}
	MOVQ(dst, line)
	for i := range 4 {
		MOVQ(line, c)
		var steps [4][2]VecVirtual
		for half := range 2 {
			y := w.outputs(func(j int) Op { return place(i, j, half) })
			for x := range y {
				VPMULLD(ninth, y[x], y[x])
				VPSRAD(Imm(6), y[x], y[x])
				VPADDD(at(bias, w.bytes()*half), y[x], y[x])
				VCVTDQ2PS(y[x], y[x])
				VMULPS(at(scale, w.bytes()*half), y[x], y[x])
				q.steps(y[x])
				steps[x][half] = y[x]
			}
		}
		for x := 0; x < 4; x += 2 {
			w.storePair(q.pack([]VecVirtual{steps[x][0], steps[x][1], steps[x+1][0], steps[x+1][1]}), c, ldd)
		}
		if i < 3 {
			ADDQ(at(p, wiDstStep), line)
		}
	}
	ADDQ(U32(2*w.bytes()), m)
	LEAQ(Mem{Base: dst, Index: ldd, Scale: 4}, dst)
	DECQ(tiles)
	JNZ(LabelRef("tile"))
	asm.End()
}

// outWide is out for AVX-512, whose registers hold a tile of 16 columns between the two steps.
func (w *winograd) outWide() {
	p := begin("winogradOut" + w.suffix)
	m, dst, tiles := load(p, wiM), load(p, wiDst), load(p, wiTiles)
	ldd := load(p, wiLDD)
	line, c := GP64(), GP64()
	w.ninth = asm.Dwords("ninth", 0x38e38e39, 1)
	CMPQ(at(p, wiForm), Imm(formPacked))
	JEQ(LabelRef("packed"))
	Label("tile")
	for half := range 2 {
		q := &requant{p: p, zeroField: wiZero, loField: wiLo, permData: w.order}
		w.outHalf(p, half, m, dst, line, c, ldd, q, func(x VecVirtual) { VMINPS_BCST(at(p, wiHi), x, x) })
	}
	w.eachTile("tile", m, dst, ldd, tiles)
	JMP(LabelRef("done"))
	Label("packed")
	for half := range 2 {
		q := &requant{p: p, zeroField: wiZero, packs: true, permData: w.order}
		w.outHalf(p, half, m, dst, line, c, ldd, q, func(VecVirtual) {})
	}
	w.eachTile("packed", m, dst, ldd, tiles)
	Label("done")
	asm.End()
}

// eachTile moves to the next tile and jumps to label if there is one.
func (w *winograd) eachTile(label string, m, dst, ldd, tiles Register) {
	ADDQ(U32(2*w.bytes()), m)
	LEAQ(Mem{Base: dst, Index: ldd, Scale: 4}, dst)
	DECQ(tiles)
	JNZ(LabelRef(label))
}

// outHalf emits the outputs of a tile in 16 of the columns. bound keeps a result within an int32, where the conversion needs it.
func (w *winograd) outHalf(p Register, half int, m, dst, line, c, ldd Register, q *requant, bound func(x VecVirtual)) {
	var t [6][4]VecVirtual
	for j := range t {
		t[j] = w.outputs(func(i int) Op { return at(m, (6*i+j)*w.step()+w.bytes()*half) })
	}
	bias, scale := ZMM(), ZMM()
	from := load(p, wiBias)
	VMOVDQU32(at(from, w.bytes()*half), bias)
	from = load(p, wiScale)
	VMOVUPS(at(from, w.bytes()*half), scale)
	LEAQ(at(dst, 16*half), line)
	for i := range 4 {
		y := w.outputs(func(j int) Op { return t[j][i] })
		for _, x := range y {
			VPMULLD_BCST(w.ninth, x, x) // 9·ninth = 1 modulo 2^32
			VPSRAD(Imm(6), x, x)
			VPADDD(bias, x, x)
			VCVTDQ2PS(x, x)
			VMULPS(scale, x, x)
			bound(x)
			VCVTPS2DQ(x, x)
		}
		z := q.pack(y[:])
		VPERMD(z, q.perm(), z)
		MOVQ(line, c)
		VMOVDQU(z.AsX(), at(c, 0))
		for lane := 1; lane < 4; lane++ {
			ADDQ(ldd, c)
			VEXTRACTI32X4(Imm(uint64(lane)), z, at(c, 0))
		}
		if i < 3 {
			ADDQ(at(p, wiDstStep), line)
		}
	}
}

// storePair stores packed results of two neighbours at c and advances c past them.
func (w *winograd) storePair(z VecVirtual, c, ldd Register) {
	order := w.vec()
	w.load(w.order, order)
	VPERMD(z, order, z)
	VMOVDQU(z.AsX(), at(c, 0))
	ADDQ(ldd, c)
	VEXTRACTI128(Imm(1), z, at(c, 0))
	ADDQ(ldd, c)
}

// outputs returns the six numbers m, multiplied by the rows of
//
//	1  1  1  1  1  0
//	0  1 −1  2 −2  0
//	0  1  1  4  4  0
//	0  1 −1  8 −8  2
func (w *winograd) outputs(m func(i int) Op) [4]VecVirtual {
	var y [4]VecVirtual
	for i := range y {
		y[i] = w.vec()
	}
	s1, d1, s2, d2 := w.vec(), w.vec(), w.vec(), w.vec()
	w.load(m(1), d1)
	VPADDD(m(2), d1, s1)
	VPSUBD(m(2), d1, d1)
	w.load(m(3), d2)
	VPADDD(m(4), d2, s2)
	VPSUBD(m(4), d2, d2)
	VPADDD(m(0), s1, y[0])
	VPADDD(s2, y[0], y[0])
	VPADDD(d2, d2, d2)
	VPADDD(d2, d1, y[1])
	VPSLLD(Imm(2), s2, s2)
	VPADDD(s2, s1, y[2])
	w.load(m(5), y[3])
	VPADDD(y[3], y[3], y[3])
	VPADDD(d1, y[3], y[3])
	VPSLLD(Imm(2), d2, d2)
	VPADDD(d2, y[3], y[3])
	return y
}
