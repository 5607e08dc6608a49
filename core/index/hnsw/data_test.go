package hnsw

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// vector is a random unit vector, also in the form that predict.Embedding stores.
type vector struct {
	f     []float32
	q     []int16
	scale float32
}

func quantise(f []float32) vector {
	m, n := 0.0, int64(0)
	for _, x := range f {
		m = max(m, math.Abs(float64(x)))
	}
	v := vector{f: f, q: make([]int16, len(f))}
	for i, x := range f {
		v.q[i] = int16(math.Round(float64(x) / m * 32767))
		n += int64(v.q[i]) * int64(v.q[i])
	}
	v.scale = float32(1 / math.Sqrt(float64(n)))
	return v
}

func unitOf(f []float32) []float32 {
	n := 0.0
	for _, x := range f {
		n += float64(x) * float64(x)
	}
	for i := range f {
		f[i] = float32(float64(f[i]) / math.Sqrt(n))
	}
	return f
}

// clusters draws from a mixture of Gaussians on the unit sphere, like the data of the benchmarks: one of count centres plus noise of 0.8 of
// its length.
type clusters struct {
	rng     *rand.Rand
	centres [][]float32
	dim     int
}

func newClusters(seed uint64, count, dim int) *clusters {
	c := &clusters{rng: rand.New(rand.NewPCG(seed, 42)), dim: dim}
	for range count {
		c.centres = append(c.centres, unitOf(c.normal(1)))
	}
	return c
}

func (c *clusters) normal(sigma float64) []float32 {
	f := make([]float32, c.dim)
	for i := range f {
		f[i] = float32(c.rng.NormFloat64() * sigma)
	}
	return f
}

func (c *clusters) draw() vector { return c.drawFrom(c.rng.IntN(len(c.centres))) }

func (c *clusters) drawFrom(centre int) vector {
	f := c.normal(0.8 / math.Sqrt(float64(c.dim)))
	for i, x := range c.centres[centre] {
		f[i] += x
	}
	return quantise(unitOf(f))
}

func (c *clusters) drawMany(n int) []vector {
	vs := make([]vector, n)
	for i := range vs {
		vs[i] = c.draw()
	}
	return vs
}

// exact returns the k nearest nodes, computed with all 16 bits as the package documents.
func exact(nodes map[uint32]vector, query vector, k int) []Hit {
	hits := make([]Hit, 0, len(nodes))
	for node, v := range nodes {
		dot := int64(0)
		for i, x := range v.q {
			dot += int64(x) * int64(query.q[i])
		}
		c := float64(dot) * float64(query.scale) * float64(v.scale)
		hits = append(hits, Hit{node, min(1, max(-1, c))})
	}
	slices.SortFunc(hits, func(a, b Hit) int {
		if a.before(b) {
			return -1
		}
		return 1
	})
	return hits[:min(k, len(hits))]
}

// common returns the number of nodes of want that are in got.
func common(got, want []Hit) int {
	n := 0
	for _, w := range want {
		if slices.ContainsFunc(got, func(h Hit) bool { return h.Node == w.Node }) {
			n++
		}
	}
	return n
}

func newGraph(t testing.TB, o Options) *Graph {
	t.Helper()
	g, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return g
}
