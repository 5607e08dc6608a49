package predict

import (
	"encoding/binary"
	"fmt"
	"math"
	"sync"
)

const maxBackground = 1 << 16

// background holds the embeddings of background.f16. The first call of embeddings decodes them, since decoding takes as long as loading all
// other tables, and only trainings need them.
type background struct {
	read func() ([]byte, error)

	mu   sync.Mutex
	list []Embedding // nil before the first successful call of embeddings
}

// embeddings returns the embeddings. If read or the check of its bytes fails, embeddings returns the error, and the next call reads again.
func (b *background) embeddings() ([]Embedding, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.list != nil {
		return b.list, nil
	}
	data, err := b.read()
	if err == nil {
		err = checkBackground(data)
	}
	if err == nil {
		b.list = parseBackground(data)
	}
	return b.list, err
}

const backgroundRow = 2 * Dim // bytes

// checkBackground returns ErrBundle unless data consists of at most maxBackground rows of Dim finite half-precision numbers.
func checkBackground(data []byte) error {
	if len(data)%backgroundRow != 0 || len(data)/backgroundRow > maxBackground {
		return fmt.Errorf("%s: %d bytes: %w", backgroundFile, len(data), ErrBundle)
	}
	for i := 0; i < len(data); i += 2 {
		if data[i+1]&0x7c == 0x7c { // the exponent of an infinity or NaN
			return fmt.Errorf("%s: row %d: %w: %w", backgroundFile, i/backgroundRow, ErrBundle, ErrNetwork)
		}
	}
	return nil
}

// parseBackground decodes a checked background.f16.
func parseBackground(data []byte) []Embedding {
	out := make([]Embedding, len(data)/backgroundRow)
	var e [Dim]float32
	for i := range out {
		for j := range e {
			e[j] = half(binary.LittleEndian.Uint16(data[i*backgroundRow+2*j:]))
		}
		out[i], _ = NewEmbedding(e[:]) // all are finite
	}
	return out
}

// half returns the value of an IEEE 754 half-precision number. It is exact, since float32 contains all of them.
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
