package ingest

import (
	"sync"

	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/fold"
)

// Watch receives the changes of the inputs; it is for partition.Options.Watch.
func (w *Worker) Watch(o fold.Outcome) {
	n := downloadEvent{all: o.DeletedAll}
	for i := range o.Changes {
		c := &o.Changes[i]
		if c.After != nil && c.After.Code == catalog.InputPending {
			n.pending = true
		}
		if b := c.Before; b != nil && b.Code == catalog.InputPending && (c.After == nil || c.After.Dot != b.Dot) {
			n.moved = true
		}
		if c.Before != nil && c.After == nil && !c.Before.Blob.IsZero() {
			n.deleted = append(n.deleted, c.Before.Blob)
		}
	}
	w.inbox.put(n)
}

// downloadEvent holds the changes that concern the worker.
type downloadEvent struct {
	pending bool        // there may be pending inputs that the worker did not look at
	moved   bool        // an ordinal may belong to another input
	deleted []blob.Hash // pictures of deleted inputs
	all     bool        // all inputs were deleted
}

// inbox collects events until Take. It has a separate lock, because events arrive while the partition is locked.
type inbox struct {
	mu     sync.Mutex
	closed bool // another machine does the work
	downloadEvent
}

// close drops the events, and all that come until open.
func (b *inbox) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed, b.downloadEvent = true, downloadEvent{}
}

// open makes the next Take look at all pending inputs.
func (b *inbox) open() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed, b.pending, b.moved = false, true, true
}

func (b *inbox) put(n downloadEvent) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return
	}
	b.pending = b.pending || n.pending
	b.moved = b.moved || n.moved || n.all
	b.deleted = append(b.deleted, n.deleted...)
	b.all = b.all || n.all
}

// look reports whether there may be inputs to process, and resets that.
func (b *inbox) look() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	was := b.pending
	b.pending = false
	return was
}

// haveMoved reports whether ordinals may belong to other inputs.
func (b *inbox) haveMoved() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.moved
}

// settle resets what haveMoved reports.
func (b *inbox) settle() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.moved = false
}

// TakeOrphanCandidates hands out at most n pictures whose inputs were deleted. It returns each picture once; another input may still have
// it. all means that all inputs were deleted since the last call, and any picture may be an orphan.
func (w *Worker) TakeOrphanCandidates(n int) (pictures []blob.Hash, all bool) {
	b := &w.inbox
	b.mu.Lock()
	defer b.mu.Unlock()
	all, b.all = b.all, false
	n = min(n, len(b.deleted))
	pictures, b.deleted = b.deleted[:n:n], b.deleted[n:]
	return pictures, all
}
