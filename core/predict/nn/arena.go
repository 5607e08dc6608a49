package nn

import (
	"cmp"
	"slices"
)

// cacheLine is the alignment of every block, in bytes: the size of a cache line and of the largest vector register.
const cacheLine = 64

// block is a part of the arena that is in use from step first to step last, inclusive.
type block struct {
	bytes       int64
	first, last int
	offset      int64 // set by assign
}

// assign sets the offset of every block and returns the arena's size in bytes. Blocks that are in use at the same time do not overlap.
// assign rounds sizes up to multiples of cacheLine. It places the largest block first, and each block in the lowest gap that is large
// enough (the greedy-by-size rule of Pisarchyk and Lee, 2020, arXiv:2001.03288).
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
