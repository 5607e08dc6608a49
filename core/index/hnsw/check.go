package hnsw

import (
	"fmt"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"
)

// Check walks the whole graph and returns its faults, wrapping [ErrCorrupt]:
//
//	nodes     the live nodes are those of live (nil: not compared), each in one slot
//	links     in range, to slots in use, none twice, none to itself, not to free slots
//	mutual    99 % of the links have a link back, or their target's budget is used up; not checked
//	          while there are tombstones, because Compact adds the links
//	reach     the entry point reaches every live node on level 0
//	degree    99 % of the live nodes have links for half of the budget of level 0, or to all others
//	counts    live nodes, tombstones, free slots and the entry point's level are as recorded
//
// Changes wait for Check; searches do not.
func (g *Graph) Check(live *roaring.Bitmap) error {
	g.writer.Lock()
	defer g.writer.Unlock()
	for _, check := range []func() error{
		func() error { return g.checkNodes(live) },
		g.checkLinks, g.checkReach,
	} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

func corrupt(format string, args ...any) error {
	return fmt.Errorf(format+": %w", append(args, ErrCorrupt)...)
}

func (g *Graph) checkNodes(live *roaring.Bitmap) error {
	alive, tombs, free, top := 0, 0, 0, 0
	for slot := range uint32(len(g.nodes)) {
		node := g.nodes[slot]
		switch {
		case node == noNode:
			free++
			if g.dead.has(slot) || len(full(g.level0.At(slot))) > 0 || g.levels(slot) > 0 {
				return corrupt("free slot %d has links or a tombstone", slot)
			}
			continue
		case g.dead.has(slot):
			tombs++
			continue
		case g.slots.get(node) != slot:
			return corrupt("node %d is in slot %d and in %d", node, slot, g.slots.get(node))
		case g.levels(slot) != g.levelOf(node):
			return corrupt("node %d has level %d", node, g.levels(slot))
		case live != nil && !live.Contains(node):
			return corrupt("node %d is not live", node)
		}
		alive++
		top = max(top, g.levels(slot))
	}
	if alive != g.live || tombs != g.tombs || free != g.free {
		return corrupt("%d live, %d tombstones, %d free: recorded as %d, %d, %d", alive, tombs, free, g.live, g.tombs, g.free)
	}
	if live != nil && int(live.GetCardinality()) != alive {
		return corrupt("%d live nodes of %d", alive, live.GetCardinality())
	}
	if (g.entry == noSlot) != (alive == 0) {
		return corrupt("entry point %d among %d live nodes", g.entry, alive)
	}
	if alive > 0 && (!g.isUsed(g.entry) || g.dead.has(g.entry) || g.levels(g.entry) != top || g.top != top) {
		return corrupt("entry point %d is not one of level %d", g.entry, top)
	}
	return nil
}

func (g *Graph) checkLinks() error {
	all, oneWay, weak := 0, 0, 0
	for slot := range uint32(len(g.nodes)) {
		if !g.isUsed(slot) {
			continue
		}
		for l := 0; l <= g.levels(slot); l++ {
			links := full(g.links(slot, l))
			if err := g.checkList(slot, l, links); err != nil {
				return err
			}
			for _, to := range links {
				back := g.links(to, l)
				all++
				if !g.dead.has(to) && !g.dead.has(slot) && !slices.Contains(back, slot) && len(full(back)) < len(back) {
					oneWay++
				}
			}
			if l == 0 && !g.dead.has(slot) && len(links) < min(g.m0/2, g.live-1) {
				weak++
			}
		}
	}
	if g.tombs == 0 && oneWay > all/100+fewLinks {
		return corrupt("%d of %d links have no link back although there is room", oneWay, all)
	}
	if weak > max(g.live/100, 1) {
		return corrupt("%d of %d nodes have fewer than half of their links", weak, g.live)
	}
	return nil
}

func (g *Graph) checkList(slot uint32, level int, links []uint32) error {
	for i, to := range links {
		switch {
		case int(to) >= len(g.nodes):
			return corrupt("slot %d links to slot %d of %d on level %d", slot, to, len(g.nodes), level)
		case to == slot, slices.Contains(links[:i], to):
			return corrupt("slot %d links to itself or twice to %d on level %d", slot, to, level)
		case !g.isUsed(to), g.levels(to) < level:
			return corrupt("slot %d links to %d, which is free or below level %d", slot, to, level)
		}
	}
	for _, rest := range g.links(slot, level)[len(links):] {
		if rest != noSlot {
			return corrupt("slot %d has links after the end on level %d", slot, level)
		}
	}
	return nil
}

func (g *Graph) checkReach() error {
	if missing := g.unreachable(); len(missing) > 0 {
		return corrupt("%d live nodes cannot be reached, the first is %d", len(missing), missing[0])
	}
	return nil
}

// unreachable returns the live nodes that the entry point does not reach on level 0.
func (g *Graph) unreachable() []uint32 {
	var reach bitset
	reach.grow(len(g.nodes))
	var stack []uint32
	if g.entry != noSlot {
		reach.set(g.entry)
		stack = append(stack, g.entry)
	}
	for len(stack) > 0 {
		from := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		for _, to := range full(g.out(from, 0)) {
			if !reach.has(to) {
				reach.set(to)
				stack = append(stack, to)
			}
		}
	}
	var missing []uint32
	for slot := range uint32(len(g.nodes)) {
		if g.isUsed(slot) && !g.dead.has(slot) && !reach.has(slot) {
			missing = append(missing, g.nodes[slot])
		}
	}
	return missing
}

// digest returns a sum over the live nodes, the same for the same set of them in any order.
func (g *Graph) digest() uint64 {
	g.mu.RLock()
	defer g.mu.RUnlock()
	sum := uint64(0)
	for slot, node := range g.nodes {
		if node != noNode && !g.dead.has(uint32(slot)) {
			sum += mix(uint64(node))
		}
	}
	return sum
}

// fewLinks is the number of one-way links that is tolerated in a small graph, where one percent is less than one round of deletes may
// leave.
const fewLinks = 8
