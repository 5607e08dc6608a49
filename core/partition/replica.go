package partition

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/fold"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/log"
)

// ErrCursor is returned by Pull for a run that does not start at the cursor.
var ErrCursor = errors.New("entries do not start at the cursor")

// ErrChain is returned by Pull for a run from a different log than the one pulled so far.
var ErrChain = errors.New("the log is a different one")

// ReplicaOptions are the settings of a [Replica].
type ReplicaOptions struct {
	MaxPending uint64 // local operations that may wait for the origin; 0 means 10,000
	BatchBytes int    // approximate bytes of a batch while a snapshot is installed; 0 means 8 MiB
	KeepBytes  uint64 // bytes of pulled entries that are stored for an origin that is restored from a backup; 0 means 32 MiB
}

// defaultLimit is the default of ReplicaOptions.MaxPending, the maximum number of pending operations.
const defaultLimit = 10_000

// Cursor is the place in the log up to which a replica has pulled. An empty replica has the zero Cursor.
type Cursor struct {
	Epoch  log.Epoch `wire:"1"`
	Seq    uint64    `wire:"2"` // last pulled entry
	Chain  log.Chain `wire:"3"` // chain of the log up to Seq
	Stable uint64    `wire:"4"` // last entry that the origin will never lose, as far as the replica knows
}

// Conflict is an operation of this store that did not have its intended effect.
//
//field:message conflict
type Conflict struct {
	Op      log.Op       `wire:"1,func=Op"` // as it was submitted
	Seq     uint64       `wire:"2"`         // its entry in the log
	Verdict fold.Verdict `wire:"+2"`
	ID      string       `wire:"7"` // ID of the thing that the operation names by its dot, perhaps deleted; empty: none, or never here
}

// Replica is a partition that is a replica: it pulls the log of an [Origin], and its own operations wait in an outbox.
type Replica struct {
	*Partition
	limit        uint64
	batch        int
	keepLimit    uint64
	replicaState            // guarded by showing
	pending      *fold.Fold // fold of the local operations, over the visible state; guarded by folding
}

// replicaState is the stored record of a replica's place in the log. Every batch that changes the place writes it.
//
//field:message
//field:reserved 12 14
type replicaState struct {
	cursor    Cursor            `wire:"+0"`
	site      log.Writer        `wire:"5"`  // writer of the first operations in the outbox of version 0.1.0; 0: none
	acked     []acknowledgement `wire:"6"`  // confirmed operations as version 0.1.0 stored them
	torn      bool              `wire:"7"`  // only a part of a snapshot is in the state
	oldKept   oldKept           `wire:"+7"` // kept entries of version 0.1.0
	rules     uint32            `wire:"15"` // version of the rules by which the pending operations were folded; 0: 2 or an earlier one
	confirmed confirmedRuns     `wire:"16"`
	converted bool              `wire:"17"` // confirmed is known
	kept      keptState         `wire:"+17"`
}

// acknowledgement records that the log up to entry seq has the local operations up to local.
type acknowledgement struct {
	seq   uint64 `wire:"1"`
	local uint64 `wire:"2"`
}

func (n *replicaState) encode() []byte { return encodeReplicaState(nil, n) }

// convert reads the confirmed operations of a record of version 0.1.0. confirmed is the last one that the log has.
func (n *replicaState) convert(confirmed uint64) {
	n.converted = true
	from := uint64(1)
	for _, a := range append(n.acked, acknowledgement{n.cursor.Seq, confirmed}) {
		if from <= a.local {
			n.confirmed = append(n.confirmed, confirmedRun{from, a.local, a.seq})
			from = a.local + 1
		}
	}
	n.acked = nil
}

func noteKey(app catalog.AppID) []byte { return app.LocalKey("replica") }

// readPlace returns the stored place of a replica. Errors: kv.ErrNotFound for an origin or a new replica, and others of kv.
func readPlace(r kv.Reader, app catalog.AppID) (n replicaState, err error) {
	data, err := r.Get(noteKey(app))
	if err == nil {
		if n, err = decodeReplicaState(data); err != nil {
			err = fmt.Errorf("replica: %w", err)
		}
	}
	if err != nil || n.converted {
		n.converted = true
		return n, err
	}
	confirmed, err := catalog.Read(catalog.WithoutPending(r, app), app).SiteSeq(n.site)
	n.convert(confirmed)
	return n, err
}

// OpenReplica opens a replica, and folds the operations of its outbox that the state lacks. Errors: ErrKind for a store with its own log,
// fold.ErrNewer and those of kv.
func OpenReplica(o Options, r ReplicaOptions) (*Replica, error) {
	o.Quota = nil
	p := &Replica{
		Partition: newPartition(o), limit: cmp.Or(r.MaxPending, defaultLimit), batch: cmp.Or(r.BatchBytes, defaultBatch), keepLimit: cmp.Or(r.KeepBytes, defaultKeep),
	}
	p.side, p.pending = p, fold.NewPending(p.o.App, p.o.Rules)
	if err := p.open(); err != nil {
		return nil, fmt.Errorf("partition %v: %w", o.App, err)
	}
	return p, nil
}

func (p *Replica) open() (err error) {
	p.replicaState, err = readPlace(p.o.Store, p.o.App)
	isNew := isMissing(err)
	if err != nil && !isNew {
		return err
	}
	h, err := p.readHeader()
	if err == nil && isNew && h.Seq > 0 {
		return fmt.Errorf("the store has its own log: %w", ErrKind)
	}
	if err == nil {
		p.writers, err = readWriters(p.o.Store, p.o.App, p.site)
	}
	if err == nil { // nobody follows an outbox, so it has no epoch
		p.log, err = log.Open(p.o.Store, log.Options{Prefix: p.o.App.LogPrefix(), Durable: p.confirmed.after(0) - 1})
	}
	if err == nil {
		err = p.openOutbox(h)
	}
	if err == nil {
		err = p.openIndex()
	}
	if err == nil {
		err = p.keepOld()
	}
	if err == nil && p.torn {
		err = p.wipe()
	}
	if err == nil && p.rules != p.o.Rules {
		p.rules = p.o.Rules
		err = p.rewrite(func(*pullBatch) error { return nil }) // another program has folded the pending operations
	}
	if err == nil {
		err = p.foldRest()
	}
	if err == nil {
		err = p.dropOld()
	}
	return err
}

// place returns the replica's place in the log.
func (p *Replica) place() replicaState {
	defer p.locks.take(reading).unlock()
	return p.replicaState
}

// forget drops the cached facts of both folds about a batch that was not written.
func (p *Replica) forget() {
	p.Partition.forget()
	p.pending = fold.NewPending(p.o.App, p.o.Rules)
}

// tidies implements [side].
func (p *Replica) tidies() (bool, error) {
	if p.confirmed.after(p.log.Floor()-1) <= p.seq {
		return false, nil // the deletions of pending operations may be undone
	}
	if p.cursor.Seq > 0 {
		return true, nil
	}
	waits, err := kv.AnyWithPrefix(p.o.Store, p.o.App.LocalKey(placedNote)) // for the rest of a snapshot
	return !waits, err
}

// step implements [side].
func (p *Replica) step(context.Context, time.Time) error { return nil }

// Cursor returns the place in the log up to which a replica has pulled.
func (p *Replica) Cursor() Cursor { return p.place().cursor }

// ReadConfirmed calls do with the state of the log up to the cursor, without pending operations, for digests and exports. r is valid until
// do returns.
func (p *Replica) ReadConfirmed(do func(r kv.Reader) error) error {
	v := p.View()
	return errors.Join(do(catalog.WithoutPending(v.snapshot, p.o.App)), v.Close())
}
