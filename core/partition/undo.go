package partition

import (
	"bytes"
	"slices"

	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/fold"
	"github.com/sightline-dev/sightline/core/kv"
)

// rewrite undoes the pending operations, calls do, and folds again those that are still pending.
func (p *Replica) rewrite(do func(m *pullBatch) error) error {
	m := p.newMix()
	err := m.undo()
	if err == nil {
		err = do(m)
	}
	if err == nil {
		err = m.finish()
	}
	return err
}

// withoutDeletions returns the part of pending changes that the watcher gets. It leaves deletions out, since a pending deletion may be
// undone.
func withoutDeletions(out fold.Outcome) fold.Outcome {
	return fold.Outcome{Changes: slices.DeleteFunc(slices.Clone(out.Changes), func(c fold.Change) bool { return c.After == nil })}
}

// noteUndo adds to w the undo records of the keys that a batch changes over base, unless they have one. A range delete needs one record
// for each key.
func (p *Replica) noteUndo(w kv.Writer, base kv.Reader, b *kv.Batch) error {
	some, err := catalog.HasAnyUndo(base, p.o.App)
	if err != nil {
		return err
	}
	note := func(key, value []byte) error { // a nil value means no such key
		known := false
		if some {
			known, err = catalog.HasUndo(base, p.o.App, key)
		}
		if err == nil && !known {
			catalog.PutUndo(w, p.o.App, key, value)
		}
		return err
	}
	seen := map[string]bool{} // keys of single operations
	for _, op := range operations(b) {
		if op.Kind == kv.KindDeleteRange {
			hi := op.Value
			if bytes.Equal(hi, kv.End()) {
				hi = nil
			}
			for key, value := range kv.Range(base, op.Key, hi, &err) {
				if value == nil {
					value = []byte{} // the key exists
				}
				if err := note(key, value); err != nil {
					return err
				}
			}
		} else if !seen[string(op.Key)] {
			seen[string(op.Key)] = true
			var value []byte
			if value, err = kv.Find(base, op.Key); err == nil {
				err = note(op.Key, value)
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// operations returns a copy of the operations of a batch, so that the caller may add to the batch.
func operations(b *kv.Batch) []kv.Op {
	ops := make([]kv.Op, 0, b.Len())
	for op := range b.Each {
		ops = append(ops, op)
	}
	return ops
}
