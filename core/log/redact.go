package log

import (
	"bytes"

	"github.com/sightline-dev/sightline/core/kv"
)

// Redact removes content from entry from and the later entries: edit changes a body and reports whether it did. edit must not change the
// state that results from folding the log. Entries keep their numbers and their dots. Redact also removes the unknown fields of changed
// bodies.
//
// Redact waits until all appended entries are durable, and then commits the first changed entry and all later ones in one batch, since each
// of them gets a new chain. A reader that continues in the log notices the new chain and starts again.
func (l *Store) Redact(from uint64, edit func(Body) bool) error {
	if err := l.lockSettled(); err != nil {
		return err
	}
	wait, err := l.redact(from, edit)
	l.mu.Unlock()
	if err != nil || wait == nil {
		return err
	}
	return wait()
}

// lockSettled takes mu while the store shows all appended entries.
func (l *Store) lockSettled() error {
	for {
		if err := l.WaitDurable(); err != nil {
			return err
		}
		l.mu.Lock()
		if l.durable == l.appended {
			return nil
		}
		l.mu.Unlock()
	}
}

// redact commits the changed entries. A nil wait means that there are none. The caller holds mu.
func (l *Store) redact(from uint64, edit func(Body) bool) (wait func() error, err error) {
	from = max(from, l.floor)
	chain := l.base
	if from > l.floor {
		if chain, err = l.chainAt(from - 1); err != nil {
			return nil, err
		}
	}
	var b kv.Batch
	next, was := from, chain
	changed := false
	var failed error
	for key, value := range kv.Range(l.store, l.entryKey(from), l.end(), &failed) {
		e, err := readEntry(key, value, next, &was, true)
		if err != nil {
			return nil, err
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
		return nil, failed
	}
	if wait, err = l.commit(&b); err == nil {
		l.chain = chain
	}
	return wait, err
}
