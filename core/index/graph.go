package index

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/fold"
	"github.com/sightline-dev/sightline/core/index/hnsw"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/predict"
)

// graph is a space's graph in memory. A step opens it. Until then, and for the inputs that it lacks, searches scan the rows.
//
// Its pages are written after many changes, since an insert changes about as many pages as it has links. Intents stay until the resulting
// pages are written, in the same batch. So a crash loses only the inserts since then, which are repeated.
type graph struct {
	g       *hnsw.Graph
	applied uint64          // number of the last intent that g includes; only the step uses it
	written uint64          // number of the last intent that the pages include; only the step uses it
	backlog *roaring.Bitmap // inputs that g lacks and no intent names; only the step uses it

	mu    sync.RWMutex
	nodes *roaring.Bitmap // live nodes of g
}

// split returns the graph, nil if there is none, and the inputs of ords that it lacks.
func (s *space) split(ords *roaring.Bitmap) (*hnsw.Graph, *roaring.Bitmap) {
	missing := ords.Clone()
	g := s.graph.Load()
	if g == nil {
		return nil, missing
	}
	g.mu.RLock()
	defer g.mu.RUnlock()
	missing.AndNot(g.nodes)
	return g.g, missing
}

// graphAt returns the prefix of the graph's pages.
func (s *space) graphAt() []byte { return s.section(spaceGraph) }

var graphOptions = hnsw.Options{Dim: predict.Dim}

// openGraph reads the graph. If there is none, or a damaged one, it makes a new graph.
func (s *space) openGraph(r kv.Reader) (*graph, error) {
	inputs := roaring.New()
	g, err := hnsw.Open(r, s.graphAt(), graphOptions, func(yield func(uint32, []int16, float32) bool) error {
		return s.shareVectors(r, inputs, yield)
	})
	if errors.Is(err, hnsw.ErrCorrupt) {
		inputs.Clear()
		g, err = hnsw.New(graphOptions)
	}
	if err != nil {
		return nil, err
	}
	nodes := roaring.New()
	for it := inputs.Iterator(); it.HasNext(); {
		if ord := it.Next(); g.Has(ord) {
			nodes.Add(ord)
		}
	}
	backlog, err := bitmap(r, s.analysedKey())
	if err != nil {
		return nil, err
	}
	intended, err := s.intentOrdinals(r)
	if err != nil {
		return nil, err
	}
	backlog.AndNot(nodes)
	backlog.AndNot(intended)
	backlog.RemoveRange(fold.PendingOrds, 1<<32)
	return &graph{g: g, applied: g.Seq(), written: g.Seq(), backlog: backlog, nodes: nodes}, nil
}

// shareVectors yields the embeddings of all rows, also of deleted ones, and adds their ordinals to inputs.
func (s *space) shareVectors(r kv.Reader, inputs *roaring.Bitmap, yield func(uint32, []int16, float32) bool) error {
	var e predict.Embedding
	var failed error
	for _, section := range []byte{spaceRow, spaceLeft} {
		for k, value := range kv.WithPrefix(r, s.section(section), &failed) {
			if err := readEmbedding(&e, value); err != nil {
				return err
			}
			ord := lastNumber(k)
			if section == spaceLeft && inputs.Contains(ord) { // another input has the ordinal
				continue
			}
			inputs.Add(ord)
			if !yield(ord, e.Q[:], e.Scale) {
				return nil
			}
		}
		if failed != nil {
			return failed
		}
	}
	return nil
}

// settle updates the graph's node of an input to the input's row.
func (s *space) settle(r kv.Reader, g *graph, ord uint32) error {
	value, err := kv.Find(r, s.row(ord))
	if err != nil {
		return err
	}
	if value == nil {
		g.mu.Lock()
		g.nodes.Remove(ord)
		g.mu.Unlock()
		g.g.Delete(ord)
		return nil
	}
	var e predict.Embedding
	if err := readEmbedding(&e, value); err != nil {
		return fmt.Errorf("input %d: %w", ord, err)
	}
	insert := !g.g.Has(ord)
	if !insert { // the node may belong to a removed input
		left, err := kv.Find(r, s.removedRowKey(ord))
		if err != nil {
			return err
		}
		insert = left != nil
	}
	if insert {
		g.g.Insert(ord, e.Q[:], e.Scale)
	}
	g.mu.Lock()
	g.nodes.Add(ord)
	g.mu.Unlock()
	return nil
}

// stepGraph applies the intents to the graph, in their order, about budget of them at a time. It reports whether there may be more.
func (x *Index) stepGraph(ctx context.Context, sp *space, budget int) (more bool, err error) {
	epoch := x.epochNow()
	snapshot := x.store.Snapshot()
	defer snapshot.Close()
	g := sp.graph.Load()
	if g == nil {
		last, err := sp.lastIntent(snapshot)
		if err != nil || last == 0 {
			return false, err // nothing was ever analysed
		}
		if g, err = sp.openGraph(snapshot); err != nil {
			return false, err
		}
		x.adopt(sp, g, epoch)
	}
	more, err = x.follow(ctx, sp, g, snapshot, max(budget, 1))
	if err == nil && !more {
		more = !g.tidy(budget)
	}
	if err == nil && g.applied-g.written >= flushAfter(g.g.Len()) {
		err = x.flushGraph(sp, g, snapshot, epoch)
	}
	return more, err
}

// adopt makes g the graph of the space, unless everything was deleted since epoch, at which g was read.
func (x *Index) adopt(sp *space, g *graph, epoch uint64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.epoch == epoch {
		sp.graph.Store(g)
	}
}

// flushAfter returns the number of changes after which a graph of n nodes writes its pages.
func flushAfter(n int) uint64 { return uint64(max(1024, n/16)) }

// follow applies up to budget changes: first inputs that the graph lacked when it was opened, then intents. It reports whether it applied
// that many, so that there may be more.
func (x *Index) follow(ctx context.Context, sp *space, g *graph, r kv.Reader, budget int) (bool, error) {
	did := 0
	for ; did < budget && !g.backlog.IsEmpty(); did++ {
		ord := g.backlog.Minimum()
		if err := errors.Join(ctx.Err(), sp.settle(r, g, ord)); err != nil {
			return false, err
		}
		g.backlog.Remove(ord)
	}
	var bad error
	err := sp.intents(r, g.applied+1, func(seq uint64, ord uint32) bool {
		if did == budget {
			return false
		}
		if bad = errors.Join(ctx.Err(), sp.settle(r, g, ord)); bad != nil {
			return false
		}
		g.applied = seq
		did++
		return true
	})
	return did == budget, errors.Join(err, bad)
}

// tidy collects tombstones if they are many. It reports whether it had nothing to do.
func (g *graph) tidy(budget int) bool {
	if dead := g.g.Tombstones(); dead < 64 || dead < g.g.Len()/8 {
		return true
	}
	g.g.Compact(max(budget, 1))
	return false
}

// flushGraph writes the graph's pages and removes the intents that they include.
func (x *Index) flushGraph(sp *space, g *graph, r kv.Reader, epoch uint64) error {
	var b kv.Batch
	err := sp.intents(r, 0, func(seq uint64, ord uint32) bool {
		if seq > g.applied {
			return false
		}
		b.Delete(sp.intent(seq))
		if !g.g.Has(ord) {
			b.Delete(sp.removedRowKey(ord))
		}
		return true
	})
	if err != nil {
		return err
	}
	g.g.Flush(&b, sp.graphAt(), g.applied)
	err = x.write(epoch, &b)
	if err == nil {
		g.written = g.applied
		return nil
	}
	// Flush has marked unwritten pages as written: the graph must be read again.
	sp.graph.CompareAndSwap(g, nil)
	if errors.Is(err, errOutdated) {
		return nil
	}
	return err
}

// Close writes the parts of the graphs that are only in memory, so that the next Open need not follow their intents again. Without Close
// no data is lost.
func (x *Index) Close() error {
	x.step.Lock()
	defer x.step.Unlock()
	for _, sp := range x.all() {
		g := sp.graph.Load()
		if g == nil || g.applied == g.written {
			continue
		}
		epoch := x.epochNow()
		snapshot := x.store.Snapshot()
		err := errors.Join(x.flushGraph(sp, g, snapshot, epoch), snapshot.Close())
		if err != nil {
			return err
		}
	}
	return nil
}

// checkGraph checks the graph if it is open. It compares the nodes with the analysed inputs unless the graph lacks intents.
func (x *Index) checkGraph(sp *space, r catalog.Reader) error {
	g := sp.graph.Load()
	if g == nil {
		return nil
	}
	live, err := bitmap(r.KV(), sp.analysedKey())
	if err != nil {
		return err
	}
	behind := !g.backlog.IsEmpty()
	err = sp.intents(r.KV(), g.applied+1, func(uint64, uint32) bool {
		behind = true
		return false
	})
	if err != nil {
		return err
	}
	live.RemoveRange(fold.PendingOrds, 1<<32)
	if behind {
		live = nil
	}
	if err := g.g.Check(live); err != nil {
		return fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	return nil
}
