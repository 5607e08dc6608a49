package search_test

import (
	"context"
	"runtime"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/sightline-dev/sightline/core/index"
	"github.com/sightline-dev/sightline/core/index/indextest"
	"github.com/sightline-dev/sightline/core/kv/memkv"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/predict/raster"
	"github.com/sightline-dev/sightline/core/search"
	"github.com/sightline-dev/sightline/core/testkit"
)

// random returns a random query about a world.
func random(t testing.TB, w *indextest.World) *search.Query {
	q := &search.Query{}
	for range w.Rand.IntN(4) {
		c := search.Clause{Negate: w.Rand.IntN(4) == 0}
		for range 1 + w.Rand.IntN(8)/6 {
			c.All = append(c.All, randomCondition(t, w, q))
		}
		q.Clauses = append(q.Clauses, c)
	}
	if w.Rand.IntN(3) == 0 {
		q.MinScore = float32(w.Rand.IntN(21)) / 20
	}
	return q
}

func randomCondition(t testing.TB, w *indextest.World, q *search.Query) search.Condition {
	concepts := []string{w.Concept()}
	if w.Rand.IntN(5) == 0 {
		concepts = append(concepts, w.Concept())
	}
	in := w.Some()
	switch w.Rand.IntN(12) {
	case 0, 1:
		return search.Prediction{Concepts: concepts, Absent: w.Rand.IntN(3) == 0}
	case 2:
		return search.Label{Concepts: concepts, Value: log.True - log.Value(w.Rand.IntN(2))}
	case 3, 4, 5:
		p, err := index.NewPattern([]byte(w.JSON(3)))
		if err != nil {
			t.Fatal(err)
		}
		return search.Metadata{Pattern: p}
	case 6:
		u := search.URL{URL: w.URL()}
		if in != nil && w.Rand.IntN(2) == 0 {
			u = search.URL{URL: "https://here/x", Hosted: in.Hosted}
		}
		return u
	case 7:
		if in != nil && w.Rand.IntN(2) == 0 {
			return search.Bytes{Blob: in.Blob}
		}
		if in != nil {
			return search.InputID{ID: in.ID}
		}
		return search.InputID{ID: "nobody"}
	case 8:
		angles := []float64{0, 1e-6, 0.01, 0.2, 1, 1.6, 3.1, 3.2, 10}
		return search.Radius{Centre: w.Point(), Angle: angles[w.Rand.IntN(len(angles))]}
	case 9:
		a, b := w.Point(), w.Point()
		return search.Box{
			Min: log.Point{Longitude: min(a.Longitude, b.Longitude), Latitude: min(a.Latitude, b.Latitude)},
			Max: log.Point{Longitude: max(a.Longitude, b.Longitude), Latitude: max(a.Latitude, b.Latitude)},
		}
	}
	p := search.Picture{}
	if in != nil && w.Rand.IntN(2) == 0 {
		p.Input = in.ID
	} else {
		e := w.Embedding()
		p.Embedding = &e
		p.Crop = raster.Crop{Bottom: 0.5, Right: 0.5}
	}
	q.Pictures = append(q.Pictures, p)
	return search.Similar{Picture: len(q.Pictures) - 1}
}

// compare runs a query page by page and compares the hits with the naive answer.
func compare(t *testing.T, w *indextest.World, q *search.Query) {
	t.Helper()
	n := &naive{t: t, w: w, r: w.Reader(), q: q}
	want := n.answer()
	var got []search.Hit
	size := uint64(1 + w.Rand.IntN(20))
	for offset := uint64(0); ; offset += size {
		result, err := search.Run(context.Background(), w.Reader(), w.Index, q, search.Page{Offset: offset, N: size})
		if err != nil {
			t.Fatalf("Run(%+v): %v", q, err)
		}
		got = append(got, result.Hits...)
		if len(result.Hits) == 0 {
			break
		}
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Fatalf("Run(%+v), want -, got +:\n%s", q, diff)
	}
}

// TestRunAgreesWithScan compares random queries over random inputs with a scan that uses no index.
func TestRunAgreesWithScan(t *testing.T) {
	for seed := range testkit.Seeds(t, 60, 20_000) {
		w := indextest.New(t, seed, memkv.New())
		for range 3 {
			w.Churn(t, 1+w.Rand.IntN(60))
			if w.Rand.IntN(2) == 0 {
				w.Train(t, indextest.Base, indextest.CustomConcepts[w.Rand.IntN(3)])
			}
			for range w.Rand.IntN(6) {
				if _, err := w.Index.Step(t.Context(), w.Rand.IntN(40)); err != nil {
					t.Fatal(err)
				}
			}
			switch w.Rand.IntN(12) {
			case 0:
				w.Reopen(t, indextest.Options())
			case 1:
				w.Commit(t, func(tx *indextest.Tx) {
					tx.DeleteAll()
					tx.Insert(w.Input(), w.RandomDerived())
				})
			}
			queries := 25
			if runtime.GOARCH == "wasm" {
				queries = 4
			}
			for range queries {
				compare(t, w, random(t, w))
			}
			if err := w.Index.Check(t.Context(), w.Reader()); err != nil {
				t.Fatal(err)
			}
		}
	}
}
