//go:build !purego

package raster

import "unsafe"

// rowsArgs holds the operands of the assembly. Every field has 8 bytes, and the fields are in the
// order of the registers in asm/arm64/main.go.
type rowsArgs struct {
	sums   *uint32
	pix    *byte
	stride int
	w      *uint32
	taps   int
	blocks int
}

// addRows does what addRowsGeneric does, for 16 sums at a time.
func addRows(sums []uint32, pix []byte, stride int, w []uint32) {
	n := 0
	if len(w) > 0 {
		n = len(sums) &^ 15
	}
	if n > 0 {
		_ = pix[(len(w)-1)*stride+n-1]
		args := rowsArgs{&sums[0], &pix[0], stride, &w[0], len(w), n / 16}
		addRowsNEON((*byte)(unsafe.Pointer(&args)))
	}
	if n < len(sums) {
		addRowsGeneric(sums[n:], pix[n:], stride, w)
	}
}

func (a *axis) group() {}

func (l *lane) acrossFast() int { return 0 }

func ycbcrFast(_, _, _, _ []byte) int { return 0 }
