package kv

import "math/bits"

// Filter is a set of keys that may also report keys which were not added. A writer uses it to find keys that cannot be in a store yet, so
// that it need not ask the store. The zero Filter is empty. It takes 12 bits for each key, and 1 in 100 answers for other keys is wrong.
//
// It is a Bloom filter (1970) with all bits of a key in one cache line, in layers that are each four times as large as the previous one. It
// is not safe for concurrent use.
type Filter struct {
	layers [][]uint64 // lines of lineWords each
	room   int        // number of keys that the last layer still takes
	full   bool       // more keys were added than it can hold: Has is always true
}

const (
	lineWords     = 8
	firstLines    = 16      // 1 KiB
	maxLines      = 1 << 16 // of a layer: 4 MiB, for 2.8 million keys; all layers together for 3.7
	filterBits    = 6       // number of bits that a key sets
	bitsPerKey    = 12
	keysOfALine   = 64 * lineWords / bitsPerKey
	filterProduct = 0xd6e8feb86659fd93
)

// Add adds a key.
func (f *Filter) Add(key []byte) {
	if f.room == 0 && !f.grow() {
		return
	}
	f.room--
	line, mask := f.line(f.layers[len(f.layers)-1], key)
	for range filterBits {
		line[mask>>6&(lineWords-1)] |= 1 << (mask & 63)
		mask >>= 9
	}
}

// grow adds a layer. It returns false if the filter is full.
func (f *Filter) grow() bool {
	lines := firstLines << (2 * len(f.layers))
	if f.full = f.full || lines > maxLines; f.full {
		f.layers = nil
		return false
	}
	f.layers = append(f.layers, make([]uint64, lines*lineWords))
	f.room = lines * keysOfALine
	return true
}

// Has reports whether a key was added. It sometimes returns true for another key.
func (f *Filter) Has(key []byte) bool {
	for _, layer := range f.layers {
		line, mask := f.line(layer, key)
		set := uint64(1)
		for range filterBits {
			set &= line[mask>>6&(lineWords-1)] >> (mask & 63)
			mask >>= 9
		}
		if set != 0 {
			return true
		}
	}
	return f.full
}

// line returns the words with the bits of a key, and the numbers of these bits, nine bits for each number.
func (f *Filter) line(layer []uint64, key []byte) (line []uint64, mask uint64) {
	h := hashKey(key)
	hi, _ := bits.Mul64(h, uint64(len(layer)/lineWords))
	return layer[hi*lineWords:][:lineWords], (h ^ h>>31) * filterProduct >> 10
}

// Reset removes all keys, and keeps the memory of the first layer.
func (f *Filter) Reset() {
	if len(f.layers) > 1 {
		f.layers = f.layers[:1:1]
	}
	f.room, f.full = 0, false
	if len(f.layers) > 0 {
		clear(f.layers[0])
		f.room = firstLines * keysOfALine
	}
}
