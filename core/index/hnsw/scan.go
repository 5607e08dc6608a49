package hnsw

import (
	"math"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"
)

// scanning is the scratch of Scan.
type scanning struct {
	dots   []int64
	batch  []uint32 // slots to measure
	best   []uint32 // the k smallest distances so far, ascending
	nearby []near   // nodes that may be among the k nearest
}

// near is a node by its distance on the high bytes.
type near struct{ distance, node uint32 }

// scanBlock is the number of nodes that are measured before changes may continue.
const scanBlock = 2048

// Scan appends to dst the k live nodes nearest to the query out of nodes (nil: out of all), by
// falling cosine and then by node number. It is exact: the high bytes rule out what cannot be among
// them by the bound on their error, and the rest are measured on all 16 bits.
//
// Each block of nodes is read at one moment; changes may come between blocks.
func (g *Graph) Scan(dst []Hit, q []int16, scale float32, k int, nodes *roaring.Bitmap) []Hit {
	if k <= 0 {
		return dst
	}
	s := g.scratches.Get().(*scratch)
	defer g.scratches.Put(s)
	s.query.Set(g.vec, q, scale)
	own := errorOf(q, scale)
	for start := len(dst); ; dst = dst[:start] {
		g.scanAll(s, k+spare, own, nodes)
		var gone int
		if dst, gone = g.settle(dst, s, k, own); gone <= spare {
			return dst
		}
	}
}

// spare is the number of nearest nodes that may be deleted during a scan before it begins again.
const spare = 8

func (g *Graph) scanAll(s *scratch, k int, own vectorError, nodes *roaring.Bitmap) {
	s.best, s.nearby = s.best[:0], s.nearby[:0]
	if nodes == nil {
		for from := uint32(0); g.scanSlots(s, from, k, own); from += scanBlock {
		}
		return
	}
	var numbers [scanBlock]uint32
	it := nodes.ManyIterator()
	for n := it.NextMany(numbers[:]); n > 0; n = it.NextMany(numbers[:]) {
		g.scanNodes(s, numbers[:n], k, own)
	}
}

// scanSlots measures a block of slots. It reports false behind the last.
func (g *Graph) scanSlots(s *scratch, from uint32, k int, own vectorError) bool {
	g.mu.RLock()
	defer g.mu.RUnlock()
	if int(from) >= len(g.nodes) {
		return false
	}
	s.batch = s.batch[:0]
	for slot := from; slot < from+scanBlock && int(slot) < len(g.nodes); slot++ {
		if g.isUsed(slot) && !g.dead.has(slot) {
			s.batch = append(s.batch, slot)
		}
	}
	g.scanBatch(s, k, own)
	return true
}

// scanNodes measures a block of nodes; those that are not live are left out.
func (g *Graph) scanNodes(s *scratch, nodes []uint32, k int, own vectorError) {
	g.mu.RLock()
	defer g.mu.RUnlock()
	g.gather(s, nodes)
	g.scanBatch(s, k, own)
}

// gather makes the slots of those nodes that are live the batch.
func (g *Graph) gather(s *scratch, nodes []uint32) {
	s.batch = s.batch[:0]
	for _, node := range nodes {
		if slot := g.slots.get(node); slot != noSlot {
			s.batch = append(s.batch, slot)
		}
	}
}

func (g *Graph) scanBatch(s *scratch, k int, own vectorError) {
	g.vec.Distances(s.distances(len(s.batch)), &s.query, s.batch)
	slack := own.slack(g.worst)
	bound := s.bound(k, slack)
	for i, slot := range s.batch {
		d := s.dist[i]
		if d > bound {
			continue
		}
		s.nearby = append(s.nearby, near{d, g.nodes[slot]})
		if len(s.best) < k {
			s.best = append(s.best, d)
		} else if d >= s.best[k-1] {
			continue
		}
		at, _ := slices.BinarySearch(s.best[:len(s.best)-1], d)
		copy(s.best[at+1:], s.best[at:])
		s.best[at] = d
		bound = s.bound(k, slack)
	}
}

// bound is the largest distance that can belong to one of the k nearest.
func (s *scratch) bound(k int, slack uint32) uint32 {
	if len(s.best) < k {
		return ^uint32(0)
	}
	return s.best[k-1] + slack
}

// settle ranks what is within the bound on all 16 bits. It returns how many of these are not live any more.
func (g *Graph) settle(dst []Hit, s *scratch, k int, own vectorError) (hits []Hit, gone int) {
	g.mu.RLock()
	defer g.mu.RUnlock()
	bound := s.bound(k+spare, own.slack(g.worst))
	s.batch = s.batch[:0]
	for _, c := range s.nearby {
		if c.distance > bound {
			continue
		}
		if slot := g.slots.get(c.node); slot != noSlot {
			s.batch = append(s.batch, slot)
		} else {
			gone++
		}
	}
	return g.rank(dst, s, s.batch, k), gone
}

// vectorError is the distance of the high bytes of vectors from the vectors.
type vectorError struct {
	length float64 // of the vector, times its scale: 1 but for rounding
	rest   float64 // length of the difference between it and its high bytes, times its scale
}

// errorOf measures one vector.
func errorOf(q []int16, scale float32) vectorError {
	all, rest := int64(0), int64(0)
	for _, v := range q {
		all += int64(v) * int64(v)
		r := int64(v&255) - 128
		rest += r * r
	}
	f := math.Abs(float64(scale))
	return vectorError{float64(math.Sqrt(float64(all)) * f), float64(math.Sqrt(float64(rest)) * f)}
}

// max is the worse of both.
func (e vectorError) max(o vectorError) vectorError {
	return vectorError{max(e.length, o.length), max(e.rest, o.rest)}
}

// slack bounds twice the error of a distance on the high bytes: with a = A + r and
// b = B + s, a·b − A·B = a·s + r·b − r·s, and Cauchy and Schwarz bound each product.
func (e vectorError) slack(o vectorError) uint32 {
	const rounding = 1e-6 // of three float32 products and one rounding to a whole number, with room
	bound := float64(e.length*o.rest) + float64(e.rest*o.length) + float64(e.rest*o.rest)
	return uint32(min(2*(bound+rounding)*(1<<29), 1<<31))
}

// set writes the vector of a slot.
func (g *Graph) set(slot uint32, q []int16, scale float32) {
	g.vec.Set(slot, q, scale)
	g.worst = g.worst.max(errorOf(q, scale))
}
