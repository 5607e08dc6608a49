// Command arm64 writes the arm64 assembly of package kernel:
//
//	go run ./asm/arm64 -out kernel_arm64.s -stubs stubs_arm64.go -pkg kernel
//
// Every function takes one pointer to a struct of 8-byte fields (kernel_arm64.go), so a field's offset is 8 times its place. Products and
// sums are rounded one after the other, as in plain Go: no instruction does both.
package main

import (
	"fmt"

	"github.com/sightline-dev/sightline/core/cpu/asm/arm64"
)

// The fields of kernel.args, in order.
const (
	argDst = 8 * iota
	argA   // first operand
	argB   // second operand
	argLDD // bytes between rows of dst
	argLDA // bytes between rows of a
	argM   // tiles or rows, at least one
	argN   // elements, at least one
	argF   // float32 bits
	argX   // further operands
	argY
	argConstants
)

// The general registers; R0 is the struct.
const (
	dst  = 1
	a    = 2
	b    = 3
	ldd  = 4
	lda  = 5
	m    = 6
	n    = 7
	left = 8
	row  = 9  // of a; the next one's is in the next register
	at   = 11 // in b
	temp = 12
)

func main() { arm64.Generate(emit) }

func emit(f *arm64.File) {
	k := kernel{f}
	k.product(2)
	k.product(1)
	k.dot()
	k.rows()
	k.axpy()
	k.residual()
	k.raise()
	k.exp()
	k.share()
}

type kernel struct{ *arm64.File }

// begin begins a function and loads its fields into the registers, which start at dst and have the same order.
func (k kernel) begin(name string, fields ...int) {
	k.Func(name)
	for _, field := range fields {
		k.Go("MOVD %d(R0), R%d", field, dst+field/8)
	}
}

func (k kernel) zero(from, count int) {
	for v := from; v < from+count; v++ {
		k.V("movi v%d.16b, #0", v)
	}
}

// product emits a function that multiplies argM tiles of rows rows by the 32 columns of a panel.
func (k kernel) product(rows int) {
	const acc, cols, temps = 16, 8, 4
	k.begin(fmt.Sprintf("product%dNEON", rows), argDst, argA, argB, argLDD, argLDA, argM, argN)
	k.Label("tile")
	k.zero(acc, 8*rows)
	k.Go("MOVD R%d, R%d", b, at)
	for r := range rows {
		if r == 0 {
			k.Go("MOVD R%d, R%d", a, row)
			continue
		}
		k.Go("ADD R%d, R%d, R%d", lda, row+r-1, row+r)
	}
	step := func(lane int) {
		k.V("ld1 %s, [x%d], #64", arm64.Four(cols), at)
		k.V("ld1 %s, [x%d], #64", arm64.Four(cols+4), at)
		for v := 0; v < 8; v += 4 {
			for r := range rows {
				for i := range 4 {
					k.V("fmul v%d.4s, v%d.4s, v%d.s[%d]", temps+i, cols+v+i, r, lane)
				}
				for i := range 4 {
					sum := acc + 8*r + v + i
					k.V("fadd v%d.4s, v%d.4s, v%d.4s", sum, sum, temps+i)
				}
			}
		}
	}
	k.Go("SUBS $4, R%d, R%d", n, left)
	k.Go("BLT tail")
	k.Label("loop")
	for r := range rows {
		k.V("ldr q%d, [x%d], #16", r, row+r)
	}
	for lane := range 4 {
		step(lane)
	}
	k.Go("SUBS $4, R%d", left)
	k.Go("BGE loop")
	k.Label("tail")
	k.Go("ADDS $4, R%d", left)
	k.Go("BEQ store")
	k.Label("one")
	for r := range rows {
		k.V("ldr s%d, [x%d], #4", r, row+r)
	}
	step(0)
	k.Go("SUB $1, R%d", left)
	k.Go("CBNZ R%d, one", left)
	k.Label("store")
	for r := range rows {
		k.Go("ADD $64, R%d, R%d", dst, temp)
		k.V("st1 %s, [x%d]", arm64.Four(acc+8*r), dst)
		k.V("st1 %s, [x%d]", arm64.Four(acc+8*r+4), temp)
		k.Go("ADD R%d, R%d", ldd, dst)
		k.Go("ADD R%d, R%d", lda, a)
	}
	k.Go("SUB $1, R%d", m)
	k.Go("CBNZ R%d, tile", m)
	k.Go("RET")
}

// lanes multiplies registers 8 to 15 by registers 16 to 23 and adds the products to the 32 lanes in registers 0 to 7.
func (k kernel) lanes() {
	for v := range 8 {
		k.V("fmul v%d.4s, v%d.4s, v%d.4s", 8+v, 8+v, 16+v)
	}
	for v := range 8 {
		k.V("fadd v%d.4s, v%d.4s, v%d.4s", v, v, 8+v)
	}
}

// fold adds the upper half of the 32 lanes to the lower until one is left, and stores it.
func (k kernel) fold() {
	for half := 4; half > 0; half /= 2 {
		for v := range half {
			k.V("fadd v%d.4s, v%d.4s, v%d.4s", v, v, v+half)
		}
	}
	k.V("zip2 v1.2d, v0.2d, v0.2d")
	k.V("fadd v0.2s, v0.2s, v1.2s")
	k.V("faddp s0, v0.2s")
	k.V("str s0, [x%d], #4", dst)
}

func (k kernel) load(v, from int) {
	k.V("ld1 %s, [x%d], #64", arm64.Four(v), from)
	k.V("ld1 %s, [x%d], #64", arm64.Four(v+4), from)
}

func (k kernel) dot() {
	k.begin("dotNEON", argDst, argA, argB, argN)
	k.zero(0, 8)
	k.Label("loop")
	k.load(8, a)
	k.load(16, b)
	k.lanes()
	k.Go("SUB $32, R%d", n)
	k.Go("CBNZ R%d, loop", n)
	k.fold()
	k.Go("RET")
}

// rows emits a function that computes the dot products of argM rows of int16 with argB.
func (k kernel) rows() {
	k.begin("rowsNEON", argDst, argA, argB, argM, argN)
	k.Label("row")
	k.Go("MOVD R%d, R%d", b, at)
	k.Go("MOVD R%d, R%d", n, left)
	k.zero(0, 8)
	k.Label("loop")
	k.V("ld1 %s, [x%d], #64", arm64.Four(24), a)
	for v := range 4 {
		k.V("sshll v%d.4s, v%d.4h, #0", 8+2*v, 24+v)
		k.V("sshll2 v%d.4s, v%d.8h, #0", 9+2*v, 24+v)
	}
	for v := 8; v < 16; v++ {
		k.V("scvtf v%d.4s, v%d.4s", v, v)
	}
	k.load(16, at)
	k.lanes()
	k.Go("SUB $32, R%d", left)
	k.Go("CBNZ R%d, loop", left)
	k.fold()
	k.Go("SUB $1, R%d", m)
	k.Go("CBNZ R%d, row", m)
	k.Go("RET")
}

// axpy adds argF times a to dst.
func (k kernel) axpy() {
	k.begin("axpyNEON", argDst, argA, argN)
	k.Go("MOVD %d(R0), R%d", argF, temp)
	k.V("dup v31.4s, w%d", temp)
	k.Label("loop")
	k.Go("MOVD R%d, R%d", dst, at)
	k.load(0, at)
	k.load(8, a)
	for v := range 8 {
		k.V("fmul v%d.4s, v%d.4s, v31.4s", 8+v, 8+v)
	}
	for v := range 8 {
		k.V("fadd v%d.4s, v%d.4s, v%d.4s", v, v, 8+v)
	}
	for v := 0; v < 8; v += 4 {
		k.V("st1 %s, [x%d], #64", arm64.Four(v), dst)
	}
	k.Go("SUB $32, R%d", n)
	k.Go("CBNZ R%d, loop", n)
	k.Go("RET")
}
