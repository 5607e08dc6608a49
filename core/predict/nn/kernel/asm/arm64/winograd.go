package main

import (
	"fmt"

	"github.com/sightline-dev/sightline/core/cpu/asm/arm64"
)

// The fields of kernel.winogradArgs, in order.
const (
	wiSrc     = 8 * iota // window of the first tile
	wiRow                // bytes between rows of src
	wiC                  // channels
	wiPitch              // bytes between tiles of wiV: twice the channels
	wiTiles              // tiles side by side
	wiV                  // transformed windows
	wiU                  // transformed weights of a panel
	_                    // bytes to the weights of the next panel
	wiM                  // products of windows and weights
	wiDst                // first output
	wiLDD                // bytes between outputs
	wiDstStep            // bytes between rows of outputs
	wiBias               // bias of the first column
	wiScale              // scale of the first column
	wiLo                 // byte
	wiHi                 // byte
	wiZero               // zero point
	wiClamp              // 1 unless lo is 0 and hi is 255
	wiZeros              // 64 zero bytes
)

const (
	winogradTall = 4                 // tiles in the largest kernel
	stepV        = 1024 + 64         // bytes from one of the 36 places of transformed windows to the next
	stepM        = 64 * winogradTall // bytes from the products of one place to those of the next
)

// winograd emits 3×3 convolutions at stride 1 by tiles of 4×4 outputs and a panel of columns (../../winograd.go).
func winograd(f *arm64.File) {
	winogradIn(f)
	for tiles := winogradTall; tiles > 0; tiles-- {
		winogradMul(f, tiles)
	}
	winogradOut(f)
}

// winogradIn transforms the windows, 8 channels at a time: first their columns, into v, then the rows of v.
func winogradIn(f *arm64.File) {
	const src, row, c, v, tiles = 1, 2, 3, 4, 5
	const from, to, left, column, line, n, get, put, one, six = 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
	f.Func("winogradInNEON")
	load(f, wiSrc, src)
	load(f, wiRow, row)
	load(f, wiC, c)
	load(f, wiV, v)
	load(f, wiTiles, tiles)
	f.Go("MOVD $%d, R%d", stepV, one)
	f.Go("MOVD $%d, R%d", 6*stepV, six)
	f.Label("tile")
	f.Go("MOVD R%d, R%d", c, left)
	f.Go("MOVD R%d, R%d", src, from)
	f.Go("MOVD R%d, R%d", v, to)
	f.Label("channels")
	f.Go("MOVD R%d, R%d", from, column)
	f.Go("MOVD R%d, R%d", to, line)
	f.Go("MOVD $6, R%d", n)
	f.Label("column")
	f.Go("MOVD R%d, R%d", column, get)
	f.Go("MOVD R%d, R%d", line, put)
	for d := range 6 {
		f.V("ld1 {v%d.8b}, [x%d], x%d", d, get, row)
	}
	for d := range 6 {
		f.V("ushll v%d.8h, v%d.8b, #0", d, d)
	}
	for _, x := range inputs(f) {
		f.V("st1 {v%d.16b}, [x%d], x%d", x, put, six)
	}
	f.Go("ADD R%d, R%d", c, column)
	f.Go("ADD R%d, R%d", one, line)
	f.Go("SUB $1, R%d", n)
	f.Go("CBNZ R%d, column", n)
	f.Go("MOVD R%d, R%d", to, get)
	f.Go("MOVD R%d, R%d", to, put)
	f.Go("MOVD $6, R%d", n)
	f.Label("line")
	for d := range 6 {
		f.V("ld1 {v%d.16b}, [x%d], x%d", d, get, one)
	}
	for _, x := range inputs(f) {
		f.V("st1 {v%d.16b}, [x%d], x%d", x, put, one)
	}
	f.Go("SUB $1, R%d", n)
	f.Go("CBNZ R%d, line", n)
	f.Go("ADD $8, R%d", from)
	f.Go("ADD $16, R%d", to)
	f.Go("SUB $8, R%d", left)
	f.Go("CBNZ R%d, channels", left)
	f.Go("ADD R%d<<2, R%d", c, src)
	f.Go("ADD R%d<<1, R%d", c, v)
	f.Go("SUB $1, R%d", tiles)
	f.Go("CBNZ R%d, tile", tiles)
	f.Go("RET")
}

// inputs multiplies the six words in registers 0 to 5 by the rows of
//
//	4  0 −5  0  1  0
//	0 −4 −4  1  1  0
//	0  4 −4 −1  1  0
//	0 −2 −1  2  1  0
//	0  2 −1 −2  1  0
//	0  4  0 −5  0  1
//
// It returns the registers of the results.
func inputs(f *arm64.File) [6]int {
	const r, c, a, b, e = 16, 22, 23, 24, 25
	three := func(op string, to, x, y int) { f.V("%s v%d.8h, v%d.8h, v%d.8h", op, to, x, y) }
	times := func(shift, to, x int) { f.V("shl v%d.8h, v%d.8h, #%d", to, x, shift) }
	three("sub", c, 4, 2)
	three("sub", r, 0, 2)
	times(2, r, r)
	three("add", r, r, c)
	times(2, a, 2)
	three("sub", a, 4, a)
	times(2, b, 1)
	three("sub", b, 3, b)
	three("add", r+1, a, b)
	three("sub", r+2, a, b)
	three("sub", e, 3, 1)
	times(1, e, e)
	three("add", r+3, c, e)
	three("sub", r+4, c, e)
	three("sub", r+5, 5, 3)
	times(1, e, e)
	three("sub", r+5, r+5, e)
	return [6]int{r, r + 1, r + 2, r + 3, r + 4, r + 5}
}

// winogradMul multiplies transformed tiles by the columns of a panel, at each of the 36 places.
func winogradMul(f *arm64.File, tiles int) {
	const v, pitch, u, m, c, places, k, row, zeros = 1, 2, 3, 4, 5, 6, 7, 8, 12
	acc := func(r, i int) int { return 32 - 4*tiles + 4*r + i }
	f.Func(fmt.Sprintf("winogradMul%dx16NEON", tiles))
	load(f, wiV, v)
	load(f, wiPitch, pitch)
	load(f, wiU, u)
	load(f, wiM, m)
	load(f, wiC, c)
	f.Go("MOVD $36, R%d", places)
	f.Go("ADD $%d, R0, R%d", wiZeros, zeros)
	f.Label("place")
	for r := range tiles {
		f.V("ld1 %s, [x%d]", arm64.Four(acc(r, 0)), zeros)
	}
	f.Go("MOVD R%d, R%d", v, row)
	for r := 1; r < tiles; r++ {
		f.Go("ADD R%d, R%d, R%d", pitch, row+r-1, row+r)
	}
	f.Go("MOVD R%d, R%d", c, k)
	f.Label("loop")
	for channel := range 16 {
		if channel%8 == 0 {
			for r := range tiles {
				f.V("ldr q%d, [x%d], #16", r, row+r)
			}
		}
		w := 4 + 2*(channel%6) // two registers per channel, loaded four at a time
		if channel%2 == 0 {
			f.V("ld1 %s, [x%d], #64", arm64.Four(w), u)
		}
		for half := range 2 {
			for r := range tiles {
				f.V("smlal v%d.4s, v%d.4h, v%d.h[%d]", acc(r, 2*half), w+half, r, channel%8)
				f.V("smlal2 v%d.4s, v%d.8h, v%d.h[%d]", acc(r, 2*half+1), w+half, r, channel%8)
			}
		}
	}
	f.Go("SUB $16, R%d", k)
	f.Go("CBNZ R%d, loop", k)
	for r := range tiles {
		f.V("st1 %s, [x%d], #64", arm64.Four(acc(r, 0)), m)
	}
	f.Go("ADD $%d, R%d", stepV, v)
	if tiles < winogradTall {
		f.Go("ADD $%d, R%d", stepM-64*tiles, m)
	}
	f.Go("SUB $1, R%d", places)
	f.Go("CBNZ R%d, place", places)
	f.Go("RET")
}

// winogradOut turns the products of tiles into bytes, four columns at a time: first the columns of a tile, into registers 8 to 31, then its
// rows, which are 576 times the sums.
func winogradOut(f *arm64.File) {
	const m, dst, tiles, ldd, dstStep, bias, scale, clamped = 1, 2, 3, 4, 5, 6, 7, 8
	const n, out, line, to = 9, 10, 11, 12
	const ninth, biases, scales, zero = 4, 5, 6, 7
	f.Func("winogradOutx16NEON")
	load(f, wiM, m)
	load(f, wiDst, dst)
	load(f, wiTiles, tiles)
	load(f, wiLDD, ldd)
	load(f, wiDstStep, dstStep)
	load(f, wiClamp, clamped)
	dupByte(f, wiZero, zero, "8h")
	f.Go("MOVD $0x38e38e39, R%d", regTemp)
	f.V("dup v%d.4s, w%d", ninth, regTemp) // 9·ninth = 1 modulo 2^32
	f.Label("tile")
	load(f, wiBias, bias)
	load(f, wiScale, scale)
	f.Go("MOVD R%d, R%d", dst, out)
	f.Go("MOVD $4, R%d", n)
	f.Label("columns")
	f.V("ldr q%d, [x%d], #16", biases, bias)
	f.V("ldr q%d, [x%d], #16", scales, scale)
	at := func(i, j int) int { return 8 + 4*j + i }
	for j := range 6 {
		column := [6]int{at(0, j), 0, at(1, j), 1, at(2, j), at(3, j)}
		for i, v := range column {
			f.V("ldr q%d, [x%d, #%d]", v, m, (6*i+j)*stepM)
		}
		outputs(f, column)
	}
	f.Go("ADD $16, R%d", m)
	f.Go("MOVD R%d, R%d", out, line)
	for i := range 4 {
		y := outputs(f, [6]int{at(i, 0), at(i, 1), at(i, 2), at(i, 3), at(i, 4), at(i, 5)})
		for _, v := range y {
			f.V("mul v%d.4s, v%d.4s, v%d.4s", v, v, ninth)
		}
		for _, v := range y {
			f.V("sshr v%d.4s, v%d.4s, #6", v, v)
		}
		for _, v := range y {
			f.V("add v%d.4s, v%d.4s, v%d.4s", v, v, biases)
		}
		toWords(f, y[:], func(int) int { return scales })
		narrow(f, y[:], zero)
		f.Go("CBZ R%d, store%d", clamped, i)
		dupByte(f, wiLo, 0, "16b")
		dupByte(f, wiHi, 1, "16b")
		f.V("umax v%d.16b, v%d.16b, v0.16b", y[0], y[0])
		f.V("umin v%d.16b, v%d.16b, v1.16b", y[0], y[0])
		f.Label(fmt.Sprintf("store%d", i))
		f.Go("MOVD R%d, R%d", line, to)
		for x := range 4 {
			f.V("st1 {v%d.s}[%d], [x%d], x%d", y[0], x, to, ldd)
		}
		f.Go("ADD R%d, R%d", dstStep, line)
	}
	f.Go("ADD $4, R%d", out)
	f.Go("SUB $1, R%d", n)
	f.Go("CBNZ R%d, columns", n)
	f.Go("ADD R%d<<2, R%d", ldd, dst)
	f.Go("SUB $1, R%d", tiles)
	f.Go("CBNZ R%d, tile", tiles)
	f.Go("RET")
}

// outputs multiplies the six dwords in the registers m by the rows of
//
//	1  1  1  1  1  0
//	0  1 −1  2 −2  0
//	0  1  1  4  4  0
//	0  1 −1  8 −8  2
//
// It returns the registers of the results. It uses registers 2 and 3.
func outputs(f *arm64.File, m [6]int) [4]int {
	const s1, s2 = 2, 3
	d1, d2 := m[1], m[3]
	three := func(op string, to, x, y int) { f.V("%s v%d.4s, v%d.4s, v%d.4s", op, to, x, y) }
	times := func(shift, v int) { f.V("shl v%d.4s, v%d.4s, #%d", v, v, shift) }
	three("add", s1, m[1], m[2])
	three("sub", d1, m[1], m[2])
	three("add", s2, m[3], m[4])
	three("sub", d2, m[3], m[4])
	three("add", m[0], m[0], s1)
	three("add", m[0], m[0], s2)
	times(1, d2)
	three("add", m[2], d1, d2)
	times(2, s2)
	three("add", m[4], s1, s2)
	times(1, m[5])
	three("add", m[5], m[5], d1)
	times(2, d2)
	three("add", m[5], m[5], d2)
	return [4]int{m[0], m[2], m[4], m[5]}
}
