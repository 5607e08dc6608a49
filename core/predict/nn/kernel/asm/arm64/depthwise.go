package main

import (
	"fmt"

	"github.com/sightline-dev/sightline/core/cpu/asm/arm64"
)

// The fields of kernel.rowArgs, in order.
const (
	rowSrc = 8 * iota
	rowDst
	rowW       // weights of the block
	rowBias    // bias of the block
	rowScale   // scale of the block
	rowStep    // bytes between input rows
	rowNext    // bytes between the first inputs of neighbouring outputs
	rowOut     // bytes between outputs
	rowWidth   // outputs in a row
	rowRows    // rows of outputs
	rowSrcStep // bytes between the first inputs of output rows
	rowDstStep // bytes between output rows
	rowTaps    // byte offset of each tap
	rowCount   // bytes: groups of three taps (level neon) or of four (SDOT); floats: taps
	rowLo      // a byte, or float32 bits
	rowHi
	rowZero
	rowClamp // 1 unless lo is 0 and hi is 255
	rowLift  // addends to the biases of the block
	rowStart // memory for the first values of the accumulators
)

// The general registers of a depthwise block. R0 points to the struct.
const (
	dwRow   = 1 // first input of the output row
	dwOut   = 2 // first output of the row
	dwRows  = 3 // rows left
	dwSrc   = 4 // first input of the output
	dwDst   = 5
	dwWidth = 6 // outputs left in the row
	dwW     = 7
	dwTaps  = 8
	dwCount = 9
	dwOff   = 10 // to 13: offsets of taps, or addresses of input rows
	dwBias  = 14
	dwScale = 15
	dwNext  = 21
	dwStep  = 22
)

// depthwise emits output rows of a block of 16 channels.
type depthwise struct {
	*arm64.File
}

// begin begins the function and loads the fields that stay in registers.
func (d depthwise) begin(name string) {
	d.Func(name)
	load(d.File, rowSrc, dwRow)
	load(d.File, rowDst, dwOut)
	load(d.File, rowRows, dwRows)
	load(d.File, rowBias, dwBias)
	load(d.File, rowScale, dwScale)
	load(d.File, rowOut, dwStep)
}

// frame emits a function. prepare emits code before the loops. pixel emits the sums of one output, in registers 16 to 19.
func (d depthwise) frame(name string, prepare, pixel func()) {
	d.begin(name)
	load(d.File, rowNext, dwNext)
	dupByte(d.File, rowZero, 31, "8h")
	bounds(d.File, rowLo, rowHi)
	prepare()
	d.Label("row")
	d.Go("MOVD R%d, R%d", dwRow, dwSrc)
	d.Go("MOVD R%d, R%d", dwOut, dwDst)
	load(d.File, rowWidth, dwWidth)
	d.Label("pixel")
	pixel()
	d.put([4]int{16, 17, 18, 19}, 0)
	d.Go("ADD R%d, R%d", dwNext, dwSrc)
	d.Go("SUB $1, R%d", dwWidth)
	d.Go("CBNZ R%d, pixel", dwWidth)
	d.nextRow()
}

// put requantises and stores the sums of an output and advances dwDst. It loads the scales into four registers, starting at scale.
func (d depthwise) put(sums [4]int, scale int) {
	d.V("ld1 %s, [x%d]", arm64.Four(scale), dwScale)
	toWords(d.File, sums[:], func(v int) int { return scale + v - sums[0] })
	narrow(d.File, sums[:], 31)
	clamp(d.File, sums[0])
	d.V("str q%d, [x%d]", sums[0], dwDst)
	d.Go("ADD R%d, R%d", dwStep, dwDst)
}

func (d depthwise) nextRow() {
	load(d.File, rowSrcStep, regTemp)
	d.Go("ADD R%d, R%d", regTemp, dwRow)
	load(d.File, rowDstStep, regTemp)
	d.Go("ADD R%d, R%d", regTemp, dwOut)
	d.Go("SUB $1, R%d", dwRows)
	d.Go("CBNZ R%d, row", dwRows)
	d.Go("RET")
}

// start stores bias + lift, the first values of the accumulators, at the end of the struct and points dwBias to them.
func (d depthwise) start() {
	load(d.File, rowLift, dwOff)
	d.V("ld1 %s, [x%d]", arm64.Four(0), dwBias)
	d.V("ld1 %s, [x%d]", arm64.Four(4), dwOff)
	for v := range 4 {
		d.V("add v%d.4s, v%d.4s, v%d.4s", v, v, 4+v)
	}
	d.Go("ADD $%d, R0, R%d", rowStart, dwBias)
	d.V("st1 %s, [x%d]", arm64.Four(0), dwBias)
}

// interleave turns four rows of bytes in registers 0 to 3 into dwords in registers 4 to 7. A dword holds the four bytes of a channel.
func (d depthwise) interleave() {
	d.V("zip1 v4.16b, v0.16b, v1.16b")
	d.V("zip2 v6.16b, v0.16b, v1.16b")
	d.V("zip1 v0.16b, v2.16b, v3.16b")
	d.V("zip2 v1.16b, v2.16b, v3.16b")
	for i := range 2 {
		d.V("zip2 v%d.8h, v%d.8h, v%d.8h", 5+2*i, 4+2*i, i)
		d.V("zip1 v%d.8h, v%d.8h, v%d.8h", 4+2*i, 4+2*i, i)
	}
}

func depthwiseU8(f *arm64.File) {
	d := depthwise{f}
	d.frame("depthwiseU8TapsNEON", func() {}, func() {
		d.V("ld1 %s, [x%d]", arm64.Four(16), dwBias)
		load(f, rowW, dwW)
		load(f, rowTaps, dwTaps)
		load(f, rowCount, dwCount)
		d.Label("taps")
		d.Go("LDP.P 24(R%d), (R%d, R%d)", dwTaps, dwOff, dwOff+1)
		d.Go("MOVD -8(R%d), R%d", dwTaps, dwOff+2)
		d.V("ld1 %s, [x%d], #64", arm64.Four(0), dwW)
		d.V("ldp q4, q5, [x%d], #32", dwW)
		for tap := range 3 {
			d.V("ldr q6, [x%d, x%d]", dwSrc, dwOff+tap)
			d.V("ushll v8.8h, v6.8b, #0")
			d.V("ushll2 v9.8h, v6.16b, #0")
			for i := range 2 {
				d.V("smlal v%d.4s, v%d.4h, v%d.4h", 16+2*i, 8+i, 2*tap+i)
				d.V("smlal2 v%d.4s, v%d.8h, v%d.8h", 17+2*i, 8+i, 2*tap+i)
			}
		}
		d.Go("SUB $1, R%d", dwCount)
		d.Go("CBNZ R%d, taps", dwCount)
	})
	d.frame("depthwiseU8TapsDotProd", func() {
		d.start()
		d.V("movi v28.16b, #128")
	}, func() {
		d.V("ld1 %s, [x%d]", arm64.Four(16), dwBias)
		load(f, rowW, dwW)
		load(f, rowTaps, dwTaps)
		load(f, rowCount, dwCount)
		d.Label("group")
		d.Go("LDP.P 32(R%d), (R%d, R%d)", dwTaps, dwOff, dwOff+1)
		d.Go("LDP -16(R%d), (R%d, R%d)", dwTaps, dwOff+2, dwOff+3)
		for i := range 4 {
			d.V("ldr q%d, [x%d, x%d]", i, dwSrc, dwOff+i)
		}
		for i := range 4 {
			d.V("eor v%d.16b, v%d.16b, v28.16b", i, i)
		}
		d.V("ld1 %s, [x%d], #64", arm64.Four(8), dwW)
		d.interleave()
		for i := range 4 {
			d.V("sdot v%d.4s, v%d.16b, v%d.16b", 16+i, 4+i, 8+i)
		}
		d.Go("SUB $1, R%d", dwCount)
		d.Go("CBNZ R%d, group", dwCount)
	})
	for stride := 1; stride <= 2; stride++ {
		d.three(stride)
	}
}

// three emits a 3×3 kernel with adjacent columns. Registers 0 to 11 hold three columns of the input as dwords of 16 channels, registers 12
// to 23 the weights. Neighbouring outputs share columns, so the loop has three copies, and each begins at a different column.
func (d depthwise) three(stride int) {
	const weights, acc, sign, rows, zero, clamped = 12, 24, 28, 29, 23, 24
	d.begin(fmt.Sprintf("depthwiseU8Three%dDotProd", stride))
	d.start()
	load(d.File, rowW, dwW)
	for g := range 3 {
		d.V("ld1 %s, [x%d], #64", arm64.Four(weights+4*g), dwW)
	}
	d.V("movi v%d.16b, #128", sign)
	load(d.File, rowZero, zero)
	load(d.File, rowClamp, clamped)
	load(d.File, rowStep, dwW)
	// column loads the next column of inputs into registers to to to+3.
	column := func(to int) {
		for r := range 3 {
			d.V("ld1 {v%d.16b}, [x%d], x%d", rows+r, dwOff+r, dwStep)
		}
		for r := range 3 {
			d.V("eor v%d.16b, v%d.16b, v%d.16b", rows+r, rows+r, sign)
		}
		d.V("zip1 v%d.16b, v%d.16b, v%d.16b", to, rows, rows+1)
		d.V("zip2 v%d.16b, v%d.16b, v%d.16b", to+2, rows, rows+1)
		d.V("zip1 v%d.16b, v%d.16b, v%d.16b", rows, rows+2, rows+2)
		d.V("zip2 v%d.16b, v%d.16b, v%d.16b", rows+1, rows+2, rows+2)
		for i := range 2 {
			d.V("zip2 v%d.8h, v%d.8h, v%d.8h", to+1+2*i, to+2*i, rows+i)
			d.V("zip1 v%d.8h, v%d.8h, v%d.8h", to+2*i, to+2*i, rows+i)
		}
	}
	d.Label("row")
	d.Go("MOVD R%d, R%d", dwRow, dwOff)
	d.Go("ADD R%d, R%d, R%d", dwW, dwOff, dwOff+1)
	d.Go("ADD R%d, R%d, R%d", dwW, dwOff+1, dwOff+2)
	d.Go("MOVD R%d, R%d", dwOut, dwDst)
	load(d.File, rowWidth, dwWidth)
	for c := range 3 - stride {
		column(4 * c)
	}
	d.Label("pixel")
	first := 0 // first column of the output's window; modulo 3, the index of its registers
	for turn := range 3 {
		at := func(kx int) int { return 4 * ((first + kx) % 3) }
		for kx := 3 - stride; kx < 3; kx++ {
			column(at(kx))
		}
		d.V("ld1 %s, [x%d]", arm64.Four(acc), dwBias)
		for kx := range 3 {
			for i := range 4 {
				d.V("sdot v%d.4s, v%d.16b, v%d.16b", acc+i, at(kx)+i, weights+4*kx+i)
			}
		}
		d.V("ld1 %s, [x%d]", arm64.Four(at(0)), dwScale)
		sums := []int{acc, acc + 1, acc + 2, acc + 3}
		toWords(d.File, sums, func(v int) int { return at(0) + v - acc })
		d.V("dup v%d.8h, w%d", rows, zero)
		narrow(d.File, sums, rows)
		d.Go("CBZ R%d, store%d", clamped, turn)
		bounds(d.File, rowLo, rowHi)
		clamp(d.File, acc)
		d.Label(fmt.Sprintf("store%d", turn))
		d.V("st1 {v%d.16b}, [x%d], x%d", acc, dwDst, dwStep)
		d.Go("SUB $1, R%d", dwWidth)
		if turn < 2 {
			d.Go("CBZ R%d, end", dwWidth)
		} else {
			d.Go("CBNZ R%d, pixel", dwWidth)
		}
		first += stride
	}
	d.Label("end")
	d.nextRow()
}
