package vp8l

import (
	"testing"
)

// bitWriter writes bits, the lowest of each byte first.
type bitWriter struct {
	b []byte
	n uint
}

func (w *bitWriter) write(v uint32, n uint) {
	for i := range n {
		if w.n%8 == 0 {
			w.b = append(w.b, 0)
		}
		w.b[len(w.b)-1] |= byte(v>>i&1) << (w.n % 8)
		w.n++
	}
}

// pixels writes what follows the size: an image of groups with one pixel, which has the number last, and room for the codes of some groups.
func (w *bitWriter) pixels(last, groups int) {
	w.write(0, 1+1) // no transform, no cache
	w.write(1, 1)
	w.write(5, 3) // tiles of 128
	w.write(0, 1) // the image of groups: no cache, one pixel
	for _, symbol := range []int{last & 255, last >> 8, 0, 0, 0} {
		w.write(0b101, 3) // a simple code of one symbol, of eight bits
		w.write(uint32(symbol), 8)
	}
	for range groups {
		w.write(0, groupBits)
	}
}

// TestGroups counts the groups of pictures and of alpha channels. Package raster has tests with pictures of libwebp.
func TestGroups(t *testing.T) {
	for _, tt := range []struct {
		last, groups int
		ok           bool
	}{{0, 1, true}, {2, 3, true}, {65535, 65536, true}, {65535, 10, false}, {9, 3, false}} {
		var picture, alpha bitWriter
		picture.write(0x2f, 8)
		picture.write(99, 14)
		picture.write(99, 14)
		picture.write(0, 1+3)
		picture.pixels(tt.last, tt.groups)
		alpha.pixels(tt.last, tt.groups)
		if n, ok := Groups(picture.b); n != tt.last+1 || ok != tt.ok {
			t.Errorf("Groups = %d, %v, want %d, %v", n, ok, tt.last+1, tt.ok)
		}
		if n, ok := AlphaGroups(alpha.b, 100, 100); n != tt.last+1 || ok != tt.ok {
			t.Errorf("AlphaGroups = %d, %v, want %d, %v", n, ok, tt.last+1, tt.ok)
		}
	}
	for _, coded := range [][]byte{nil, {0x2f}, {0x2f, 1, 2, 3, 4, 0xff, 0xff}} {
		if _, ok := Groups(coded); ok {
			t.Errorf("Groups(%x) accepts a picture without pixels", coded)
		}
	}
}
