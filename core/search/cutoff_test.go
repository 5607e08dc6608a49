package search_test

import (
	"fmt"
	"testing"

	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/index"
	"github.com/sightline-dev/sightline/core/index/indextest"
	"github.com/sightline-dev/sightline/core/kv/memkv"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/search"
)

// clauseCutOff returns the cut-off of a query's clauses.
func clauseCutOff(t *testing.T, w *indextest.World, learn search.Learn, clauses ...search.Clause) *search.CutOff {
	t.Helper()
	e := w.Embedding()
	s, err := search.Summarise(t.Context(), w.Reader(), w.Index,
		&search.Query{Clauses: clauses, Pictures: []search.Picture{{Embedding: &e}}}, search.SummaryOptions{Bins: 1, Learn: learn})
	if err != nil {
		t.Fatal(err)
	}
	return s.Scores.CutOff
}

func clauseOf(all ...search.Condition) search.Clause { return search.Clause{All: all} }

// TestCutOffs learns cut-offs from labels, and without labels from the other data.
func TestCutOffs(t *testing.T) {
	w := indextest.New(t, 3, memkv.New())
	background := &search.CutOff{Value: 0.6, Source: search.FromBackground, Examples: 256}
	learn := search.Learn{Labels: true, Evaluations: true, Network: func() *search.CutOff { return background }}
	alike := clauseOf(search.Similar{})
	w.Commit(t, func(tx *indextest.Tx) {
		for i, concept := range indextest.CustomConcepts[:2] {
			tx.PutConcept(&catalog.Concept{Seq: uint64(i + 1), ID: concept, Name: concept})
		}
		tx.Insert(&catalog.Input{}, w.RandomDerived())
	})
	if got := clauseCutOff(t, w, learn, alike); got == nil || *got != *background {
		t.Errorf("without labels: %+v", got)
	}
	if got := clauseCutOff(t, w, search.Learn{Labels: true}, alike); got != nil {
		t.Errorf("without anything: %+v", got)
	}
	// Cats are close to one another, and dogs, in a world of clusters.
	cat, dog := w.RandomDerived(), w.RandomDerived()
	for sameAs(cat, dog) > 0.8 {
		dog = w.RandomDerived()
	}
	w.Commit(t, func(tx *indextest.Tx) {
		for i := range 40 {
			d := []*catalog.DerivedData{cat, dog}[i%2]
			tx.Insert(&catalog.Input{Labels: []catalog.Label{{Label: log.Label{Concept: indextest.CustomConcepts[i%2], Value: log.True}}}}, near(w, d))
		}
	})
	got := clauseCutOff(t, w, learn, alike)
	if got == nil || got.Source != search.FromLabels || got.Examples != 40 || got.Value < sameAs(cat, dog) || got.Value > 0.999 {
		t.Errorf("with labels: %+v", got)
	}
	if got := clauseCutOff(t, w, search.Learn{Network: learn.Network}, alike); got == nil || *got != *background {
		t.Errorf("without leave to read labels: %+v", got)
	}
	if got := clauseCutOff(t, w, learn, search.Clause{Negate: true, All: alike.All}); got != nil {
		t.Errorf("of a negated clause: %+v", got)
	}
	general := clauseOf(search.Prediction{Concepts: indextest.Concepts[:1]})
	if got := clauseCutOff(t, w, learn, general); got == nil || *got != (search.CutOff{Value: float64(index.PresentThreshold), Source: search.FromRule}) {
		t.Errorf("of a general concept: %+v", got)
	}
	both := clauseCutOff(t, w, learn, general, alike)
	if both == nil || both.Source != search.FromLabels || both.Value != float64(index.PresentThreshold)*got.Value {
		t.Errorf("of both: %+v", both)
	}
}

// TestEvaluatedCutOffs: a custom concept has the cut-off of the version that predicts it.
func TestEvaluatedCutOffs(t *testing.T) {
	w := indextest.New(t, 4, memkv.New())
	w.Commit(t, func(tx *indextest.Tx) { tx.Insert(&catalog.Input{}, w.RandomDerived()) })
	learn := search.Learn{Evaluations: true}
	own := func(concept string) search.Clause { return clauseOf(search.Prediction{Concepts: []string{concept}}) }
	rule := search.CutOff{Value: float64(index.PresentThreshold), Source: search.FromRule}
	w.Train(t, indextest.Base, indextest.CustomConcepts[:3]...)
	if got := clauseCutOff(t, w, learn, own("dog")); got == nil || *got != rule {
		t.Errorf("without an evaluation: %+v", got)
	}
	metrics := `{"concepts":[{"evaluated":false,"positives":1},{"evaluated":true,"positives":7,"negatives":5,"cut_off":0.625},{"evaluated":true,"cut_off":0.1}]}`
	w.Commit(t, func(tx *indextest.Tx) {
		head, err := w.Heads[0].MarshalBinary()
		if err != nil {
			t.Fatal(err)
		}
		m := catalog.Manifest{Version: "v2", Base: indextest.Base, Head: head, Metrics: []byte(metrics)}
		tx.PutVersion(&catalog.Version{
			Model: log.Dot{Writer: 2, Seq: 1}, Seq: 9, ID: "v2", Code: catalog.VersionTrained, Concepts: indextest.CustomConcepts[:3],
			Manifest: catalog.PutObject(tx.Overlay, w.App, m.Marshal()),
		})
	})
	for concept, want := range map[string]search.CutOff{
		"cat": rule,
		"dog": {Value: 0.625, Source: search.FromEvaluation, Examples: 12},
		"emu": {Value: float64(index.PresentThreshold), Source: search.FromEvaluation},
	} {
		if got := clauseCutOff(t, w, learn, own(concept)); got == nil || *got != want {
			t.Errorf("of %s: %+v, want %+v", concept, got, want)
		}
	}
	if got := clauseCutOff(t, w, search.Learn{}, own("dog")); got == nil || *got != rule {
		t.Errorf("without leave to read evaluations: %+v", got)
	}
	absent := clauseOf(search.Prediction{Concepts: []string{"dog"}, Absent: true})
	if got := clauseCutOff(t, w, learn, absent); got == nil || fmt.Sprintf("%.3f", got.Value) != "0.700" {
		t.Errorf("of its absence: %+v", got)
	}
}
