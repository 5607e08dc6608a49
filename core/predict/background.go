package predict

import (
	"encoding/binary"
	"fmt"
	"math"
	"sync"
)

const maxBackground = 1 << 16

// parseBackground checks background.f16, rows of Dim half-precision numbers, and returns what
// reads it, which costs as much as loading all other tables and is wanted by trainings alone.
func parseBackground(data []byte) (read func() []Embedding, err error) {
	const row = 2 * Dim
	if len(data)%row != 0 || len(data)/row > maxBackground {
		return nil, fmt.Errorf("%s: %d bytes: %w", backgroundFile, len(data), ErrBundle)
	}
	for i := 0; i < len(data); i += 2 {
		if data[i+1]&0x7c == 0x7c { // the exponent of an infinity or NaN
			return nil, fmt.Errorf("%s: row %d: %w: %w", backgroundFile, i/row, ErrBundle, ErrNetwork)
		}
	}
	return sync.OnceValue(func() []Embedding {
		out := make([]Embedding, len(data)/row)
		var e [Dim]float32
		for i := range out {
			for j := range e {
				e[j] = half(binary.LittleEndian.Uint16(data[i*row+2*j:]))
			}
			out[i], _ = NewEmbedding(e[:]) // all are finite
		}
		return out
	}), nil
}

// half returns the value of an IEEE 754 half-precision number; every one is a float32.
func half(h uint16) float32 {
	sign, exp, frac := uint32(h>>15)<<31, uint32(h>>10)&31, uint32(h)&1023
	switch exp {
	case 0: // zero or subnormal: frac · 2⁻²⁴
		v := float32(frac) / (1 << 24)
		return math.Float32frombits(sign | math.Float32bits(v))
	case 31:
		return math.Float32frombits(sign | 0x7f800000 | frac<<13)
	}
	return math.Float32frombits(sign | (exp+112)<<23 | frac<<13)
}
