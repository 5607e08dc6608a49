//go:build !purego

package raster

import "github.com/sightline-dev/sightline/core/cpu"

//go:generate go run ./asm -out row_amd64.s -stubs stubs_amd64.go -pkg raster

var hasAVX2 = cpu.Has(cpu.AVX2)

// addRows does what addRowsGeneric does. It uses AVX2 if the processor has it.
func addRows(sums []uint32, pix []byte, stride int, w []uint32) {
	n := 0
	if hasAVX2 && len(w) > 0 {
		n = len(sums) &^ 7
	}
	if n > 0 {
		_ = pix[(len(w)-1)*stride+n-1]
		addRowsAVX2(&sums[0], &pix[0], stride, &w[0], len(w), n)
	}
	if n < len(sums) {
		addRowsGeneric(sums[n:], pix[n:], stride, w)
	}
}

// group prepares an axis for acrossFast.
func (a *axis) group() {
	a.groups.base = a.groups.base[:0]
	if hasAVX2 {
		a.regroup()
	}
}

// acrossFast does what across does for the first pixels of a row, and returns their number.
func (l *lane) acrossFast() int {
	g := &l.x.groups
	n := len(g.base)
	if n == 0 {
		return 0
	}
	// The assembly also reads the memory between the last sum and groupReach. Its weights there are zero.
	sums := l.sums[:len(l.sums)+groupReach]
	acrossAVX2(&l.out[0], &sums[0], &g.base[0], &g.rel[0], &g.w[0], l.x.taps, n, l.div.half, l.div.m)
	return 8 * n
}

// ycbcrFast converts the first pixels of a row into dst, one after the other, and returns their number.
func ycbcrFast(dst, y, cb, cr []byte) int {
	n := len(y) &^ 7
	if !hasAVX2 || n == 0 {
		return 0
	}
	_, _, _ = dst[3*n-1], cb[n-1], cr[n-1]
	ycbcrAVX2(&dst[0], &y[0], &cb[0], &cr[0], n)
	return n
}
