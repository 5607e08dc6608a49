package hnsw

import (
	"errors"
	"slices"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/sightline-dev/sightline/core/cpu"
	"github.com/sightline-dev/sightline/core/index/hnsw/kernel"
)

// small reports whether tests must be small, because kernels are slow and the processor may be emulated.
func small() bool { return testing.Short() || kernel.Levels.Current() == cpu.Generic }

func TestSearchFindsTheNearest(t *testing.T) {
	const dim = 64
	n := 3000
	if small() {
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

func TestOptions(t *testing.T) {
	for _, o := range []Options{{}, {Dim: 31}, {Dim: 33}, {Dim: 4096}, {Dim: 32, M: 3}, {Dim: 32, M: 65}, {Dim: 32, EfConstruction: 8}, {Dim: 32, EfConstruction: 1 << 16}} {
		if _, err := New(o); err == nil {
			t.Errorf("New(%+v) made a graph", o)
		}
	}
}

func TestEmptyGraph(t *testing.T) {
	g := newGraph(t, Options{Dim: 32})
	q := make([]int16, 32)
	q[0] = 7
	if hits := g.Search(nil, q, 1./7, 3, 0, nil); len(hits) != 0 {
		t.Errorf("Search in an empty graph = %v", hits)
	}
	g.Insert(4, q, 1./7)
	g.Insert(1<<20, make([]int16, 32), 0)
	if hits := g.Search(nil, q, 1./7, 0, 0, nil); len(hits) != 0 {
		t.Errorf("Search(k=0) = %v", hits)
	}
	if hits := g.Scan(nil, q, 1./7, 0, nil); len(hits) != 0 {
		t.Errorf("Scan(k=0) = %v", hits)
	}
	want := []Hit{{4, 1}, {1 << 20, 0}}
	if hits := g.Search(nil, q, 1./7, 3, 0, nil); !slices.Equal(hits, want) {
		t.Errorf("Search = %v, want %v", hits, want)
	}
	if !g.Has(4) || g.Has(5) {
		t.Errorf("Has(4), Has(5) = %v, %v", g.Has(4), g.Has(5))
	}
	g.Delete(4)
	g.Delete(1 << 20)
	g.Delete(9)
	for !g.Compact(3) {
	}
	if err := g.Check(nil); err != nil || g.Len() != 0 {
		t.Errorf("%d nodes left, %v", g.Len(), err)
	}
}

// TestCopiesOfVectorsStayConnected: graphs with many copies of few vectors stay connected, and searches find the copies.
func TestCopiesOfVectorsStayConnected(t *testing.T) {
	seeds := uint64(20)
	if small() {
		seeds = 4
	}
	found, all := 0, 0
	for seed := range seeds {
		c := newClusters(seed, 1, 32)
		g := newGraph(t, Options{Dim: 32, M: 4, EfConstruction: 40})
		few := c.drawMany(3)
		const n = 300
		for i := range uint32(n) {
			v := c.draw()
			if i%3 > 0 {
				v = few[i%2]
			}
			g.Insert(i, v.q, v.scale)
			if i%4 == 0 {
				g.Delete(i / 2)
			}
		}
		if err := g.Check(nil); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		for !g.Compact(100) {
		}
		if err := g.Check(nil); err != nil {
			t.Fatalf("seed %d: after Compact: %v", seed, err)
		}
		want := g.Scan(nil, few[0].q, few[0].scale, 20, nil)
		found += common(g.Search(nil, few[0].q, few[0].scale, 20, 200, nil), want)
		all += len(want)
	}
	if recall := float64(found) / float64(all); recall < 0.98 {
		t.Errorf("recall@20 = %.4f among copies, want 0.98", recall)
	}
}

// TestFilterFarFromTheQuery searches nodes in other clusters than the query, where a walk would meet none of them.
func TestFilterFarFromTheQuery(t *testing.T) {
	n := uint32(4000)
	if small() {
		n = 400
	}
	c := newClusters(8, 20, 32)
	g := newGraph(t, Options{Dim: 32, M: 8, EfConstruction: 60})
	allow := roaring.New()
	for i := range n {
		v := c.drawFrom(int(i) % 20)
		g.Insert(i, v.q, v.scale)
		if i%20 > 4 {
			allow.Add(i)
		}
	}
	found, all := 0, 0
	for range 30 {
		q := c.drawFrom(0)
		want := g.Scan(nil, q.q, q.scale, 10, allow)
		s := new(scratch)
		s.query.Set(g.vec, q.q, q.scale)
		got, enough := g.searchWalk(nil, s, 10, 100, allow)
		if !enough {
			got = g.Search(nil, q.q, q.scale, 10, 100, allow)
		}
		found += common(got, want)
		all += len(want)
	}
	if recall := float64(found) / float64(all); recall < 0.95 {
		t.Errorf("recall@10 = %.3f, want 0.95", recall)
	}
}

// TestCheckFindsDamage breaks each rule of Check.
func TestCheckFindsDamage(t *testing.T) {
	tests := []struct {
		name   string
		damage func(g *Graph)
	}{
		{"link out of range", func(g *Graph) { g.level0.At(3)[0] = 5000 }},
		{"link to itself", func(g *Graph) { g.level0.At(3)[0] = 3 }},
		{"link twice", func(g *Graph) { g.level0.At(3)[0] = g.level0.At(3)[1] }},
		{"link to a free slot", func(g *Graph) {
			g.level0.At(3)[0] = uint32(len(g.nodes) - 1)
			g.nodes[len(g.nodes)-1] = noNode
			g.free++
			g.live--
		}},
		{"links after the end", func(g *Graph) { g.level0.At(3)[0] = noSlot }},
		{"out of reach", func(g *Graph) {
			for slot := range uint32(len(g.nodes)) {
				if links := g.level0.At(slot); slices.Contains(links, 5) {
					g.unlink(slot, 0, 5)
				}
			}
		}},
		{"few links", func(g *Graph) {
			for slot := range uint32(len(g.nodes)) {
				clearLinks(g.level0.At(slot)[2:])
			}
		}},
		{"one way", func(g *Graph) {
			for slot := range uint32(len(g.nodes)) {
				clearLinks(g.level0.At(slot)[6:])
			}
		}},
		{"count", func(g *Graph) { g.live++ }},
		{"tombstones", func(g *Graph) { g.dead.set(9) }},
		{"other node", func(g *Graph) { g.nodes[9] = 7777 }},
		{"entry point", func(g *Graph) { g.top++ }},
		{"no entry point", func(g *Graph) { g.entry = noSlot }},
		{"free slot with links", func(g *Graph) { g.nodes[9] = noNode; g.free++; g.live-- }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := newClusters(7, 4, 32)
			g := newGraph(t, Options{Dim: 32, M: 4, EfConstruction: 30})
			live := roaring.New()
			for i := range uint32(150) {
				v := c.draw()
				g.Insert(i, v.q, v.scale)
				live.Add(i)
			}
			if err := g.Check(live); err != nil {
				t.Fatal(err)
			}
			tt.damage(g)
			if err := g.Check(live); !errors.Is(err, ErrCorrupt) {
				t.Errorf("Check = %v, want %v", err, ErrCorrupt)
			}
		})
	}
	g := newGraph(t, Options{Dim: 32})
	for _, live := range []*roaring.Bitmap{roaring.BitmapOf(1, 2), roaring.BitmapOf(2)} {
		q := make([]int16, 32)
		g.Insert(1, q, 0)
		if err := g.Check(live); !errors.Is(err, ErrCorrupt) {
			t.Errorf("Check(%v) = %v, want %v", live, err, ErrCorrupt)
		}
	}
}

// TestCompactLinksUnreachableNode: Compact links a node to which no link leads.
func TestCompactLinksUnreachableNode(t *testing.T) {
	c := newClusters(7, 4, 32)
	g := newGraph(t, Options{Dim: 32, M: 4, EfConstruction: 30})
	for i := range uint32(150) {
		v := c.draw()
		g.Insert(i, v.q, v.scale)
	}
	for slot := range uint32(150) {
		if slices.Contains(g.level0.At(slot), 5) {
			g.unlink(slot, 0, 5)
		}
	}
	clearLinks(g.level0.At(5))
	g.Delete(77)
	for !g.Compact(1) {
	}
	if err := g.Check(nil); err != nil {
		t.Error(err)
	}
}
