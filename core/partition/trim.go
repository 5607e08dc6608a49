package partition

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/log"
)

// Retention limits the part of a log that is stored after the state includes it, for replicas that pull it. A replica that is further
// behind installs a snapshot. The limits do not apply to a replica's outbox and to the control partition.
//
//	trimmed ─┬─ stored: no older than Age, no more than Entries ─── head
//	       floor            ▲ mark: the head of a day, which gives the age of entries
//
// The age of an entry counts from when it was appended, not from its clock: operations that an edge made while it was offline are as new
// as their arrival.
type Retention struct {
	Age     time.Duration // 0 means 30 days
	Entries uint64        // 0 means 200,000; the last 4,096 are stored at any age

	// MaxOffline is the maximum age of a write when it arrives. Older writes are stale, except deletions: the horizon follows the clock at
	// this distance. 0 means 90 days.
	MaxOffline time.Duration

	// Writes is the minimum time for which replicas store their confirmed operations. An origin restored from a backup of that age or newer
	// gets them back. See [Origin.Stable]. 0 means 7 days.
	Writes time.Duration
}

// Defaults of Retention, and the minimum of entries for any log, so that a replica that has just installed a snapshot can pull.
const (
	keepAge     = 30 * 24 * time.Hour
	keepEntries = 200_000
	keepOffline = 90 * 24 * time.Hour
	keepWrites  = 7 * 24 * time.Hour
	leastKept   = 4096
)

func (k *Retention) defaults() {
	k.Age = cmp.Or(max(k.Age, 0), keepAge)
	k.Entries = cmp.Or(k.Entries, keepEntries)
	k.MaxOffline = cmp.Or(max(k.MaxOffline, 0), keepOffline)
	k.Writes = cmp.Or(max(k.Writes, 0), keepWrites)
}

// trimState is the marks of the log, and the time at which Step next moves the horizon.
type trimState struct {
	known bool // marks were read from the store
	marks []mark
	next  time.Time // time of the next check of the horizon
	seen  uint64    // last entry at the previous check
}

// mark records the last entry of the log at a time.
type mark struct {
	at  time.Time `wire:"1,ms"`
	seq uint64    `wire:"2"`
}

// trimMarks is the stored form of the marks.
//
//field:message
type trimMarks struct {
	marks []mark `wire:"1"`
}

// ageMarks is the number of parts into which marks divide Age, and so the resolution of ages.
const ageMarks = 16

func marksKey(app catalog.AppID) []byte { return app.LocalKey("trim") }

// step implements [side]. It trims the log and moves the horizon. If the store is full, it postpones both.
func (p *Origin) step(ctx context.Context, now time.Time) error {
	lock := p.locks.take(appending)
	if p.o.Clock().Sub(p.clocks.used).Abs() > madeUnused {
		p.clocks = madeClocks{}
	}
	lock.unlock()
	if p.o.App == catalog.Control {
		return nil
	}
	defer p.locks.take(trimming).unlock()
	err := p.stepTrim(now)
	if err == nil {
		err = p.stepHorizon(ctx, now)
	}
	if errors.Is(err, kv.ErrFull) {
		return nil
	}
	return err
}

// stepTrim trims the log. It removes only entries that the state has folded. The batch follows that of the state, so no crash undoes the
// state's batch without this one.
func (p *Origin) stepTrim(now time.Time) error {
	lock := p.locks.take(reading)
	seq, shut := p.seq, p.shut
	lock.unlock()
	floor, retention := p.log.Floor(), &p.o.Retention
	least := min(leastKept, retention.Entries)
	if shut || seq+1 < floor+least {
		return nil
	}
	below := floor
	if entries := seq + 1 - floor; entries > retention.Entries+retention.Entries/8 {
		below = seq + 1 - retention.Entries
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

// read reads the stored marks, once.
func (t *trimState) read(s kv.Reader, app catalog.AppID) error {
	if t.known {
		return nil
	}
	data, err := kv.Find(s, marksKey(app))
	if err == nil && data != nil {
		var x trimMarks
		x, err = decodeTrimMarks(data)
		t.marks = x.marks
	}
	t.known = err == nil
	return err
}

// Stable returns the last entry that replicas need not store for a restore of an older backup: it was trimmed, or the marks show that it is
// older than Retention.Writes. A log without marks is short, and replicas store everything that they wrote in it.
func (p *Origin) Stable(now time.Time) (seq uint64, err error) {
	defer p.locks.take(trimming).unlock()
	if err := p.trim.read(p.o.Store, p.o.App); err != nil {
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

// mark records the current end of the log if the last mark is old enough. It returns the last entry that is older than Retention.Age; 0:
// none is known.
func (p *Origin) mark(now time.Time, seq uint64) (old uint64, err error) {
	t := &p.trim
	if err := p.trim.read(p.o.Store, p.o.App); err != nil {
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
	if n := len(marks); n == 0 || now.Sub(marks[n-1].at) >= p.o.Retention.Age/ageMarks {
		marks = append(marks, mark{now, seq})
	} else if len(marks) == len(t.marks) {
		return old, nil
	}
	err = p.Tidy(func(tx *kv.Overlay) error {
		tx.Put(marksKey(p.o.App), encodeTrimMarks(nil, &trimMarks{marks}))
		return nil
	})
	if err == nil {
		t.marks = marks
	}
	return old, err
}

// horizonEvery is the number of moves of the horizon in the time Retention.MaxOffline.
const horizonEvery = 64

// stepHorizon moves the horizon by an entry of the log, so that it is the same at every replica that folds the log. It also depends on the
// clocks in the log, so a wall clock that is ahead for a moment does not move it. An application without new entries gets no new one.
func (p *Origin) stepHorizon(ctx context.Context, now time.Time) error {
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
	due, err := horizonAdvances(p.log, to)
	if err != nil || !due {
		return err
	}
	_, err = p.Submit(ctx, "", []log.Body{&log.Horizon{At: log.HLC(to.UnixMilli()) << 16}}, nil)
	if err == nil {
		t.seen = p.log.Head()
	}
	return err
}

// horizonAdvances reports whether a horizon entry has an effect: the last entry is not a horizon, and the log began before to.
func horizonAdvances(l *log.Store, to time.Time) (advances bool, err error) {
	err = l.Read(l.Head(), func(e log.Entry) bool {
		_, last := e.Op.Body.(*log.Horizon)
		advances = !last
		return false
	})
	if err == nil && advances && l.Floor() == 1 {
		err = l.Read(1, func(e log.Entry) bool {
			advances = e.Op.At.Time().Before(to)
			return false
		})
	}
	if errors.Is(err, log.ErrTrimmed) { // so the log began long before
		return true, nil
	}
	return advances, err
}
