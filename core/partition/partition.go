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
	// its entries when replicas return them, see [Partition.Seal]. Zero: such a log gets no key.
	Secret [32]byte

	// Replica makes the partition a replica of another one, whose log it pulls; nil: the partition has a log.
	Replica *Replica

	// Rules is the newest known version of the fold's rules; 0 means fold.Version.
	Rules uint32

	// Retention limits the stored part of the log; a zero field means its default.
	Retention Retention

	// Watch gets the changes of inputs by each run of entries, once they are visible; nil: no watcher. It must return at once and not use
	// the partition.
	Watch func(fold.Outcome)

	// Quota limits how much operations store; the zero Quota sets no limit. A replica ignores it: its origin has one.
	Quota Quota
}

// Partition is one application's log, state and index. Its methods are safe for concurrent use.
type Partition struct {
	o       Options
	log     *log.Store // a replica's outbox: entry n is the operation at position n
	clock   *log.Clock
	index   *index.Index
	replica *replica // nil: the partition has a log
	sealKey []byte   // nil: the log has no key

	locks locks

	own     opening       // guarded by appending
	drawn   atomic.Uint64 // the writer in own
	spoiled atomic.Uint64 // writer of which the log has operations that this process has not made

	// Fields that folding guards.
	fold       *fold.Fold
	tx         *kv.Overlay
	cleanupDue bool // some cleanup may be due

	// Fields that showing guards. A holder of folding may read them, too.
	seq     uint64          // last entry of log that was folded
	at      uint64          // last entry in the state; in a replica, pending operations count as entries after the pulled ones
	moves   uint64          // batches of entries that became visible
	writers outboxWriters   // writers of the outbox; at an origin, its last ones
	pinned  *sharedSnapshot // snapshot that views show while a large snapshot is installed; nil: they show the store
	closed  error           // reason for rejecting all writes; nil: open
	shut    bool            // after Shut: appended operations are not folded either

	trim       trimState                   // guarded by trimming
	tickets    map[uint64]*ticket          // by the first entry of each; guarded by waiting
	dropsNames bool                        // a horizon was appended since appended was last empty; guarded by appending
	appended   map[log.Writer]*writerNames // names of other writers in the log, once this process has appended some; guarded by appending
	clocks     madeClocks                  // guarded by appending
}

// ticket is a Submit that waits for its verdicts.
type ticket struct{ verdicts []fold.Verdict }

// Open opens a partition and folds the entries of its log that the state lacks. If the program knows newer rules of the fold than those in
// force, Open puts them in force in the log. Errors: those of kv, and fold.ErrNewer.
func Open(o Options) (*Partition, error) {
	if o.Rules == 0 {
		o.Rules = fold.Version
	}
	o.Retention.defaults()
	p := &Partition{
		o: o, clock: log.NewClock(o.Clock), fold: fold.NewUpTo(o.App, o.Rules), tx: kv.NewOverlay(o.Store),
		cleanupDue: true, tickets: map[uint64]*ticket{}, appended: map[log.Writer]*writerNames{},
	}
	err := p.openReplica()
	if err == nil {
		err = p.openLog()
	}
	if err == nil {
		err = p.openSeal()
	}
	if err == nil && o.Index != nil {
		p.index, err = index.Open(o.Store, o.App, *o.Index)
	}
	if err == nil && p.replica != nil {
		err = p.keepOld()
	}
	if err == nil && p.replica != nil && p.replica.torn {
		err = p.wipe()
	}
	if err == nil && p.replica != nil && p.replica.rules != p.o.Rules {
		p.replica.rules = p.o.Rules
		err = p.refoldAll()
	}
	if err == nil {
		err = p.foldTo(p.log.Head())
	}
	if err == nil {
		err = p.rule()
	}
	if err == nil {
		err = p.dropOld()
	}
	if err != nil {
		return nil, fmt.Errorf("partition %v: %w", o.App, err)
	}
	return p, nil
}

// rule returns fold.ErrNewer for a state folded by newer rules. In a log that others pull, it puts the newest known rules in force. If the
// store is full, the previous rules stay in force.
func (p *Partition) rule() error {
	h, err := p.Header()
	switch rules := max(h.Fold, fold.First); {
	case err != nil:
		return err
	case rules > p.o.Rules:
		return fmt.Errorf("state by rules of version %d: %w", rules, fold.ErrNewer)
	case rules == p.o.Rules, p.replica != nil, p.o.App == catalog.Control:
		return nil
	}
	_, err = p.Submit(context.Background(), "", []log.Body{&log.Rules{Version: p.o.Rules}}, nil)
	if errors.Is(err, kv.ErrFull) {
		return nil
	}
	return err
}

// Rules returns the newest known version of the fold's rules.
func (p *Partition) Rules() uint32 { return p.o.Rules }

// openLog opens the log, or a replica's outbox, and sets the last entry of it that the state has.
func (p *Partition) openLog() error {
	h, err := catalog.Read(p.o.Store, p.o.App).Header()
	if err != nil {
		return err
	}
	p.at, p.seq = h.Seq, h.Seq
	o := log.Options{Prefix: p.o.App.LogPrefix(), Epoch: p.o.Epoch, Durable: h.Seq}
	if p.replica != nil { // nobody follows an outbox
		o.Durable, o.Epoch = p.replica.confirmed.after(0)-1, log.Epoch{}
	}
	p.clock.Observe(h.Clock)
	if p.log, err = log.Open(p.o.Store, o); err != nil {
		return err
	}
	if p.replica != nil {
		return p.openOutbox(h)
	}
	if p.log.Head() < p.seq {
		err = fmt.Errorf("state of entry %d, but the log ends at %d: %w", p.seq, p.log.Head(), kv.ErrCorrupt)
	}
	return err
}

// Index returns the application's index, nil for the control partition.
func (p *Partition) Index() *index.Index { return p.index }

// Log returns the partition's log for reading.
func (p *Partition) Log() log.Log { return p.log }

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

// Moves counts the visible changes since the partition was opened. The state is unchanged as long as the number is. In a replica Seq may
// stay the same although one of its operations got another verdict.
func (v *View) Moves() uint64 { return v.moves }

// Close releases the view.
func (v *View) Close() error {
	if v.snapshot == nil {
		return errors.New("partition: view closed twice")
	}
	s := v.snapshot
	v.snapshot = nil
	return s.Close()
}
