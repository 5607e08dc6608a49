package hnsw

import (
	"encoding/binary"
	"fmt"
	"math/bits"

	"github.com/sightline-dev/sightline/core/kv"
)

// Vectors yields the vectors of live nodes for Open, in any order, until yield returns false. yield borrows q. Open ignores vectors of
// other nodes.
type Vectors func(yield func(node uint32, q []int16, scale float32) bool) error

// Open reads the graph that Flush wrote under prefix, and its vectors. If there is none, the graph is empty and its [Graph.Seq] is 0.
//
// Open returns [ErrCorrupt] on any doubt about the pages. The caller then makes a graph with [New] and inserts all vectors; its first Flush
// removes the damaged pages. Open also returns the errors of r and vectors.
func Open(r kv.Reader, prefix []byte, o Options, vectors Vectors) (*Graph, error) {
	g, err := New(o)
	if err != nil {
		return nil, err
	}
	h, err := readHeader(r, prefix)
	if err != nil || h == nil {
		return g, err
	}
	if int(h.dim) != g.vec.Dim() || int(h.m) != g.m || int(h.ef) != g.ef {
		return nil, corrupt("graph of %d dimensions with M %d and efConstruction %d", h.dim, h.m, h.ef)
	}
	if err := g.readPages(r, prefix, h); err != nil {
		return nil, err
	}
	g.count()
	if err := g.checkNodes(nil); err != nil {
		return nil, err
	}
	if err := g.checkTargets(); err != nil {
		return nil, err
	}
	if g.live != int(h.live) || g.tombs != int(h.tombs) || g.digest() != h.nodes {
		return nil, corrupt("%d live nodes and %d tombstones, want %d and %d, or other nodes", g.live, g.tombs, h.live, h.tombs)
	}
	return g, g.load(vectors)
}

// readHeader returns nil if there is nothing under prefix.
func readHeader(r kv.Reader, prefix []byte) (*header, error) {
	b, err := kv.Find(r, headerKey(prefix))
	if err != nil {
		return nil, err
	}
	if b != nil {
		return parseHeader(b)
	}
	for range kv.Range(r, pageKey(prefix, 0), pagesEnd(prefix), &err) {
		return nil, corrupt("pages without a header")
	}
	return nil, err
}

func headerKey(prefix []byte) []byte { return append(prefix[:len(prefix):len(prefix)], 'h') }

func pageKey(prefix []byte, page int) []byte {
	return binary.BigEndian.AppendUint32(append(prefix[:len(prefix):len(prefix)], 'p'), uint32(page))
}

func pagesEnd(prefix []byte) []byte { return append(prefix[:len(prefix):len(prefix)], 'p'+1) }

// readPages fills the slots.
func (g *Graph) readPages(r kv.Reader, prefix []byte, h *header) error {
	if h.slots > maxSlot || h.entry != noSlot && h.entry >= h.slots {
		return corrupt("%d slots with the entry point at %d", h.slots, h.entry)
	}
	want := (int(h.slots) + pageSlots - 1) / pageSlots
	next, digest := 0, uint64(0)
	var failed error
	for key, value := range kv.Range(r, pageKey(prefix, 0), pagesEnd(prefix), &failed) {
		switch {
		case next == want:
			return corrupt("more than %d pages", want)
		case string(key) != string(pageKey(prefix, next)):
			return corrupt("page %d is missing", next)
		}
		// Slots are allocated with their pages, so that a header alone reserves no memory.
		g.growTo(min(int(h.slots), (next+1)*pageSlots))
		if err := g.readPage(next, value); err != nil {
			return err
		}
		g.sums = append(g.sums, binary.LittleEndian.Uint32(value[12:]))
		digest += pageDigest(next, g.sums[next])
		next++
	}
	switch {
	case failed != nil:
		return failed
	case next != want:
		return corrupt("%d pages, want %d", next, want)
	case digest != h.pages:
		return corrupt("pages from different writes")
	}
	g.seq, g.pages, g.entry = h.seq, digest, h.entry
	g.flushed = true
	return nil
}

func pageDigest(page int, sum uint32) uint64 { return mix(uint64(page)<<32 | uint64(sum)) }

// count computes the counts and the map of nodes from the slots.
func (g *Graph) count() {
	g.first = uint32(len(g.nodes))
	for slot := range uint32(len(g.nodes)) {
		switch {
		case !g.isUsed(slot):
			g.free++
			g.first = min(g.first, slot)
		case g.dead.has(slot):
			g.tombs++
		default:
			g.live++
			g.slots.set(g.nodes[slot], slot)
		}
	}
	if g.entry != noSlot {
		g.top = g.levels(g.entry)
	}
}

// checkTargets checks each list of links.
func (g *Graph) checkTargets() error {
	var used, seen bitset // small enough for the processor's cache, unlike nodes
	used.grow(len(g.nodes))
	seen.grow(len(g.nodes))
	for slot := range uint32(len(g.nodes)) {
		if g.isUsed(slot) {
			used.set(slot)
		}
	}
	for slot := range uint32(len(g.nodes)) {
		if !used.has(slot) {
			continue
		}
		if !areTargets(g.level0.At(slot), slot, used, seen) {
			if err := g.checkList(slot, 0, full(g.level0.At(slot))); err != nil {
				return err
			}
		}
		for l := 1; l <= g.levels(slot); l++ {
			if err := g.checkList(slot, l, full(g.links(slot, l))); err != nil {
				return err
			}
		}
	}
	return nil
}

// areTargets reports whether the links of slot on level 0 are correct, like checkList, but faster. seen is empty before and after it.
func areTargets(links []uint32, slot uint32, used, seen bitset) bool {
	n := 0
	for ; n < len(links) && int(links[n]) < 64*len(used) && used.has(links[n]) && !seen.has(links[n]) && links[n] != slot; n++ {
		seen.set(links[n])
	}
	for _, to := range links[:n] {
		seen.drop(to)
	}
	for _, rest := range links[n:] {
		if rest != noSlot {
			return false
		}
	}
	return true
}

// load sets the vectors of the live nodes.
func (g *Graph) load(vectors Vectors) error {
	var loaded bitset
	loaded.grow(len(g.nodes))
	n := 0
	var bad error
	err := vectors(func(node uint32, q []int16, scale float32) bool {
		slot := g.slots.get(node)
		switch {
		case slot == noSlot:
		case len(q) != g.vec.Dim():
			bad = corrupt("vector of node %d has %d dimensions", node, len(q))
		case loaded.has(slot):
			bad = corrupt("two vectors of node %d", node)
		default:
			loaded.set(slot)
			n++
			g.set(slot, q, scale)
		}
		return bad == nil
	})
	switch {
	case err != nil:
		return fmt.Errorf("vectors of the graph: %w", err)
	case bad != nil:
		return bad
	case n != g.live:
		return corrupt("vectors for only %d of %d live nodes", n, g.live)
	}
	return nil
}

// Seq returns the sequence number of the last Flush. The graph includes all changes up to it.
func (g *Graph) Seq() uint64 {
	g.writer.Lock()
	defer g.writer.Unlock()
	return g.seq
}

// Flush writes the pages that have changed since the last Flush to w, under prefix, and a header with seq, the last change that the graph
// includes. If [New] made the graph, Flush first deletes all keys under prefix. The whole batch must reach the store: if the store fails,
// the caller opens the graph again.
func (g *Graph) Flush(w kv.Writer, prefix []byte, seq uint64) {
	g.writer.Lock()
	defer g.writer.Unlock()
	if !g.flushed {
		w.DeleteRange(headerKey(prefix), pagesEnd(prefix))
		g.flushed = true
	}
	g.seq = seq
	var b []byte
	for i := range g.dirty {
		for word := g.dirty[i]; word != 0; word &= word - 1 {
			page := 64*i + bits.TrailingZeros64(word)
			b = g.appendPage(b[:0], page)
			w.Put(pageKey(prefix, page), b)
			g.recordSum(page, pageSum(b))
		}
		g.dirty[i] = 0
	}
	h := header{
		dim: uint16(g.vec.Dim()), m: uint16(g.m), ef: uint16(g.ef), slots: uint32(len(g.nodes)),
		live: uint32(g.live), tombs: uint32(g.tombs), entry: g.entry, seq: seq, nodes: g.digest(), pages: g.pages,
	}
	w.Put(headerKey(prefix), h.append(nil))
}

// recordSum replaces the checksum of a page in the digest of pages.
func (g *Graph) recordSum(page int, sum uint32) {
	for len(g.sums) <= page {
		g.sums = append(g.sums, 0)
		g.pages += pageDigest(len(g.sums)-1, 0)
	}
	g.pages += pageDigest(page, sum) - pageDigest(page, g.sums[page])
	g.sums[page] = sum
}
