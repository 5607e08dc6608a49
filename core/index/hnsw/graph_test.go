package hnsw

import (
	"testing"
)

func TestSearchFindsTheNearest(t *testing.T) {
	const dim = 64
	n := 3000
	if testing.Short() {
		n = 600
	}
	c := newClusters(1, n/50, dim)
	g := newGraph(t, Options{Dim: dim})
	nodes := map[uint32]vector{}
	for i := range uint32(n) {
		v := c.draw()
		nodes[i] = v
		g.Insert(i, v.q, v.scale)
	}
	if err := g.Check(nil); err != nil {
		t.Fatal(err)
	}
	found, all := 0, 0
	for range 100 {
		q := c.draw()
		want := exact(nodes, q, 10)
		found += common(g.Search(nil, q.q, q.scale, 10, 64, nil), want)
		all += len(want)
	}
	if recall := float64(found) / float64(all); recall < 0.99 {
		t.Errorf("recall@10 = %.4f, want 0.99", recall)
	}
}
