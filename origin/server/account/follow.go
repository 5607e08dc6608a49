package account

import (
	"errors"
	"time"

	"github.com/sightline-dev/sightline/core/kv"
)

// A registry of a cluster leads or follows. The one that leads writes, as a registry without a cluster does. One that follows answers reads by
// its store, and every change and every count of calls gets kv.ErrFollows:
//
//	store      takes Commits ──▶ ErrFollows ─▶ batches of others ─▶ takes Commits
//	registry   leads ────────────────▶ Follow ──────────────────────────▶ Lead ──▶ leads
//
// The memory of a term ends with Follow. Calls that began in that term may still run. They return kv.ErrFollows or start again with the memory
// of the next term, so they never write a value that an earlier term read.

// Lead makes a registry that followed write. All batches of the cluster are visible, and the store takes writes. Lead reads again what Open
// reads. Counters of throttles stay, since they expire. Errors: those of the store and ErrAudit. The registry then still follows.
func (r *Registry) Lead() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.follow()
	var err error
	if r.audit, err = readHead(r.o.Store); err != nil {
		return err
	}
	if err = r.endDemo(); err == nil {
		r.follows.Store(false)
	}
	return err
}

// Follow makes a registry that led follow. The store refuses its writes already, and every write that waits for the store has its result. The
// caller calls it before the store takes writes again. Calls that were reserved in blocks, and usage that was not flushed, are lost as in a
// crash. Emails in the queue are sent, because their changes are durable.
func (r *Registry) Follow() {
	r.follows.Store(true) // before the lock, so that no further change begins
	r.mu.Lock()
	defer r.mu.Unlock()
	r.follow()
}

// follow drops what the registry has in memory. The caller holds mu.
func (r *Registry) follow() {
	r.follows.Store(true)
	r.meters.drop()
	r.usage.drop()
	r.devices.drop("")
	r.seeWait, r.ended = nil, time.Time{}
	r.seen.Clear()
	r.erasures.Add(1) // invalidates settled, also for a caller that reads the store now
}

// drop drops the counts that were not written. It first waits until a flush has its result.
func (u *usage) drop() {
	u.flushing.Lock()
	defer u.flushing.Unlock()
	u.mu.Lock()
	defer u.mu.Unlock()
	u.cells, u.pruned = map[cellKey]*cell{}, 0
}

// unlessFollows returns err, or nil for kv.ErrFollows: another machine does that work.
func unlessFollows(err error) error {
	if errors.Is(err, kv.ErrFollows) {
		return nil
	}
	return err
}
