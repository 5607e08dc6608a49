//go:build unix

package search_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/sightline-dev/sightline/core/index/indextest"
	"github.com/sightline-dev/sightline/core/kv/memkv"
	"github.com/sightline-dev/sightline/core/search"
)

// BenchmarkSummary measures the requests of a page while a person types, and deep pages, at 100,000 inputs.
func BenchmarkSummary(b *testing.B) {
	const n = 100_000
	w := large(b, memkv.New(), n)
	for more, err := true, error(nil); more; {
		if more, err = w.Index.Step(b.Context(), 4096); err != nil {
			b.Fatal(err)
		}
	}
	e := w.Embedding()
	alike := &search.Query{
		Clauses:  []search.Clause{{All: []search.Condition{search.Similar{Picture: 0}}}},
		Pictures: []search.Picture{{Embedding: &e}},
	}
	predicted := &search.Query{Clauses: []search.Clause{{All: []search.Condition{search.Prediction{Concepts: []string{indextest.Concepts[0]}}}}}}
	run := func(name string, do func() error) {
		b.Run(name, func(b *testing.B) {
			var took []time.Duration
			before := cpu(b)
			for b.Loop() {
				begun := time.Now()
				if err := do(); err != nil {
					b.Fatal(err)
				}
				took = append(took, time.Since(begun))
			}
			slices.Sort(took)
			b.ReportMetric(1000*took[len(took)/2].Seconds(), "p50-ms")
			b.ReportMetric(1000*(cpu(b)-before).Seconds()/float64(b.N), "cpu-ms/op")
		})
	}
	for _, q := range []struct {
		name string
		q    *search.Query
	}{{"list", &search.Query{}}, {"predicted", predicted}, {"alike", alike}} {
		for _, offset := range []uint64{0, 2000, n / 2, n - 20} {
			run(fmt.Sprintf("%s/page-from=%d", q.name, offset), func() error {
				_, err := search.Run(b.Context(), w.Reader(), w.Index, q.q, search.Page{Offset: offset, N: 60})
				return err
			})
		}
		for name, ask := range map[string]search.SummaryOptions{
			"scores": {Bins: 60, Learn: search.Learn{Labels: true}},
			"days":   {Days: &search.Days{}},
			"places": {Places: &search.PlaceOptions{Zoom: 3}},
			"all":    {Bins: 60, Days: &search.Days{}, Places: &search.PlaceOptions{Zoom: 5}, Learn: search.Learn{Labels: true}},
		} {
			run(q.name+"/summary="+name, func() error {
				_, err := search.Summarise(b.Context(), w.Reader(), w.Index, q.q, ask)
				return err
			})
		}
	}
}
