package index_test

import (
	"runtime"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/fold"
	"github.com/sightline-dev/sightline/core/index"
	"github.com/sightline-dev/sightline/core/index/indextest"
	"github.com/sightline-dev/sightline/core/kv/memkv"
	"github.com/sightline-dev/sightline/core/log"
)

// TestPending inserts inputs at the ordinals of pending operations, far behind all others. Searches find them like the others, and no array
// grows up to their ordinals.
func TestPending(t *testing.T) {
	const others, pending = 40, 9000 // enough places that blocks decide
	n := pending
	if brief() {
		n = 600
	}
	w := indextest.New(t, 3, memkv.New())
	bulk(t, w, others)
	place := log.Point{Longitude: 7, Latitude: 50}
	var added []*catalog.Input
	w.Commit(t, func(tx *indextest.Tx) {
		for i := range n {
			in := w.Input()
			in.Code, in.Geo = catalog.InputReady, &place
			d := w.RandomDerived()
			if i >= 300 {
				d = nil // 300 pictures are enough to search
			}
			added = append(added, tx.InsertAt(fold.PendingOrds|uint32(i+1), in, d))
		}
	})
	settle(t, w)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	check(t, w)
	v := w.Index.At(w.Reader())
	all := func(set *roaring.Bitmap, err error) {
		t.Helper()
		if err != nil || set.Contains(fold.PendingOrds) || !set.Contains(fold.PendingOrds+1) || !set.Contains(fold.PendingOrds+299) {
			t.Errorf("pending inputs are not among %d, %v", set.GetCardinality(), err)
		}
	}
	all(v.Live())
	all(v.Ready())
	all(v.PlacedInputs())
	all(v.AnalysedInputs())
	all(v.Within(index.NewRadius(place, 0.01), nil))
	e, ok, err := v.Embedding(fold.PendingOrds + 7)
	if err != nil || !ok {
		t.Fatalf("embedding: %v, %v", ok, err)
	}
	among, err := v.AnalysedInputs()
	if err != nil {
		t.Fatal(err)
	}
	near, err := v.Nearest(t.Context(), e, among, 5)
	if err != nil || len(near) != 5 || near[0].Cosine < 0.999 {
		t.Errorf("nearest to itself: %v, %v", near, err)
	}
	runtime.ReadMemStats(&after)
	if used := after.TotalAlloc - before.TotalAlloc; used > 200<<20 {
		t.Errorf("%d MB were allocated", used>>20)
	}
	w.Commit(t, func(tx *indextest.Tx) {
		for _, in := range added {
			tx.Delete(in)
		}
	})
	settle(t, w)
	check(t, w)
	if n := countLive(t, w); n != others {
		t.Errorf("%d live inputs, want %d", n, others)
	}
}
