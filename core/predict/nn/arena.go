package nn

import (
	"cmp"
	"slices"
)

// cacheLine is the alignment of every block, in bytes: a vector register and a cache line.
const cacheLine = 64

// block is a piece of the arena that is taken from step first to step last, both included.
type block struct {
	bytes       int64
	first, last int
	offset      int64 // set by assign
}

// assign gives every block an offset such that blocks alive together do not overlap, and
// returns the arena's size. Large blocks go first, each to the lowest gap it fits
// (the greedy-by-size rule of Pisarchyk and Lee, 2020, arXiv:2001.03288).
func assign(blocks []*block) int64 {
	order := slices.Clone(blocks)
	slices.SortStableFunc(order, func(a, b *block) int { return cmp.Compare(b.bytes, a.bytes) })
	var placed []*block // by offset
	var size int64
	for _, b := range order {
		b.bytes = (b.bytes + cacheLine - 1) &^ (cacheLine - 1)
		b.offset = 0
		for _, p := range placed {
			if p.last < b.first || b.last < p.first {
				continue
			}
			if b.offset+b.bytes <= p.offset {
				break
			}
			b.offset = max(b.offset, p.offset+p.bytes)
		}
		at, _ := slices.BinarySearchFunc(placed, b, func(p, b *block) int { return cmp.Compare(p.offset, b.offset) })
		placed = slices.Insert(placed, at, b)
		size = max(size, b.offset+b.bytes)
	}
	return size
}
