package raster

// The inner loops of the vertical pass. row_generic.go defines them; the assembly of
// row_amd64.s gives the same numbers, eight at a time.

// scaleRow sets sums[i] = w·row[i] for every i < len(sums).
//
// len(row) ≥ len(sums), and 255·w fits 32 bits.
func scaleRow(sums []uint32, row []byte, w uint32) {
	scaleRowFast(sums, row[:len(sums)], w)
}

// addScaledRow sets sums[i] += w·row[i] for every i < len(sums).
//
// len(row) ≥ len(sums), and the sums fit 32 bits.
func addScaledRow(sums []uint32, row []byte, w uint32) {
	addScaledRowFast(sums, row[:len(sums)], w)
}
