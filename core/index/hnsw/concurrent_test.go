//go:build !wasip1

package hnsw

import (
	"sync"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"
)

// TestSearchesDuringChanges runs searches of every kind while one writer inserts, deletes and compacts. They must find the nodes that are
// never deleted, and no nodes that were deleted before the search.
func TestSearchesDuringChanges(t *testing.T) {
	const dim, fixed = 32, 200
	changes := 1500
	if testing.Short() {
		changes = 300
	}
	c := newClusters(4, 8, dim)
	g := newGraph(t, Options{Dim: dim, M: 6, EfConstruction: 40})
	vectors := c.drawMany(fixed)
	for i, v := range vectors {
		g.Insert(uint32(i), v.q, v.scale)
	}
	g.Insert(fixed, vectors[0].q, vectors[0].scale)
	g.Delete(fixed)
	moving := c.drawMany(changes)
	done := make(chan struct{})
	var readers sync.WaitGroup
	for reader := range 3 {
		readers.Go(func() {
			allow := roaring.New()
			allow.AddRange(0, fixed/2)
			for i := reader; ; i++ {
				select {
				case <-done:
					return
				default:
				}
				node := uint32(i % (fixed / 2))
				q := vectors[node]
				var hits []Hit
				switch i % 3 {
				case 0:
					hits = g.Search(nil, q.q, q.scale, 5, 100, nil)
				case 1:
					hits = g.Search(nil, q.q, q.scale, 5, 100, allow)
				default:
					hits = g.Scan(nil, q.q, q.scale, 5, nil)
				}
				if len(hits) != 5 || hits[0].Node != node {
					t.Errorf("search for node %d's vector found %v", node, hits)
					return
				}
				for _, h := range hits {
					if h.Node == fixed {
						t.Errorf("deleted node %d was found", h.Node)
						return
					}
				}
			}
		})
	}
	for i, v := range moving {
		node := uint32(fixed + 1 + i)
		g.Insert(node, v.q, v.scale)
		if i >= 50 {
			g.Delete(node - 50)
		}
		if i%100 == 99 {
			for !g.Compact(50) {
			}
		}
	}
	close(done)
	readers.Wait()
	if err := g.Check(nil); err != nil {
		t.Error(err)
	}
}
