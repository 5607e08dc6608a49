package hnsw

import (
	"errors"
	"slices"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/sightline-dev/sightline/core/index/hnsw/kernel"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/kv/memkv"
)

// model is a graph with its naive model, a map of vectors.
type model struct {
	t      *rapid.T
	c      *clusters
	o      Options
	g      *Graph
	nodes  map[uint32]vector
	next   uint32
	store  kv.Store
	prefix []byte
}

func (m *model) live() *roaring.Bitmap {
	b := roaring.New()
	for node := range m.nodes {
		b.Add(node)
	}
	return b
}

// digest returns the expected digest of the graph.
func (m *model) digest() (sum uint64) {
	for node := range m.nodes {
		sum += mix(uint64(node))
	}
	return sum
}

func (m *model) some(label string) (uint32, bool) {
	if len(m.nodes) == 0 {
		return 0, false
	}
	return rapid.SampledFrom(m.live().ToArray()).Draw(m.t, label), true
}

func (m *model) insert(node uint32) {
	v := m.c.drawFrom(rapid.IntRange(0, len(m.c.centres)-1).Draw(m.t, "centre"))
	if rapid.IntRange(0, 19).Draw(m.t, "twin") == 0 {
		if twin, ok := m.some("of"); ok {
			v = m.nodes[twin]
		}
	}
	m.g.Insert(node, v.q, v.scale)
	m.nodes[node] = v
}

func (m *model) vectors(yield func(uint32, []int16, float32) bool) error {
	for node, v := range m.nodes {
		if !yield(node, v.q, v.scale) {
			return nil
		}
	}
	return nil
}

func (m *model) flush() {
	var b kv.Batch
	m.g.Flush(&b, m.prefix, uint64(m.next))
	if err := m.store.Apply(&b); err != nil {
		m.t.Fatal(err)
	}
}

// search compares searches with exact. The graphs are so small that a wide walk visits all nodes.
func (m *model) search(allow *roaring.Bitmap) {
	q := m.c.draw()
	nodes := m.nodes
	if allow != nil {
		nodes = map[uint32]vector{}
		for node, v := range m.nodes {
			if allow.Contains(node) {
				nodes[node] = v
			}
		}
	}
	k := rapid.IntRange(1, 20).Draw(m.t, "k")
	want := exact(nodes, q, k)
	if got := m.g.Scan(nil, q.q, q.scale, k, allow); !slices.Equal(got, want) {
		m.t.Fatalf("Scan(k=%d) = %v, want %v", k, got, want)
	}
	if allow != nil {
		want := exact(nodes, q, len(nodes))
		slices.SortFunc(want, func(a, b Hit) int { return int(int64(a.Node) - int64(b.Node)) })
		if got := m.g.Cosines(nil, q.q, q.scale, allow); !slices.Equal(got, want) {
			m.t.Fatalf("Cosines = %v, want %v", got, want)
		}
	}
	got := m.g.Search(nil, q.q, q.scale, k, 300, allow)
	if !slices.Equal(got, want) {
		m.t.Fatalf("Search(k=%d) (-want +got):\n%s", k, cmp.Diff(want, got))
	}
}

// TestGraphEqualsModel makes random changes and searches, and sometimes closes and opens the graph. It compares every answer with the model
// and runs the checker.
func TestGraphEqualsModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := &model{
			t: t, nodes: map[uint32]vector{}, store: memkv.New(), prefix: []byte("app/graph/"),
			c: newClusters(rapid.Uint64().Draw(t, "seed"), rapid.IntRange(1, 8).Draw(t, "clusters"), 32),
			o: Options{Dim: 32, M: rapid.IntRange(4, 8).Draw(t, "m"), EfConstruction: 40},
		}
		var err error
		if m.g, err = New(m.o); err != nil {
			t.Fatal(err)
		}
		t.Repeat(map[string]func(*rapid.T){
			"insert": func(*rapid.T) {
				for range rapid.IntRange(1, 30).Draw(t, "n") {
					m.next += uint32(rapid.IntRange(1, 3).Draw(t, "hole"))
					m.insert(m.next)
				}
			},
			"replace": func(*rapid.T) {
				if node, ok := m.some("node"); ok {
					m.insert(node)
				}
			},
			"delete": func(*rapid.T) {
				for range rapid.IntRange(1, 20).Draw(t, "n") {
					node, ok := m.some("node")
					if !ok {
						node = m.next + 1
					}
					m.g.Delete(node)
					delete(m.nodes, node)
				}
			},
			"compact": func(*rapid.T) { m.g.Compact(rapid.IntRange(1, 400).Draw(t, "steps")) },
			"open": func(*rapid.T) {
				m.flush()
				was := m.g
				if m.g, err = Open(m.store, m.prefix, m.o, m.vectors); err != nil {
					t.Fatal(err)
				}
				if m.g.Seq() != uint64(m.next) {
					t.Fatalf("Seq() = %d, want %d", m.g.Seq(), m.next)
				}
				sameGraph(t, m.g, was)
			},
			"search": func(*rapid.T) { m.search(nil) },
			"filter": func(*rapid.T) {
				allow := roaring.New()
				every := rapid.Uint32Range(1, 5).Draw(t, "every")
				for node := range m.nodes {
					if node%every == 0 {
						allow.Add(node)
					}
				}
				allow.Add(m.next + 100) // a node that does not exist
				m.search(allow)
			},
			"": func(*rapid.T) {
				if err := m.g.Check(m.live()); err != nil {
					t.Fatal(err)
				}
				if m.g.Len() != len(m.nodes) || m.g.digest() != m.digest() {
					t.Fatalf("Len() = %d, want %d, or another digest", m.g.Len(), len(m.nodes))
				}
			},
		})
	})
}

// sameGraph compares the contents of two graphs.
func sameGraph(t interface{ Fatalf(string, ...any) }, got, want *Graph) {
	if len(got.nodes) != len(want.nodes) || got.entry != want.entry || got.top != want.top || got.live != want.live {
		t.Fatalf("opened graph has %d slots, entry %d: want %d, %d", len(got.nodes), got.entry, len(want.nodes), want.entry)
	}
	for page := range (len(got.nodes) + pageSlots - 1) / pageSlots {
		if a, b := got.appendPage(nil, page), want.appendPage(nil, page); !slices.Equal(a, b) {
			t.Fatalf("page %d differs", page)
		}
	}
}

// TestSameChangesSameGraph builds equal graphs at every level of the kernel, and once more with a reopen after every 50 inserts.
func TestSameChangesSameGraph(t *testing.T) {
	build := func(reopen bool) *Graph {
		c := newClusters(5, 10, 64)
		o := Options{Dim: 64, M: 6, EfConstruction: 50}
		g := newGraph(t, o)
		nodes := map[uint32]vector{}
		store, prefix := memkv.New(), []byte("g")
		for i := range uint32(400) {
			nodes[i] = c.draw()
			g.Insert(i, nodes[i].q, nodes[i].scale)
			if i%3 == 0 && i > 0 {
				g.Delete(i / 3)
				delete(nodes, i/3)
			}
			if i == 200 {
				for !g.Compact(10) {
				}
			}
			if reopen && i%50 == 49 {
				var b kv.Batch
				g.Flush(&b, prefix, uint64(i))
				if err := store.Apply(&b); err != nil {
					t.Fatal(err)
				}
				m := &model{nodes: nodes}
				var err error
				if g, err = Open(store, prefix, o, m.vectors); err != nil {
					t.Fatal(err)
				}
			}
		}
		return g
	}
	want := build(true)
	for range kernel.Levels.Each() {
		sameGraph(t, build(false), want)
	}
}

var errLoader = errors.New("vectors are gone")

func TestOpenOfDamagedPages(t *testing.T) {
	c := newClusters(9, 4, 32)
	o := Options{Dim: 32, M: 4, EfConstruction: 20}
	prefix := []byte("graph/")
	m := &model{nodes: map[uint32]vector{}}
	g := newGraph(t, o)
	for i := range uint32(100) {
		m.nodes[i] = c.draw()
		g.Insert(i, m.nodes[i].q, m.nodes[i].scale)
	}
	g.Delete(7)
	delete(m.nodes, 7)
	var newer, older kv.Batch
	g.Flush(&older, prefix, 1)
	g.Delete(8)
	g.Flush(&newer, prefix, 2)
	delete(m.nodes, 8)
	fill := func(t *testing.T) kv.Store {
		store := memkv.New()
		for _, b := range []*kv.Batch{&older, &newer} {
			if err := store.Apply(b); err != nil {
				t.Fatal(err)
			}
		}
		return store
	}
	oldPage := func(page int) []byte {
		store := memkv.New()
		if err := store.Apply(&older); err != nil {
			t.Fatal(err)
		}
		b, err := store.Get(pageKey(prefix, page))
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	flip := func(key []byte, at int) func(*testing.T, kv.Store, *kv.Batch) {
		return func(t *testing.T, s kv.Store, b *kv.Batch) {
			v, err := s.Get(key)
			if err != nil {
				t.Fatal(err)
			}
			v[at] ^= 4
			b.Put(key, v)
		}
	}
	less := func(yield func(uint32, []int16, float32) bool) error {
		first := true
		return m.vectors(func(n uint32, q []int16, s float32) bool {
			if first {
				first = false
				return true
			}
			return yield(n, q, s)
		})
	}
	tests := []struct {
		name    string
		damage  func(t *testing.T, s kv.Store, b *kv.Batch)
		o       Options
		vectors Vectors
		want    error
	}{
		{name: "nothing"},
		{name: "header's magic", damage: flip(headerKey(prefix), 0), want: ErrCorrupt},
		{name: "header's version", damage: flip(headerKey(prefix), 4), want: ErrCorrupt},
		{name: "header's counts", damage: flip(headerKey(prefix), 17), want: ErrCorrupt},
		{name: "header missing", damage: func(_ *testing.T, _ kv.Store, b *kv.Batch) { b.Delete(headerKey(prefix)) }, want: ErrCorrupt},
		{name: "header short", damage: func(_ *testing.T, _ kv.Store, b *kv.Batch) { b.Put(headerKey(prefix), []byte("hnsw")) }, want: ErrCorrupt},
		{name: "page's magic", damage: flip(pageKey(prefix, 1), 0), want: ErrCorrupt},
		{name: "page's version", damage: flip(pageKey(prefix, 1), 4), want: ErrCorrupt},
		{name: "page's slots", damage: flip(pageKey(prefix, 1), 40), want: ErrCorrupt},
		{name: "page missing", damage: func(_ *testing.T, _ kv.Store, b *kv.Batch) { b.Delete(pageKey(prefix, 1)) }, want: ErrCorrupt},
		{name: "last page missing", damage: func(_ *testing.T, _ kv.Store, b *kv.Batch) { b.Delete(pageKey(prefix, 3)) }, want: ErrCorrupt},
		{name: "page too many", damage: func(_ *testing.T, _ kv.Store, b *kv.Batch) { b.Put(pageKey(prefix, 4), oldPage(1)) }, want: ErrCorrupt},
		{name: "page of another place", damage: func(_ *testing.T, _ kv.Store, b *kv.Batch) { b.Put(pageKey(prefix, 2), oldPage(1)) }, want: ErrCorrupt},
		{name: "page of another time", damage: func(_ *testing.T, _ kv.Store, b *kv.Batch) { b.Put(pageKey(prefix, 0), oldPage(0)) }, want: ErrCorrupt},
		{name: "other M", o: Options{Dim: 32, M: 5, EfConstruction: 20}, want: ErrCorrupt},
		{name: "a vector too few", vectors: less, want: ErrCorrupt},
		{name: "a vector twice", vectors: func(yield func(uint32, []int16, float32) bool) error {
			_ = m.vectors(yield)
			return m.vectors(yield)
		}, want: ErrCorrupt},
		{name: "a short vector", vectors: func(yield func(uint32, []int16, float32) bool) error {
			yield(3, make([]int16, 3), 1)
			return nil
		}, want: ErrCorrupt},
		{name: "no vectors", vectors: func(func(uint32, []int16, float32) bool) error { return errLoader }, want: errLoader},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			store := fill(t)
			if tt.damage != nil {
				var b kv.Batch
				tt.damage(t, store, &b)
				if err := store.Apply(&b); err != nil {
					t.Fatal(err)
				}
			}
			if tt.o.Dim == 0 {
				tt.o = o
			}
			if tt.vectors == nil {
				tt.vectors = m.vectors
			}
			opened, err := Open(store, prefix, tt.o, tt.vectors)
			if !errors.Is(err, tt.want) {
				t.Fatalf("Open = %v, want %v", err, tt.want)
			}
			if tt.want == nil {
				sameGraph(t, opened, g)
			}
		})
	}
}

// TestRebuiltGraphReplacesPages flushes a smaller graph over the pages of a larger one.
func TestRebuiltGraphReplacesPages(t *testing.T) {
	o := Options{Dim: 32, M: 4, EfConstruction: 20}
	store, prefix := memkv.New(), []byte("x")
	c := newClusters(2, 2, 32)
	for _, n := range []int{200, 10} {
		m := &model{nodes: map[uint32]vector{}}
		g := newGraph(t, o)
		for i := range uint32(n) {
			m.nodes[i] = c.draw()
			g.Insert(i, m.nodes[i].q, m.nodes[i].scale)
		}
		var b kv.Batch
		g.Flush(&b, prefix, uint64(n))
		if err := store.Apply(&b); err != nil {
			t.Fatal(err)
		}
		opened, err := Open(store, prefix, o, m.vectors)
		if err != nil {
			t.Fatal(err)
		}
		sameGraph(t, opened, g)
	}
}
