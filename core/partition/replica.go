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

// ErrReplica is returned for an operation that only a partition with a log supports, or only a replica, and by Open for a store of the
// other kind.
var ErrReplica = errors.New("not supported by this kind of partition (replica or origin)")

// ErrNoSite is returned by Submit on a replica that has no site yet.
var ErrNoSite = errors.New("replica has no site yet")

// ErrSite is returned if a replica with a site should get another one, and if the log has operations of the replica's site that the
// replica has not made.
var ErrSite = errors.New("replica has a different site")

// ErrOutbox is returned by Submit when as many operations wait for the origin as may.
var ErrOutbox = errors.New("too many operations are waiting for the origin")

// ErrCursor is returned by Pull for a run that does not start at the cursor.
var ErrCursor = errors.New("entries do not start at the cursor")

// ErrChain is returned by Pull for a run that is not of the log that was pulled so far.
var ErrChain = errors.New("the log is a different one")

// Replica makes a partition the copy of another one, whose log it pulls.
type Replica struct {
	Site  log.Site // our own, leased; 0: the one that is kept, or none yet
	Limit uint64   // own operations that may wait for the origin; 0 means 10,000
	Batch int      // bytes of a batch, about, while a snapshot is taken; 0 means 8 MiB
	Keep  uint64   // bytes of pulled entries that are kept for an origin that is restored from a backup; 0 means 32 MiB
}

// defaultLimit is the maximum number of pending operations.
const defaultLimit = 10_000

// Cursor is the place in the log up to which a replica has pulled. The zero Cursor is that of an empty replica.
type Cursor struct {
	Epoch  log.Epoch `wire:"1"`
	Seq    uint64    `wire:"2"` // last entry
	Chain  log.Chain `wire:"3"` // of the log up to it
	Stable uint64    `wire:"4"` // last entry that the origin will never lose, as far as is known
}

// Conflict is an operation of this site that did not have its intended effect.
//
//field:message conflict
type Conflict struct {
	Op      log.Op       `wire:"1,func=Op"` // as it was submitted
	Seq     uint64       `wire:"2"`         // its place in the log
	Verdict fold.Verdict `wire:"+2"`
	ID      string       `wire:"7"` // of the thing that the operation names by its dot, which may be deleted; empty: it names none so, or the replica never had it
}

// replica is the additional state of a partition that is a replica. All of it is in the store, too.
type replica struct {
	limit uint64
	batch int
	keep  uint64
	replicaState
	pending   *fold.Fold // of own operations, over the visible state
	confirmed uint64     // last own operation that was folded from the log
	noted     log.Site   // whose operations this life is noted to make; 0: none
	restored  bool       // from a backup, since when the site is not its own alone
	renewal   *renewal   // to another site, which waits for the log; nil: none
	parted    uint64     // first own operation for which the log has another one; 0: none was seen
}

// replicaState is the record of a replica's place. It is written in the batch that changes the place.
//
//field:message
type replicaState struct {
	cursor Cursor            `wire:"+0"`
	site   log.Site          `wire:"5"`
	acked  []acknowledgement `wire:"6"` // own operations in the log that may not be stable, oldest first
	torn   bool              `wire:"7"` // the state is half of a snapshot's: the rest did not come
	kept   keeping           `wire:"+7"`
	older  uint64            `wire:"12"` // last own operation that was made on a log of another epoch
	seal   []byte            `wire:"14"` // of the log up to the cursor; nil: none came
}

// acknowledgement says that own operations up to one are in the log up to an entry.
type acknowledgement struct {
	seq   uint64 `wire:"1"`
	local uint64 `wire:"2"`
}

// maxAcked bounds how finely is known when own operations are stable.
const maxAcked = 256

func (n *replicaState) encode() []byte { return encodeReplicaState(nil, n) }

// ack notes that own operations are in the log. When there are many such notes, two become the later
// one: operations are kept longer then, never shorter.
func (n *replicaState) ack(a acknowledgement) {
	if len(n.acked) >= maxAcked {
		n.acked = slices.Delete(n.acked, 0, 1)
	}
	n.acked = append(n.acked[:len(n.acked):len(n.acked)], a)
}

// dropStable takes off the notes of operations that are stable, and returns the last of them; 0:
// none became so.
func (n *replicaState) dropStable() (own uint64) {
	for len(n.acked) > 0 && n.acked[0].seq <= n.cursor.Stable {
		own = n.acked[0].local
		n.acked = n.acked[1:]
	}
	return own
}

func noteKey(app catalog.AppID) []byte { return app.LocalKey("replica") }

// openReplica reads the stored state of a replica, if there is one. The caller must call it before it opens the log.
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
	r := &replica{limit: p.o.Replica.Limit, batch: p.o.Replica.Batch, keep: p.o.Replica.Keep, pending: fold.NewPending(p.o.App, p.o.Rules)}
	if r.limit == 0 {
		r.limit = defaultLimit
	}
	if r.batch == 0 {
		r.batch = defaultBatch
	}
	if r.keep == 0 {
		r.keep = defaultKeep
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

// Lease gives a replica its site, durably. It is called once, before the first Submit; again
// only with the same site. Errors: ErrSite, ErrReplica, and those of kv.
func (p *Partition) Lease(site log.Site) error {
	defer p.locks.take(appending | folding).unlock()
	if err := p.whyClosed(); err != nil {
		return err
	}
	if p.replica == nil {
		return ErrReplica
	}
	return p.lease(site)
}

// lease is Lease under the locks; site 0 is none.
func (p *Partition) lease(site log.Site) error {
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

// Site is the site whose operations are submitted here; 0: none yet.
func (p *Partition) Site() log.Site {
	defer p.locks.take(reading).unlock()
	if p.replica == nil {
		return p.o.Site
	}
	return p.replica.site
}

// Owns reports whether this partition does the work that an operation requests, a download or a training. A partition with a log does all
// of it; a replica does the work that its site requested.
func (p *Partition) Owns(dot log.Dot) bool {
	return p.replica == nil || dot.Site == p.Site()
}

// MadeBy reports whether a site is that of the partition, or that of an earlier life of the origin: each of its lives writes as another
// one.
func (p *Partition) MadeBy(site log.Site) bool {
	return site == p.Site() || p.replica == nil && (site == log.Origin || site >= RestoredSites)
}

// Outbox is the last operation of a replica's own that was made, and the last that was folded
// from the origin's log; those between are pending.
func (p *Partition) Outbox() (issued, confirmed uint64) {
	defer p.locks.take(reading).unlock()
	if p.replica == nil {
		return 0, 0
	}
	return max(p.log.Head(), p.replica.confirmed), p.replica.confirmed
}

// Older is the last operation of a replica's own that was made on a log of another epoch than the present one; 0: there is none.
func (p *Partition) Older() uint64 {
	defer p.locks.take(reading).unlock()
	if p.replica == nil {
		return 0
	}
	return p.replica.older
}

// Pending yields the pending operations of this site after one, oldest first, until yield returns false. They survive a crash. For an
// operation that was stable and was deleted here, Pending yields a log.Refused, so that an origin which lost it nevertheless, such as one
// that was restored from an old backup, can append those after it.
func (p *Partition) Pending(after uint64, yield func(log.Op) bool) error {
	if p.replica == nil {
		return ErrReplica
	}
	issued, confirmed := p.Outbox()
	after = max(after, confirmed)
	for ; after+1 < p.log.Floor() && after < issued; after++ {
		lost := log.Op{Dot: log.Dot{Site: p.Site(), Seq: after + 1}, Body: &log.Refused{Reason: "lost"}}
		if !yield(lost) {
			return nil
		}
	}
	return p.own(after, issued, yield)
}

// LocalOps yields the stored operations of this site after one, oldest first, until yield returns false: the pending ones, and confirmed
// ones that may not be stable yet.
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

// own yields the stored own operations after < sequence ≤ last.
func (p *Partition) own(after, last uint64, yield func(log.Op) bool) error {
	if after = p.confirmedUpTo(after); after >= last {
		return nil
	}
	return p.log.Read(after+1, func(e log.Entry) bool { return e.Seq <= last && yield(e.Op) && e.Seq < last })
}

// confirmedUpTo returns the last operation of ours that is confirmed, or was once: those before the outbox's floor
// were stable.
func (p *Partition) confirmedUpTo(confirmed uint64) uint64 { return max(confirmed, p.log.Floor()-1) }

// ReadConfirmed calls do with the state of the log up to the cursor, without pending operations:
// for digests and for exports. r may be read until do returns.
func (p *Partition) ReadConfirmed(do func(r kv.Reader) error) error {
	v := p.View()
	var r kv.Reader = v.snapshot
	if p.replica != nil {
		r = catalog.Before(r, p.o.App)
	}
	return errors.Join(do(r), v.Close())
}

// meetOnce is the number of inputs that enter the index of a next network in one batch.
const meetOnce = 256

// network returns the base of the last switch of the network in the run.
func (r *Run) network() (base [32]byte, ok bool) {
	for i := range r.Entries {
		if s, is := r.Entries[i].Op.Body.(*log.NetworkSwitch); is {
			base, ok = s.Base, true
		}
	}
	return base, ok
}

// meet prepares the index for a run that switches the network. Stored inputs enter the space of that network first, if it lacks them and
// their derived records are stored. Records that come with the run enter it in the run's batch. It returns [fold.ErrNewer] if the index
// has a space of the present network, and none of the next one: the program does not know it.
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

// unknown is the error of a switch to a network of which the index has no space. A copy that has none of its present
// network either, because it is new, finds nothing until its origin switches to one that it has.
func (p *Partition) unknown(v *View, base [32]byte) error {
	h, err := v.Header()
	if err != nil || !p.index.Has(h.Base) {
		return err
	}
	return fmt.Errorf("network %x: %w", base[:4], fold.ErrNewer)
}
