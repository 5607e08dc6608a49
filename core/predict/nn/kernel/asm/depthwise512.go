package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"

	"github.com/sightline-dev/sightline/core/cpu/asm"
)

// The fields of kernel.rowArgs, in order.
const (
	rowSrc     = 8 * iota // first input of the first output
	rowDst                // first output
	rowW                  // weights of the block
	rowBias               // bias of the block
	rowScale              // scale of the block
	rowStep               // bytes between input rows
	rowCol                // bytes between the columns of the kernel
	rowNext               // bytes between the inputs of neighbouring outputs
	rowOut                // bytes between outputs
	rowWidth              // outputs in a row
	rowRows               // rows
	rowSrcStep            // bytes between the inputs of rows of outputs
	rowDstStep            // bytes between rows of outputs
	rowMask               // one bit per channel
	rowTaps               // byte offset of each tap (bytes: in groups of four, with AVX2 of two)
	rowCount              // taps (float32) or groups of taps (bytes)
	rowLo                 // float32 bits, or a byte
	rowHi                 // float32 bits
	rowZero               // zero point
)

// eachRow emits a loop over the output rows. body receives src, dst and width for
// one row and may change them.
func eachRow(p Register, body func(src, dst, width Register)) {
	cur := newCursor(p, rowSrc, rowDst, rowRows)
	src, dst, width := GP64(), GP64(), GP64()
	Label("row")
	MOVQ(cur.at(rowSrc), src)
	MOVQ(cur.at(rowDst), dst)
	MOVQ(at(p, rowWidth), width)
	body(src, dst, width)
	step := load(p, rowSrcStep)
	ADDQ(step, cur.at(rowSrc))
	step = load(p, rowDstStep)
	ADDQ(step, cur.at(rowDst))
	DECQ(cur.at(rowRows))
	JNZ(LabelRef("row"))
	asm.End()
}

// depthwiseU8 emits output rows of a block of 16·lanes channels.
//
// Four taps of a channel share a dword, so that one VPDPBUSD sums them.
// Unpacking four input registers byte by byte, then word by word, gives four
// registers. Lane l of register v holds channels 16l+4v to 16l+4v+3. The
// weights are packed in that order, and gather loads bias and scale in it. The two
// saturating packs of the requantisation restore the channel order.
type depthwiseU8 struct {
	lanes       int
	p           Register
	mask        OpmaskVirtual
	bias, scale []VecVirtual
	out         *requant
	w           Register
}

func (d *depthwiseU8) vec() VecVirtual {
	switch d.lanes {
	case 4:
		return ZMM()
	case 2:
		return YMM()
	}
	return XMM()
}

func (d *depthwiseU8) begin(name string) {
	d.p = begin(fmt.Sprintf("depthwiseU8%sx%dAVX512", name, d.lanes*16))
	if d.lanes == 1 {
		d.mask = K()
		KMOVW(load(d.p, rowMask).As32(), d.mask)
	}
	d.bias, d.scale = d.gather(load(d.p, rowBias)), d.gather(load(d.p, rowScale))
	d.out = &requant{p: d.p, hi: d.vec(), zero: d.vec(), loField: rowLo}
	VPBROADCASTD(at(d.p, rowHi), d.out.hi)
	VPBROADCASTW(at(d.p, rowZero), d.out.zero)
	d.out.mayShift(rowLo, rowZero)
	d.w = load(d.p, rowW)
}

// gather loads 16·lanes dwords in the order of the unpacked bytes.
func (d *depthwiseU8) gather(from Register) []VecVirtual {
	vs := make([]VecVirtual, 4)
	for v := range vs {
		vs[v] = d.vec()
		x := XMM()
		VMOVDQU32(at(from, 16*v), x)
		switch d.lanes {
		case 1:
			VMOVDQA32(x, vs[v])
		case 2:
			VINSERTI32X4(Imm(1), at(from, 64+16*v), x.AsY(), vs[v])
		case 4:
			VINSERTI32X4(Imm(1), at(from, 64+16*v), x.AsZ(), vs[v])
			VINSERTI32X4(Imm(2), at(from, 128+16*v), vs[v], vs[v])
			VINSERTI32X4(Imm(3), at(from, 192+16*v), vs[v], vs[v])
		}
	}
	return vs
}

func (d *depthwiseU8) loadBytes(m Mem) VecVirtual {
	v := d.vec()
	if d.lanes == 1 {
		VMOVDQU8_Z(m, d.mask, v)
	} else {
		VMOVDQU8(m, v)
	}
	return v
}

// interleave returns the four registers of four taps; r[3] may be r[2].
func (d *depthwiseU8) interleave(r [4]VecVirtual) [4]VecVirtual {
	lo01, hi01, lo23, hi23 := d.vec(), d.vec(), d.vec(), d.vec()
	VPUNPCKLBW(r[1], r[0], lo01)
	VPUNPCKHBW(r[1], r[0], hi01)
	VPUNPCKLBW(r[3], r[2], lo23)
	VPUNPCKHBW(r[3], r[2], hi23)
	out := [4]VecVirtual{d.vec(), d.vec(), d.vec(), d.vec()}
	VPUNPCKLWD(lo23, lo01, out[0])
	VPUNPCKHWD(lo23, lo01, out[1])
	VPUNPCKLWD(hi23, hi01, out[2])
	VPUNPCKHWD(hi23, hi01, out[3])
	return out
}

func (d *depthwiseU8) newAcc() [4]VecVirtual {
	return [4]VecVirtual{d.vec(), d.vec(), d.vec(), d.vec()}
}

func (d *depthwiseU8) start(acc [4]VecVirtual) {
	for v := range acc {
		VMOVDQA32(d.bias[v], acc[v])
	}
}

// dot adds the products of the taps with group g of the weights to acc.
func (d *depthwiseU8) dot(w Register, g int, taps, acc [4]VecVirtual) {
	for v := range acc {
		asm.Raw("VPDPBUSD", at(w, (g*4+v)*d.lanes*16), taps[v], acc[v])
	}
}

func (d *depthwiseU8) store(acc [4]VecVirtual, dst Register) {
	for v := range acc {
		d.out.scale(acc[v], d.scale[v])
	}
	z := d.out.pack(acc[:])
	if d.lanes == 1 {
		VMOVDQU8(z, d.mask, at(dst, 0))
	} else {
		VMOVDQU8(z, at(dst, 0))
	}
}

// general emits a kernel of any taps. rowTaps holds their offsets, four to a group.
func (d *depthwiseU8) general() {
	d.begin("Taps")
	next, step := load(d.p, rowNext), load(d.p, rowOut)
	acc := d.newAcc()
	w, taps, n, off := GP64(), GP64(), GP64(), GP64()
	eachRow(d.p, func(src, dst, width Register) {
		Label("pixel")
		d.start(acc)
		MOVQ(d.w, w)
		MOVQ(at(d.p, rowTaps), taps)
		MOVQ(at(d.p, rowCount), n)
		Label("group")
		var r [4]VecVirtual
		for i := range r {
			MOVQ(at(taps, 8*i), off)
			r[i] = d.loadBytes(Mem{Base: src, Index: off, Scale: 1})
		}
		d.dot(w, 0, d.interleave(r), acc)
		ADDQ(Imm(32), taps)
		ADDQ(U32(4*d.lanes*16), w)
		DECQ(n)
		JNZ(LabelRef("group"))
		d.store(acc, dst)
		ADDQ(next, src)
		ADDQ(step, dst)
		DECQ(width)
		JNZ(LabelRef("pixel"))
	})
	d.out.end()
}

// column3 interleaves the three rows of the column at src and advances src.
func (d *depthwiseU8) column3(src, step, col Register) [4]VecVirtual {
	r0 := d.loadBytes(at(src, 0))
	r1 := d.loadBytes(Mem{Base: src, Index: step, Scale: 1})
	r2 := d.loadBytes(Mem{Base: src, Index: step, Scale: 2})
	ADDQ(col, src)
	return d.interleave([4]VecVirtual{r0, r1, r2, r2})
}

// three emits a 3x3 kernel. It interleaves each column of three inputs once and uses it
// for all its outputs: three at stride 1, one or two at stride 2.
func (d *depthwiseU8) three(stride int) {
	d.begin(fmt.Sprintf("Three%d", stride))
	step, col, out := load(d.p, rowStep), load(d.p, rowCol), load(d.p, rowOut)
	accs := make([][4]VecVirtual, 4-stride)
	for i := range accs {
		accs[i] = d.newAcc()
	}
	eachRow(d.p, func(src, dst, width Register) {
		column := func(into func(taps [4]VecVirtual)) { into(d.column3(src, step, col)) }
		begin := func(i int, taps [4]VecVirtual) {
			d.start(accs[i])
			d.dot(d.w, 0, taps, accs[i])
		}
		column(func(taps [4]VecVirtual) { begin(0, taps) })
		if stride == 1 {
			column(func(taps [4]VecVirtual) {
				d.dot(d.w, 1, taps, accs[0])
				begin(1, taps)
			})
		}
		Label("pixel")
		for i := range accs {
			next := (i + 1) % len(accs)
			if stride == 1 {
				column(func(taps [4]VecVirtual) {
					d.dot(d.w, 2, taps, accs[i])
					d.dot(d.w, 1, taps, accs[next])
					begin((i+2)%3, taps)
				})
			} else {
				column(func(taps [4]VecVirtual) { d.dot(d.w, 1, taps, accs[i]) })
				column(func(taps [4]VecVirtual) {
					d.dot(d.w, 2, taps, accs[i])
					begin(next, taps)
				})
			}
			d.store(accs[i], dst)
			ADDQ(out, dst)
			DECQ(width)
			if i < len(accs)-1 {
				JZ(LabelRef("done"))
			} else {
				JNZ(LabelRef("pixel"))
			}
		}
		Label("done")
	})
	d.out.end()
}

// depthwiseF32 emits output rows of a block of vecs registers of channels. AVX-512 masks the channels.
type depthwiseF32 struct {
	vecs   int
	vec    func() VecVirtual
	suffix string
	p      Register
	mask   []OpmaskVirtual // nil at AVX2
	lo, hi VecVirtual
}

func (d *depthwiseF32) begin(name string) {
	d.p = begin("depthwiseF32" + name + d.suffix)
	d.lo, d.hi = d.vec(), d.vec()
	if d.lo.Size() == 64 {
		m := load(d.p, rowMask)
		d.mask = make([]OpmaskVirtual, d.vecs)
		for v := range d.mask {
			d.mask[v] = K()
			KMOVW(m.As32(), d.mask[v])
			SHRQ(Imm(16), m)
		}
	}
	VBROADCASTSS(at(d.p, rowLo), d.lo)
	VBROADCASTSS(at(d.p, rowHi), d.hi)
}

func (d *depthwiseF32) store(acc []VecVirtual, dst Register) {
	for v, x := range acc {
		VMAXPS(x, d.lo, x)
		VMINPS(x, d.hi, x)
		if d.mask == nil {
			VMOVUPS(x, at(dst, 0))
		} else {
			VMOVUPS(x, d.mask[v], at(dst, v*64))
		}
	}
}

func (d *depthwiseF32) loads(from Register) []VecVirtual {
	vs := make([]VecVirtual, d.vecs)
	for v := range vs {
		vs[v] = d.vec()
		if d.mask == nil {
			VMOVUPS(at(from, 0), vs[v])
		} else {
			VMOVUPS_Z(at(from, v*64), d.mask[v], vs[v])
		}
	}
	return vs
}

// add adds the products of the inputs at from with w to acc. It masks the products, because masked loads take more slots.
func (d *depthwiseF32) add(from Mem, w, acc []VecVirtual) {
	for v := range acc {
		if d.mask == nil {
			VFMADD231PS(from, w[v], acc[v])
		} else {
			VFMADD231PS(from.Offset(v*64), w[v], d.mask[v], acc[v])
		}
	}
}

// three emits a 3x3 kernel that keeps the nine weights of the block in registers. rowOut is also the number of
// bytes between the taps of the weights.
func (d *depthwiseF32) three() {
	d.begin("Three")
	bias := d.loads(load(d.p, rowBias))
	wp, out := load(d.p, rowW), load(d.p, rowOut)
	w := make([][]VecVirtual, 9)
	for t := range w {
		w[t] = d.loads(wp)
		ADDQ(out, wp)
	}
	next, step, col := load(d.p, rowNext), load(d.p, rowStep), load(d.p, rowCol)
	eachRow(d.p, func(src, dst, width Register) {
		rows := []Register{src, GP64(), GP64()}
		LEAQ(Mem{Base: rows[0], Index: step, Scale: 1}, rows[1])
		LEAQ(Mem{Base: rows[0], Index: step, Scale: 2}, rows[2])
		Label("pixel")
		acc := make([]VecVirtual, d.vecs)
		for v := range acc {
			acc[v] = d.vec()
			VMOVAPS(bias[v], acc[v])
		}
		for ky, r := range rows {
			for kx := range 3 {
				m := Mem{Base: r}
				if kx > 0 {
					m.Index, m.Scale = col, uint8(kx)
				}
				d.add(m, w[ky*3+kx], acc)
			}
		}
		d.store(acc, dst)
		for _, r := range rows {
			ADDQ(next, r)
		}
		ADDQ(out, dst)
		DECQ(width)
		JNZ(LabelRef("pixel"))
	})
}

// general emits a kernel of any taps. rowTaps holds their offsets. rowOut is also the number of bytes between
// the taps of the weights.
func (d *depthwiseF32) general() {
	d.begin("Taps")
	bias := load(d.p, rowBias)
	next, out := load(d.p, rowNext), load(d.p, rowOut)
	w, taps, n, off := GP64(), GP64(), GP64(), GP64()
	eachRow(d.p, func(src, dst, width Register) {
		Label("pixel")
		acc := d.loads(bias)
		MOVQ(at(d.p, rowW), w)
		MOVQ(at(d.p, rowTaps), taps)
		MOVQ(at(d.p, rowCount), n)
		Label("tap")
		MOVQ(at(taps, 0), off)
		d.add(Mem{Base: src, Index: off, Scale: 1}, d.loads(w), acc)
		ADDQ(Imm(8), taps)
		ADDQ(out, w)
		DECQ(n)
		JNZ(LabelRef("tap"))
		d.store(acc, dst)
		ADDQ(next, src)
		ADDQ(out, dst)
		DECQ(width)
		JNZ(LabelRef("pixel"))
	})
}
