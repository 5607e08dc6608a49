package node

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/sightline-dev/sightline/core/auth"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/log/field"
)

// budget is the calls of an application that may be answered here without asking the origin, which has counted
// all of them already.
//
//	0 ── spent ── kept ───────── calls
//	        └ in memory └ in the store: a crash spends what lies between
//
// It is leased anew when less than half of a share is left, while the origin is there. What a budget has left when
// nothing was asked for a week goes back.
type budget struct {
	store kv.Store
	key   []byte
	want  chan struct{} // holds one token when more is wanted

	mu     sync.Mutex
	number uint64 // of the lease; 0: there is none
	calls  uint64 // of it in all
	spent  uint64
	kept   uint64    // spent, as the store has it: never less
	until  time.Time // zero: no end
	free   bool      // any number of calls
	over   bool      // nothing of it is spent any more: it goes back
	low    uint64    // left, below which more is wanted
	used   time.Time // when a call was last spent
	asked  chan struct{}
	failed bool // the origin was asked last and did not answer
	empty  bool // it had none left
	gone   bool // nothing is kept any more: the application is taken away
}

// mostKept is how many calls are kept as spent at once, and keptShare of those left one in so many is.
const (
	mostKept  = 256
	keptShare = 16
)

func openBudget(store kv.Store, app string, now time.Time) (*budget, error) {
	id, err := catalog.ParseAppID(app)
	if err != nil {
		return nil, err
	}
	b := &budget{store: store, key: id.LocalKey("calls"), want: make(chan struct{}, 1), used: now, asked: make(chan struct{})}
	data, err := store.Get(b.key)
	if errors.Is(err, kv.ErrNotFound) {
		return b, nil
	}
	if err != nil {
		return nil, err
	}
	d := field.Decode(data)
	for d.Next() {
		switch d.Number {
		case 1:
			b.number = d.Uint()
		case 2:
			b.calls = d.Uint()
		case 3:
			b.kept = d.Uint()
		case 4:
			b.until = time.UnixMilli(int64(d.Uint()))
		case 5:
			b.free = d.Bool()
		case 6:
			b.over = d.Bool()
		}
	}
	if err := d.Err(); err != nil {
		return nil, fmt.Errorf("budget of calls: %w: %w", kv.ErrCorrupt, err)
	}
	b.spent = b.kept
	b.low = (b.calls - min(b.spent, b.calls)) / 2
	return b, nil
}

// write keeps the budget. The lock is held.
func (b *budget) write() (wait func() error, err error) {
	if b.gone {
		return func() error { return nil }, nil
	}
	var e field.Encoder
	e.Uint(1, b.number)
	e.Uint(2, b.calls)
	e.Uint(3, b.kept)
	if !b.until.IsZero() {
		e.Uint(4, uint64(max(b.until.UnixMilli(), 0)))
	}
	e.Bool(5, b.free)
	e.Bool(6, b.over)
	var batch kv.Batch
	batch.Put(b.key, e.Bytes(nil))
	return b.store.Commit(&batch)
}

// left is how many calls may be spent now. The lock is held.
func (b *budget) left(now time.Time) uint64 {
	if b.number == 0 || b.over || !b.until.IsZero() && !now.Before(b.until) {
		return 0
	}
	return b.calls - min(b.spent, b.calls)
}

// more has more be asked for. The lock is held.
func (b *budget) more() {
	select {
	case b.want <- struct{}{}:
	default: // it was said and not heard yet
	}
}

// spend spends a call, and returns how many are left; negative: any number. The error is auth.ErrQuota. What it
// keeps it holds the lock for, since others would find nothing kept.
func (b *budget) spend(now time.Time) (int64, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.used = now
	if b.free {
		return -1, nil
	}
	left := b.left(now)
	if left == 0 {
		b.more()
		return 0, fmt.Errorf("%w: %s", auth.ErrQuota, b.why())
	}
	if b.spent >= b.kept {
		before := b.kept
		b.kept = b.spent + min(max(left/keptShare, 1), mostKept)
		wait, err := b.write()
		if err == nil {
			err = wait()
		}
		if err != nil {
			b.kept = before
			return 0, err
		}
	}
	b.spent++
	if left-1 < max(b.low, 1) {
		b.more()
	}
	return int64(left - 1), nil
}

// why is what who asks is told when nothing is left. The lock is held.
func (b *budget) why() string {
	if b.empty && !b.failed {
		return "the account that the application belongs to has none left: its plan, or an e-mail address that is not verified, sets a limit"
	}
	return "this server has none left of the account's and cannot reach the one that lends them"
}

// wait returns when calls may be spent, or a moment has passed in which the origin was asked for more.
// pause waits for its channel, or so long.
func (b *budget) wait(now time.Time, pause func(moved <-chan struct{})) {
	b.mu.Lock()
	if b.free || b.left(now) > 0 || b.failed || b.empty && (b.until.IsZero() || now.Before(b.until)) {
		b.mu.Unlock()
		return
	}
	b.more()
	asked := b.asked
	b.mu.Unlock()
	pause(asked)
}

// report is what the origin is told: the lease that is held and how much of it is used. over: the rest goes back.
// ok is false where there is none and nobody has asked for long: then none is wanted.
func (b *budget) report(now time.Time) (number, spent uint64, over, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.number, b.spent, b.over, b.number != 0 || now.Sub(b.used) < keepIdle
}

// leased is what the origin says.
type leased struct {
	number, calls uint64 // number 0: any number
	until         time.Time
}

// grant takes the answer to a report.
func (b *budget) grant(l leased, now time.Time) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.failed, b.free = false, l.number == 0
	if l.number != b.number {
		b.number, b.calls, b.spent, b.kept, b.over = l.number, 0, 0, 0, false
	}
	b.calls, b.until = max(l.calls, b.calls), l.until
	left := b.left(now)
	b.empty, b.low = left == 0 && !b.free, left/2
	b.tell()
	_, err := b.write()
	return err
}

// pause is how long the origin is not asked after an answer.
func (b *budget) pause() time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.failed:
		return leaseFailed
	case b.empty:
		return leaseEmpty
	}
	return leaseAgain
}

// fail says that the origin does not answer.
func (b *budget) fail() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.failed = true
	b.tell()
}

// heard says that the origin is there again.
func (b *budget) heard() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.failed {
		b.more()
	}
}

// need has a first lease be asked for.
func (b *budget) need() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.number == 0 && !b.free {
		b.more()
	}
}

// end has nothing be kept any more.
func (b *budget) end() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.gone = true
}

// tell wakes who waits for an answer. The lock is held.
func (b *budget) tell() {
	close(b.asked)
	b.asked = make(chan struct{})
}

// keepIdle is for how long what is not used is held.
const keepIdle = 7 * 24 * time.Hour

// rest ends the lease where nothing was asked for long: from then on nothing of it is spent.
func (b *budget) rest(now time.Time) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.left(now) == 0 || now.Sub(b.used) < keepIdle {
		return nil
	}
	b.over = true
	return b.durably()
}

// returned says that the origin has taken the rest back.
func (b *budget) returned() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.number, b.calls, b.spent, b.kept, b.over = 0, 0, 0, 0, false
	return b.durably()
}

// close keeps what was spent and no more.
func (b *budget) close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.kept == b.spent || b.number == 0 {
		return nil
	}
	b.kept = b.spent
	return b.durably()
}

func (b *budget) durably() error {
	wait, err := b.write()
	if err == nil {
		err = wait()
	}
	return err
}
