package kernel

// At appends the elements of a row to dst and returns them with the row's scale.
func (v *Vectors) At(dst []int16, row uint32) ([]int16, float32) {
	h, l := v.highOf(row), v.lowOf(row)
	for i := range v.dim {
		dst = append(dst, int16(int32(h[i])*two8+int32(l[i])))
	}
	return dst, v.meta[row].scale
}
