package partition

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/fold"
	"github.com/sightline-dev/sightline/core/index"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/log"
)

// Options are a partition's settings.
type Options struct {
	Store  kv.Store         // required; it outlives the partition
	App    catalog.AppID    // zero: the control partition
	Clock  func() time.Time // the wall clock; required
	Epoch  log.Epoch        // the opening, random: epoch of the entries that the log appends
	Random [16]byte         // random bytes of this opening of the store; zero: those of Epoch
	Index  *index.Options   // nil: the partition has no index, like the control partition

	// Secret is a random key. The writers of this opening come from it and Random. A new log without a seal key also stores it to recognize
	// its entries when replicas return them, see [Origin.Seal]. Zero: such a log gets no key.
	Secret [32]byte

	// Rules is the newest known version of the fold's rules; 0 means fold.Version.
	Rules uint32

	// Retention limits the stored part of the log; a zero field means its default. A replica ignores it.
	Retention Retention

	// Watch gets the changes of inputs by each run of entries, once they are visible; nil: no watcher. It must return at once and not use
	// the partition.
	Watch func(fold.Outcome)

	// Quota limits how much operations store; nil: no limit. A replica ignores it: its origin has one.
	Quota Quota

	// Follow opens an origin that follows: another machine writes. See [Origin.Advance].
	Follow bool
}

// ErrKind is returned by OpenOrigin for the store of a replica, and by OpenReplica for a store with its own log.
var ErrKind = errors.New("the store belongs to another kind of partition (replica or origin)")

// Partition is one application's log, state and index: the part that an [Origin] and a [Replica] share. Its methods are safe for concurrent
// use.
type Partition struct {
	side  side
	o     Options
	log   *log.Store // a replica's outbox: entry n is the operation at position n
	clock *log.Clock
	index *index.Index

	locks locks

	own     opening       // guarded by appending
	drawn   atomic.Uint64 // the writer in own
	spoiled atomic.Uint64 // writer of which the log has operations that this process has not made

	// Fields that folding guards.
	fold       *fold.Fold
	tx         *kv.Overlay
	cleanupDue bool // some cleanup may be due
	deriving   int  // number of AddDerived that wait for their records
	arrivals   arrivals

	// Fields that showing guards. A holder of folding may read them, too.
	seq     uint64          // last entry of log that was folded
	at      uint64          // last entry in the state; in a replica, pending operations count as entries after the pulled ones
	moves   uint64          // batches of entries that became visible
	writers outboxWriters   // writers of the outbox; at an origin, its last ones
	pinned  *sharedSnapshot // snapshot that views show while a large snapshot is installed; nil: they show the store
	closed  error           // reason for rejecting all writes; nil: open; kv.ErrFollows: another machine writes
	shut    bool            // after Shut: appended operations are not folded either

	tickets map[uint64][]fold.Verdict // verdicts that calls wait for, by the first entry of each; guarded by waiting
}

// side is the part of a partition that depends on its kind: the [Origin] or the [Replica] that contains it.
type side interface {
	// foldRun folds entries of the log or outbox and makes their effect visible in one batch. The batch needs no sync: if a crash undoes it,
	// the synced log is folded again. The caller holds folding.
	foldRun(entries []log.Entry) error
	// room returns an error if the partition cannot take n more own operations. The caller holds appending.
	room(n int) error
	// note adds to the batch of own operations the records of their writer, with its first operation, and of their token. It may refuse some
	// of them. first is the entry of the first operation. The caller holds appending.
	note(b *kv.Batch, ops []log.Op, t Token, first uint64) error
	// tidies reports whether cleanup may delete records now. The caller holds appending and folding.
	tidies() (bool, error)
	// step does the postponed work on the log.
	step(ctx context.Context, now time.Time) error
	// owns reports whether the partition does the work that an operation of a writer requests.
	owns(w log.Writer) bool
	// madeBy reports whether a writer is one of this store.
	madeBy(w log.Writer) bool
	// madeName returns the ID in the operation of the outbox that made the thing dot; empty: the outbox lacks it.
	madeName(dot log.Dot) (id string, err error)
}

// newPartition returns a partition that is not open yet.
func newPartition(o Options) *Partition {
	if o.Rules == 0 {
		o.Rules = fold.Version
	}
	if o.Quota == nil {
		o.Quota = noQuota{}
	}
	p := &Partition{
		o: o, clock: log.NewClock(o.Clock), fold: fold.NewUpTo(o.App, o.Rules), tx: kv.NewOverlay(o.Store), cleanupDue: true, tickets: map[uint64][]fold.Verdict{},
	}
	p.arrivals.p = p
	return p
}

// readHeader reads the header of the state, and sets the last entry in the state.
func (p *Partition) readHeader() (catalog.Header, error) {
	h, err := catalog.Read(p.o.Store, p.o.App).Header()
	p.at, p.seq = h.Seq, h.Seq
	p.clock.Observe(h.Clock)
	return h, err
}

func (p *Partition) openIndex() (err error) {
	if p.o.Index != nil {
		p.index, err = index.Open(p.o.Store, p.o.App, *p.o.Index)
	}
	return err
}

// foldRest folds the entries of the log that the state lacks. It returns fold.ErrNewer for a state folded by newer rules.
func (p *Partition) foldRest() error {
	if err := p.foldTo(p.log.Head()); err != nil {
		return err
	}
	h, err := p.Header()
	if err == nil && h.Fold > p.o.Rules {
		err = fmt.Errorf("state by rules of version %d: %w", h.Fold, fold.ErrNewer)
	}
	return err
}

// Rules returns the newest known version of the fold's rules.
func (p *Partition) Rules() uint32 { return p.o.Rules }

// IsResponsible reports whether this partition does the work that an operation requests, a download or a training. An origin does all of
// it; a replica does the work that the writers in its outbox requested.
func (p *Partition) IsResponsible(dot log.Dot) bool { return p.side.owns(dot.Writer) }

// MadeBy reports whether this process or, as far as the store shows it, an earlier one on this store has made the operations of a writer: an
// origin knows its last writers, and the sites that version 0.1.0 used, and a replica those with operations in its outbox.
func (p *Partition) MadeBy(w log.Writer) bool { return p.side.madeBy(w) }

// Index returns the application's index, nil for the control partition.
func (p *Partition) Index() *index.Index { return p.index }

// Log returns the partition's log for reading.
func (p *Partition) Log() *log.Store { return p.log }

// Close closes the partition once all submitted operations are folded. Its store stays open.
func (p *Partition) Close() error {
	defer p.locks.take(appending | folding | showing).unlock()
	p.closed = kv.ErrClosed
	if p.index != nil {
		return p.index.Close()
	}
	return nil
}

// Shut ends the partition permanently, because its data will be deleted. After it returns, the partition writes nothing, except a running
// Step. Every running call that would write, and every later call, returns why. Views can still be read.
func (p *Partition) Shut(why error) {
	defer p.locks.take(appending | folding | showing).unlock()
	p.closed, p.shut = why, true
}

// whyClosed returns the reason why the partition rejects writes, or nil if it is open.
func (p *Partition) whyClosed() error {
	defer p.locks.take(reading).unlock()
	return p.closed
}

// View is the state of a partition at one moment. It is safe for concurrent use. The caller closes it once.
type View struct {
	catalog.Reader
	snapshot kv.Snapshot
	seq      uint64
	moves    uint64
}

// View returns the current state.
func (p *Partition) View() *View {
	defer p.locks.take(reading).unlock()
	if pinned := p.pinned; pinned != nil {
		pinned.users.Add(1)
		return &View{Reader: catalog.Read(pinned, p.o.App), snapshot: pinned, seq: p.at, moves: p.moves}
	}
	s := p.o.Store.Snapshot()
	return &View{Reader: catalog.Read(s, p.o.App), snapshot: s, seq: p.at, moves: p.moves}
}

// Header returns the header of the current state. A single record needs no View.
func (p *Partition) Header() (catalog.Header, error) {
	defer p.locks.take(reading).unlock()
	if p.pinned != nil {
		return catalog.Read(p.pinned, p.o.App).Header()
	}
	return catalog.Read(p.o.Store, p.o.App).Header()
}

// Seq returns the last entry of the log that the view has folded. In a replica it is the last pulled entry plus the number of pending
// operations.
func (v *View) Seq() uint64 { return v.seq }

// Generation counts the visible changes since the partition was opened. The state is unchanged as long as the number is. In a replica Seq
// may stay the same although one of its operations got another verdict.
func (v *View) Generation() uint64 { return v.moves }

// Close releases the view.
func (v *View) Close() error {
	if v.snapshot == nil {
		return errors.New("partition: view closed twice")
	}
	s := v.snapshot
	v.snapshot = nil
	return s.Close()
}
