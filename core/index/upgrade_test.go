package index_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/index"
	"github.com/sightline-dev/sightline/core/index/indextest"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/kv/memkv"
)

var nextSpace = index.Space{Base: [32]byte{9}, Concepts: []string{"ai_bb", "ai_new"}}

// TestChangeOfBaseModel builds a second space while the first one answers and inputs change, and then switches. Answers never mix the two.
func TestChangeOfBaseModel(t *testing.T) {
	w := indextest.New(t, 1, memkv.New())
	bulk(t, w, 200)
	settle(t, w)
	o := indextest.Options()
	o.Next = &nextSpace
	w.Reopen(t, o)
	for round := 0; ; round++ {
		lacking, err := w.Index.At(w.Reader()).UnanalysedInputs(nextSpace.Base)
		if err != nil {
			t.Fatal(err)
		}
		if lacking.IsEmpty() {
			break
		}
		ords := lacking.ToArray()
		again(t, w, ords[:min(30, len(ords))])
		if round == 2 {
			w.Reopen(t, o) // as after a crash
			w.Churn(t, 40)
		}
		settle(t, w)
		check(t, w)
		if err := w.Index.Drop(indextest.Base); !errors.Is(err, index.ErrSpace) {
			t.Fatalf("Drop of the space that answers before the switch = %v, want ErrSpace", err)
		}
	}
	if err := w.Index.Switch(nextSpace.Base); err != nil {
		t.Fatal(err)
	}
	view := w.Index.At(w.Reader())
	all, err := view.AnalysedInputs()
	if err != nil {
		t.Fatal(err)
	}
	got, err := view.Predictions(t.Context(), "ai_new", all.ToArray(), nil)
	if err != nil || len(got.Ords) == 0 || uint64(len(got.Ords)) != all.GetCardinality() {
		t.Fatalf("%d values of the new concept, %v, want %d", len(got.Ords), err, all.GetCardinality())
	}
	if old, err := view.Predictions(t.Context(), "ai_aa", all.ToArray(), nil); err != nil || len(old.Ords) > len(all.ToArray())/2 {
		t.Errorf("a concept of the old model has %d values, %v", len(old.Ords), err)
	}
	if err := w.Index.Drop(indextest.Base); err != nil {
		t.Fatal(err)
	}
	check(t, w)
	lo := slices.Concat(w.App.IndexPrefix(), []byte("s"), indextest.Base[:])
	_ = w.Store.Scan(lo, append(slices.Clone(lo), 0xff), func(k, _ []byte) bool {
		t.Errorf("key %x of the old space is left", k)
		return false
	})
	for _, base := range [][32]byte{{7}, indextest.Base} {
		if err := w.Index.Switch(base); !errors.Is(err, index.ErrSpace) {
			t.Errorf("Switch(%x) = %v, want ErrSpace", base[:2], err)
		}
		if err := w.Index.Drop(base); !errors.Is(err, index.ErrSpace) {
			t.Errorf("Drop(%x) = %v, want ErrSpace", base[:2], err)
		}
		if _, err := view.UnanalysedInputs(base); !errors.Is(err, index.ErrSpace) {
			t.Errorf("Lacking(%x) = %v, want ErrSpace", base[:2], err)
		}
	}
}

// again stages derived data of the next base model for inputs.
func again(t *testing.T, w *indextest.World, ords []uint32) {
	t.Helper()
	overlay := kv.NewOverlay(w.Store)
	var inputs []catalog.Input
	for _, ord := range ords {
		in := w.Live[ord]
		d := w.RandomDerived()
		d.Values = d.Values[:len(nextSpace.Concepts)]
		catalog.PutDerived(overlay, w.App, nextSpace.Base, in.Blob, in.Crop, *d)
		inputs = append(inputs, *in)
	}
	err := w.Index.StageDerived(overlay, inputs)
	if err == nil {
		err = w.Store.Apply(overlay.Batch())
	}
	if err != nil {
		t.Fatal(err)
	}
	w.Index.ConfirmStage()
}
