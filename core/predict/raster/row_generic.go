package raster

func scaleRowGeneric(sums []uint32, row []byte, w uint32) {
	row = row[:len(sums)]
	for i := range sums {
		sums[i] = w * uint32(row[i])
	}
}

func addScaledRowGeneric(sums []uint32, row []byte, w uint32) {
	row = row[:len(sums)]
	for i := range sums {
		sums[i] += w * uint32(row[i])
	}
}
