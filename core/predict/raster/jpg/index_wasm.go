package jpg

import (
	"encoding/binary"
	"math/bits"
)

// indexFF is the place of the first 0xff in b, −1: there is none. The library's looks at one byte
// at a time here; this at eight.
func indexFF(b []byte) int {
	const low, high = 0x0101010101010101, 0x8080808080808080
	i := 0
	for ; i+8 <= len(b); i += 8 {
		x := binary.LittleEndian.Uint64(b[i:])
		// In ^x a byte is zero where x has 0xff; the lowest bit of what is left is right.
		if found := (^x - low) & x & high; found != 0 {
			return i + bits.TrailingZeros64(found)/8
		}
	}
	for ; i < len(b); i++ {
		if b[i] == 0xff {
			return i
		}
	}
	return -1
}
