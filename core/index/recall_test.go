package index_test

import (
	"cmp"
	"slices"
	"testing"

	"github.com/sightline-dev/sightline/core/index"
	"github.com/sightline-dev/sightline/core/index/indextest"
	"github.com/sightline-dev/sightline/core/kv/memkv"
)

// TestNearestRecall compares searches of the index with the exact order: on a complete graph, on a half-built graph with changes, and with
// a filter.
func TestNearestRecall(t *testing.T) {
	n := 3000
	if brief() {
		n = 600
	}
	w := indextest.New(t, 1, memkv.New())
	bulk(t, w, n)
	for _, state := range []string{"no graph", "half a graph", "a graph", "churned", "behind"} {
		switch state {
		case "half a graph":
			if _, err := w.Index.Step(t.Context(), n/3); err != nil {
				t.Fatal(err)
			}
		case "a graph":
			settle(t, w)
		case "churned":
			for range 10 {
				w.Churn(t, n/10)
				settle(t, w)
			}
		case "behind":
			w.Churn(t, n/4)
		}
		found, all := 0, 0
		view := w.Index.At(w.Reader())
		analysed, err := view.AnalysedInputs()
		if err != nil {
			t.Fatal(err)
		}
		for q := range 40 {
			among := analysed.Clone()
			if q%2 == 1 {
				placed, err := view.PlacedInputs()
				if err != nil {
					t.Fatal(err)
				}
				among.And(placed)
			}
			e := w.Embedding()
			got, err := view.Nearest(t.Context(), &e, among, 10)
			if err != nil {
				t.Fatal(err)
			}
			exact, err := view.Cosines(t.Context(), &e, among)
			if err != nil {
				t.Fatal(err)
			}
			if len(got) != 10 || uint64(len(exact)) != among.GetCardinality() {
				t.Fatalf("%s: %d hits, %d cosines of %d", state, len(got), len(exact), among.GetCardinality())
			}
			tenth := rankOf(exact, 10)
			if state == "no graph" {
				slices.SortFunc(exact, func(a, b index.Similar) int {
					return cmp.Or(-cmp.Compare(a.Cosine, b.Cosine), cmp.Compare(a.Ord, b.Ord))
				})
				if !slices.Equal(got, exact[:10]) {
					t.Fatalf("without a graph: %v, want %v", got, exact[:10])
				}
			}
			for i, h := range got {
				all++
				if h.Cosine >= tenth {
					found++
				}
				if !among.Contains(h.Ord) || i > 0 && h.Cosine > got[i-1].Cosine {
					t.Fatalf("%s: hit %d, %+v, is out of order or not asked for", state, i, h)
				}
			}
		}
		if recall := float64(found) / float64(all); recall < 0.99 {
			t.Errorf("%s: recall@10 %.3f, want 0.99", state, recall)
		}
	}
}

// rankOf returns the n-th largest cosine. It reorders all.
func rankOf(all []index.Similar, n int) float64 {
	for i := range n {
		best := i
		for j := i; j < len(all); j++ {
			if all[j].Cosine > all[best].Cosine {
				best = j
			}
		}
		all[i], all[best] = all[best], all[i]
	}
	return all[n-1].Cosine
}
