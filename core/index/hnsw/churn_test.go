package hnsw

import (
	"testing"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/sightline-dev/sightline/core/cpu"
	"github.com/sightline-dev/sightline/core/index/hnsw/kernel"
	"github.com/sightline-dev/sightline/core/testkit"
)

// TestChurnKeepsRecall replaces all vectors of a graph ten times, the oldest first, with steps of Compact in between. It compares the
// recall with a new graph of the remaining vectors.
func TestChurnKeepsRecall(t *testing.T) {
	testkit.SkipRace(t)
	const dim, replacements = 64, 10
	n, options := testkit.Size(t, 1000, 2_000, 20_000, 200_000), Options{Dim: dim, M: 8, EfConstruction: 80}
	switch {
	case testkit.Soaking():
		options = Options{Dim: dim, EfConstruction: 100}
	case kernel.Levels.Current() == cpu.Generic:
		n = 150 // kernels are slow, and the processor may be emulated
	}
	from, _ := testkit.Rounds(t, 1, 1)
	t.Logf("seed %d, %d vectors", from, n)
	c := newClusters(from, n/50, dim)
	g := newGraph(t, options)
	alive, live := map[uint32]vector{}, roaring.New()
	next := uint32(0)
	insert := func() {
		v := c.draw()
		v.f = nil
		alive[next] = v
		live.Add(next)
		g.Insert(next, v.q, v.scale)
		next++
	}
	for range n {
		insert()
	}
	for round := range replacements {
		for range n {
			oldest := next - uint32(n)
			g.Delete(oldest)
			delete(alive, oldest)
			live.Remove(oldest)
			insert()
			if g.Tombstones() > n/10 {
				g.Compact(20)
			}
		}
		if testing.Verbose() {
			t.Logf("round %d: %d tombstones, %d unreachable, %d slots", round, g.Tombstones(), len(g.unreachable()), len(g.nodes))
		}
	}
	if err := g.Check(live); err != nil {
		t.Errorf("before compaction: %v", err)
	}
	queries := c.drawMany(300)
	before := recallOf(t, g, alive, queries, 24)
	for !g.Compact(1000) {
	}
	if err := g.Check(live); err != nil {
		t.Error(err)
	}
	if g.Tombstones() != 0 {
		t.Errorf("%d tombstones after Compact", g.Tombstones())
	}
	fresh := newGraph(t, options)
	for node := next - uint32(n); node < next; node++ {
		fresh.Insert(node, alive[node].q, alive[node].scale)
	}
	churned, built := recallOf(t, g, alive, queries, 24), recallOf(t, fresh, alive, queries, 24)
	t.Logf("recall@10 at ef 24: %.4f with tombstones, %.4f after Compact, %.4f fresh; %d slots for %d nodes", before, churned, built, len(g.nodes), n)
	if churned < built-0.01 || before < built-0.01 {
		t.Errorf("recall@10 = %.4f and %.4f after churn, %.4f in a fresh build", before, churned, built)
	}
}

// recallOf returns the recall@10 of searches with ef. It fails the test if a hit is not alive.
func recallOf(t *testing.T, g *Graph, alive map[uint32]vector, queries []vector, ef int) float64 {
	t.Helper()
	found, all := 0, 0
	for _, q := range queries {
		hits := g.Search(nil, q.q, q.scale, 10, ef, nil)
		for _, h := range hits {
			if _, ok := alive[h.Node]; !ok {
				t.Fatalf("node %d is dead and was found", h.Node)
			}
		}
		want := g.Scan(nil, q.q, q.scale, 10, nil)
		found += common(hits, want)
		all += len(want)
	}
	return float64(found) / float64(all)
}
