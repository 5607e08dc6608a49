package hnsw

import (
	"github.com/RoaringBitmap/roaring/v2"
)

// Search appends to dst the k nearest live nodes that a walk finds, by falling cosine and then by node number. The walk keeps ef
// candidates, at least k; 0 means 64. The nearest 50 of them, or 2·k if more, are ranked by all 16 bits.
//
// allow, if not nil, restricts the result to its nodes. Search scans few nodes exactly. For many nodes it filters a walk, which is wider
// the rarer the nodes are. It chooses the method that should be cheaper. If a walk does not find enough, a scan follows: Search returns
// fewer than k nodes only if there are fewer.
//
// q and allow are borrowed until Search returns. Search may run at the same time as other searches and a change.
func (g *Graph) Search(dst []Hit, q []int16, scale float32, k, ef int, allow *roaring.Bitmap) []Hit {
	if k <= 0 {
		return dst
	}
	if ef == 0 {
		ef = defaultEf
	}
	ef = max(ef, k)
	if allow != nil {
		matches := int(allow.GetCardinality())
		if matches == 0 {
			return dst
		}
		var scan bool
		if ef, scan = plan(matches, g.Len(), ef); scan {
			return g.Scan(dst, q, scale, k, allow)
		}
	}
	s := g.scratches.Get().(*scratch)
	defer g.scratches.Put(s)
	s.query.Set(g.vec, q, scale)
	start := len(dst)
	dst, enough := g.searchWalk(dst, s, k, ef, allow)
	if !enough {
		return g.Scan(dst[:start], q, scale, k, allow)
	}
	return dst
}

const (
	defaultEf = 64
	reranked  = 50
)

// searchWalk is Search by a walk. It returns false if the walk ended with fewer candidates than there are, because the nodes that it did
// not reach could be nearer.
func (g *Graph) searchWalk(dst []Hit, s *scratch, k, ef int, allow *roaring.Bitmap) ([]Hit, bool) {
	g.mu.RLock()
	defer g.mu.RUnlock()
	if g.entry == noSlot {
		return dst, true
	}
	var f filter
	candidates := g.live
	if allow != nil {
		f = s.fill(allow)
		candidates = min(candidates, int(allow.GetCardinality()))
	}
	at := g.descend(s, &s.query, 0)
	g.walk(s, &s.query, at, 0, ef, f)
	if len(s.pool) < min(ef, candidates) {
		return dst, false
	}
	s.slots = s.slots[:0]
	for _, k := range s.pool[:min(len(s.pool), max(2*k, reranked))] {
		s.slots = append(s.slots, slotOf(k))
	}
	return g.rank(dst, s, s.slots, k), true
}

// fill turns allow into an array of bits.
func (s *scratch) fill(allow *roaring.Bitmap) filter {
	n := int(allow.Maximum()>>6) + 1
	if cap(s.dense) < n {
		s.dense = make([]uint64, n)
	}
	s.dense = s.dense[:n]
	clear(s.dense)
	allow.WriteDenseTo(s.dense)
	return s.dense
}

// rank appends to dst the best k of slots by their exact cosine.
func (g *Graph) rank(dst []Hit, s *scratch, slots []uint32, k int) []Hit {
	s.dots = resize(s.dots, len(slots))
	g.vec.Dots(s.dots, &s.query, slots)
	start := len(dst)
	for i, slot := range slots {
		h := Hit{g.nodes[slot], g.vec.Cosine(s.dots[i], &s.query, slot)}
		n := len(dst)
		if n-start == k {
			if !h.before(dst[n-1]) {
				continue
			}
			n--
		} else {
			dst = append(dst, h)
		}
		for ; n > start && h.before(dst[n-1]); n-- {
			dst[n] = dst[n-1]
		}
		dst[n] = h
	}
	return dst
}

// before reports whether h comes before o in the order of hits.
func (h Hit) before(o Hit) bool {
	return h.Cosine > o.Cosine || h.Cosine == o.Cosine && h.Node < o.Node
}

// resize returns s with length n. Its content may be lost.
func resize[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n, n+n/2)
	}
	return s[:n]
}
