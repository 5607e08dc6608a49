package hnsw

import "slices"

// Delete removes node; it is never found again. Its slot becomes a tombstone without a
// vector that walks look through, its neighbours get other links at once, and Compact collects what is
// left. A node that is not there is no error.
func (g *Graph) Delete(node uint32) {
	g.writer.Lock()
	defer g.writer.Unlock()
	if slot := g.slots.get(node); slot != noSlot {
		g.remove(slot)
	}
}

// remove turns a live slot into a tombstone.
func (g *Graph) remove(slot uint32) {
	level := g.levels(slot)
	leading := make([][]uint32, level+1)
	for l := range leading {
		leading[l] = g.leadingTo(slot, l)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.slots.drop(g.nodes[slot])
	g.dead.set(slot)
	g.live--
	g.tombs++
	g.vec.Clear(slot)
	g.touch(slot)
	if g.entry == slot {
		g.enterElsewhere(slot)
	}
	for l, from := range leading {
		if l == 0 && len(from) > 0 {
			// The first keeps its link until the tombstone is collected, so that what
			// can be reached only over the tombstone stays reachable.
			from = from[1:]
		}
		for _, p := range from {
			g.relink(p, l, slot)
		}
	}
}

// leadingTo returns live slots that lead to slot on a level: all among its neighbours and their
// neighbours. Others there may be; they are met by Compact.
func (g *Graph) leadingTo(slot uint32, level int) []uint32 {
	s := &g.work
	s.visited.grow(len(g.nodes))
	s.list, s.passed = append(s.list[:0], slot), s.passed[:0]
	s.visited.set(slot)
	s.collect(g.links(slot, level))
	for i, end := 1, len(s.list); i < end; i++ {
		s.collect(g.links(s.list[i], level))
	}
	s.leave()
	var from []uint32
	for _, p := range s.list[1:] {
		if !g.dead.has(p) && slices.Contains(g.links(p, level), slot) {
			from = append(from, p)
		}
	}
	return from
}

// relink replaces the link of slot to the tombstone gone (noSlot: to all tombstones) by links to
// its neighbours: as many as it loses, and up to half of the level's budget where it has fewer. The
// threshold is the budget, not the present degree: else every round of deletes lowers it a little.
func (g *Graph) relink(slot uint32, level int, gone uint32) {
	links := g.links(slot, level)
	had := len(full(links))
	s := &g.work
	s.through = s.through[:0]
	kept := 0
	for _, to := range links[:had] {
		if to == gone || gone == noSlot && g.dead.has(to) {
			s.through = append(s.through, to)
			continue
		}
		links[kept] = to
		kept++
	}
	if kept == had {
		return
	}
	for i := kept; i < had; i++ {
		links[i] = noSlot
	}
	g.touch(slot)
	want := max(had, len(links)/2)
	g.refill(slot, level, g.behind(slot, level), want)
	if len(full(links)) < len(links)/2 {
		g.strengthen(slot, level)
	}
}

// behind returns the live slots that the tombstones in g.work.through lead to on a level, also over other
// tombstones, without slot and those it leads to.
func (g *Graph) behind(slot uint32, level int) []uint32 {
	s := &g.work
	s.visited.grow(len(g.nodes))
	s.list, s.passed = s.list[:0], append(s.passed[:0], slot)
	s.visited.set(slot)
	for _, to := range full(g.links(slot, level)) {
		s.visited.set(to)
		s.passed = append(s.passed, to)
	}
	for _, to := range s.through {
		s.visited.set(to)
		s.passed = append(s.passed, to)
	}
	for i := 0; i < len(s.through); i++ {
		for _, to := range full(g.links(s.through[i], level)) {
			if s.visited.has(to) {
				continue
			}
			s.visited.set(to)
			s.passed = append(s.passed, to)
			if g.dead.has(to) {
				s.through = append(s.through, to)
			} else {
				s.list = append(s.list, to)
			}
		}
	}
	s.leave()
	return s.list
}

// refill adds links from slot to the nearest of candidates until it has want, those first that
// none of its links occludes, and the links back where there is room.
func (g *Graph) refill(slot uint32, level int, candidates []uint32, want int) {
	links := g.links(slot, level)
	n := len(full(links))
	if n >= want || len(candidates) == 0 {
		return
	}
	s := &g.work
	g.measure(s, slot, append(slices.Clone(links[:n]), candidates...))
	s.pick(g.vec, s.pool, len(s.pool))
	for _, keys := range [2][]key{s.picked, s.pruned} {
		for _, k := range keys {
			to := slotOf(k)
			if n == want {
				return
			}
			if !slices.Contains(links[:n], to) {
				links[n] = to
				n++
				g.join(to, slot, level)
			}
		}
	}
}

// strengthen gives slot links up to half of the level's budget, out of a search for its
// own vector.
func (g *Graph) strengthen(slot uint32, level int) {
	if g.entry == noSlot || level > g.top {
		return
	}
	s := &g.work
	z := g.vec.Row(slot)
	at := g.entry
	for l := g.top; l > level; l-- {
		at = g.greedy(s, &z, at, l)
	}
	g.walk(s, &z, at, level, g.ef, nil)
	var found []uint32
	links := g.links(slot, level)
	for _, k := range s.pool {
		if to := slotOf(k); to != slot && !slices.Contains(links, to) {
			found = append(found, to)
		}
	}
	g.refill(slot, level, found, len(links)/2)
}

// enterElsewhere chooses another entry point than the tombstone slot: its nearest neighbour on
// the highest level, or else the highest node there is, the lowest in number among equals.
func (g *Graph) enterElsewhere(slot uint32) {
	g.entry = noSlot
	for _, to := range full(g.links(slot, g.top)) {
		if !g.dead.has(to) {
			g.entry, g.top = to, g.levels(to)
			return
		}
	}
	g.top = 0
	for at := range uint32(len(g.nodes)) {
		if !g.used(at) || g.dead.has(at) {
			continue
		}
		if l := g.levels(at); g.entry == noSlot || l > g.top || l == g.top && g.nodes[at] < g.nodes[g.entry] {
			g.entry, g.top = at, l
		}
	}
}
