package jpg

import (
	"encoding/binary"
	"math/bits"
)

// indexFF returns the index of the first 0xff in b, or −1. On wasm bytes.IndexByte reads one byte
// at a time. This function reads eight.
func indexFF(b []byte) int {
	const low, high = 0x0101010101010101, 0x8080808080808080
	i := 0
	for ; i+8 <= len(b); i += 8 {
		x := binary.LittleEndian.Uint64(b[i:])
		// A byte of ^x is zero where x has 0xff. Only the lowest bit in found is reliable.
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
