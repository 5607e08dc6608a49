package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// columns2 emits output rows of a block of 16 channels for a square kernel of side 3 or 5 and stride 1 or 2.
//
// The code interleaves each column of inputs once, two rows to a dword as in depthwiseU8AVX2, and multiplies it for every output whose
// window contains it. The last row has no partner: both words hold the same input, and the second weight is zero.
type columns2 struct {
	side, stride int
	p            Register
	src, w       Register        // current column of inputs, and weights
	step, step3  Register        // bytes between input rows, and three times that
	frame        Mem             // bias and scale in the order of the interleaved channels
	acc          [][2]VecVirtual // sums of the outputs whose windows overlap
}

func (d *columns2) emit() {
	d.p = begin(fmt.Sprintf("depthwiseU8Columns%dStride%dAVX2", d.side, d.stride))
	d.frame = AllocLocal(128)
	d.gather(rowBias, d.frame)
	d.gather(rowScale, d.frame.Offset(64))
	col, out := load(d.p, rowCol), load(d.p, rowOut)
	d.step, d.step3, d.w = load(d.p, rowStep), GP64(), load(d.p, rowW)
	LEAQ(Mem{Base: d.step, Index: d.step, Scale: 2}, d.step3)
	q := &requant{p: d.p, hi: YMM(), loField: rowLo, zeroField: rowZero}
	VBROADCASTSS(at(d.p, rowHi), q.hi)
	q.mayShift(rowLo, rowZero)
	d.acc = make([][2]VecVirtual, (d.side+d.stride-1)/d.stride)
	for i := range d.acc {
		d.acc[i] = [2]VecVirtual{YMM(), YMM()}
	}
	eachRow(d.p, func(src, dst, width Register) {
		d.src = src
		for c := range d.side - d.stride {
			d.column(c, 0)
			ADDQ(col, src)
		}
		Label("pixel")
		for o, sums := range d.acc {
			for s := range d.stride {
				d.column(d.side-d.stride+s, o)
				ADDQ(col, src)
			}
			for v, x := range sums {
				VCVTDQ2PS(x, x)
				VMULPS(d.frame.Offset(64+32*v), x, x)
				q.steps(x)
			}
			z := q.pack(sums[:])
			VPERMQ(Imm(0x08), z, z)
			VMOVDQU(z.AsX(), at(dst, 0))
			ADDQ(out, dst)
			DECQ(width)
			if o < len(d.acc)-1 {
				JZ(LabelRef("done"))
			} else {
				JNZ(LabelRef("pixel"))
			}
		}
		Label("done")
	})
	q.end()
}

// gather emits a copy of the 16 dwords that a field points to, in the interleaved order: channels 0–3 and 8–11, then 4–7 and 12–15.
func (d *columns2) gather(field int, to Mem) {
	from := load(d.p, field)
	for i, channel := range []int{0, 8, 4, 12} {
		x := XMM()
		VMOVDQU(at(from, 4*channel), x)
		VMOVDQU(x, to.Offset(16*i))
	}
}

// column emits the products of the inputs at src. They are column c of the window of output o. It adds them to the sums of o and of all
// later outputs whose windows contain them.
func (d *columns2) column(c, o int) {
	pairs := (d.side + 1) / 2
	for pair := range pairs {
		a := YMM()
		VPMOVZXBW(d.row(2*pair), a)
		b := a
		if 2*pair+1 < d.side {
			b = YMM()
			VPMOVZXBW(d.row(2*pair+1), b)
		}
		x := [2]VecVirtual{YMM(), YMM()}
		VPUNPCKLWD(b, a, x[0])
		VPUNPCKHWD(b, a, x[1])
		for kx := c; kx >= 0; kx -= d.stride {
			acc := d.acc[(o+(c-kx)/d.stride)%len(d.acc)]
			for v := range x {
				t := YMM()
				VPMADDWD(at(d.w, (kx*pairs+pair)*64+32*v), x[v], t)
				if kx == 0 && pair == 0 {
					VPADDD(d.frame.Offset(32*v), t, acc[v])
				} else {
					VPADDD(t, acc[v], acc[v])
				}
			}
		}
	}
}

// row returns the address of row i of the column at src.
func (d *columns2) row(i int) Mem {
	switch i {
	case 0:
		return at(d.src, 0)
	case 3:
		return Mem{Base: d.src, Index: d.step3, Scale: 1}
	}
	return Mem{Base: d.src, Index: d.step, Scale: uint8(i)}
}
