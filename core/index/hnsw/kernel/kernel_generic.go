package kernel

import (
	"math"
	"slices"
)

func (v *Vectors) distancesGeneric(dst []uint32, z *Query, rows []uint32) {
	weight := z.weight()
	for i, row := range rows {
		dot := int32(0)
		h := v.highOf(row)
		for j, a := range z.codes[:len(h)] {
			dot += (int32(a) + 128) * int32(h[j])
		}
		m := v.meta[row]
		dst[i] = distanceOf(4*dot+m.offset+z.offset, m.scale, weight)
	}
}

// weight returns the query's scale times unit, the scale of a product of high bytes.
func (z *Query) weight() float32 { return z.scale * unit }

// distanceOf returns dist as the package's documentation defines it. product is A there.
func distanceOf(product int32, scale, weight float32) uint32 {
	s := float32(float32(float32(product)*scale) * weight)
	s = min(limit, max(-limit, s))
	return uint32(far - int64(math.RoundToEven(float64(s))))
}

func (v *Vectors) dotsGeneric(dst []int64, z *Query, rows []uint32) {
	for i, row := range rows {
		h, l := v.highOf(row), v.lowOf(row)
		dot := int64(0)
		for j, a := range z.full[:len(h)] {
			dot += int64(int32(a) * (int32(h[j])*two8 + int32(l[j])))
		}
		dst[i] = dot
	}
}

// splitGeneric stores the high and low bytes of q. It returns the sum of the high ones and the squares of q.
func splitGeneric(h []int8, l []uint8, q []int16) (sum int32, s Squares) {
	h, l = h[:len(q)], l[:len(q)]
	for i, x := range q {
		h[i], l[i] = int8(x>>8), uint8(x)
		sum += int32(x >> 8)
	}
	return sum, SquaresOf(q)
}

func (l *Lists) findGeneric(rows []uint32, x uint32) int {
	for i, row := range rows {
		if slices.Contains(l.At(row), x) {
			return i
		}
	}
	return -1
}
