package main

import "github.com/sightline-dev/sightline/core/cpu/asm/arm64"

// The fields of kernel.elementArgs, in order.
const (
	elDst    = 8 * iota
	elX      // first operand
	elY      // second operand
	elN      // blocks or rows
	elStep   // bytes between rows
	elScaleX // float32 bits
	elScaleY
	elZeroX // zero point
	elZeroY
	elLo // a byte
	elHi
	elZero
)

// bounds fills registers 29 and 30 with the fields lo and hi, for clamp.
func bounds(f *arm64.File, lo, hi int) {
	dupByte(f, lo, 29, "16b")
	dupByte(f, hi, 30, "16b")
}

func clamp(f *arm64.File, v int) {
	f.V("umax v%d.16b, v%d.16b, v29.16b", v, v)
	f.V("umin v%d.16b, v%d.16b, v30.16b", v, v)
}

// addU8 emits the quantised add of elN blocks of 16 bytes.
func addU8(f *arm64.File) {
	const dst, n, x, scale, zero, out = 1, 2, 3, 24, 26, 28
	f.Func("addU8NEON")
	load(f, elDst, dst)
	load(f, elN, n)
	for i := range 2 {
		load(f, elX+8*i, x+i)
		dupByte(f, elScaleX+8*i, scale+i, "4s")
		dupByte(f, elZeroX+8*i, zero+i, "16b")
	}
	dupByte(f, elZero, out, "8h")
	bounds(f, elLo, elHi)
	f.Label("loop")
	terms := [2]int{0, 16} // first of the four registers of each operand
	for i, t := range terms {
		f.V("ldr q%d, [x%d], #16", t, x+i)
		f.V("usubl2 v%d.8h, v%d.16b, v%d.16b", t+2, t, zero+i)
		f.V("usubl v%d.8h, v%d.8b, v%d.8b", t, t, zero+i)
		for _, v := range []int{t, t + 2} {
			f.V("sshll2 v%d.4s, v%d.8h, #0", v+1, v)
			f.V("sshll v%d.4s, v%d.4h, #0", v, v)
		}
		for v := t; v < t+4; v++ {
			f.V("scvtf v%d.4s, v%d.4s", v, v)
		}
		for v := t; v < t+4; v++ {
			f.V("fmul v%d.4s, v%d.4s, v%d.4s", v, v, scale+i)
		}
	}
	for v := range 4 {
		f.V("fadd v%d.4s, v%d.4s, v%d.4s", v, v, terms[1]+v)
	}
	for v := range 4 {
		f.V("fcvtns v%d.4s, v%d.4s", v, v)
	}
	narrow(f, []int{0, 1, 2, 3}, out)
	clamp(f, 0)
	f.V("str q0, [x%d], #16", dst)
	f.Go("SUB $1, R%d", n)
	f.Go("CBNZ R%d, loop", n)
	f.Go("RET")
}

// sumRowsU8 emits the sums of elN rows of 16 columns. It sums up to 256 rows in words, which cannot overflow, before it widens them.
func sumRowsU8(f *arm64.File) {
	const x, step, n, run, words, sums = 1, 2, 3, 4, 1, 4
	f.Func("sumRowsU8NEON")
	load(f, elX, x)
	load(f, elStep, step)
	load(f, elN, n)
	for v := range 4 {
		f.V("movi v%d.16b, #0", sums+v)
	}
	f.Label("run")
	f.Go("MOVD $256, R%d", run)
	f.Go("CMP R%d, R%d", run, n)
	f.Go("CSEL LT, R%d, R%d, R%d", n, run, run)
	f.Go("SUB R%d, R%d", run, n)
	f.V("movi v%d.16b, #0", words)
	f.V("movi v%d.16b, #0", words+1)
	f.Label("loop")
	f.V("ldr q0, [x%d]", x)
	f.Go("ADD R%d, R%d", step, x)
	f.V("uaddw v%d.8h, v%d.8h, v0.8b", words, words)
	f.V("uaddw2 v%d.8h, v%d.8h, v0.16b", words+1, words+1)
	f.Go("SUB $1, R%d", run)
	f.Go("CBNZ R%d, loop", run)
	for i := range 2 {
		f.V("uaddw v%d.4s, v%d.4s, v%d.4h", sums+2*i, sums+2*i, words+i)
		f.V("uaddw2 v%d.4s, v%d.4s, v%d.8h", sums+2*i+1, sums+2*i+1, words+i)
	}
	f.Go("CBNZ R%d, run", n)
	load(f, elDst, x)
	f.V("st1 %s, [x%d]", arm64.Four(sums), x)
	f.Go("RET")
}
