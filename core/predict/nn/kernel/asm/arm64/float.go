package main

import (
	"fmt"

	"github.com/sightline-dev/sightline/core/cpu/asm/arm64"
)

// Fields of kernel.tileArgs that have a different meaning for floats.
const (
	argRes = argLift // residual, or nil
	argLDR = argZero // bytes between rows of the residual
)

// floatBounds fills registers 6 and 7 with the float32 fields lo and hi, for floatClamp.
func floatBounds(f *arm64.File, lo, hi int) {
	dupByte(f, lo, 6, "4s")
	dupByte(f, hi, 7, "4s")
}

func floatClamp(f *arm64.File, v int) {
	f.V("fmax v%d.4s, v%d.4s, v6.4s", v, v)
	f.V("fmin v%d.4s, v%d.4s, v7.4s", v, v)
}

// floats emits a tile of rows by 16 columns with FMLA.
func (t *tile) floats() {
	acc := func(r, v int) int { return 16 + 4*r + v }
	t.begin(fmt.Sprintf("gemmF32Tile%dx16NEON", t.rows))
	load(t.File, argBias, regStart)
	load(t.File, argRes, regScale) // advances in a register: a pointer in the struct must not leave the residual
	floatBounds(t.File, argLo, argHi)
	turn := 0
	element := func(e int) {
		w := 8 + turn
		t.V("ld1 %s, [x%d], #64", arm64.Four(w), regB)
		for v := range 4 {
			for r := range t.rows {
				t.V("fmla v%d.4s, v%d.4s, v%d.s[%d]", acc(r, v), w+v, r, e)
			}
		}
		turn = 4 - turn
	}
	rows := func(load string, step int) {
		for r := range t.rows {
			t.V("ldr %s%d, [x%d], #%d", load, r, regRow+r, step)
		}
	}
	t.walk(1, func() {
		for r := range t.rows {
			t.V("ld1 %s, [x%d]", arm64.Four(acc(r, 0)), regStart)
		}
	}, func() {
		rows("q", 16)
		for e := range 4 {
			element(e)
		}
	}, func() {
		t.Go("CBZ R%d, done", regTail)
		t.Go("MOVD R%d, R%d", regTail, regTemp)
		t.Label("one")
		rows("s", 4)
		element(0)
		t.Go("SUB $1, R%d", regTemp)
		t.Go("CBNZ R%d, one", regTemp)
		t.Label("done")
	}, func() {
		t.Go("CBZ R%d, store", regScale)
		for r := range t.rows {
			t.V("ld1 %s, [x%d]", arm64.Four(8), regScale)
			t.Go("ADD R%d, R%d", regZero, regScale) // argLDR
			for v := range 4 {
				t.V("fadd v%d.4s, v%d.4s, v%d.4s", acc(r, v), acc(r, v), 8+v)
			}
		}
		t.Label("store")
		for r := range t.rows {
			for v := range 4 {
				floatClamp(t.File, acc(r, v))
			}
			t.V("st1 %s, [x%d]", arm64.Four(acc(r, 0)), regC)
			t.Go("ADD R%d, R%d", regLDC, regC)
		}
	})
}

// depthwiseF32 emits output rows of 16 channels with FMLA. rowOut is also the number of bytes between the taps of the weights.
func depthwiseF32(f *arm64.File) {
	d := depthwise{f}
	d.begin("depthwiseF32TapsNEON")
	load(f, rowNext, dwNext)
	floatBounds(f, rowLo, rowHi)
	d.Label("row")
	d.Go("MOVD R%d, R%d", dwRow, dwSrc)
	d.Go("MOVD R%d, R%d", dwOut, dwDst)
	load(f, rowWidth, dwWidth)
	d.Label("pixel")
	d.V("ld1 %s, [x%d]", arm64.Four(16), dwBias)
	load(f, rowW, dwW)
	load(f, rowTaps, dwTaps)
	load(f, rowCount, dwCount)
	d.Label("tap")
	d.Go("MOVD.P 8(R%d), R%d", dwTaps, dwOff)
	d.Go("ADD R%d, R%d", dwSrc, dwOff)
	d.V("ld1 %s, [x%d]", arm64.Four(0), dwOff)
	d.V("ld1 %s, [x%d], x%d", arm64.Four(8), dwW, dwStep)
	for v := range 4 {
		d.V("fmla v%d.4s, v%d.4s, v%d.4s", 16+v, v, 8+v)
	}
	d.Go("SUB $1, R%d", dwCount)
	d.Go("CBNZ R%d, tap", dwCount)
	for v := range 4 {
		floatClamp(f, 16+v)
	}
	d.V("st1 %s, [x%d], x%d", arm64.Four(16), dwDst, dwStep)
	d.Go("ADD R%d, R%d", dwNext, dwSrc)
	d.Go("SUB $1, R%d", dwWidth)
	d.Go("CBNZ R%d, pixel", dwWidth)
	d.nextRow()
}
