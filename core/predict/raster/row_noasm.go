//go:build (purego || !(amd64 || arm64)) && !(wasip1 && lent)

package raster

func addRows(sums []uint32, pix []byte, stride int, w []uint32) {
	addRowsGeneric(sums, pix, stride, w)
}

func (a *axis) group() {}

func (l *lane) acrossFast() int { return 0 }

func ycbcrFast(_, _, _, _ []byte) int { return 0 }
