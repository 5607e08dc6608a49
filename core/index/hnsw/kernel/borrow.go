package kernel

import "unsafe"

// Borrow makes v an array of rows vectors in memory of another owner, such as a guest. A vector has stride bytes, a multiple of 64. high
// and low are tables of the chunks of high and low bytes; one of them may be nil. scales has {offset, scale} for each row, or is nil. The
// memory must stay valid while v is in use, and the caller has checked its size. The caller must not call [Vectors.Grow] and [Vectors.Set]
// of v.
func (v *Vectors) Borrow(stride, rows int, high, low []unsafe.Pointer, scales unsafe.Pointer) {
	*v = Vectors{dim: stride, high: table{stride, rows, high}, low: table{stride, rows, low}}
	if scales != nil {
		v.meta = unsafe.Slice((*meta)(scales), rows)
	}
}

// Borrow makes z a query in memory of another owner: high bytes with their offset and weight for [Vectors.Distances], or all bits for
// [Vectors.Dots].
func (z *Query) Borrow(codes []int8, full []int16, offset int32, weight float32) {
	*z = Query{codes: codes, full: full, offset: offset, scale: weight / unit}
}

// Chunks returns the number of chunks that contain rows rows.
func Chunks(rows int) int { return (rows + chunkRows - 1) / chunkRows }

// RowsOf returns the number of rows in chunk i if there are rows rows.
func RowsOf(i, rows int) int { return min(chunkRows, rows-i*chunkRows) }
