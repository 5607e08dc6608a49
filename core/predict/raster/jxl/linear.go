package jxl

import (
	"encoding/binary"
	"sync"
)

// EncodeSRGB replaces the colours of RGBA pixels, which are proportional to light, by those of sRGB, IEC 61966-2-1. A sample has 1 byte, or
// 2 with the high byte first. It is rounded half up.
func EncodeSRGB(pix []byte, sampleBytes int) {
	if sampleBytes == 1 {
		table := linear8()
		for i, v := range pix {
			if i%4 != 3 {
				pix[i] = byte(table[v])
			}
		}
		return
	}
	table := linear16()
	for i := 0; i+2 <= len(pix); i += 2 {
		if i%8 != 6 {
			binary.BigEndian.PutUint16(pix[i:], table[binary.BigEndian.Uint16(pix[i:])])
		}
	}
}

// linear8 and linear16 return the sRGB value for each linear one, of 8 and of 16 bits.
var (
	linear8  = sync.OnceValue(func() []uint16 { return encodings(255) })
	linear16 = sync.OnceValue(func() []uint16 { return encodings(65535) })
)

// encodings returns the sRGB value for each linear value from 0 to most. It only multiplies, divides and compares, so all hosts get the same
// numbers: the power 2.4 of x is at most l if x¹² ≤ l⁵.
func encodings(most int) []uint16 {
	table := make([]uint16, most+1)
	v := 0
	for i := range table {
		l := float64(i) / float64(most)
		for v < most && isBelow(float64(2*v+1)/float64(2*most), l) {
			v++
		}
		table[i] = uint16(v)
	}
	return table
}

// isBelow reports whether the linear value of the sRGB value s is at most l.
func isBelow(s, l float64) bool {
	if s <= 0.04045 {
		return s <= float64(l*12.92)
	}
	x := float64(s+0.055) / 1.055
	x = float64(x * x)
	x4 := float64(x * x)
	l2 := float64(l * l)
	return float64(float64(x4*x4)*x4) <= float64(float64(l2*l2)*l)
}
