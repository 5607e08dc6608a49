package hnsw

import (
	"math"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/sightline-dev/sightline/core/index/hnsw/kernel"
)

// scanning is the working memory of Scan.
type scanning struct {
	dots   []int64
	batch  []uint32 // slots to measure
	best   []uint32 // the k smallest distances so far, ascending
	nearby []near   // nodes that may be among the k nearest
}

// near is a node with its distance, computed from the high bytes.
type near struct{ distance, node uint32 }

// scanBlock is the number of nodes that Scan measures before changes may continue.
const scanBlock = 2048

// Scan appends to dst the k live nodes of nodes that are nearest to the query, by falling cosine and then by node number. A nil nodes means
// all nodes. Scan is exact: the high bytes, with a bound on their error, exclude the nodes that cannot be among the nearest. It measures
// the rest on all 16 bits.
//
// Each block of nodes is read at one moment. Changes may happen between blocks.
func (g *Graph) Scan(dst []Hit, q []int16, scale float32, k int, nodes *roaring.Bitmap) []Hit {
	if k <= 0 {
		return dst
	}
	s := g.scratches.Get().(*scratch)
	defer g.scratches.Put(s)
	s.query.Set(g.vec, q, scale)
	own := errorOf(kernel.SquaresOf(q), scale)
	for start := len(dst); ; dst = dst[:start] {
		g.scanAll(s, k+spare, own, nodes)
		var deleted int
		if dst, deleted = g.settle(dst, s, k, own); deleted <= spare {
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

// scanSlots measures a block of slots. It returns false after the last slot.
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

// scanNodes measures a block of nodes, except those that are not live.
func (g *Graph) scanNodes(s *scratch, nodes []uint32, k int, own vectorError) {
	g.mu.RLock()
	defer g.mu.RUnlock()
	g.gather(s, nodes)
	g.scanBatch(s, k, own)
}

// gather sets the batch to the slots of the live nodes.
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

// bound returns the largest distance that one of the k nearest nodes can have.
func (s *scratch) bound(k int, slack uint32) uint32 {
	if len(s.best) < k {
		return ^uint32(0)
	}
	return s.best[k-1] + slack
}

// settle ranks the nodes within the bound on all 16 bits. deleted is the number of these nodes that are no longer live.
func (g *Graph) settle(dst []Hit, s *scratch, k int, own vectorError) (hits []Hit, deleted int) {
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
			deleted++
		}
	}
	return g.rank(dst, s, s.batch, k), deleted
}

// vectorError bounds the difference between vectors and their high bytes.
type vectorError struct {
	length float64 // length of the vector, times its scale: 1 except for rounding
	rest   float64 // length of the difference between it and its high bytes, times its scale
}

// errorOf returns the error of one vector.
func errorOf(s kernel.Squares, scale float32) vectorError {
	f := math.Abs(float64(scale))
	return vectorError{float64(math.Sqrt(float64(s.All)) * f), float64(math.Sqrt(float64(s.Rest)) * f)}
}

// max returns the larger of each value.
func (e vectorError) max(o vectorError) vectorError {
	return vectorError{max(e.length, o.length), max(e.rest, o.rest)}
}

// slack returns a bound on twice the error of a distance computed from the high bytes: with a = A + r and b = B + s, a·b − A·B = a·s + r·b
// − r·s, and the inequality of Cauchy and Schwarz bounds each product.
func (e vectorError) slack(o vectorError) uint32 {
	const rounding = 1e-6 // of three float32 products and one rounding to an integer, with a margin
	bound := float64(e.length*o.rest) + float64(e.rest*o.length) + float64(e.rest*o.rest)
	return uint32(min(2*(bound+rounding)*(1<<29), 1<<31))
}

// set stores the vector of a slot.
func (g *Graph) set(slot uint32, q []int16, scale float32) {
	g.worst = g.worst.max(errorOf(g.vec.Set(slot, q, scale), scale))
}
