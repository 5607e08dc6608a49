package raster

func scaleRowFast(sums []uint32, row []byte, w uint32)     { scaleRowGeneric(sums, row, w) }
func addScaledRowFast(sums []uint32, row []byte, w uint32) { addScaledRowGeneric(sums, row, w) }
