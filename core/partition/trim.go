package partition

import (
	"context"
	"errors"
	"time"

	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/log"
)

// Retention limits the part of a log that is kept after the state includes it, for replicas that pull it. A replica that is further behind
// takes a snapshot. The limits do not apply to a replica's outbox and to the control partition.
//
//	trimmed ─┬─ kept: no older than Age, no more than Entries ─── head
//	       floor            ▲ mark: the head of a day, which gives the age of entries
//
// The age of an entry counts from when it was appended, not from its clock: operations that an edge made while it was offline are as new
// as their arrival.
type Retention struct {
	Age     time.Duration // 0 means 30 days
	Entries uint64        // 0 means 200,000. Of them the last 4,096 are kept whatever their age

	// MaxOffline is the maximum age of a write of a field when it arrives. Older writes are stale: the horizon follows the clock at this
	// distance, once another site has written. 0 means 90 days.
	MaxOffline time.Duration

	// Writes is the time for which replicas keep their confirmed operations, at least: an origin restored from a backup that is
	// not older gets them back. See [Partition.Stable]. 0 means 7 days.
	Writes time.Duration
}

// Defaults of Keep, and the minimum for any log, so that a replica that has just taken a snapshot can pull.
const (
	keepAge     = 30 * 24 * time.Hour
	keepEntries = 200_000
	keepAway    = 90 * 24 * time.Hour
	keepWrites  = 7 * 24 * time.Hour
	leastKept   = 4096
)

func (k *Retention) defaults() {
	if k.Age <= 0 {
		k.Age = keepAge
	}
	if k.Entries == 0 {
		k.Entries = keepEntries
	}
	if k.MaxOffline <= 0 {
		k.MaxOffline = keepAway
	}
	if k.Writes <= 0 {
		k.Writes = keepWrites
	}
}

// trimState has the marks of the log, and when Step moves the horizon.
type trimState struct {
	known bool // marks are read
	marks []mark
	next  time.Time // when the horizon is looked at next
	seen  uint64    // the last entry then
}

// mark says that the log ended in an entry at a time.
type mark struct {
	at  time.Time `wire:"1,ms"`
	seq uint64    `wire:"2"`
}

// trimMarks are marks as the store keeps them.
//
//field:message
type trimMarks struct {
	marks []mark `wire:"1"`
}

// marksKept is the resolution of ages: the number of parts of Age.
const marksKept = 16

func marksKey(app catalog.AppID) []byte { return app.LocalKey("trim") }

// trimsLog reports whether the partition's log is one that is trimmed.
func (p *Partition) trimsLog() bool { return p.replica == nil && p.o.App != catalog.Control }

// stepTrim trims the log. Nothing is lost by it: only what the state has folded goes, in a batch behind that
// of the state, so that no crash takes back the one without the other.
func (p *Partition) stepTrim(now time.Time) error {
	lock := p.locks.take(reading)
	seq, shut := p.seq, p.shut
	lock.unlock()
	floor, keep := p.log.Floor(), &p.o.Retention
	least := min(leastKept, keep.Entries)
	if shut || seq+1 < floor+least {
		return nil
	}
	below := floor
	if kept := seq + 1 - floor; kept > keep.Entries+keep.Entries/8 {
		below = seq + 1 - keep.Entries
	}
	old, err := p.mark(now, seq)
	if err != nil {
		return err
	}
	if below = min(max(below, old+1), seq+1-least); below <= floor {
		return nil
	}
	return p.log.Trim(below)
}

// readMarks reads the marks that are noted, once.
func (p *Partition) readMarks() error {
	t := &p.trim
	if t.known {
		return nil
	}
	data, err := p.o.Store.Get(marksKey(p.o.App))
	if err != nil && !errors.Is(err, kv.ErrNotFound) {
		return err
	}
	if t.marks, err = decodeMarks(data); err != nil {
		return err
	}
	t.known = true
	return nil
}

// Stable is the last entry that replicas need not keep for a restore of an older backup: it was trimmed, or is older than
// Keep.Writes, as far as marks tell. A log without marks is short, and replicas keep what they wrote in it.
func (p *Partition) Stable(now time.Time) (seq uint64, err error) {
	defer p.locks.take(trimming).unlock()
	if err := p.readMarks(); err != nil {
		return 0, err
	}
	seq = p.log.Floor() - 1
	for _, m := range p.trim.marks {
		if now.Sub(m.at) >= p.o.Retention.Writes {
			seq = max(seq, m.seq)
		}
	}
	return seq, nil
}

// mark notes where the log is, if that was not noted lately, and returns the last entry that is
// older than is kept; 0: none is known to be.
func (p *Partition) mark(now time.Time, seq uint64) (old uint64, err error) {
	t := &p.trim
	if err := p.readMarks(); err != nil {
		return 0, err
	}
	marks := t.marks[:len(t.marks):len(t.marks)]
	for len(marks) > 0 && marks[len(marks)-1].at.After(now) { // the clock was set back
		marks = marks[:len(marks)-1]
	}
	for len(marks) > 0 && now.Sub(marks[0].at) >= p.o.Retention.Age {
		if old = marks[0].seq; len(marks) == 1 || now.Sub(marks[1].at) < p.o.Retention.Age {
			break
		}
		marks = marks[1:]
	}
	if n := len(marks); n == 0 || now.Sub(marks[n-1].at) >= p.o.Retention.Age/marksKept {
		marks = append(marks, mark{now, seq})
	} else if len(marks) == len(t.marks) {
		return old, nil
	}
	err = p.Tidy(func(tx *kv.Overlay) error {
		tx.Put(marksKey(p.o.App), encodeMarks(marks))
		return nil
	})
	if err == nil {
		t.marks = marks
	}
	return old, err
}

func encodeMarks(marks []mark) []byte { return encodeTrimMarks(nil, &trimMarks{marks}) }

func decodeMarks(data []byte) ([]mark, error) {
	if data == nil {
		return nil, nil
	}
	x, err := decodeTrimMarks(data)
	return x.marks, err
}

// horizonEvery is the number of moves of the horizon in the time Away.
const horizonEvery = 64

// stepHorizon moves the horizon on, by an entry of the log, so that what is below it is the same at all who fold
// it. It follows the clocks of the log too: one that was set ahead for a moment moves nothing by
// itself. An application that nobody else writes to has none, and one that nothing was written to since
// gets no other.
func (p *Partition) stepHorizon(ctx context.Context, now time.Time) error {
	t, every := &p.trim, p.o.Retention.MaxOffline/horizonEvery
	if now.Before(t.next) && t.next.Sub(now) <= every {
		return nil
	}
	head := p.log.Head()
	if t.next = now.Add(every); head == t.seen {
		return nil
	}
	t.seen = head
	state := catalog.Read(p.o.Store, p.o.App)
	h, err := state.Header()
	if err != nil {
		return err
	}
	to := min(log.HLC(now.UnixMilli())<<16, h.Clock).Time().Add(-p.o.Retention.MaxOffline)
	if to.Sub(h.Horizon.Time()) < every || to.UnixMilli() <= 0 {
		return nil
	}
	due, err := p.horizonAdvances(to)
	if err != nil || !due {
		return err
	}
	_, err = p.Submit(ctx, "", []log.Body{&log.Horizon{At: log.HLC(to.UnixMilli()) << 16}}, nil)
	if err == nil {
		t.seen = p.log.Head()
	}
	return err
}

// horizonAdvances reports whether a horizon has an effect: others write here, something else than the
// last one was written since, and the log has begun before it.
func (p *Partition) horizonAdvances(to time.Time) (bool, error) {
	others := false
	err := catalog.Read(p.o.Store, p.o.App).Writers(func(s log.Site) bool {
		others = !p.MadeBy(s)
		return !others
	})
	if err != nil || !others {
		return false, err
	}
	err = p.log.Read(p.log.Head(), func(e log.Entry) bool {
		_, last := e.Op.Body.(*log.Horizon)
		others = !last
		return false
	})
	if errors.Is(err, log.ErrTrimmed) { // all entries were trimmed, so the log began long before
		return true, nil
	}
	if err != nil || !others {
		return false, err
	}
	if p.log.Floor() > 1 {
		return true, nil
	}
	err = p.log.Read(1, func(e log.Entry) bool {
		others = e.Op.At.Time().Before(to)
		return false
	})
	if errors.Is(err, log.ErrTrimmed) { // this very moment
		return true, nil
	}
	return others, err
}
