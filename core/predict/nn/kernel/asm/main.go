// Command asm writes the amd64 assembly of package kernel, once per level:
//
//	go run ./asm -level avx512 -out kernel_avx512_amd64.s -stubs stubs_avx512_amd64.go -pkg kernel
//
// Every function takes one pointer to a struct of 8-byte fields (args_amd64.go),
// so a field's offset is 8 times its index.
package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"

	"github.com/sightline-dev/sightline/core/cpu/asm"
)

func main() { asm.Levels(map[string]func(){"avx512": avx512, "avx2": avx2}) }

// begin begins a function, and returns its parameter.
func begin(name string) Register {
	asm.Begin(name, "func(p *byte)")
	return asm.Params("p")[0]
}

// The fields of kernel.tileArgs, in order.
const (
	argA       = 8 * iota // first row
	argB                  // first panel
	argC                  // first output
	argRes                // residual, or nil
	argBias               // bias of the first column
	argScale              // scale of the first column
	argLDA                // bytes between rows of a
	argSegStep            // bytes between segments of a row
	argSegs               // segments
	argK                  // steps per segment: elements, or groups of four bytes
	argBStep              // bytes between panels
	argLDC                // bytes between rows of c
	argLDR                // bytes between rows of res
	argTiles              // tiles, one below the other
	argMask               // one bit per column
	argLo                 // float32 bits, or a byte
	argHi                 // float32 bits
	argZero               // zero point
	argMaskVec            // sixteen dwords, all ones where a column exists; nil: all columns (AVX2)
	argNext               // the following panels, to prefetch (AVX-512)
	argRows               // rows of outputs, of argTiles tiles each (AVX-512)
	argRowA               // bytes from the end of the last tile of a row to the next row's first tile, of a
	argRowC               // likewise, of c
	argForm               // how a tile stores its sums: formClamp, …
	argAdd                // constants of the residual add for formAdd: a kernel.addArgs
)

// The values of argForm.
const (
	formClamp  = iota // clamped to Lo and Hi
	formPacked        // Lo is 0, Hi 255, and no result overflows an int32: packing clamps
	formAdd           // clamped, then added to bytes of argRes
)

// The fields of kernel.addArgs, in order.
const (
	addScaleY = 8 * iota // float32 bits
	addScaleR
	addLoY   // the clamp before the sum, minus the zero point: float32 bits
	addZeroR // zero point
	addLo    // a byte
	addHi    // float32 bits
	addZero  // zero point
)

var (
	at   = asm.At
	load = asm.Field
)

// rowsOf addresses up to 14 rows through two base registers and three strides.
type rowsOf struct {
	base       [2]GPVirtual
	s1, s3, s5 GPVirtual
	numRows    int
}

func newRows(p Register, stride, height int) *rowsOf {
	r := &rowsOf{numRows: height}
	r.base[0] = GP64()
	if height > 7 {
		r.base[1] = GP64()
	}
	r.s1 = load(p, stride)
	if height > 3 {
		r.s3 = GP64()
		LEAQ(Mem{Base: r.s1, Index: r.s1, Scale: 2}, r.s3)
	}
	if height > 5 {
		r.s5 = GP64()
		LEAQ(Mem{Base: r.s1, Index: r.s1, Scale: 4}, r.s5)
	}
	return r
}

// start sets the base registers to the rows that begin at from.
func (r *rowsOf) start(from Register) {
	MOVQ(from, r.base[0])
	if r.numRows > 7 {
		LEAQ(Mem{Base: from, Index: r.s1, Scale: 1}, r.base[1])
		LEAQ(Mem{Base: r.base[1], Index: r.s3, Scale: 2}, r.base[1])
	}
}

func (r *rowsOf) advance(bytes int) {
	ADDQ(Imm(uint64(bytes)), r.base[0])
	if r.numRows > 7 {
		ADDQ(Imm(uint64(bytes)), r.base[1])
	}
}

// row returns the address of byte disp of row i.
func (r *rowsOf) row(i, disp int) Mem {
	m := Mem{Base: r.base[i/7], Disp: disp}
	switch i % 7 {
	case 1, 2, 4:
		m.Index, m.Scale = r.s1, uint8(i%7)
	case 3, 6:
		m.Index, m.Scale = r.s3, uint8(i%7/3)
	case 5:
		m.Index, m.Scale = r.s5, 1
	}
	return m
}

// walk emits the steps of a tile, four bytes of each row at a time, for each k of each segment. The registers in to hold the first
// row, the panels, k and the segments. One turn of the loop has unroll steps. fetch(u) follows each step u, and fetch(unroll) the last one.
func walk(p Register, cur *cursor, rows *rowsOf, to [4]Register, unroll int, step, fetch func(u int)) {
	a, b, k, segs := to[0], to[1], to[2], to[3]
	MOVQ(cur.at(argA), a)
	MOVQ(at(p, argB), b)
	MOVQ(at(p, argSegs), segs)
	Label("segment")
	rows.start(a)
	MOVQ(at(p, argK), k)
	SUBQ(Imm(uint64(unroll)), k)
	JLT(LabelRef("tail"))
	Label("loop")
	for u := range unroll {
		step(u)
		fetch(u)
	}
	fetch(unroll)
	rows.advance(unroll * 4)
	ADDQ(U32(unroll*64), b)
	SUBQ(Imm(uint64(unroll)), k)
	JGE(LabelRef("loop"))
	Label("tail")
	ADDQ(Imm(uint64(unroll)), k)
	JZ(LabelRef("done"))
	Label("tailloop")
	step(0)
	rows.advance(4)
	ADDQ(Imm(64), b)
	DECQ(k)
	JNZ(LabelRef("tailloop"))
	Label("done")
	ADDQ(at(p, argSegStep), a)
	DECQ(segs)
	JNZ(LabelRef("segment"))
}

// cursor keeps the fields that advance from tile to tile in the function's frame, because the
// caller's struct holds pointers that must never point beyond the end of their arrays.
type cursor struct {
	p     Register
	frame Mem
	slot  map[int]int
}

func newCursor(p Register, fields ...int) *cursor {
	c := &cursor{p: p, frame: AllocLocal(8 * len(fields)), slot: map[int]int{}}
	for i, f := range fields {
		c.slot[f] = 8 * i
		MOVQ(load(p, f), c.at(f))
	}
	return c
}

func (c *cursor) at(field int) Mem { return c.frame.Offset(c.slot[field]) }

func (c *cursor) load(field int) GPVirtual {
	r := GP64()
	MOVQ(c.at(field), r)
	return r
}

// skip advances field by height times the stride.
func (c *cursor) skip(field, stride, height int) {
	t := load(c.p, stride)
	IMUL3Q(Imm(uint64(height)), t, t)
	ADDQ(t, c.at(field))
}
