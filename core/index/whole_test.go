package index_test

import (
	"slices"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/fold"
	"github.com/sightline-dev/sightline/core/index"
	"github.com/sightline-dev/sightline/core/index/indextest"
	"github.com/sightline-dev/sightline/core/kv/memkv"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/testkit"
)

// TestWholeSetsAgreeWithRecords compares the creation times and places of inputs with their records: of few inputs, of all, of those
// created since the last time, and after all inputs were deleted.
func TestWholeSetsAgreeWithRecords(t *testing.T) {
	for seed := range testkit.Seeds(t, 12, 5000) {
		w := indextest.New(t, seed, memkv.New())
		for range 4 {
			w.Churn(t, 1+w.Rand.IntN(80))
			switch w.Rand.IntN(6) {
			case 0:
				w.Commit(t, func(tx *indextest.Tx) {
					tx.DeleteAll()
					tx.Insert(w.Input(), w.RandomDerived())
				})
			case 1:
				w.Commit(t, func(tx *indextest.Tx) {
					in := w.Input()
					in.Created = log.HLC(1_700_000_000_000+uint64(w.Rand.IntN(1e9))) << 16
					tx.InsertAt(fold.PendingOrds+uint32(seed%7)+uint32(len(w.Live)), in, w.RandomDerived())
				})
			}
			v := w.Index.At(w.Reader())
			for _, divisor := range []int{1, 2, 40} {
				among := roaring.New()
				for _, ord := range w.Ords() {
					if w.Rand.IntN(divisor) == 0 {
						among.Add(ord)
					}
				}
				checkMinutes(t, w, v, among)
				checkEachPlace(t, w, v, among)
			}
		}
	}
}

func checkMinutes(t *testing.T, w *indextest.World, v *index.View, among *roaring.Bitmap) {
	t.Helper()
	var ords []uint32
	err := v.EachMinute(t.Context(), among, func(ord, minute uint32) {
		ords = append(ords, ord)
		if want := w.Live[ord].Created.Time().Unix() / 60; int64(minute) != want {
			t.Fatalf("input %d is of minute %d, want %d", ord, minute, want)
		}
	})
	if err != nil || !slices.Equal(ords, among.ToArray()) {
		t.Fatalf("minutes of %v, want of %v: %v", ords, among, err)
	}
}

func checkEachPlace(t *testing.T, w *indextest.World, v *index.View, among *roaring.Bitmap) {
	t.Helper()
	got := map[uint32]log.Point{}
	if err := v.EachPlace(t.Context(), among, func(ord uint32, p log.Point) { got[ord] = p }); err != nil {
		t.Fatal(err)
	}
	n := 0
	for it := among.Iterator(); it.HasNext(); {
		in := w.Live[it.Next()]
		if in.Geo == nil {
			continue
		}
		if n++; got[in.Ord] != *in.Geo {
			t.Fatalf("input %d is at %v, want %v", in.Ord, got[in.Ord], *in.Geo)
		}
	}
	if len(got) != n {
		t.Fatalf("%d places, want %d", len(got), n)
	}
}

// TestLinks: links are stored until all inputs are deleted.
func TestLinks(t *testing.T) {
	w := indextest.New(t, 1, memkv.New())
	links := func() *index.Links { return w.Index.At(w.Reader()).Links() }
	links().Put(3, []index.Link{{Ord: 5, Score: 0.5, Kind: 1}})
	links().Put(4, nil)
	left := roaring.BitmapOf(3, 4, 5)
	links().RemoveKnown(left)
	if !left.Equals(roaring.BitmapOf(5)) {
		t.Errorf("unknown: %v", left)
	}
	each := func(among ...uint32) (out []uint32) {
		links().Each(roaring.BitmapOf(among...), func(ord uint32, of []index.Link) { out = append(out, ord, of[0].Ord) })
		return out
	}
	if got := each(3, 4, 5); !slices.Equal(got, []uint32{3, 5}) {
		t.Errorf("links: %v", got)
	}
	if got := each(4, 5); got != nil {
		t.Errorf("links of others: %v", got)
	}
	w.Commit(t, func(tx *indextest.Tx) { tx.DeleteAll() })
	if got := each(3, 4, 5); got != nil {
		t.Errorf("links after everything was deleted: %v", got)
	}
}

// TestValuesComeFromNewestVersion checks the version that a concept's values come from.
func TestValuesComeFromNewestVersion(t *testing.T) {
	w := indextest.New(t, 2, memkv.New())
	newest := func(concept string) *catalog.Version {
		t.Helper()
		v, err := w.Index.At(w.Reader()).NewestVersion(concept)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	if v := newest("cat"); v != nil {
		t.Errorf("of an untrained concept: %v", v.ID)
	}
	w.Train(t, indextest.Base, "cat", "dog")
	w.Train(t, indextest.Base, "cat")
	if v := newest("cat"); v == nil || v.ID != "version2" {
		t.Errorf("of cat: %v", v)
	}
	if v := newest("dog"); v == nil || v.ID != "version1" {
		t.Errorf("of dog: %v", v)
	}
	if v := newest(indextest.Concepts[0]); v != nil {
		t.Errorf("of a general concept: %v", v.ID)
	}
}
