package partition

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/fold"
	"github.com/sightline-dev/sightline/core/index"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/log"
)

// ErrReplica is returned for an operation that this kind of partition does not support: some need a log, others a replica. Open returns it
// for a store of the other kind.
var ErrReplica = errors.New("not supported by this kind of partition (replica or origin)")

// ErrNoSite is returned by Submit on a replica that has no site yet.
var ErrNoSite = errors.New("replica has no site yet")

// ErrSite is returned if a replica with a site would get another one, and if the log has operations of the replica's site that this replica
// has not made.
var ErrSite = errors.New("replica has a different site")

// ErrOutbox is returned by Submit if Replica.Limit operations already wait for the origin.
var ErrOutbox = errors.New("too many operations are waiting for the origin")

// ErrCursor is returned by Pull for a run that does not start at the cursor.
var ErrCursor = errors.New("entries do not start at the cursor")

// ErrChain is returned by Pull for a run from a different log than the one pulled so far.
var ErrChain = errors.New("the log is a different one")

// Replica makes a partition a replica of another partition, whose log it pulls.
type Replica struct {
	Site  log.Writer // the replica's site, leased from the origin; 0: the stored site, or none yet
	Limit uint64     // local operations that may wait for the origin; 0 means 10,000
	Batch int        // approximate bytes of a batch while a snapshot is installed; 0 means 8 MiB
	Keep  uint64     // bytes of pulled entries that are stored for an origin that is restored from a backup; 0 means 32 MiB
}

// defaultLimit is the default of Replica.Limit, the maximum number of pending operations.
const defaultLimit = 10_000

// Cursor is the place in the log up to which a replica has pulled. An empty replica has the zero Cursor.
type Cursor struct {
	Epoch  log.Epoch `wire:"1"`
	Seq    uint64    `wire:"2"` // last pulled entry
	Chain  log.Chain `wire:"3"` // chain of the log up to Seq
	Stable uint64    `wire:"4"` // last entry that the origin will never lose, as far as the replica knows
}

// Conflict is an operation of this site that did not have its intended effect.
//
//field:message conflict
type Conflict struct {
	Op      log.Op       `wire:"1,func=Op"` // as it was submitted
	Seq     uint64       `wire:"2"`         // its entry in the log
	Verdict fold.Verdict `wire:"+2"`
	ID      string       `wire:"7"` // ID of the thing that the operation names by its dot, perhaps deleted; empty: none, or never here
}

// replica is the additional state of a partition that is a replica. The store has all of it, too.
type replica struct {
	limit       uint64
	batch       int
	storedLimit uint64
	replicaState
	pending   *fold.Fold // fold of the local operations, over the visible state
	confirmed uint64     // last local operation that was folded from the log
	noted     log.Writer // site of which the current life has a record; 0: none
	restored  bool       // the store was restored from a backup, so another replica may write as the same site
	renewal   *renewal   // change to another site, which waits for the log; nil: none
	parted    uint64     // first local operation for which the log has a different one; 0: none seen
}

// replicaState is the stored record of a replica's place in the log. Every batch that changes the place writes it.
//
//field:message
type replicaState struct {
	cursor Cursor            `wire:"+0"`
	site   log.Writer        `wire:"5"`
	acked  []acknowledgement `wire:"6"` // local operations in the log that may not be stable, oldest first
	torn   bool              `wire:"7"` // only a part of a snapshot is in the state
	kept   storedState       `wire:"+7"`
	older  uint64            `wire:"12"` // last local operation that was made on a log of another epoch
	seal   []byte            `wire:"14"` // seal of the log up to the cursor; nil: none came
	rules  uint32            `wire:"15"` // version of the rules by which the pending operations were folded; 0: 2 or an earlier one
}

// acknowledgement records that the log up to entry seq has the local operations up to local.
type acknowledgement struct {
	seq   uint64 `wire:"1"`
	local uint64 `wire:"2"`
}

// maxAcked is the maximum number of acknowledgements that a replica stores.
const maxAcked = 256

func (n *replicaState) encode() []byte { return encodeReplicaState(nil, n) }

// ack adds an acknowledgement. At maxAcked it drops the oldest one, whose operations then count as stable with the next one. So operations
// are stored longer, never shorter.
func (n *replicaState) ack(a acknowledgement) {
	if len(n.acked) >= maxAcked {
		n.acked = slices.Delete(n.acked, 0, 1)
	}
	n.acked = append(n.acked[:len(n.acked):len(n.acked)], a)
}

// dropStable removes the acknowledgements of stable operations. It returns the last stable operation; 0: none became stable.
func (n *replicaState) dropStable() (own uint64) {
	for len(n.acked) > 0 && n.acked[0].seq <= n.cursor.Stable {
		own = n.acked[0].local
		n.acked = n.acked[1:]
	}
	return own
}

func noteKey(app catalog.AppID) []byte { return app.LocalKey("replica") }

// openReplica reads the stored state of a replica, if it exists. The caller must call it before it opens the log.
func (p *Partition) openReplica() error {
	data, err := p.o.Store.Get(noteKey(p.o.App))
	if err != nil && !errors.Is(err, kv.ErrNotFound) {
		return err
	}
	known := err == nil
	if p.o.Replica == nil {
		if known {
			return fmt.Errorf("the store belongs to a replica: %w", ErrReplica)
		}
		return nil
	}
	h, err := catalog.Read(p.o.Store, p.o.App).Header()
	if err != nil {
		return err
	}
	if !known && h.Seq > 0 {
		return fmt.Errorf("the store has its own log: %w", ErrReplica)
	}
	r := &replica{limit: p.o.Replica.Limit, batch: p.o.Replica.Batch, storedLimit: p.o.Replica.Keep, pending: fold.NewPending(p.o.App, p.o.Rules)}
	if r.limit == 0 {
		r.limit = defaultLimit
	}
	if r.batch == 0 {
		r.batch = defaultBatch
	}
	if r.storedLimit == 0 {
		r.storedLimit = defaultKeep
	}
	if known {
		if r.replicaState, err = decodeReplicaState(data); err != nil {
			return fmt.Errorf("replica: %w", err)
		}
		r.replicaState.seal = bytes.Clone(r.replicaState.seal) // it borrows from the store
	}
	p.replica = r
	if err := p.lease(p.o.Replica.Site); err != nil {
		return err
	}
	if r.confirmed, err = catalog.Read(catalog.Before(p.o.Store, p.o.App), p.o.App).SiteSeq(r.site); err != nil {
		return err
	}
	return nil
}

// Lease sets the replica's site durably. The caller calls it before the first Submit. A later call must name the same site. Errors:
// ErrSite, ErrReplica, and those of kv.
func (p *Partition) Lease(site log.Writer) error {
	defer p.locks.take(appending | folding).unlock()
	if err := p.whyClosed(); err != nil {
		return err
	}
	if p.replica == nil {
		return ErrReplica
	}
	return p.lease(site)
}

// lease is Lease under the locks; site 0 keeps the current site.
func (p *Partition) lease(site log.Writer) error {
	r := p.replica
	switch {
	case site == 0 && r.site != 0, site == r.site && site != 0:
		return nil
	case r.site != 0, site == log.Origin:
		return fmt.Errorf("site %d instead of %d: %w", site, r.site, ErrSite)
	}
	n := r.replicaState
	n.site = site
	var b kv.Batch
	b.Put(noteKey(p.o.App), n.encode())
	err := kv.Sync(p.o.Store, &b)
	if err == nil {
		defer p.locks.take(showing).unlock()
		r.replicaState = n
	}
	return err
}

// Cursor returns the place in the log up to which a replica has pulled.
func (p *Partition) Cursor() Cursor {
	defer p.locks.take(reading).unlock()
	if p.replica == nil {
		return Cursor{}
	}
	return p.replica.cursor
}

// CursorSeal returns the seal of the log up to the cursor; nil: none came.
func (p *Partition) CursorSeal() []byte {
	defer p.locks.take(reading).unlock()
	if p.replica == nil {
		return nil
	}
	return p.replica.seal
}

// Site returns the site whose operations are submitted here; 0: none yet.
func (p *Partition) Site() log.Writer {
	defer p.locks.take(reading).unlock()
	if p.replica == nil {
		return p.o.Site
	}
	return p.replica.site
}

// Owns reports whether this partition does the work that an operation requests, a download or a training. A partition with a log does all
// of it; a replica does the work that its site requested.
func (p *Partition) Owns(dot log.Dot) bool {
	return p.replica == nil || dot.Writer == p.Site()
}

// MadeBy reports whether site is the partition's site or, at an origin, the site of one of its earlier lives. Each life of an origin writes
// as another site.
func (p *Partition) MadeBy(site log.Writer) bool {
	return site == p.Site() || p.replica == nil && site.IsOrigin()
}

// Outbox returns the last local operation of a replica, and the last one that was folded from the origin's log. Those between are pending.
func (p *Partition) Outbox() (issued, confirmed uint64) {
	defer p.locks.take(reading).unlock()
	if p.replica == nil {
		return 0, 0
	}
	return max(p.log.Head(), p.replica.confirmed), p.replica.confirmed
}

// Older returns the last local operation that was made on a log of another epoch than the present one; 0: none.
func (p *Partition) Older() uint64 {
	defer p.locks.take(reading).unlock()
	if p.replica == nil {
		return 0
	}
	return p.replica.older
}

// Pending yields the pending operations of this site after sequence number after, oldest first, until yield returns false. They survive a
// crash. For a stable operation that the replica has deleted, Pending yields a log.Refused. So an origin that lost it, for example by a
// restore from an old backup, can append the operations after it.
func (p *Partition) Pending(after uint64, yield func(log.Op) bool) error {
	if p.replica == nil {
		return ErrReplica
	}
	issued, confirmed := p.Outbox()
	after = max(after, confirmed)
	for ; after+1 < p.log.Floor() && after < issued; after++ {
		lost := log.Op{Dot: log.Dot{Writer: p.Site(), Seq: after + 1}, Body: &log.Refused{Reason: "lost"}}
		if !yield(lost) {
			return nil
		}
	}
	return p.own(after, issued, yield)
}

// LocalOps yields the stored operations of this site after sequence number after, oldest first, until yield returns false: the pending
// ones, and confirmed ones that may not be stable yet.
func (p *Partition) LocalOps(after uint64, yield func(log.Op) bool) error {
	if p.replica == nil {
		return ErrReplica
	}
	issued, _ := p.Outbox()
	if after = max(after, p.log.Floor()-1); after >= issued {
		return nil
	}
	return p.log.Read(after+1, func(e log.Entry) bool { return e.Seq <= issued && yield(e.Op) && e.Seq < issued })
}

// IsReplica reports whether the partition is a replica.
func (p *Partition) IsReplica() bool { return p.replica != nil }

// own yields the stored local operations with after < sequence number ≤ last.
func (p *Partition) own(after, last uint64, yield func(log.Op) bool) error {
	if after = p.confirmedUpTo(after); after >= last {
		return nil
	}
	return p.log.Read(after+1, func(e log.Entry) bool { return e.Seq <= last && yield(e.Op) && e.Seq < last })
}

// confirmedUpTo returns the last local operation that is or was confirmed. Operations before the outbox's floor were stable.
func (p *Partition) confirmedUpTo(confirmed uint64) uint64 { return max(confirmed, p.log.Floor()-1) }

// ReadConfirmed calls do with the state of the log up to the cursor, without pending operations, for digests and exports. r is valid until
// do returns.
func (p *Partition) ReadConfirmed(do func(r kv.Reader) error) error {
	v := p.View()
	var r kv.Reader = v.snapshot
	if p.replica != nil {
		r = catalog.Before(r, p.o.App)
	}
	return errors.Join(do(r), v.Close())
}

// meetOnce is the number of inputs that enter the index of the next network in one batch.
const meetOnce = 256

// network returns the base of the last NetworkSwitch in the run; ok is false if the run has none.
func (r *Run) network() (base [32]byte, ok bool) {
	for i := range r.Entries {
		if s, is := r.Entries[i].Op.Body.(*log.NetworkSwitch); is {
			base, ok = s.Base, true
		}
	}
	return base, ok
}

// meet prepares the index for a run that switches the network. Stored inputs first enter the space of that network, if it lacks them and
// their derived records are stored. Records that come with the run enter it in the run's batch. It returns [fold.ErrNewer] if the index has
// a space of the present network but none of the next one: the program does not know that network.
func (p *Partition) meet(ctx context.Context, base [32]byte) error {
	v := p.View()
	defer v.Close()
	lacking, err := p.index.At(v.Reader).Lacking(base)
	if errors.Is(err, index.ErrSpace) {
		return p.unknown(v, base)
	}
	if err != nil {
		return err
	}
	var dots []log.Dot
	for it := lacking.Iterator(); it.HasNext(); {
		in, err := v.Input(it.Next())
		if err != nil {
			return err
		}
		if dots = append(dots, in.Dot); len(dots) < meetOnce && it.HasNext() {
			continue
		}
		if err := errors.Join(ctx.Err(), p.AddDerived(dots, func(kv.Writer, []catalog.Input) {})); err != nil {
			return err
		}
		dots = dots[:0]
	}
	return nil
}

// unknown returns the error of a switch to a network for which the index has no space. It returns nil if the index has no space of the
// present network either: such a new replica finds nothing until its origin switches to a known network.
func (p *Partition) unknown(v *View, base [32]byte) error {
	h, err := v.Header()
	if err != nil || !p.index.Has(h.Base) {
		return err
	}
	return fmt.Errorf("network %x: %w", base[:4], fold.ErrNewer)
}
