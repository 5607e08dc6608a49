package hnsw

// upper holds the links above level 0. A slot of level n has a block of n·budget words in one array.
//
//	at:    slot → 0, or 1 + the place of its block's first word
//	words: │ level │ links of level 1 │ links of level 2 │ …
type upper struct {
	budget int
	at     []uint32
	words  []uint32
	free   [maxLevel + 1][]uint32 // free blocks, by level
}

func (u *upper) levels(slot uint32) int {
	at := u.at[slot]
	if at == 0 {
		return 0
	}
	return int(u.words[at-1])
}

// links returns the links of slot on a level, which must not be above the slot's own level.
func (u *upper) links(slot uint32, level int) []uint32 {
	at := int(u.at[slot]) + (level-1)*u.budget
	return u.words[at : at+u.budget : at+u.budget]
}

// put gives slot, which has no block, an empty block for a level.
func (u *upper) put(slot uint32, level int) {
	if level == 0 {
		u.at[slot] = 0
		return
	}
	var at int
	if n := len(u.free[level]); n > 0 {
		at = int(u.free[level][n-1])
		u.free[level] = u.free[level][:n-1]
	} else {
		at = len(u.words) + 1
		u.words = append(u.words, uint32(level))
		for range level * u.budget {
			u.words = append(u.words, noSlot)
		}
	}
	u.at[slot] = uint32(at)
}

// drop frees the block of slot.
func (u *upper) drop(slot uint32) {
	level := u.levels(slot)
	if level == 0 {
		return
	}
	at := u.at[slot]
	for i := range level * u.budget {
		u.words[int(at)+i] = noSlot
	}
	u.free[level] = append(u.free[level], at)
	u.at[slot] = 0
}

// bitset is a set of small numbers.
type bitset []uint64

// grow makes room for the numbers below n.
func (b *bitset) grow(n int) {
	for len(*b) < (n+63)/64 {
		*b = append(*b, 0)
	}
}

func (b bitset) has(i uint32) bool { return b[i>>6]>>(i&63)&1 != 0 }
func (b bitset) set(i uint32)      { b[i>>6] |= 1 << (i & 63) }
func (b bitset) drop(i uint32)     { b[i>>6] &^= 1 << (i & 63) }

// nodeMap maps nodes to slots. Nodes are dense with holes, so it is an array in pages. It frees empty pages.
type nodeMap struct {
	pages []*nodePage
}

const nodePageShift = 10

type nodePage struct {
	used  int
	slots [1 << nodePageShift]uint32 // 1 + the slot, 0 if there is none
}

// get returns the slot of node, or noSlot.
func (m *nodeMap) get(node uint32) uint32 {
	p := node >> nodePageShift
	if int(p) >= len(m.pages) || m.pages[p] == nil {
		return noSlot
	}
	return m.pages[p].slots[node&(1<<nodePageShift-1)] - 1
}

func (m *nodeMap) set(node, slot uint32) {
	p := int(node >> nodePageShift)
	if p >= len(m.pages) {
		m.pages = append(m.pages, make([]*nodePage, p+1-len(m.pages))...)
	}
	if m.pages[p] == nil {
		m.pages[p] = new(nodePage)
	}
	at := &m.pages[p].slots[node&(1<<nodePageShift-1)]
	if *at == 0 {
		m.pages[p].used++
	}
	*at = slot + 1
}

func (m *nodeMap) drop(node uint32) {
	p := m.pages[node>>nodePageShift]
	p.slots[node&(1<<nodePageShift-1)] = 0
	if p.used--; p.used == 0 {
		m.pages[node>>nodePageShift] = nil
	}
}
