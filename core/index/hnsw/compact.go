package hnsw

// sweep is the progress of Compact. One cycle goes over all slots twice:
//
//	links   links to tombstones become links to their hubs, and links are made mutual if there is space
//	reach   slots that the entry point reaches on level 0 are marked; the others are linked again
//
// Then it frees the slots that were tombstones when it began. Nothing leads to them any longer.
type sweep struct {
	phase  phase
	next   uint32 // slot
	doomed bitset
	reach  bitset
	stack  []uint32
}

type phase int

const (
	idle phase = iota
	linking
	reaching
	searching
)

// Compact collects tombstones: it handles about n slots and reports whether there is nothing left to do. Other changes may happen between
// its steps. A graph that is opened again begins a new cycle, which finds the work that was done.
func (g *Graph) Compact(n int) (done bool) {
	g.writer.Lock()
	defer g.writer.Unlock()
	for ; n > 0; n-- {
		if g.sweep.phase == idle && !g.begin() {
			return true
		}
		g.compactOne()
	}
	return g.sweep.phase == idle && g.tombs == 0
}

// begin starts a cycle. It returns false if there is nothing to collect.
func (g *Graph) begin() bool {
	if g.tombs == 0 {
		return false
	}
	w := &g.sweep
	w.phase, w.next = linking, 0
	w.doomed = append(w.doomed[:0], g.dead...)
	return true
}

// compactOne handles one slot.
func (g *Graph) compactOne() {
	w := &g.sweep
	switch w.phase {
	case linking:
		if int(w.next) == len(g.nodes) {
			g.startReach()
			return
		}
		g.mu.Lock()
		g.cleanSlot(w.next)
		g.mu.Unlock()
		w.next++
	case reaching:
		if len(w.stack) == 0 {
			w.phase = searching
			return
		}
		from := w.stack[len(w.stack)-1]
		w.stack = w.stack[:len(w.stack)-1]
		g.spread(from)
	case searching:
		if int(w.next) == len(g.nodes) {
			g.finish()
			return
		}
		if slot := w.next; g.isUsed(slot) && !g.dead.has(slot) && !w.hasReached(slot) {
			g.rescue(slot)
			w.phase = reaching
			return
		}
		w.next++
	}
}

// cleanSlot replaces the links of a live slot to tombstones by links to their hubs and makes its
// links mutual.
func (g *Graph) cleanSlot(slot uint32) {
	if !g.isUsed(slot) || g.dead.has(slot) {
		return
	}
	for l := 0; l <= g.levels(slot); l++ {
		links := g.links(slot, l)
		for i := 0; i < len(links) && links[i] != noSlot; {
			if to := links[i]; g.dead.has(to) {
				g.relink(slot, l, to)
				if hub := g.resolve(to); l == 0 && hub != noSlot && hub != slot && !g.reaches(slot, hub) {
					g.lead(slot, hub)
				}
				i = 0
				continue
			}
			i++
		}
		if len(full(links)) < len(links)/2 {
			g.strengthen(slot, l)
		}
		for _, to := range full(links) {
			g.join(to, slot, l)
		}
	}
}

// startReach begins to mark the slots that the entry point reaches.
func (g *Graph) startReach() {
	w := &g.sweep
	w.phase, w.next, w.stack = reaching, 0, w.stack[:0]
	w.reach = w.reach[:0]
	w.reach.grow(len(g.nodes))
	if g.entry != noSlot {
		w.reach.set(g.entry)
		w.stack = append(w.stack, g.entry)
	}
}

// spread marks the neighbours of a slot.
func (g *Graph) spread(from uint32) {
	w := &g.sweep
	for _, to := range full(g.out(from, 0)) {
		if !w.hasReached(to) {
			w.reach.grow(int(to) + 1)
			w.reach.set(to)
			w.stack = append(w.stack, to)
		}
	}
}

// rescue links a slot that nothing leads to.
func (g *Graph) rescue(slot uint32) {
	w := &g.sweep
	w.reach.grow(int(slot) + 1)
	w.reach.set(slot)
	w.stack = append(w.stack, slot)
	s := &g.work
	z := g.vec.Row(slot)
	at := g.descend(s, &z, 0)
	g.walk(s, &z, at, 0, g.ef, nil)
	near := s.choose(nil, g.vec, s.pool, g.m)
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, to := range near {
		if to != slot {
			g.join(slot, to, 0)
		}
	}
	for _, to := range near {
		if to != slot && g.accept(to, slot, 0, true) {
			return
		}
	}
}

// finish frees the doomed slots.
func (g *Graph) finish() {
	g.mu.Lock()
	defer g.mu.Unlock()
	w := &g.sweep
	for slot := range uint32(min(len(g.nodes), 64*len(w.doomed))) {
		if !w.doomed.has(slot) {
			continue
		}
		clearLinks(g.level0.At(slot))
		g.upper.drop(slot)
		g.dead.drop(slot)
		g.nodes[slot] = noNode
		g.touch(slot)
		g.tombs--
		g.free++
		g.first = min(g.first, slot)
	}
	*w = sweep{doomed: w.doomed[:0], reach: w.reach[:0], stack: w.stack[:0]}
}

func (w *sweep) hasReached(slot uint32) bool {
	return int(slot>>6) < len(w.reach) && w.reach.has(slot)
}

// recordInsert marks a slot as reached that has just been linked, in both directions.
func (w *sweep) recordInsert(slot uint32) {
	if w.phase == reaching || w.phase == searching {
		w.reach.grow(int(slot) + 1)
		w.reach.set(slot)
	}
}
