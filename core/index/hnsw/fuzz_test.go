package hnsw

import (
	"bytes"
	"testing"
)

// pagesOf returns a graph of three pages with free slots and tombstones, and the bytes of its pages.
func pagesOf(t testing.TB) (*Graph, [][]byte) {
	t.Helper()
	c := newClusters(3, 3, 32)
	g := newGraph(t, Options{Dim: 32, M: 4, EfConstruction: 20})
	for i := range uint32(70) {
		v := c.draw()
		g.Insert(i, v.q, v.scale)
	}
	for i := uint32(3); i < 40; i += 5 {
		g.Delete(i)
	}
	for !g.Compact(10) {
	}
	g.Delete(1)
	g.Delete(60)
	var pages [][]byte
	for page := range 3 {
		pages = append(pages, g.appendPage(nil, page))
	}
	return g, pages
}

// FuzzReadPage checks that the decoder of pages does not panic. An accepted page is encoded to the same bytes.
func FuzzReadPage(f *testing.F) {
	_, pages := pagesOf(f)
	for i, p := range pages {
		f.Add(uint8(i), p)
		f.Add(uint8(i), p[:len(p)-3])
	}
	f.Add(uint8(0), []byte("hnpg"))
	f.Fuzz(func(t *testing.T, number uint8, b []byte) {
		page := int(number % 3)
		for _, sealed := range []bool{false, true} {
			if sealed {
				// Repair the checksum, so that the decoder reads what follows it.
				if len(b) < pageHead {
					return
				}
				b = bytes.Clone(b)
				sum := pageSum(b)
				b[12], b[13], b[14], b[15] = byte(sum), byte(sum>>8), byte(sum>>16), byte(sum>>24)
			}
			g := newGraph(t, Options{Dim: 32, M: 4, EfConstruction: 20})
			g.growTo(70)
			if err := g.readPage(page, b); err != nil {
				continue
			}
			if again := g.appendPage(nil, page); !bytes.Equal(again, b) {
				t.Fatalf("page %d read and written:\n%x, was\n%x", page, again, b)
			}
		}
	})
}

// FuzzParseHeader checks the decoder of headers.
func FuzzParseHeader(f *testing.F) {
	h := header{dim: 32, m: 4, ef: 20, slots: 70, live: 60, tombs: 2, entry: 5, seq: 9, nodes: 1, pages: 2}
	f.Add(h.append(nil))
	f.Add([]byte("hnsw"))
	f.Fuzz(func(t *testing.T, b []byte) {
		h, err := parseHeader(b)
		if err != nil {
			return
		}
		if again := h.append(nil); !bytes.Equal(again, b) {
			t.Fatalf("header read and written: %x, was %x", again, b)
		}
	})
}
