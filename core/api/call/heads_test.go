package call

import (
	"testing"

	"github.com/sightline-dev/sightline/core/blob"
)

// TestHeadsBounded checks that the heads in memory are bounded, and that the last used ones stay.
func TestHeadsBounded(t *testing.T) {
	var h heads
	key := func(i int) blob.Hash { return blob.Hash{byte(i), byte(i >> 8), 1} }
	const size = maxHeadBytes / 10
	for i := range 100 {
		h.keep(key(i), &LoadedHead{bytes: size})
		h.keep(key(i), &LoadedHead{bytes: size})
		if h.find(key(0)) == nil {
			t.Fatalf("the head in use is gone after %d others", i)
		}
	}
	count := 0
	for i := range 100 {
		if h.find(key(i)) != nil {
			count++
		}
	}
	if count != 10 || h.bytes != 10*size || h.order.Len() != len(h.byKey) {
		t.Errorf("%d heads of %d bytes are kept, %d in order, %d by key; want 10", count, h.bytes, h.order.Len(), len(h.byKey))
	}
	if h.find(key(98)) == nil || h.find(key(50)) != nil {
		t.Error("not those used last are kept")
	}
	// A head larger than the limit stays while it is the last one used.
	h.keep(blob.Hash{9, 9, 9}, &LoadedHead{bytes: 2 * maxHeadBytes})
	if h.find(blob.Hash{9, 9, 9}) == nil || h.order.Len() != 1 {
		t.Errorf("%d heads beside a very large one", h.order.Len()-1)
	}
}
