package catalog_test

import (
	"slices"
	"testing"

	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/kv/memkv"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/predict/raster"
)

// TestSamePictures finds the inputs that share a picture and a crop, and the time at which each was created.
func TestSamePictures(t *testing.T) {
	store, app := memkv.New(), catalog.AppID{7}
	tx := kv.NewOverlay(store)
	w := catalog.Write(tx, app)
	half := raster.Crop{Bottom: 0.5, Right: 1}
	for i, p := range []struct {
		picture string
		crop    raster.Crop
	}{{"a", raster.Crop{}}, {"b", raster.Crop{}}, {"a", half}, {"a", raster.Crop{}}, {"", raster.Crop{}}, {"", raster.Crop{}}, {"a", half}, {"a", raster.Crop{}}} {
		in := &catalog.Input{Ord: uint32(i), Dot: log.Dot{Writer: 1, Seq: uint64(i) + 1}, ID: string(rune('k' + i)), Created: log.HLC(i) << 20, Code: catalog.InputReady, Crop: p.crop}
		if p.picture != "" {
			in.Blob = blob.Sum([]byte(p.picture))
		}
		if err := w.InsertInput(in); err != nil {
			t.Fatal(err)
		}
	}
	if err := store.Apply(tx.Batch()); err != nil {
		t.Fatal(err)
	}
	r := catalog.Read(store, app)
	var groups [][]uint32
	if err := r.SamePictures(func(ords []uint32) bool {
		groups = append(groups, ords)
		return true
	}); err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(groups, slices.Compare)
	if want := [][]uint32{{0, 3, 7}, {2, 6}}; !slices.EqualFunc(groups, want, slices.Equal) {
		t.Errorf("SamePictures = %v, want %v", groups, want)
	}
	n := 0
	if err := r.SamePictures(func([]uint32) bool { n++; return false }); err != nil || n != 1 {
		t.Errorf("SamePictures that is stopped yields %d times, %v", n, err)
	}
	var ords []uint32
	err := r.ByPicture(blob.Sum([]byte("a")), half, func(ord uint32) bool {
		ords = append(ords, ord)
		return true
	})
	if err != nil || !slices.Equal(ords, []uint32{2, 6}) {
		t.Errorf("ByPicture = %v, %v", ords, err)
	}
	at := uint32(3)
	if err := r.CreationTimes(at, func(ord uint32, created log.HLC) bool {
		if ord != at || created != log.HLC(ord)<<20 {
			t.Errorf("Created yields %d at %d, want %d", ord, created, at)
		}
		at++
		return true
	}); err != nil || at != 8 {
		t.Errorf("Created ends at %d, %v", at, err)
	}
}
