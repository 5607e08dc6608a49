package partition

import (
	"fmt"
	"sync/atomic"

	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/fold"
	"github.com/sightline-dev/sightline/core/kv"
)

// defaultBatch is the size in bytes at which a Rebase begins another batch.
const defaultBatch = 8 << 20

// A large snapshot is installed in more than one batch:
//
//	pin ── batch, torn ── batch ── … ── batch: cursor, pending operations, not torn ── unpin
//	 │                                                                                  │
//	previous views ───────────────────────────────────────────────────────────────── new views
//
// OpenReplica deletes an incomplete (torn) state.

// flush writes the overlay's changes to the store, to free memory.
func (m *pullBatch) flush() error {
	p := m.p
	p.pin()
	n := p.replicaState
	n.torn = true
	p.tx.Put(noteKey(p.o.App), n.encode())
	c, err := m.change(fold.Outcome{})
	if err != nil {
		return err
	}
	m.watched = nil
	for _, x := range c.watched.Changes {
		if x.After == nil || x.After.Code == catalog.InputPending {
			m.watched = append(m.watched, x)
		}
	}
	c.watched = fold.Outcome{}
	if err := p.apply(c); err != nil {
		return err
	}
	m.torn = true
	p.tx.Reset(p.o.Store)
	m.adopted = nil
	clear(m.ords)
	clear(m.derived)
	return nil
}

// rollBack ends a failed Rebase: it wipes an incomplete state. If that fails, the partition rejects all writes until it is opened again.
func (m *pullBatch) rollBack() (err error) {
	if !m.large {
		return nil
	}
	if m.torn {
		err = m.p.wipe()
	}
	defer m.p.locks.take(showing).unlock()
	m.p.unpin()
	if err != nil {
		m.p.closed, m.p.shut = err, true
	}
	return err
}

// wipe empties a replica as if it had pulled nothing. Its operations are pending again.
func (p *Replica) wipe() error {
	p.forget()
	m := p.newMix()
	catalog.Wipe(p.tx, p.o.App)
	m.note = replicaState{site: m.note.site, kept: m.note.kept, rules: m.note.rules, converted: true}
	m.log, m.rewritten = fold.Outcome{DeletedAll: true}, true
	if err := m.finish(); err != nil {
		return fmt.Errorf("incomplete snapshot: %w", err)
	}
	return nil
}

// sharedSnapshot is a snapshot that several views share.
type sharedSnapshot struct {
	kv.Snapshot
	users atomic.Int64 // the partition is one user until unpin, and only it adds others
}

// Close implements [kv.Snapshot]. The last user closes the shared snapshot.
func (s *sharedSnapshot) Close() error {
	if s.users.Add(-1) > 0 {
		return nil
	}
	return s.Snapshot.Close()
}

// pin makes views show the current state until unpin, in spite of later writes.
func (p *Replica) pin() {
	defer p.locks.take(showing).unlock()
	if p.pinned != nil {
		return
	}
	p.pinned = &sharedSnapshot{Snapshot: p.o.Store.Snapshot()}
	p.pinned.users.Add(1)
}

// unpin makes views show the store again. The caller holds showing.
func (p *Replica) unpin() {
	if p.pinned != nil {
		_ = p.pinned.Close() // the snapshot was only read; its views report errors
		p.pinned = nil
	}
}
