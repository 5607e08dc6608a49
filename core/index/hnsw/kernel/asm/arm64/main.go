// Command arm64 writes the arm64 assembly of package kernel:
//
//	go run ./asm/arm64 -out kernel_arm64.s -stubs stubs_arm64.go -pkg kernel
//
// Every function takes one pointer to a struct of 8-byte fields (kernel_arm64.go), so a field's offset is 8 times its place.
package main

import "github.com/sightline-dev/sightline/core/cpu/asm/arm64"

// The fields of kernel.args, in order.
const (
	argDst    = 8 * iota
	argRows   // numbers of the rows, 4 bytes each
	argN      // rows, at least one
	argCodes  // address of the query: bytes, or int16 for dots
	argHigh   // addresses of the chunks of high bytes
	argLow    // addresses of the chunks of low bytes
	argMeta   // 8 bytes for each row
	argBlocks // lines of a row
	argStride // bytes of a row
	argOffset
	argWeight // address of the query's scale, a float32
	argFound  // the result of find
)

// The general registers. R0 has the address of the struct.
const (
	dst    = 1
	rows   = 2
	n      = 3
	codes  = 4
	high   = 5
	low    = 6
	meta   = 7
	blocks = 8
	stride = 9
	offset = 10
	row    = 11
	at     = 12 // address of the row's high bytes; the next register has that of its low bytes
	query  = 14
	left   = 15
	temp   = 16
	sum    = 17
)

func main() { arm64.Generate(emit) }

func emit(f *arm64.File) {
	k := kernel{f}
	k.distances("distancesDotProd", func(v int) {
		f.V("sdot v%d.4s, v%d.16b, v%d.16b", v, 4+v, 8+v)
	})
	k.distances("distancesNEON", func(v int) {
		f.V("smull v12.8h, v%d.8b, v%d.8b", 4+v, 8+v)
		f.V("smull2 v13.8h, v%d.16b, v%d.16b", 4+v, 8+v)
		f.V("sadalp v%d.4s, v12.8h", v)
		f.V("sadalp v%d.4s, v13.8h", v)
	})
	k.dots()
	k.find()
	f.Func("fetchNEON")
	f.Go("PRFM (R0), PLDL1KEEP")
	f.Go("RET")
}

type kernel struct{ *arm64.File }

// begin begins a function and loads fields into their registers.
func (k kernel) begin(name string, fields ...int) {
	k.Func(name)
	for _, field := range fields {
		k.Go("MOVD %d(R0), R%d", field, registers[field])
	}
}

var registers = map[int]int{
	argDst: dst, argRows: rows, argN: n, argCodes: codes, argHigh: high, argLow: low, argMeta: meta, argBlocks: blocks, argStride: stride,
	argOffset: offset,
}

// address puts the addresses of the next row's bytes, one for each table, into the register at and the next one.
func (k kernel) address(tables ...int) {
	k.Go("MOVWU.P 4(R%d), R%d", rows, row)
	k.Go("LSR $12, R%d, R%d", row, temp)
	k.Go("AND $4095, R%d, R%d", row, left)
	k.Go("MUL R%d, R%d, R%d", stride, left, left)
	for i, t := range tables {
		k.Go("MOVD (R%d)(R%d<<3), R%d", t, temp, at+i)
		k.Go("ADD R%d, R%d", left, at+i)
	}
}

func (k kernel) zero(vs int) {
	for v := range vs {
		k.V("movi v%d.16b, #0", v)
	}
}

// again emits the end of a loop over rows.
func (k kernel) again() {
	k.Go("SUB $1, R%d", n)
	k.Go("CBNZ R%d, row", n)
	k.Go("RET")
}

// distances emits a function that measures on high bytes. multiply emits the code that adds the products of registers 4+v and 8+v to
// register v.
//
// The products are Σ a·b and the distance needs 4·Σ a·b + 2·Σb. The row's meta holds -255·2·Σb: its product with the inverse of -255
// modulo 2³² is 2·Σb.
func (k kernel) distances(name string, multiply func(v int)) {
	const inverse, limit, least = 0x1010101, 30, 29
	k.begin(name, argDst, argRows, argN, argCodes, argHigh, argMeta, argBlocks, argStride, argOffset)
	k.Go("MOVD %d(R0), R%d", argWeight, temp)
	k.Go("FMOVS (R%d), F31", temp)
	k.Go("MOVD $0x4e400000, R%d", temp) // 1.5·2²⁹
	k.Go("FMOVS R%d, F%d", temp, limit)
	k.Go("FNEGS F%d, F%d", limit, least)
	k.Go("MOVD $%d, R%d", inverse, low)
	k.Label("row")
	k.address(high)
	k.Go("MOVD R%d, R%d", codes, query)
	k.Go("MOVD R%d, R%d", blocks, left)
	k.zero(4)
	k.Label("block")
	k.V("ld1 %s, [x%d], #64", arm64.Four(4), at)
	k.V("ld1 %s, [x%d], #64", arm64.Four(8), query)
	for v := range 4 {
		multiply(v)
	}
	k.Go("SUB $1, R%d", left)
	k.Go("CBNZ R%d, block", left)
	k.V("add v0.4s, v0.4s, v1.4s")
	k.V("add v2.4s, v2.4s, v3.4s")
	k.V("add v0.4s, v0.4s, v2.4s")
	k.V("addv s0, v0.4s")
	k.Go("FMOVS F0, R%d", sum)
	k.Go("MOVD (R%d)(R%d<<3), R%d", meta, row, temp)
	k.Go("MUL R%d, R%d, R%d", low, temp, left)
	k.Go("ADD R%d<<2, R%d, R%d", sum, left, left)
	k.Go("ADD R%d, R%d", offset, left)
	k.Go("SCVTFWS R%d, F0", left)
	k.Go("LSR $32, R%d", temp)
	k.Go("FMOVS R%d, F1", temp)
	k.Go("FMULS F1, F0, F0")
	k.Go("FMULS F31, F0, F0")
	k.Go("FMINS F%d, F0, F0", limit)
	k.Go("FMAXS F%d, F0, F0", least)
	k.Go("FRINTNS F0, F0")
	k.Go("FCVTZSSW F0, R%d", left)
	k.Go("MOVD $0x40000000, R%d", temp) // 2³⁰
	k.Go("SUBW R%d, R%d, R%d", left, temp, left)
	k.Go("MOVW.P R%d, 4(R%d)", left, dst)
	k.again()
}

// dots emits the exact function, which puts the two bytes of each int16 together again.
func (k kernel) dots() {
	k.begin("dotsNEON", argDst, argRows, argN, argCodes, argHigh, argLow, argStride)
	k.Label("row")
	k.address(high, low)
	k.Go("MOVD R%d, R%d", codes, query)
	k.Go("MOVD R%d, R%d", stride, left)
	k.zero(4)
	k.Label("block")
	k.V("ldr q4, [x%d], #16", at)
	k.V("ldr q5, [x%d], #16", at+1)
	k.V("ldp q6, q7, [x%d], #32", query)
	k.V("zip1 v16.16b, v5.16b, v4.16b")
	k.V("zip2 v17.16b, v5.16b, v4.16b")
	for i := range 2 {
		k.V("smull v%d.4s, v%d.4h, v%d.4h", 18+2*i, 16+i, 6+i)
		k.V("smull2 v%d.4s, v%d.8h, v%d.8h", 19+2*i, 16+i, 6+i)
	}
	for i := range 4 {
		k.V("sadalp v%d.2d, v%d.4s", i, 18+i)
	}
	k.Go("SUB $16, R%d", left)
	k.Go("CBNZ R%d, block", left)
	k.V("add v0.2d, v0.2d, v1.2d")
	k.V("add v2.2d, v2.2d, v3.2d")
	k.V("add v0.2d, v0.2d, v2.2d")
	k.V("addp d0, v0.2d")
	k.V("str d0, [x%d]", dst)
	k.Go("ADD $8, R%d", dst)
	k.again()
}

// find emits a search for the word in argOffset in lists of argBlocks times eight words. The function sets argFound to the index of the
// first list with the word. If there is none, it leaves argFound unchanged.
func (k kernel) find() {
	const place = meta
	k.begin("findNEON", argRows, argN, argHigh, argBlocks, argStride, argOffset)
	k.V("dup v4.4s, w%d", offset)
	k.Go("MOVD $0, R%d", place)
	k.Label("row")
	k.address(high)
	k.Go("MOVD R%d, R%d", blocks, left)
	k.zero(1)
	k.Label("block")
	k.V("ldp q1, q2, [x%d], #32", at)
	for v := 1; v <= 2; v++ {
		k.V("cmeq v%d.4s, v%d.4s, v4.4s", v, v)
		k.V("orr v0.16b, v0.16b, v%d.16b", v)
	}
	k.Go("SUB $1, R%d", left)
	k.Go("CBNZ R%d, block", left)
	k.V("umaxv s0, v0.4s")
	k.Go("FMOVS F0, R%d", temp)
	k.Go("CBNZ R%d, found", temp)
	k.Go("ADD $1, R%d", place)
	k.again()
	k.Label("found")
	k.Go("MOVD R%d, %d(R0)", place, argFound)
	k.Go("RET")
}
