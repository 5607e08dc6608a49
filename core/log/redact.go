package log

import (
	"bytes"

	"github.com/sightline-dev/sightline/core/kv"
)

// Redact removes content from entry from and the later entries: edit changes a body and reports whether it did. edit must not change the
// state that results from folding the log. Entries keep their numbers and their dots. Redact also removes the unknown fields of changed
// bodies.
//
// Redact writes the first changed entry and all later ones in one batch, since each of them gets a new chain. A reader that continues in
// the log notices the new chain and starts again.
func (l *Store) Redact(from uint64, edit func(Body) bool) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.failed != nil {
		return l.failed
	}
	from = max(from, l.floor)
	chain := l.base
	if from > l.floor {
		var err error
		if chain, err = l.chainAt(from - 1); err != nil {
			return err
		}
	}
	var b kv.Batch
	next, was := from, chain
	changed := false
	var failed error
	for key, value := range kv.Range(l.store, l.entryKey(from), l.end(), &failed) {
		e, err := readEntry(key, value, next, &was, true)
		if err != nil {
			return err
		}
		next = e.Seq + 1
		data := value[len(chain):]
		if edit(e.Op.Body) {
			e.Op.Extra.Body = nil
			data, changed = Encode(nil, &e.Op), true
		}
		chain = chain.Next(data)
		if changed {
			b.Put(l.entryKey(e.Seq), append(bytes.Clone(chain[:]), data...))
		}
	}
	if failed != nil || !changed {
		return failed
	}
	if err := l.store.Apply(&b); err != nil {
		return err
	}
	l.chain = chain
	return nil
}
