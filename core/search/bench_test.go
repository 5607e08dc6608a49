//go:build unix

package search_test

import (
	"context"
	"fmt"
	"math"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/index"
	"github.com/sightline-dev/sightline/core/index/indextest"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/kv/memkv"
	"github.com/sightline-dev/sightline/core/kv/pebblekv"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/search"
	"github.com/sightline-dev/sightline/core/testkit"
)

// large returns a world of n analysed inputs, with columns and the beginning of a graph.
func large(b *testing.B, store kv.Store, n int) *indextest.World {
	b.Helper()
	w := indextest.New(b, 1, store)
	pictures := make([]*catalog.DerivedData, 4096)
	for i := range pictures {
		pictures[i] = w.RandomDerived()
	}
	for done := 0; done < n; done += 1000 {
		w.Commit(b, func(tx *indextest.Tx) {
			for i := done; i < min(done+1000, n); i++ {
				in := &catalog.Input{
					ID: fmt.Sprintf("input-%d", i), URL: fmt.Sprintf("https://example.com/%d.jpg", i),
					Meta: catalog.Meta{{JSON: fmt.Appendf(nil, `{"n":%d,"tenth":%d,"tags":["all","t%d"]}`, i, i%10, i%1000)}},
					Blob: blob.Sum(fmt.Append(nil, i)),
				}
				if i%2 == 0 {
					in.Labels = []catalog.Label{{Label: log.Label{Concept: "cat", Value: log.True}}}
				}
				in.Geo = &log.Point{
					Longitude: 360*w.Rand.Float64() - 180,
					Latitude:  math.Asin(2*w.Rand.Float64()-1) * 180 / math.Pi,
				}
				tx.Insert(in, pictures[i%len(pictures)])
			}
		})
	}
	for range n/1024 + 1 { // a step writes the columns of one block
		if _, err := w.Index.Step(b.Context(), 1); err != nil {
			b.Fatal(err)
		}
	}
	return w
}

// cpu returns the processor time of the process, including the collector. It equals the wall time on an idle machine, and can be compared
// on a busy one.
func cpu(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func BenchmarkSearch(b *testing.B) {
	sizes := []int{100_000}
	if testkit.Soaking() {
		sizes = append(sizes, 1_000_000)
	}
	stores := map[string]func() kv.Store{
		"memory": func() kv.Store { return memkv.New() },
		"pebble": func() kv.Store {
			s, err := pebblekv.Open(b.TempDir(), pebblekv.Options{})
			if err != nil {
				b.Fatal(err)
			}
			b.Cleanup(func() { _ = s.Close() })
			return s
		},
	}
	one := func(conditions ...search.Condition) *search.Query {
		q := &search.Query{}
		for _, c := range conditions {
			q.Clauses = append(q.Clauses, search.Clause{All: []search.Condition{c}})
		}
		return q
	}
	meta := func(json string) search.Metadata {
		p, err := index.NewPattern([]byte(json))
		if err != nil {
			b.Fatal(err)
		}
		return search.Metadata{Pattern: p}
	}
	for _, n := range sizes {
		queries := []struct {
			name string
			q    *search.Query
			page search.Page
		}{
			{"list", one(), search.Page{N: 20}},
			{"list/deep", one(), search.Page{Offset: uint64(n) - 20, N: 20}},
			{"label=half", one(search.Label{Concepts: []string{"cat"}, Value: log.True}), search.Page{N: 20}},
			{"metadata=tenth", one(meta(`{"tenth":3}`)), search.Page{N: 20}},
			{"metadata=all", one(meta(`{"tags":["all"]}`)), search.Page{N: 20}},
			{"metadata=one", one(meta(`{"n":77}`)), search.Page{N: 20}},
			{"three-filters", one(meta(`{"tenth":3}`), meta(`{"tags":["t3"]}`), search.Label{Concepts: []string{"cat"}, Value: log.True}), search.Page{N: 20}},
			{"url", one(search.URL{URL: "https://example.com/5.jpg"}), search.Page{N: 20}},
			{"geo=100km", one(search.Radius{Centre: log.Point{Longitude: 5, Latitude: 5}, Angle: 100 / 6371.0088}), search.Page{N: 20}},
			{"geo=hemisphere", one(search.Radius{Centre: log.Point{Longitude: 5, Latitude: 5}, Angle: 1.57}), search.Page{N: 20}},
			{"geo=box", one(search.Box{Min: log.Point{Longitude: -120, Latitude: -60}, Max: log.Point{Longitude: 110, Latitude: 70}}), search.Page{N: 20}},
			{"predicted", one(search.Prediction{Concepts: []string{"ai_aa"}}), search.Page{N: 20}},
			{"predicted/absent", one(search.Prediction{Concepts: []string{"ai_aa"}, Absent: true}), search.Page{N: 20}},
			{"predicted/deep", one(search.Prediction{Concepts: []string{"ai_aa"}}), search.Page{Offset: uint64(n) / 2, N: 20}},
			{"predicted+tenth", one(search.Prediction{Concepts: []string{"ai_aa"}}, meta(`{"tenth":3}`)), search.Page{N: 20}},
			{"two-predicted", one(search.Prediction{Concepts: []string{"ai_aa"}}, search.Prediction{Concepts: []string{"ai_bb"}}), search.Page{N: 20}},
		}
		for name, open := range stores {
			b.Run(fmt.Sprintf("store=%s/n=%d", name, n), func(b *testing.B) {
				w := large(b, open(), n)
				for _, q := range queries {
					b.Run(q.name, func(b *testing.B) {
						before := cpu(b)
						var took []time.Duration
						for b.Loop() {
							begun := time.Now()
							if _, err := search.Run(context.Background(), w.Reader(), w.Index, q.q, q.page); err != nil {
								b.Fatal(err)
							}
							took = append(took, time.Since(begun))
						}
						slices.Sort(took)
						b.ReportMetric(1000*took[len(took)/2].Seconds(), "p50-ms")
						b.ReportMetric(1000*took[len(took)*99/100].Seconds(), "p99-ms")
						b.ReportMetric(1000*(cpu(b)-before).Seconds()/float64(b.N), "cpu-ms/op")
					})
				}
			})
		}
	}
}
