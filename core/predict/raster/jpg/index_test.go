package jpg

import (
	"bytes"
	"math/rand/v2"
	"testing"
)

// TestIndexFF searches for the first 0xff at every position, among bytes that are similar to it.
func TestIndexFF(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	near := []byte{0, 1, 0x7f, 0x80, 0xfe}
	for n := range 40 {
		for range 200 {
			b := make([]byte, n)
			for i := range b {
				b[i] = near[rng.IntN(len(near))]
			}
			for range rng.IntN(3) {
				if n > 0 {
					b[rng.IntN(n)] = 0xff
				}
			}
			if got, want := indexFF(b), bytes.IndexByte(b, 0xff); got != want {
				t.Fatalf("indexFF(%x) = %d, want %d", b, got, want)
			}
		}
	}
}
