package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"

	"github.com/sightline-dev/sightline/core/cpu/asm"
)

// The fields of kernel.winogradF32Args, in order.
const (
	wfSrc   = 8 * iota // first input of the first tile
	wfStep             // bytes between input rows
	wfDst              // first output of the first tile
	wfLDD              // bytes between outputs
	wfRow              // bytes between output rows
	wfPlace            // first place of the first tile; a tile has 16
	wfNext             // bytes from one place to the next
	wfWidth            // bytes of a place: the channels of a tile; a multiple of 32
	wfTiles            // tiles side by side
	wfBias             // bias of the first channel
	wfLo               // float32 bits
	wfHi               // float32 bits
)

// winogradF32 emits the transforms of 3×3 convolutions by tiles of 2×2 outputs (../winogradf32_amd64.go), for eight channels at a time.
func winogradF32() {
	winogradF32In()
	winogradF32Out()
}

// four returns registers with the addresses base, base+step, base+2·step and base+3·step.
func four(base, step Register) [4]GPVirtual {
	r := [4]GPVirtual{GP64(), GP64(), GP64(), GP64()}
	MOVQ(base, r[0])
	for i := range 3 {
		LEAQ(Mem{Base: r[i], Index: step, Scale: 1}, r[i+1])
	}
	return r
}

// byStep returns the address base + i·step for an i below 4. three holds 3·step; it may be nil if i is not 3.
func byStep(base Register, i int, step, three Register) Mem {
	switch i {
	case 0:
		return Mem{Base: base}
	case 3:
		return Mem{Base: base, Index: three, Scale: 1}
	}
	return Mem{Base: base, Index: step, Scale: uint8(i)}
}

func triple(step Register) GPVirtual {
	three := GP64()
	LEAQ(Mem{Base: step, Index: step, Scale: 2}, three)
	return three
}

// winogradF32In emits the input transform. It writes Bᵀ·d·B for windows d of 4×4 inputs that are two columns apart.
func winogradF32In() {
	p := begin("winogradF32InAVX2")
	rows := four(load(p, wfSrc), load(p, wfStep))
	width, next, to := load(p, wfWidth), load(p, wfNext), load(p, wfPlace)
	width3, next3 := triple(width), triple(next)
	tiles, left, place := load(p, wfTiles), GP64(), GP64()
	Label("tile")
	MOVQ(width, left)
	Label("channels")
	MOVQ(to, place)
	for i, of := range [4][2]int{{0, 2}, {1, 2}, {2, 1}, {1, 3}} {
		var x [4]VecVirtual
		for j := range x {
			x[j] = YMM()
			second := byStep(rows[of[1]], j, width, width3)
			VMOVUPS(byStep(rows[of[0]], j, width, width3), x[j])
			if i == 1 {
				VADDPS(second, x[j], x[j])
			} else {
				VSUBPS(second, x[j], x[j])
			}
		}
		for j, of := range [4][2]int{{0, 2}, {1, 2}, {2, 1}, {1, 3}} {
			y := YMM()
			if j == 1 {
				VADDPS(x[of[1]], x[of[0]], y)
			} else {
				VSUBPS(x[of[1]], x[of[0]], y)
			}
			VMOVUPS(y, byStep(place, j, next, next3))
		}
		if i < 3 {
			LEAQ(Mem{Base: place, Index: next, Scale: 4}, place)
		}
	}
	for _, r := range rows {
		ADDQ(Imm(32), r)
	}
	ADDQ(Imm(32), to)
	SUBQ(Imm(32), left)
	JNZ(LabelRef("channels"))
	for _, r := range rows {
		ADDQ(width, r)
	}
	DECQ(tiles)
	JNZ(LabelRef("tile"))
	asm.End()
}

// winogradF32Out emits the output transform. It writes Aᵀ·m·A for products m, adds the bias and clamps the results.
func winogradF32Out() {
	p := begin("winogradF32OutAVX2")
	next := load(p, wfNext)
	next4 := GP64()
	MOVQ(next, next4)
	SHLQ(Imm(2), next4)
	rows := four(load(p, wfPlace), next4)
	next3 := triple(next)
	lo, hi := YMM(), YMM()
	VBROADCASTSS(at(p, wfLo), lo)
	VBROADCASTSS(at(p, wfHi), hi)
	dst, low, ldd := load(p, wfDst), load(p, wfRow), load(p, wfLDD)
	ADDQ(dst, low)
	bias, left := GP64(), GP64()
	cur := newCursor(p, wfTiles)
	Label("tile")
	MOVQ(at(p, wfWidth), left)
	MOVQ(at(p, wfBias), bias)
	Label("channels")
	var sums [2][4]VecVirtual // by output row and column of m
	for j := range 4 {
		a, b := YMM(), YMM()
		VMOVUPS(byStep(rows[1], j, next, next3), a)
		VMOVUPS(byStep(rows[2], j, next, next3), b)
		sums[0][j], sums[1][j] = YMM(), YMM()
		VADDPS(b, a, sums[0][j])
		VADDPS(byStep(rows[0], j, next, next3), sums[0][j], sums[0][j])
		VSUBPS(b, a, sums[1][j])
		VSUBPS(byStep(rows[3], j, next, next3), sums[1][j], sums[1][j])
	}
	for y, to := range []Register{dst, low} {
		s := sums[y]
		first, second := YMM(), YMM()
		VADDPS(s[2], s[1], first)
		VADDPS(s[0], first, first)
		VSUBPS(s[2], s[1], second)
		VSUBPS(s[3], second, second)
		for x, v := range []VecVirtual{first, second} {
			VADDPS(at(bias, 0), v, v)
			VMAXPS(v, lo, v)
			VMINPS(v, hi, v)
			VMOVUPS(v, byStep(to, x, ldd, nil))
		}
	}
	for _, r := range []Register{rows[0], rows[1], rows[2], rows[3], dst, low, bias} {
		ADDQ(Imm(32), r)
	}
	SUBQ(Imm(32), left)
	JNZ(LabelRef("channels"))
	for _, to := range []Register{dst, low} {
		SUBQ(at(p, wfWidth), to)
		LEAQ(Mem{Base: to, Index: ldd, Scale: 2}, to)
	}
	DECQ(cur.at(wfTiles))
	JNZ(LabelRef("tile"))
	asm.End()
}
