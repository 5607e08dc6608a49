package kernel

import "unsafe"

// Borrow makes v rows vectors of stride bytes, a multiple of 64, that lie in somebody else's memory,
// such as a guest's: tables of the chunks of their high and low bytes, of which one may be nil,
// and a row of {offset, scale} for each, or nil. All must stay as long as v is measured from; the
// caller has checked that they hold what they say. [Vectors.Grow] and [Vectors.Set] are not for v.
func (v *Vectors) Borrow(stride, rows int, high, low []unsafe.Pointer, scales unsafe.Pointer) {
	*v = Vectors{dim: stride, high: table{stride, rows, high}, low: table{stride, rows, low}}
	if scales != nil {
		v.meta = unsafe.Slice((*meta)(scales), rows)
	}
}

// Borrow makes z a query whose parts lie in somebody else's memory: high bytes with their offset
// and weight for [Vectors.Distances], or all bits for [Vectors.Dots].
func (z *Query) Borrow(codes []int8, full []int16, offset int32, weight float32) {
	*z = Query{codes: codes, full: full, offset: offset, scale: weight / unit}
}

// Chunks returns the number of chunks that contain rows rows.
func Chunks(rows int) int { return (rows + chunkRows - 1) / chunkRows }

// RowsOf returns the number of rows in chunk i if there are rows rows.
func RowsOf(i, rows int) int { return min(chunkRows, rows-i*chunkRows) }
