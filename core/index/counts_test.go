package index_test

import (
	"testing"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/sightline-dev/sightline/core/index"
	"github.com/sightline-dev/sightline/core/index/indextest"
	"github.com/sightline-dev/sightline/core/kv/memkv"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/predict"
	"github.com/sightline-dev/sightline/core/testkit"
)

// TestCounts compares counts, and values that were computed together, with the values that a newly opened index returns one by one. The
// applications are random, with edits and trainings.
func TestCounts(t *testing.T) {
	for seed := range testkit.Seeds(t, 4, 200) {
		w := indextest.New(t, seed, memkv.New())
		bulk(t, w, 150)
		w.Train(t, indextest.Base, "cat", "dog")
		w.Train(t, indextest.Base, "dog")
		bulk(t, w, 100)
		settle(t, w)
		v := w.Index.At(w.Reader())
		all := append(append([]string{"nobody", "cat"}, indextest.Concepts...), indextest.CustomConcepts...)
		if err := v.Warm(t.Context(), all); err != nil {
			t.Fatal(err)
		}
		warm := map[string]uint64{}
		for _, concept := range all {
			n, err := v.CountPresent(t.Context(), concept)
			if err != nil {
				t.Fatal(err)
			}
			warm[concept] = n
		}
		analysed, err := v.AnalysedInputs()
		if err != nil {
			t.Fatal(err)
		}
		seen := roaring.New()
		if err := v.Embeddings(t.Context(), analysed, func(ord uint32, e *predict.Embedding) {
			if want, ok, err := v.Embedding(ord); err != nil || !ok || *want != *e {
				t.Errorf("seed %d: the embedding of %d is another: %v", seed, ord, err)
			}
			seen.Add(ord)
		}); err != nil || !seen.Equals(analysed) {
			t.Fatalf("seed %d: embeddings of %d of %d inputs: %v", seed, seen.GetCardinality(), analysed.GetCardinality(), err)
		}

		w.Reopen(t, indextest.Options())
		cold := w.Index.At(w.Reader())
		for _, concept := range all {
			got, err := cold.Predictions(t.Context(), concept, analysed.ToArray(), nil)
			if err != nil {
				t.Fatal(err)
			}
			want := uint64(0)
			for _, value := range got.Values {
				if value >= index.PresentThreshold {
					want++
				}
			}
			if warm[concept] != want {
				t.Errorf("seed %d: %d inputs are predicted to show %s, want %d", seed, warm[concept], concept, want)
			}
			for _, value := range []log.Value{log.True, log.False, log.Removed} {
				those, err := cold.LabelledInputs(concept, value)
				if err != nil {
					t.Fatal(err)
				}
				if n, err := cold.CountLabelled(concept, value); err != nil || n != those.GetCardinality() {
					t.Errorf("seed %d: %d inputs are labelled %s %d, want %d: %v", seed, n, concept, value, those.GetCardinality(), err)
				}
			}
		}
	}
}
