// Command asm writes the amd64 assembly of package raster:
//
//	go run ./asm -out row_amd64.s -stubs stubs_amd64.go -pkg raster
package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"

	"github.com/sightline-dev/sightline/core/cpu/asm"
)

func main() {
	asm.Generator(func() {
		addRows()
		across()
		ycbcr()
	})
}

// dwords returns a 32-byte constant of eight equal dwords.
func dwords(name string, v int32) Mem { return asm.Dwords(name, uint32(v), 8) }

// addRows emits addRowsAVX2, which adds weighted rows to sums. It processes 32 columns at a time, and the remaining ones 8 at a time.
func addRows() {
	asm.Begin("addRowsAVX2", "func(sums *uint32, pix *byte, stride int, w *uint32, taps int, n int)")
	Doc("addRowsAVX2 is addRowsGeneric for n columns, a multiple of 8, and at least one row.")
	sums, pix := Load(Param("sums"), GP64()), Load(Param("pix"), GP64())
	stride, weights := Load(Param("stride"), GP64()), Load(Param("w"), GP64())
	taps, n := Load(Param("taps"), GP64()), Load(Param("n"), GP64())
	for _, block := range []struct {
		label string
		regs  int
	}{{"wide", 4}, {"narrow", 1}} {
		columns := 8 * block.regs
		next := "done"
		if block.regs > 1 {
			next = "narrow"
		}
		Label(block.label)
		CMPQ(n, Imm(uint64(columns)))
		JL(LabelRef(next))
		row, w, k := GP64(), GP64(), GP64()
		MOVQ(pix, row)
		MOVQ(weights, w)
		MOVQ(taps, k)
		acc := make([]VecVirtual, block.regs)
		for i := range acc {
			acc[i] = YMM()
			VMOVDQU(Mem{Base: sums, Disp: 32 * i}, acc[i])
		}
		Label(block.label + "Tap")
		factor := YMM()
		VPBROADCASTD(Mem{Base: w}, factor)
		for i := range acc {
			p := YMM()
			VPMOVZXBD(Mem{Base: row, Disp: 8 * i}, p)
			VPMULLD(factor, p, p)
			VPADDD(p, acc[i], acc[i])
		}
		ADDQ(stride, row)
		ADDQ(Imm(4), w)
		DECQ(k)
		JNZ(LabelRef(block.label + "Tap"))
		for i := range acc {
			VMOVDQU(acc[i], Mem{Base: sums, Disp: 32 * i})
		}
		ADDQ(Imm(uint64(4*columns)), sums)
		ADDQ(Imm(uint64(columns)), pix)
		SUBQ(Imm(uint64(columns)), n)
		JMP(LabelRef(block.label))
	}
	Label("done")
	asm.End()
}

// across emits acrossAVX2, which computes eight pixels at a time. Their samples lie within 24
// consecutive sums, which three registers hold. VPERMD picks one sample for each pixel.
func across() {
	asm.Begin("acrossAVX2", "func(out *byte, sums *uint32, base *int32, rel *int32, w *uint32, taps int, groups int, half uint64, m uint64)")
	Doc("acrossAVX2 is lane.acrossGeneric for groups of eight pixels, at least one.")
	out, sums := Load(Param("out"), GP64()), Load(Param("sums"), GP64())
	base, rel := Load(Param("base"), GP64()), Load(Param("rel"), GP64())
	w, taps := Load(Param("w"), GP64()), Load(Param("taps"), GP64())
	groups := Load(Param("groups"), GP64())
	half, low, high := YMM(), YMM(), YMM()
	VPBROADCASTD(paramMem("half"), half)
	// The code multiplies by the halves of m: x·m >> 56 = (x·high + (x·low >> 32)) >> 24.
	VPBROADCASTQ(paramMem("m"), low)
	VPSRLQ(Imm(32), low, high)
	one := YMM()
	VPCMPEQD(one, one, one)
	VPSRLD(Imm(31), one, one)

	Label("group")
	at := GP64()
	MOVLQSX(Mem{Base: base}, at)
	a, b, c := YMM(), YMM(), YMM()
	VMOVDQU(Mem{Base: sums, Index: at, Scale: 4}, a)
	VMOVDQU(Mem{Base: sums, Index: at, Scale: 4, Disp: 32}, b)
	VMOVDQU(Mem{Base: sums, Index: at, Scale: 4, Disp: 64}, c)
	index, acc := YMM(), YMM()
	VMOVDQU(Mem{Base: rel}, index)
	VMOVDQA(half, acc)
	k := GP64()
	MOVQ(taps, k)
	Label("tap")
	picked, other, mask := YMM(), YMM(), YMM()
	VPERMD(a, index, picked)
	VPERMD(b, index, other)
	VPSLLD(Imm(28), index, mask) // bit 3 selects the second register
	VBLENDVPS(mask, other, picked, picked)
	VPERMD(c, index, other)
	VPSLLD(Imm(27), index, mask) // bit 4 selects the third register
	VBLENDVPS(mask, other, picked, picked)
	VPMULLD(Mem{Base: w}, picked, picked)
	VPADDD(picked, acc, acc)
	VPADDD(one, index, index)
	ADDQ(Imm(32), w)
	DECQ(k)
	JNZ(LabelRef("tap"))

	even, odd := YMM(), YMM()
	VPSRLQ(Imm(32), acc, odd)
	for _, x := range []VecVirtual{acc, odd} {
		t := YMM()
		VPMULUDQ(low, x, t)
		VPMULUDQ(high, x, x)
		VPSRLQ(Imm(32), t, t)
		VPADDQ(t, x, x)
		VPSRLQ(Imm(24), x, x)
	}
	VPSLLQ(Imm(32), odd, odd)
	VPOR(odd, acc, even)
	// Pack eight dwords below 256 into eight bytes.
	upper := XMM()
	VEXTRACTI128(Imm(1), even, upper)
	VPACKUSDW(upper, even.AsX(), upper)
	VPACKUSWB(upper, upper, upper)
	VMOVQ(upper, Mem{Base: out})
	ADDQ(Imm(8), out)
	ADDQ(Imm(4), base)
	ADDQ(Imm(32), rel)
	DECQ(groups)
	JNZ(LabelRef("group"))
	asm.End()
}

// paramMem returns the memory operand of a parameter, for instructions that broadcast from memory.
func paramMem(name string) Mem {
	c, err := Param(name).Resolve()
	if err != nil {
		panic(err)
	}
	return c.Addr
}

// ycbcr emits ycbcrAVX2, which converts eight pixels at a time.
func ycbcr() {
	toR, toGB, toGR, toB := dwords("toR", 91881), dwords("toGB", -22554), dwords("toGR", -46802), dwords("toB", 116130)
	luma, middle := dwords("luma", 0x10101), dwords("middle", 128)
	// order rearranges, within each half, four bytes each of red, green and blue into four pixels.
	order := GLOBL("order", RODATA|NOPTR)
	for half := range 2 {
		for i := range 16 {
			from := byte(0x80)
			if i < 12 {
				from = byte(i%3*4 + i/3)
			}
			DATA(16*half+i, U8(from))
		}
	}
	asm.Begin("ycbcrAVX2", "func(dst *byte, y *byte, cb *byte, cr *byte, n int)")
	Doc("ycbcrAVX2 is rowYCbCr with step 3 for n pixels, a multiple of 8 and at least 8.")
	dst, n := Load(Param("dst"), GP64()), Load(Param("n"), GP64())
	in := asm.Params("y", "cb", "cr")
	Label("pixels")
	y, cb, cr := YMM(), YMM(), YMM()
	for i, x := range []VecVirtual{y, cb, cr} {
		VPMOVZXBD(Mem{Base: in[i]}, x)
		ADDQ(Imm(8), in[i])
	}
	VPMULLD(luma, y, y)
	VPSUBD(middle, cb, cb)
	VPSUBD(middle, cr, cr)
	r, g, b, t := YMM(), YMM(), YMM(), YMM()
	VPMULLD(toR, cr, r)
	VPMULLD(toGR, cr, g)
	VPMULLD(toGB, cb, t)
	VPMULLD(toB, cb, b)
	VPADDD(t, g, g)
	for _, x := range []VecVirtual{r, g, b} {
		VPADDD(y, x, x)
		VPSRAD(Imm(16), x, x)
	}
	VPACKSSDW(g, r, r)
	VPACKSSDW(b, b, b)
	VPACKUSWB(b, r, r)
	VPSHUFB(order, r, r)
	upper := XMM()
	VEXTRACTI128(Imm(1), r, upper)
	VMOVDQU(r.AsX(), Mem{Base: dst})
	VMOVQ(upper, Mem{Base: dst, Disp: 12})
	VPEXTRD(Imm(2), upper, Mem{Base: dst, Disp: 20})
	ADDQ(Imm(24), dst)
	SUBQ(Imm(8), n)
	JNZ(LabelRef("pixels"))
	asm.End()
}
