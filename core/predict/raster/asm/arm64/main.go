// Command arm64 writes the arm64 assembly of package raster:
//
//	go run ./asm/arm64 -out row_arm64.s -stubs stubs_arm64.go -pkg raster
//
// Every function takes one pointer to a struct of 8-byte fields (row_arm64.go), so a field's offset is 8 times its index.
package main

import "github.com/sightline-dev/sightline/core/cpu/asm/arm64"

// The general registers. The first six hold the fields of raster.rowsArgs, in order.
const (
	sums = 1 + iota
	pix
	stride
	w
	taps
	blocks
	row    // address in the current row
	weight // address of the row's weight
	left   // rows left
)

func main() { arm64.Generate(addRows) }

// addRows emits addRowsNEON, which adds rows of bytes, times one weight per row, to blocks of 16 sums.
func addRows(f *arm64.File) {
	f.Func("addRowsNEON")
	for reg := sums; reg <= blocks; reg++ {
		f.Go("MOVD %d(R0), R%d", 8*(reg-sums), reg)
	}
	f.Label("block")
	f.V("ld1 %s, [x%d]", arm64.Four(0), sums)
	f.Go("MOVD R%d, R%d", pix, row)
	f.Go("MOVD R%d, R%d", w, weight)
	f.Go("MOVD R%d, R%d", taps, left)
	f.Label("row")
	f.V("ldr q4, [x%d]", row)
	f.V("ld1r {v5.4s}, [x%d], #4", weight)
	f.Go("ADD R%d, R%d", stride, row)
	f.V("ushll v6.8h, v4.8b, #0")
	f.V("ushll2 v7.8h, v4.16b, #0")
	for i := range 2 {
		f.V("ushll v%d.4s, v%d.4h, #0", 16+2*i, 6+i)
		f.V("ushll2 v%d.4s, v%d.8h, #0", 17+2*i, 6+i)
	}
	for i := range 4 {
		f.V("mla v%d.4s, v%d.4s, v5.4s", i, 16+i)
	}
	f.Go("SUB $1, R%d", left)
	f.Go("CBNZ R%d, row", left)
	f.V("st1 %s, [x%d], #64", arm64.Four(0), sums)
	f.Go("ADD $16, R%d", pix)
	f.Go("SUB $1, R%d", blocks)
	f.Go("CBNZ R%d, block", blocks)
	f.Go("RET")
}
