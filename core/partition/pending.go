package partition

import (
	"bytes"
	"fmt"

	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/fold"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/log"
)

// checkOutboxLimit returns an error if a replica cannot make n more operations.
func (p *Partition) checkOutboxLimit(site log.Writer, n int) error {
	if p.replica == nil {
		return nil
	}
	if site == 0 {
		return ErrNoSite
	}
	_, confirmed := p.Outbox()
	if waiting := p.last - min(p.confirmedUpTo(confirmed), p.last) + uint64(n); waiting > p.replica.limit {
		return fmt.Errorf("%d of %d: %w", waiting, p.replica.limit, ErrOutbox)
	}
	return nil
}

// foldPending folds some operations of the outbox over the state, and writes their undo records, in one batch. Like foldRun's batch, it
// needs no sync.
func (p *Partition) foldPending() error {
	entries, err := p.nextEntries()
	if err != nil {
		return err
	}
	first, last := entries[0].Seq, entries[len(entries)-1].Seq
	p.tx.Reset(p.o.Store)
	verdicts, out, err := p.foldLocal(p.replica.pending, p.tx, entries)
	if err != nil {
		return err
	}
	if err := p.noteUndo(p.tx, p.o.Store, p.tx.Batch()); err != nil {
		return err
	}
	analysed, err := p.findIndexable(entries, out)
	if err != nil {
		return err
	}
	at := p.replica.pending.Seq()
	if err := p.apply(change{indexed: out, analysed: analysed, watched: withoutDeletions(out), moved: func() { p.seq, p.at = last, at }}); err != nil {
		return err
	}
	p.notifyWatcher(first, verdicts)
	return nil
}

// refold folds the pending operations again that a program with other rules has folded.
func (p *Partition) refold() error {
	m := p.newMix()
	err := m.undo()
	if err == nil {
		err = m.finish()
	}
	return err
}

// foldLocal folds entries of the outbox into tx. It numbers them after the last entry in tx.
func (p *Partition) foldLocal(f *fold.Fold, tx *kv.Overlay, entries []log.Entry) ([]fold.Verdict, fold.Outcome, error) {
	h, err := catalog.Read(tx, p.o.App).Header()
	if err != nil {
		return nil, fold.Outcome{}, err
	}
	for i := range entries {
		entries[i].Seq = h.Seq + 1 + uint64(i)
	}
	first := entries[0].Op.Dot
	last, err := catalog.Read(tx, p.o.App).SiteSeq(first.Writer)
	if err == nil && last+1 < first.Seq { // the operations between were stable, and the state has lost them
		err = catalog.Write(tx, p.o.App).PutSiteSeq(first.Writer, first.Seq-1)
	}
	if err != nil {
		return nil, fold.Outcome{}, err
	}
	return p.foldEntries(f, tx, entries)
}

// withoutDeletions returns the part of pending changes that the watcher gets. It leaves deletions out, since a pending deletion may be
// undone.
func withoutDeletions(out fold.Outcome) (t fold.Outcome) {
	for _, c := range out.Changes {
		if c.After != nil {
			t.Changes = append(t.Changes, c)
		}
	}
	return t
}

// noteUndo adds to w the undo records of the keys that a batch changes over base, unless they have one. A range delete needs one record
// for each key.
func (p *Partition) noteUndo(w kv.Writer, base kv.Reader, b *kv.Batch) error {
	some, err := catalog.SomeUndo(base, p.o.App)
	if err != nil {
		return err
	}
	n := undoNotes{w: w, base: base, app: p.o.App, some: some, seen: map[string]bool{}}
	for _, op := range operations(b) {
		if op.Kind != kv.KindDeleteRange {
			n.key(op.Key)
			continue
		}
		hi := op.Value
		if bytes.Equal(hi, kv.End()) {
			hi = nil
		}
		err := base.Scan(op.Key, hi, func(key, value []byte) bool {
			if value == nil {
				value = []byte{} // nil means no key; the key exists
			}
			if !n.seen[string(key)] {
				n.note(key, value)
			}
			return n.failed == nil
		})
		if n.failed == nil {
			n.failed = err
		}
	}
	return n.failed
}

// operations returns a copy of the operations of a batch, so that the caller may add to the batch.
func operations(b *kv.Batch) []kv.Op {
	ops := make([]kv.Op, 0, b.Len())
	for op := range b.Each {
		ops = append(ops, op)
	}
	return ops
}

// undoNotes writes undo records.
type undoNotes struct {
	w      kv.Writer
	base   kv.Reader
	app    catalog.AppID
	some   bool            // base has undo records
	seen   map[string]bool // keys that key has handled
	failed error
}

// key writes the undo record of one key.
func (n *undoNotes) key(key []byte) {
	if n.failed != nil || n.seen[string(key)] {
		return
	}
	n.seen[string(key)] = true
	value, err := n.base.Get(key)
	switch {
	case err == nil:
		n.note(key, value)
	case isMissing(err):
		n.note(key, nil)
	default:
		n.failed = err
	}
}

// note writes an undo record with the old value of a key, unless base has one; a nil value means no such key.
func (n *undoNotes) note(key, value []byte) {
	known := false
	if n.some {
		known, n.failed = catalog.HasUndo(n.base, n.app, key)
	}
	if n.failed == nil && !known {
		catalog.PutUndo(n.w, n.app, key, value)
	}
}
