package hnsw

import "github.com/RoaringBitmap/roaring/v2"

// Cosines appends to dst the exact cosines of the live nodes of nodes to the query, in the order of nodes. It does not rank them: for very
// many nodes, ranking all is most of the work of Scan.
//
// Each block of nodes is read at one moment. Changes may happen between blocks.
func (g *Graph) Cosines(dst []Hit, q []int16, scale float32, nodes *roaring.Bitmap) []Hit {
	s := g.scratches.Get().(*scratch)
	defer g.scratches.Put(s)
	s.query.Set(g.vec, q, scale)
	var numbers [scanBlock]uint32
	it := nodes.ManyIterator()
	for n := it.NextMany(numbers[:]); n > 0; n = it.NextMany(numbers[:]) {
		dst = g.cosinesOf(dst, s, numbers[:n])
	}
	return dst
}

// cosinesOf is Cosines for one block.
func (g *Graph) cosinesOf(dst []Hit, s *scratch, nodes []uint32) []Hit {
	g.mu.RLock()
	defer g.mu.RUnlock()
	g.gather(s, nodes)
	s.dots = resize(s.dots, len(s.batch))
	g.vec.Dots(s.dots, &s.query, s.batch)
	for i, slot := range s.batch {
		dst = append(dst, Hit{g.nodes[slot], g.vec.Cosine(s.dots[i], &s.query, slot)})
	}
	return dst
}
