package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"

	"github.com/sightline-dev/sightline/core/cpu/asm"
)

func avx512() {
	perm := transpose4x4()
	for _, vecs := range []int{2, 1} {
		for _, height := range []int{14, 7, 4, 2, 1} {
			(&tile{height: height, vecs: vecs}).f32()
		}
	}
	for _, vecs := range []int{2, 1} {
		for _, height := range []int{14, 7, 4, 2, 1} {
			(&tile{height: height, vecs: vecs, perm: perm}).u8()
		}
		(&tile{height: 2, vecs: vecs}).i32()
	}

	for _, lanes := range []int{4, 2, 1} {
		(&depthwiseU8{lanes: lanes}).general()
		(&depthwiseU8{lanes: lanes}).three(1)
		(&depthwiseU8{lanes: lanes}).three(2)
	}
	for _, vecs := range []int{2, 1} {
		(&depthwiseF32{vecs: vecs, vec: ZMM, suffix: fmt.Sprintf("x%dAVX512", vecs*16)}).three()
	}
	for _, vecs := range []int{4, 1} {
		(&depthwiseF32{vecs: vecs, vec: ZMM, suffix: fmt.Sprintf("x%dAVX512", vecs*16)}).general()
	}
	elementwise512(perm)
	(&winograd{vec: ZMM, suffix: "x32AVX512", tall: 7, order: perm}).emit()
}

// transpose4x4 returns the VPERMD index that transposes four lanes of four dwords.
func transpose4x4() Mem {
	m := GLOBL("transpose4x4", RODATA|NOPTR)
	for d := range 16 {
		DATA(4*d, U32(d%4*4+d/4))
	}
	return m
}

// ahead is the distance in bytes at which a short tile prefetches its weights. It has too few rows to hide the wait, and the processor's
// own prefetching stops at the end of each page.
const ahead = 2048

// tile is a block of height rows by vecs registers of 16 columns.
type tile struct {
	height, vecs int
	perm         Mem
	p            Register
	cur          *cursor
	acc          [][]VecVirtual
	mask         [2]OpmaskVirtual
	end          func() // emits code after the function's end
}

// frame emits the function around a tile. For each of argTiles tiles of each of
// argRows rows, the accumulators start from the bias, step runs for each k of each
// segment, and finish stores the results. One turn of the loop has unroll steps.
func (t *tile) frame(name string, unroll int, ints bool, step func(rows *rowsOf, b, bstep Register, u int), finish func()) {
	t.p = begin(fmt.Sprintf("%s%dx%dAVX512", name, t.height, t.vecs*16))
	p := t.p
	t.cur = newCursor(p, argA, argC, argRes, argTiles, argRows)
	m := load(p, argMask)
	for v := range t.vecs {
		t.mask[v] = K()
		KMOVW(m.As32(), t.mask[v])
		SHRQ(Imm(16), m)
	}
	rows := newRows(p, argLDA, t.height)
	bstep := load(p, argBStep)
	a, b, k, segs := GP64(), GP64(), GP64(), GP64()
	var next GPVirtual
	if t.height >= 7 {
		next = load(p, argNext)
	}

	Label("tile")
	bias := load(p, argBias)
	t.acc = make([][]VecVirtual, t.height)
	for r := range t.acc {
		t.acc[r] = make([]VecVirtual, t.vecs)
		for v := range t.acc[r] {
			t.acc[r][v] = ZMM()
			if r > 0 {
				VMOVAPS(t.acc[0][v], t.acc[r][v])
			} else if ints {
				VMOVDQU32_Z(at(bias, v*64), t.mask[v], t.acc[r][v])
			} else {
				VMOVUPS_Z(at(bias, v*64), t.mask[v], t.acc[r][v])
			}
		}
	}
	walk(p, t.cur, rows, [4]Register{a, b, k, segs}, unroll, func(u int) { step(rows, b, bstep, u) }, func(u int) {
		switch {
		case t.height >= 7 && u < unroll:
			PREFETCHT1(at(next, u*64))
		case t.height >= 7:
			ADDQ(U32(unroll*64), next)
		case u < unroll:
			PREFETCHT0(at(b, u*64+ahead))
			if t.vecs == 2 {
				PREFETCHT0(Mem{Base: b, Index: bstep, Scale: 1, Disp: u*64 + ahead})
			}
		}
	})
	finish()
	t.cur.skip(argA, argLDA, t.height)
	t.cur.skip(argC, argLDC, t.height)
	t.cur.skip(argRes, argLDR, t.height)
	if t.height >= 7 {
		// The first two tiles prefetch the whole next panels; later tiles only touch their own.
		left := t.cur.load(argTiles)
		INCQ(left)
		CMPQ(left, at(p, argTiles))
		JG(LabelRef("again"))
		MOVQ(at(p, argB), next)
		Label("again")
	}
	DECQ(t.cur.at(argTiles))
	JNZ(LabelRef("tile"))
	for _, f := range [][2]int{{argA, argRowA}, {argC, argRowC}, {argTiles, argTiles}} {
		ADDQ(load(p, f[1]), t.cur.at(f[0]))
	}
	DECQ(t.cur.at(argRows))
	JNZ(LabelRef("tile"))
	asm.End()
	if t.end != nil {
		t.end()
	}
}

func (t *tile) f32() {
	step := func(rows *rowsOf, b, bstep Register, u int) {
		bv := []VecVirtual{ZMM(), ZMM()}[:t.vecs]
		VMOVUPS(at(b, u*64), bv[0])
		if t.vecs == 2 {
			VMOVUPS(Mem{Base: b, Index: bstep, Scale: 1, Disp: u * 64}, bv[1])
		}
		for r := range t.acc {
			if t.vecs == 1 {
				VFMADD231PS_BCST(rows.row(r, u*4), bv[0], t.acc[r][0])
				continue
			}
			av := ZMM()
			VBROADCASTSS(rows.row(r, u*4), av)
			for v := range bv {
				VFMADD231PS(bv[v], av, t.acc[r][v])
			}
		}
	}
	t.frame("gemmF32Tile", 4, false, step, func() {
		lo, hi := ZMM(), ZMM()
		VBROADCASTSS(at(t.p, argLo), lo)
		VBROADCASTSS(at(t.p, argHi), hi)
		res := t.cur.load(argRes)
		ldr := load(t.p, argLDR)
		TESTQ(res, res)
		JZ(LabelRef("store"))
		for r := range t.acc {
			for v := range t.acc[r] {
				x := ZMM()
				VMOVUPS_Z(at(res, v*64), t.mask[v], x)
				VADDPS(x, t.acc[r][v], t.acc[r][v])
			}
			ADDQ(ldr, res)
		}
		Label("store")
		c := t.cur.load(argC)
		ldc := load(t.p, argLDC)
		for r := range t.acc {
			for v, x := range t.acc[r] {
				VMAXPS(x, lo, x)
				VMINPS(x, hi, x)
				VMOVUPS(x, t.mask[v], at(c, v*64))
			}
			ADDQ(ldc, c)
		}
	})
}

// dpbusd emits the step of the byte products: it multiplies four bytes of a row by four
// bytes of each of 16 columns.
func (t *tile) dpbusd(rows *rowsOf, b, bstep Register, u int) {
	bv := []VecVirtual{ZMM(), ZMM()}[:t.vecs]
	VMOVDQU32(at(b, u*64), bv[0])
	if t.vecs == 2 {
		VMOVDQU32(Mem{Base: b, Index: bstep, Scale: 1, Disp: u * 64}, bv[1])
	}
	for r := range t.acc {
		av := ZMM()
		VPBROADCASTD(rows.row(r, u*4), av)
		for v := range bv {
			asm.Raw("VPDPBUSD", bv[v], av, t.acc[r][v])
		}
	}
}

func (t *tile) i32() {
	t.frame("gemmI32Tile", 2, true, t.dpbusd, func() {
		c := t.cur.load(argC)
		ldc := load(t.p, argLDC)
		for r := range t.acc {
			for v, x := range t.acc[r] {
				VMOVDQU32(x, t.mask[v], at(c, v*64))
			}
			ADDQ(ldc, c)
		}
	})
}

func (t *tile) u8() {
	t.frame("gemmU8Tile", 2, true, t.dpbusd, func() {
		form := load(t.p, argForm)
		CMPQ(form, Imm(formPacked))
		JEQ(LabelRef("packed"))
		CMPQ(form, Imm(formAdd))
		JEQ(LabelRef("add"))
		out := newRequant(t.p, t.perm)
		t.store(out, func(_ int, x, scale VecVirtual) { out.scale(x, scale) })
		JMP(LabelRef("next"))
		Label("packed")
		t.storePacked()
		JMP(LabelRef("next"))
		Label("add")
		t.add()
		Label("next")
	})
}

// storePacked emits a store without a clamp, because the saturating packs clamp.
func (t *tile) storePacked() {
	out := &requant{p: t.p, zero: ZMM(), packs: true, permData: t.perm}
	VPBROADCASTW(at(t.p, argZero), out.zero)
	t.store(out, func(_ int, x, scale VecVirtual) {
		VCVTDQ2PS(x, x)
		VMULPS(scale, x, x)
		VCVTPS2DQ(x, x)
	})
}

// add emits the residual add: it rounds a result to a whole number, still a float, subtracts the zero point, and adds the residual.
func (t *tile) add() {
	p := load(t.p, argAdd)
	res, ldr := t.cur.load(argRes), load(t.p, argLDR)
	out := &requant{p: p, zeroField: addZero, loField: addLo, permData: t.perm}
	t.store(out, func(v int, x, scale VecVirtual) {
		VCVTDQ2PS(x, x)
		VMULPS(scale, x, x)
		VMINPS_BCST(at(t.p, argHi), x, x)
		VMAXPS_BCST(at(p, addLoY), x, x)
		VRNDSCALEPS(Imm(8), x, x)
		VMULPS_BCST(at(p, addScaleY), x, x)
		y := ZMM()
		VPMOVZXBD_Z(at(res, v*16), t.mask[v], y)
		VPSUBD_BCST(at(p, addZeroR), y, y)
		VCVTDQ2PS(y, y)
		VMULPS_BCST(at(p, addScaleR), y, y)
		VADDPS(y, x, x)
		VMINPS_BCST(at(p, addHi), x, x)
		VCVTPS2DQ(x, x)
		if v == t.vecs-1 {
			ADDQ(ldr, res)
		}
	})
}

// store converts the sums to bytes and stores them. steps converts register v of a row to quantisation steps.
func (t *tile) store(out *requant, steps func(v int, x, scale VecVirtual)) {
	sp := load(t.p, argScale)
	scale := []VecVirtual{ZMM(), ZMM()}[:t.vecs]
	for v := range scale {
		VMOVUPS_Z(at(sp, v*64), t.mask[v], scale[v])
	}
	m := load(t.p, argMask)
	bytes := K()
	KMOVD(m.As32(), bytes)
	c := t.cur.load(argC)
	ldc := load(t.p, argLDC)
	rowsPer := 4 / t.vecs
	for r := 0; r < t.height; r += rowsPer {
		group := []VecVirtual{}
		for i := r; i < min(r+rowsPer, t.height); i++ {
			for v, x := range t.acc[i] {
				steps(v, x, scale[v])
				group = append(group, x)
			}
		}
		z := out.pack(group)
		VPERMD(z, out.perm(), z)
		for i := r; i < min(r+rowsPer, t.height); i++ {
			t.storeRow(z, i-r, c, bytes)
			ADDQ(ldc, c)
		}
	}
}

// storeRow stores row i of a packed group.
func (t *tile) storeRow(z VecVirtual, i int, c Register, mask OpmaskVirtual) {
	if t.vecs == 2 {
		y := z.AsY()
		if i > 0 {
			hi := YMM()
			VEXTRACTI64X4(Imm(uint64(i)), z, hi)
			y = hi
		}
		VMOVDQU8(y, mask, at(c, 0))
		return
	}
	x := z.AsX()
	if i > 0 {
		hi := XMM()
		VEXTRACTI32X4(Imm(uint64(i)), z, hi)
		x = hi
	}
	VMOVDQU8(x, mask, at(c, 0))
}

// requant holds the constants that turn accumulators into bytes.
type requant struct {
	p         Register
	hi, zero  VecVirtual // zero: nil if loaded from zeroField on use
	lo        VecVirtual // nil: loaded from loField on use
	loField   int
	zeroField int
	packs     bool       // the packs clamp: Lo is 0, Hi 255
	idx       VecVirtual // loaded on first use, when registers have become free
	permData  Mem
	shifted   GPVirtual // not zero if Zero or Lo is not zero; nil: unknown
	rare      []func()  // code for after the function's end
}

// like returns a new register of the width of v.
func like(v VecVirtual) VecVirtual {
	switch v.Size() {
	case 64:
		return ZMM()
	case 32:
		return YMM()
	}
	return XMM()
}

// mayShift makes pack skip Zero and Lo if both are zero, as after a
// rectifier.
func (q *requant) mayShift(lo, zero int) {
	q.shifted = load(q.p, lo)
	ORQ(at(q.p, zero), q.shifted)
}

// end emits the code that pack postponed.
func (q *requant) end() {
	for _, f := range q.rare {
		f()
	}
}

// newRequant loads argHi (Hi-Zero as float32) and argZero.
func newRequant(p Register, perm Mem) *requant {
	q := &requant{p: p, hi: ZMM(), zero: ZMM(), loField: argLo, permData: perm}
	VBROADCASTSS(at(p, argHi), q.hi)
	VPBROADCASTW(at(p, argZero), q.zero)
	return q
}

// scale converts x from int32 sums to int32 steps, at most Hi-Zero.
// It clamps before it rounds, because the two commute and so the
// conversion cannot overflow upwards. Downwards an overflow gives the smallest int32.
func (q *requant) scale(x, scale VecVirtual) {
	VCVTDQ2PS(x, x)
	VMULPS(scale, x, x)
	q.steps(x)
}

// steps rounds x to int32, at most Hi-Zero.
func (q *requant) steps(x VecVirtual) {
	VMINPS(q.hi, x, x)
	VCVTPS2DQ(x, x)
}

// pack packs up to four registers of steps into bytes: lane l of the result holds
// four bytes of each register's lane l, in order.
func (q *requant) pack(v []VecVirtual) VecVirtual {
	halves := []VecVirtual{}
	for i := 0; i < len(v); i += 2 {
		VPACKSSDW(v[min(i+1, len(v)-1)], v[i], v[i])
		halves = append(halves, v[i])
	}
	z, y := halves[0], halves[len(halves)-1]
	full := func() {
		zero := q.zero
		if zero == nil {
			zero = like(z)
			VPBROADCASTW(at(q.p, q.zeroField), zero)
		}
		for _, h := range halves {
			VPADDSW(zero, h, h)
		}
		VPACKUSWB(y, z, z)
		if q.packs {
			return
		}
		lo := q.lo
		if lo == nil {
			lo = like(z)
			VPBROADCASTB(at(q.p, q.loField), lo)
		}
		VPMAXUB(lo, z, z)
	}
	if q.shifted == nil {
		full()
		return z
	}
	name, back := fmt.Sprintf("shift%d", len(q.rare)), fmt.Sprintf("shifted%d", len(q.rare))
	TESTQ(q.shifted, q.shifted)
	JNZ(LabelRef(name))
	VPACKUSWB(y, z, z)
	Label(back)
	q.rare = append(q.rare, func() {
		Label(name)
		full()
		JMP(LabelRef(back))
	})
	return z
}

func (q *requant) perm() VecVirtual {
	if q.idx == nil {
		q.idx = ZMM()
		VMOVDQU32(q.permData, q.idx)
	}
	return q.idx
}
