package hnsw

import (
	"errors"
	"fmt"
	"sync"

	"github.com/sightline-dev/sightline/core/index/hnsw/kernel"
)

// ErrCorrupt is returned by Open for pages that are missing, damaged, of another version or inconsistent with each other or with the
// vectors. Check wraps it. The caller then builds the graph again from the vectors.
var ErrCorrupt = errors.New("graph is damaged")

// Options are the parameters of a graph. A graph must be opened with the options that it was created with.
type Options struct {
	Dim            int // elements of a vector, a multiple of 32 up to kernel.MaxDim
	M              int // links per node above level 0, 4 to 64; 0 means 16. Level 0 keeps 2·M.
	EfConstruction int // candidates while inserting; 0 means 200
}

// Hit is one result of a search.
type Hit struct {
	Node   uint32
	Cosine float64 // −1…1, exact: computed from all 16 bits
}

const (
	noSlot  = kernel.NoRow
	noNode  = ^uint32(0)
	maxSlot = 1<<31 - 2 // slots share 32 bits with a flag in keys
)

// maxNode is the largest number of a node.
const maxNode = noNode - 1

// Graph is the index in memory. Searches may run at the same time as each other and as one change. Changes wait for each other. A search
// waits for a change only while the change writes links, never while it looks for candidates.
type Graph struct {
	m, ef int
	m0    int // budget of level 0

	// The running change holds writer. It may read the fields that mu guards without mu, since nobody else writes them.
	writer  sync.Mutex
	work    scratch
	sweep   sweep
	dirty   bitset   // pages changed since the last Flush
	sums    []uint32 // checksums of the pages as flushed
	pages   uint64   // digest of sums
	seq     uint64
	flushed bool // the pages in the store are this graph's

	scratches sync.Pool // *scratch of searches

	mu     sync.RWMutex
	vec    *kernel.Vectors
	nodes  []uint32 // node of each slot; noNode while the slot is free or being linked
	slots  nodeMap
	level0 *kernel.Lists // links of level 0, by slot
	upper  upper
	dead   bitset // tombstones, by slot
	entry  uint32 // a live slot of the highest level, or noSlot
	top    int    // its level
	live   int
	tombs  int
	free   int         // number of free slots
	first  uint32      // no slot below is free
	worst  vectorError // largest error of any row so far

	// removing is one more than the slot of the node that is being removed, or 0. The links of this tombstone lead to no hub yet.
	removing uint32
}

// New returns an empty graph.
func New(o Options) (*Graph, error) {
	if o.M == 0 {
		o.M = 16
	}
	if o.EfConstruction == 0 {
		o.EfConstruction = 200
	}
	if o.M < 4 || o.M > 64 || o.EfConstruction < o.M || o.EfConstruction > 1<<15 {
		return nil, fmt.Errorf("graph with M %d and efConstruction %d: want M from 4 to 64 and no fewer candidates", o.M, o.EfConstruction)
	}
	vec, err := kernel.NewVectors(o.Dim)
	if err != nil {
		return nil, err
	}
	g := &Graph{m: o.M, m0: 2 * o.M, ef: o.EfConstruction, vec: vec, level0: kernel.NewLists(2 * o.M), entry: noSlot}
	g.upper.budget = g.m
	g.scratches.New = func() any { return new(scratch) }
	return g, nil
}

// Len returns the number of live nodes.
func (g *Graph) Len() int {
	g.mu.RLock()
	defer g.mu.RUnlock()
	return g.live
}

// Tombstones returns the number of deleted nodes that Compact has not collected yet.
func (g *Graph) Tombstones() int {
	g.mu.RLock()
	defer g.mu.RUnlock()
	return g.tombs
}

// Has reports whether node is live.
func (g *Graph) Has(node uint32) bool {
	g.mu.RLock()
	defer g.mu.RUnlock()
	return g.slots.get(node) != noSlot
}

// levelOf returns the level of a node: l or more with probability M⁻ˡ. A hash of the node's number determines it, so that it is the same
// everywhere.
func (g *Graph) levelOf(node uint32) int {
	u := mix(uint64(node))
	level := 0
	for t := ^uint64(0) / uint64(g.m); u < t && level < maxLevel; t /= uint64(g.m) {
		level++
	}
	return level
}

// maxLevel is the maximum level. Nobody has the 4¹⁶ inputs that would need more.
const maxLevel = 16

// mix returns the finaliser of splitmix64 (Steele, Lea and Flood 2014) of x + its increment.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// links returns the neighbours of slot on a level, with noSlot after the last.
func (g *Graph) links(slot uint32, level int) []uint32 {
	if level == 0 {
		return g.level0.At(slot)
	}
	return g.upper.links(slot, level)
}

// levels returns the highest level of a slot in use.
func (g *Graph) levels(slot uint32) int { return g.upper.levels(slot) }

// reserve returns the lowest free slot, with room for a node of the given level.
func (g *Graph) reserve(level int) uint32 {
	slot := uint32(len(g.nodes))
	if g.free > 0 {
		slot = g.first
		for g.isUsed(slot) {
			slot++
		}
		g.free--
	} else {
		g.growTo(len(g.nodes) + 1)
	}
	g.first = slot + 1
	g.upper.put(slot, level)
	return slot
}

// isUsed reports whether a slot belongs to a node, live or dead.
func (g *Graph) isUsed(slot uint32) bool { return g.nodes[slot] != noNode }

// growTo creates the slots below n.
func (g *Graph) growTo(n int) {
	if n > maxSlot {
		panic("hnsw: too many nodes")
	}
	for len(g.nodes) < n {
		g.nodes = append(g.nodes, noNode)
		g.upper.at = append(g.upper.at, 0)
	}
	g.vec.Grow(n)
	g.level0.Grow(n)
	g.dead.grow(n)
	if n > 0 {
		g.dirty.grow(pageOf(uint32(n-1)) + 1)
	}
}

// touch marks the page of slot as changed.
func (g *Graph) touch(slot uint32) { g.dirty.set(uint32(pageOf(slot))) }
