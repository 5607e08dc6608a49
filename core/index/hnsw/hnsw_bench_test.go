package hnsw

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/RoaringBitmap/roaring/v2"
)

// benchSet is the graph of the benchmarks: n vectors of a mixture of 2,000 Gaussians, like the workload in performance.md, and 200 queries
// with their ten exact neighbours.
type benchSet struct {
	g       *Graph
	vectors []vector
	queries []vector
	answers [][]Hit
}

var benchSets sync.Map // [2]int{n, dim} → *benchSet

func benchSetOf(b *testing.B, n, dim int) *benchSet {
	b.Helper()
	if s, ok := benchSets.Load([2]int{n, dim}); ok {
		return s.(*benchSet)
	}
	c := newClusters(42, 2000, dim)
	s := &benchSet{g: newGraph(b, Options{Dim: dim})}
	for i := range n {
		v := c.draw()
		v.f = nil
		s.vectors = append(s.vectors, v)
		s.g.Insert(uint32(i), v.q, v.scale)
	}
	s.queries = c.drawMany(200)
	for _, q := range s.queries {
		s.answers = append(s.answers, s.g.Scan(nil, q.q, q.scale, 10, nil))
	}
	benchSets.Store([2]int{n, dim}, s)
	return s
}

// BenchmarkSearch reports the recall@10 and the time of a search.
func BenchmarkSearch(b *testing.B) {
	for _, n := range []int{10_000, 100_000} {
		if n > 10_000 && testing.Short() {
			continue
		}
		for _, ef := range []int{16, 24, 64} {
			b.Run(fmt.Sprintf("n=%d/dim=256/ef=%d", n, ef), func(b *testing.B) {
				s := benchSetOf(b, n, 256)
				var hits []Hit
				found, all := 0, 0
				for i, q := range s.queries {
					hits = s.g.Search(hits[:0], q.q, q.scale, 10, ef, nil)
					found += common(hits, s.answers[i])
					all += len(s.answers[i])
				}
				i := 0
				for b.Loop() {
					q := s.queries[i%len(s.queries)]
					hits = s.g.Search(hits[:0], q.q, q.scale, 10, ef, nil)
					i++
				}
				b.ReportMetric(float64(found)/float64(all), "recall@10")
			})
		}
	}
}

// BenchmarkFiltered searches a share of the nodes.
func BenchmarkFiltered(b *testing.B) {
	const n = 10_000
	for _, percent := range []int{1, 10, 50} {
		b.Run(fmt.Sprintf("n=%d/dim=256/allow=%d%%", n, percent), func(b *testing.B) {
			s := benchSetOf(b, n, 256)
			allow := roaring.New()
			for i := range uint32(n) {
				if mix(uint64(i))%100 < uint64(percent) {
					allow.Add(i)
				}
			}
			var hits []Hit
			i := 0
			for b.Loop() {
				q := s.queries[i%len(s.queries)]
				hits = s.g.Search(hits[:0], q.q, q.scale, 10, 64, allow)
				i++
			}
		})
	}
}

// BenchmarkPlan measures the two methods between which plan decides, a walk and a scan, and the recall@10 of the walk.
func BenchmarkPlan(b *testing.B) {
	const n = 20_000
	for _, percent := range []int{2, 5, 10, 20, 50, 90} {
		b.Run(fmt.Sprintf("n=%d/dim=256/ef=64/allow=%d%%", n, percent), func(b *testing.B) {
			set := benchSetOf(b, n, 256)
			allow := roaring.New()
			for i := range uint32(n) {
				if mix(uint64(i))%100 < uint64(percent) {
					allow.Add(i)
				}
			}
			s := new(scratch)
			var walking, scanning time.Duration
			found, all, i := 0, 0, 0
			var hits, scanned []Hit
			for b.Loop() {
				q := set.queries[i%len(set.queries)]
				start := time.Now()
				s.query.Set(set.g.vec, q.q, q.scale)
				hits, _ = set.g.searchWalk(hits[:0], s, 10, 64, allow)
				middle := time.Now()
				scanned = set.g.Scan(scanned[:0], q.q, q.scale, 10, allow)
				walking, scanning = walking+middle.Sub(start), scanning+time.Since(middle)
				found += common(hits, scanned)
				all += len(scanned)
				i++
			}
			b.ReportMetric(float64(walking.Nanoseconds())/float64(b.N), "ns/walk")
			b.ReportMetric(float64(scanning.Nanoseconds())/float64(b.N), "ns/scan")
			b.ReportMetric(float64(walking)/float64(scanning), "walk/scan")
			b.ReportMetric(float64(found)/float64(all), "recall@10")
		})
	}
}

// BenchmarkInsert inserts into a graph that is empty at first.
func BenchmarkInsert(b *testing.B) {
	b.Run("dim=256", func(b *testing.B) {
		s := benchSetOf(b, 10_000, 256)
		g := newGraph(b, Options{Dim: 256})
		i := 0
		for b.Loop() {
			v := s.vectors[i%len(s.vectors)]
			g.Insert(uint32(i), v.q, v.scale)
			i++
		}
	})
}

// BenchmarkDelete deletes nodes of a graph and inserts them again outside the measured time.
func BenchmarkDelete(b *testing.B) {
	b.Run("dim=256", func(b *testing.B) {
		const n = 20_000
		c := newClusters(42, 2000, 256)
		g := newGraph(b, Options{Dim: 256})
		vectors := c.drawMany(n)
		for i, v := range vectors {
			g.Insert(uint32(i), v.q, v.scale)
		}
		b.ResetTimer()
		for i := range b.N {
			if i > 0 && i%(n/4) == 0 {
				b.StopTimer()
				for j := range n / 4 {
					v := vectors[j]
					g.Insert(uint32(j), v.q, v.scale)
				}
				b.StartTimer()
			}
			g.Delete(uint32(i % (n / 4)))
		}
	})
}
