package hnsw

import (
	"math/bits"
	"slices"

	"github.com/sightline-dev/sightline/core/index/hnsw/kernel"
)

// A key orders candidates: the distance, then the slot, then whether it has been expanded.
//
//	63 … 32   31 … 1   0
//	distance   slot    expanded
type key = uint64

func keyOf(distance, slot uint32) key { return uint64(distance)<<32 | uint64(slot)<<1 }
func slotOf(k key) uint32             { return uint32(k) >> 1 }
func distanceOf(k key) uint32         { return uint32(k >> 32) }

const expanded = key(1)

// scratch is the working memory of one search, or of the running change.
type scratch struct {
	query   kernel.Query
	visited bitset   // by slot, empty between walks
	list    []uint32 // slots measured by the walk, in order
	passed  []uint32 // slots visited but not measured: tombstones, and slots that a filter excludes
	through []uint32 // slots whose links one step follows
	around  []uint32 // excluded neighbours of one step, whose links the walk looks at
	alive   []uint32 // links that do not lead to tombstones
	dist    []uint32 // distances of the last step
	pool    []key    // the nearest so far, nearest first
	dense   []uint64 // the filter as an array of bits, by node

	picking
	scanning
}

// filter is the set of nodes that a walk may keep; nil means all nodes.
type filter []uint64

func (f filter) has(node uint32) bool {
	w := int(node >> 6)
	return w < len(f) && f[w]>>(node&63)&1 != 0
}

// greedy walks from a slot on one level to a local minimum and returns it.
func (g *Graph) greedy(s *scratch, z *kernel.Query, from uint32, level int) uint32 {
	s.list = append(s.list[:0], from)
	g.vec.Distances(s.distances(1), z, s.list)
	best := keyOf(s.dist[0], from)
	for {
		links := full(g.links(slotOf(best), level))
		g.vec.Distances(s.distances(len(links)), z, links)
		next := best
		for i, to := range links {
			next = min(next, keyOf(s.dist[i], to))
		}
		if next == best {
			return slotOf(best)
		}
		best = next
	}
}

// descend walks down from the entry point to a level and returns the slot it reached.
func (g *Graph) descend(s *scratch, z *kernel.Query, level int) uint32 {
	at := g.entry
	for l := g.top; l > level; l-- {
		at = g.greedy(s, z, at, l)
	}
	return at
}

// full returns the part of links that is in use.
func full(links []uint32) []uint32 {
	for i, to := range links {
		if to == noSlot {
			return links[:i]
		}
	}
	return links
}

// distances makes room for n distances.
func (s *scratch) distances(n int) []uint32 {
	if cap(s.dist) < n {
		s.dist = make([]uint32, n, 2*n)
	}
	s.dist = s.dist[:n]
	return s.dist
}

// walk collects in s.pool up to ef slots nearest to z that it meets, starting at from on a level. It keeps live slots that the filter
// contains. It looks through tombstones and, on level 0, through excluded slots: their neighbours count as neighbours of the slots that
// lead to them.
func (g *Graph) walk(s *scratch, z *kernel.Query, from uint32, level, ef int, allow filter) {
	g.walkTo(s, z, from, level, ef, allow, noSlot)
}

// walkTo is walk, but it ends as soon as it meets the slot to. With noSlot it does not end early.
func (g *Graph) walkTo(s *scratch, z *kernel.Query, from uint32, level, ef int, allow filter, to uint32) {
	s.visited.grow(len(g.nodes))
	s.pool, s.list, s.passed = s.pool[:0], s.list[:0], s.passed[:0]
	plain := g.tombs == 0 && allow == nil
	s.visited.set(from)
	if g.passes(from, allow) {
		s.list = append(s.list, from)
		g.admit(s, z, 0, ef)
	} else {
		s.passed = append(s.passed, from)
		g.step(s, z, from, level, ef, allow)
	}
	for next := 0; next < len(s.pool) && (to == noSlot || !s.visited.has(to)); {
		k := s.pool[next]
		if k&expanded != 0 {
			next++
			continue
		}
		s.pool[next] = k | expanded
		if next+1 < len(s.pool) {
			g.level0.Fetch(slotOf(s.pool[next+1]))
		}
		var at int
		if plain {
			start := len(s.list)
			s.collect(g.links(slotOf(k), level))
			at = g.admit(s, z, start, ef)
		} else {
			at = g.step(s, z, slotOf(k), level, ef, allow)
		}
		next = min(next+1, at)
	}
	s.leave()
}

// passes reports whether a walk may keep a slot.
func (g *Graph) passes(slot uint32, allow filter) bool {
	return !g.dead.has(slot) && (allow == nil || allow.has(g.nodes[slot]))
}

// leave clears visited.
func (s *scratch) leave() {
	for _, slot := range s.list {
		s.visited[slot>>6] = 0
	}
	for _, slot := range s.passed {
		s.visited[slot>>6] = 0
	}
}

// collect appends to s.list the links that have not been visited.
func (s *scratch) collect(links []uint32) {
	n := len(s.list)
	s.list = slices.Grow(s.list, len(links))[:n+len(links)]
	for _, to := range links {
		if to == noSlot {
			break
		}
		// Without a branch: about half of the neighbours are new, so the processor would mispredict.
		word := &s.visited[to>>6]
		s.list[n] = to
		n += int(^*word >> (to & 63) & 1)
		*word |= 1 << (to & 63)
	}
	s.list = s.list[:n]
}

// admit measures s.list[start:] and merges the slots that are near enough into the pool. It returns the index of the first new slot in the
// pool, or the pool's length.
func (g *Graph) admit(s *scratch, z *kernel.Query, start, ef int) int {
	batch := s.list[start:]
	g.vec.Distances(s.distances(len(batch)), z, batch)
	bound, nearest := ^key(0), ^key(0)
	if len(s.pool) >= ef {
		bound = s.pool[ef-1]
	}
	for i, to := range batch {
		nearest = min(nearest, keyOf(s.dist[i], to))
	}
	if nearest >= bound {
		return len(s.pool)
	}
	// The walk follows this slot next unless an earlier one is unexpanded. Its links load meanwhile.
	g.level0.Fetch(slotOf(nearest))
	for i, to := range batch {
		k := keyOf(s.dist[i], to)
		if len(s.pool) < ef {
			s.pool = append(s.pool, 0)
		} else if k >= s.pool[ef-1] {
			continue
		}
		at := place(s.pool[:len(s.pool)-1], k)
		copy(s.pool[at+1:], s.pool[at:])
		s.pool[at] = k
	}
	return place(s.pool, nearest)
}

// place returns the number of sorted keys below k.
func place(keys []key, k key) int {
	at := 0
	for n := len(keys); n > 0; {
		half := (n + 1) / 2
		n -= half
		// Without a branch: both halves are equally likely, so the processor would mispredict.
		_, below := bits.Sub64(keys[at+half-1], k, 0)
		at += half & -int(below)
	}
	return at
}

// out returns the links of a slot. For a tombstone it returns only the link to its hub.
func (g *Graph) out(slot uint32, level int) []uint32 {
	links := g.links(slot, level)
	if g.dead.has(slot) {
		return links[:1]
	}
	return links
}

// step is collect and admit for a graph with tombstones or a walk with a filter.
func (g *Graph) step(s *scratch, z *kernel.Query, from uint32, level, ef int, allow filter) int {
	start := len(s.list)
	s.collect(g.out(from, level))
	s.around = s.around[:0]
	n := start
	for i := start; i < len(s.list); i++ {
		to := s.list[i]
		switch {
		case g.dead.has(to):
			s.passed = append(s.passed, to)
			s.collect(g.out(to, level))
		case allow != nil && !allow.has(g.nodes[to]):
			s.passed = append(s.passed, to)
			s.around = append(s.around, to)
		default:
			s.list[n] = to
			n++
		}
	}
	s.list = s.list[:n]
	// Slots behind an excluded neighbour count, but only while there are few others.
	for _, via := range s.around {
		if len(s.list)-start >= g.m0 {
			break
		}
		for _, to := range full(g.links(via, level)) {
			if !s.visited.has(to) && g.passes(to, allow) {
				s.visited.set(to)
				s.list = append(s.list, to)
			}
		}
	}
	return g.admit(s, z, start, ef)
}
