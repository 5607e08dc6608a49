//go:build wasip1 && lent

package raster

// wasm/README.md describes these imports. If the host decodes complete pictures, the guest calls them
// only for frames of animations and videos.

//go:wasmimport kernel add_rows
//go:noescape
func hostAddRows(sums *uint32, pix *byte, stride int32, w *uint32, taps, n int32)

//go:wasmimport kernel across
//go:noescape
func hostAcross(out *byte, sums *uint32, first *int32, w *uint32, taps, n int32, half, m uint64)

//go:wasmimport kernel ycbcr
//go:noescape
func hostYCbCr(dst, y, cb, cr *byte, n int32)

// minHostCall is the smallest number of samples for which a call of the host saves more time than it costs.
const minHostCall = 32

// addRows does what addRowsGeneric does.
func addRows(sums []uint32, pix []byte, stride int, w []uint32) {
	if len(w)*len(sums) < minHostCall {
		addRowsGeneric(sums, pix, stride, w)
		return
	}
	_ = pix[(len(w)-1)*stride+len(sums)-1]
	hostAddRows(&sums[0], &pix[0], int32(stride), &w[0], int32(len(w)), int32(len(sums)))
}

func (a *axis) group() {}

// acrossFast does what across does for all pixels of a row, or does nothing. It returns the number of pixels.
func (l *lane) acrossFast() int {
	n := len(l.x.first)
	if n*l.x.taps < minHostCall {
		return 0
	}
	hostAcross(&l.out[0], &l.sums[0], &l.x.first[0], &l.x.w[0], int32(l.x.taps), int32(n), l.div.half, l.div.m)
	return n
}

// ycbcrFast converts all pixels of a row into dst, one after the other, or does nothing. It returns the number of pixels.
func ycbcrFast(dst, y, cb, cr []byte) int {
	n := len(y)
	if n < minHostCall {
		return 0
	}
	_, _, _ = dst[3*n-1], cb[n-1], cr[n-1]
	hostYCbCr(&dst[0], &y[0], &cb[0], &cr[0], int32(n))
	return n
}
