package partition

import (
	"bytes"

	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/fold"
	"github.com/sightline-dev/sightline/core/kv"
)

// refoldAll folds the pending operations again that a program with other rules has folded.
func (p *Copy) refoldAll() error {
	m := p.newMix()
	err := m.undo()
	if err == nil {
		err = m.finish()
	}
	return err
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
func (p *Copy) noteUndo(w kv.Writer, base kv.Reader, b *kv.Batch) error {
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
	value, err := kv.Find(n.base, key)
	if n.failed = err; err == nil {
		n.note(key, value)
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
