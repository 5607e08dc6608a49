package hnsw

import "slices"

// Insert adds node with its vector: Dim elements q and the scale that makes them a unit vector. For the zero vector, which is similar to
// nothing, the scale is 0. An existing node gets the new vector. q is borrowed until Insert returns.
func (g *Graph) Insert(node uint32, q []int16, scale float32) {
	if node > maxNode || len(q) != g.vec.Dim() {
		panic("hnsw: bad node or vector")
	}
	g.writer.Lock()
	defer g.writer.Unlock()
	if slot := g.slots.get(node); slot != noSlot {
		g.remove(slot)
	}
	level := g.levelOf(node)

	g.mu.Lock()
	slot := g.reserve(level)
	g.set(slot, q, scale)
	g.mu.Unlock()

	// Nothing leads to the slot yet, so searches may run while this looks for candidates.
	chosen := g.candidates(slot, level)

	g.mu.Lock()
	defer g.mu.Unlock()
	for l, to := range chosen {
		copy(g.links(slot, l), to)
	}
	for l, to := range chosen {
		g.linkBack(slot, to, l)
	}
	g.nodes[slot] = node
	g.slots.set(node, slot)
	g.live++
	if g.entry == noSlot || level > g.top {
		g.entry, g.top = slot, level
	}
	g.sweep.recordInsert(slot)
	g.touch(slot)
}

// candidates returns the best neighbours of slot, which may be linked already, on each existing level up to level.
func (g *Graph) candidates(slot uint32, level int) [][]uint32 {
	if g.entry == noSlot {
		return nil
	}
	s := &g.work
	z := g.vec.Row(slot)
	at := g.descend(s, &z, level)
	chosen := make([][]uint32, min(level, g.top)+1)
	for l := len(chosen) - 1; l >= 0; l-- {
		g.walk(s, &z, at, l, g.ef, nil)
		if len(s.pool) == 0 {
			continue
		}
		at = slotOf(s.pool[0])
		s.pool = slices.DeleteFunc(s.pool, func(k key) bool { return slotOf(k) == slot })
		chosen[l] = s.choose(nil, g.vec, s.pool, g.m)
	}
	return chosen
}

// linkBack makes the new neighbours of slot lead to it. On level 0 at least one does.
func (g *Graph) linkBack(slot uint32, neighbours []uint32, level int) {
	accepted := false
	for _, to := range neighbours {
		if g.accept(to, slot, level, false) {
			accepted = true
		}
	}
	for i := 0; !accepted && level == 0 && i < len(neighbours); i++ {
		accepted = g.accept(neighbours[i], slot, level, true)
	}
}

// accept adds to slot a link to the new neighbour x. If slot has no link left, it drops the link that pick would omit last: the farthest of
// those that another link occludes, or else the farthest. That may be x itself unless forced.
//
// On level 0 it drops a link to y only if y stays a neighbour's neighbour. A path over the link can take that detour, so reachable slots
// stay reachable.
func (g *Graph) accept(slot, x uint32, level int, forced bool) bool {
	links := g.links(slot, level)
	n := len(full(links))
	if n < len(links) {
		if !slices.Contains(links[:n], x) {
			links[n] = x
			g.touch(slot)
		}
		return true
	}
	if slices.Contains(links, x) {
		return true
	}
	s := &g.work
	g.measure(s, slot, append(append(s.through[:0], links...), x))
	s.pick(g.vec, s.pool, len(s.pool))
	losers := append(s.rest[:0], s.picked...)
	if len(s.pruned) > 0 && !forced {
		losers = losers[:0]
	}
	losers = append(losers, s.pruned...)
	for i := len(losers) - 1; i >= 0; i-- {
		y := slotOf(losers[i])
		if y == x {
			if !forced {
				return false
			}
			continue
		}
		if level > 0 || g.isRedundant(slot, links, y, x) {
			g.replace(slot, links, y, x)
			return true
		}
	}
	// No detour: make one, over x, where it has room.
	for i := len(losers) - 1; i >= 0; i-- {
		y := slotOf(losers[i])
		if to := g.resolve(y); y != x && to != noSlot && g.join(x, to, 0) {
			g.replace(slot, links, y, x)
			return true
		}
	}
	return false
}

// measure fills s.pool with the keys of slots by their distance from slot, nearest first.
func (g *Graph) measure(s *scratch, slot uint32, slots []uint32) {
	s.through = slots
	row := g.vec.Row(slot)
	g.vec.Distances(s.distances(len(slots)), &row, slots)
	s.pool = s.pool[:0]
	for i, to := range slots {
		s.pool = append(s.pool, keyOf(s.dist[i], to))
	}
	slices.Sort(s.pool)
}

// isRedundant reports whether slot, which has the given links, no longer needs its link to y once it leads to x. It does not need it if it
// reaches y over another link. For a tombstone y, it must reach the slot behind y.
func (g *Graph) isRedundant(slot uint32, links []uint32, y, x uint32) bool {
	to := g.resolve(y)
	if to != y && (to == noSlot || to == slot || to == x || slices.Contains(links, to)) {
		return true
	}
	return g.isCovered(links, to, x)
}

// isCovered reports whether x, or a live slot of links, leads to y on level 0. It ignores tombstones: their links except the first only
// show what the hub once reached.
func (g *Graph) isCovered(links []uint32, y, x uint32) bool {
	if slices.Contains(g.level0.At(x), y) {
		return true
	}
	links = full(links)
	if g.tombs > 0 {
		s := &g.work
		s.alive = s.alive[:0]
		for _, to := range links {
			if !g.dead.has(to) {
				s.alive = append(s.alive, to)
			}
		}
		links = s.alive
	}
	// No slot leads to itself, so y among links finds nothing.
	return g.level0.Find(links, y) >= 0
}

// join adds a link from slot to x where there is room. It reports whether slot leads to x now.
func (g *Graph) join(slot, x uint32, level int) bool {
	links := g.links(slot, level)
	n := len(full(links))
	if slices.Contains(links[:n], x) {
		return true
	}
	if n == len(links) {
		return false
	}
	links[n] = x
	g.touch(slot)
	return true
}

func (g *Graph) replace(slot uint32, links []uint32, y, x uint32) {
	links[slices.Index(links, y)] = x
	g.touch(slot)
}
