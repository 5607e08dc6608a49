package replica

import (
	"time"

	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/partition"
	"github.com/sightline-dev/sightline/sync/wire"
)

// Phase is the current activity of the machine.
type Phase int

// The phases.
const (
	Stopped     Phase = iota // not begun, or stopped
	Unreachable              // the host is offline
	Connecting               // there is no session
	Rebasing                 // a snapshot is being downloaded
	Pulling                  // as far as the replica knows, the log has entries after the cursor
	Paused                   // pulling is not possible: the log needs newer fold rules, or the origin denies access; see Problem
	Current                  // at the origin's last report the replica had its complete log
	Purged                   // the replica no longer has access to the application and must delete it
)

// String returns the phase's name, such as "current".
func (p Phase) String() string {
	return [...]string{"stopped", "unreachable", "connecting", "rebasing", "pulling", "paused", "current", "purged"}[p]
}

// originState collects the last known state of the origin and counters for Status.
type originState struct {
	head        uint64 // last entry of the origin's log, as last reported
	contact     time.Time
	current     time.Time
	streamedAt  time.Time // last time when a stream reached the entries, after the newest app record
	denied      string    // reason why there is no session; empty: none
	refused     uint64    // verdicts on own operations that are conflicts
	sentBlobs   uint64
	gotBlobs    uint64
	rebases     uint64
	differences uint64
	audited     time.Time
	purged      bool
	unreachable bool // a request was lost, and no answer arrived since
}

// Status is the state of the replica and the last known state of the origin.
type Status struct {
	Phase    Phase     `wire:"1,max=Purged"`
	Epoch    log.Epoch `wire:"3"`     // epoch of the cursor
	Cursor   uint64    `wire:"4"`     // last folded entry
	Head     uint64    `wire:"5"`     // last entry of the origin's log at Contact, or later
	Contact  time.Time `wire:"24,ns"` // last time when the origin answered; zero: never
	AsOf     time.Time `wire:"25,ns"` // last time when the origin had no more entries than the replica; zero: never
	Heard    time.Time `wire:"28,ns"` // last time when a stream reached the entries, after the newest app record; zero: never
	Issued   uint64    `wire:"6"`     // last own operation
	Accepted uint64    `wire:"7"`     // last own operation that the log has, as the origin reports
	Folded   uint64    `wire:"8"`     // last own operation that was pulled and folded

	Chunks     int `wire:"16"` // parts of the snapshot in transfer
	ChunksDone int `wire:"17"` // parts of it that arrived, without a gap
	Uploads    int `wire:"18"` // pictures and objects that the origin is known to lack
	Downloads  int `wire:"19"` // wanted pictures that the replica is known to lack

	BlobsSent   uint64    `wire:"9"`     // pictures uploaded since New
	BlobsGot    uint64    `wire:"10"`    // pictures downloaded since New
	Rebases     uint64    `wire:"11"`    // snapshots installed since New
	Differences uint64    `wire:"12"`    // audits since New that found a difference
	Audited     time.Time `wire:"26,ns"` // last audit; zero: none since New
	Refused     uint64    `wire:"13"`    // own operations since New whose verdict is a conflict

	Denied  string    `wire:"33"`    // reason why the origin refused this replica a session; empty: it did not
	Problem string    `wire:"32"`    // current problem, for people; empty: none
	Limit   string    `wire:"35"`    // name of the origin's limit that stops the pushes of this replica, such as wire.LimitCalls; empty: none
	Retry   time.Time `wire:"27,ns"` // time of the next retry while a lane pauses; zero: no lane does
}

// Pending returns the number of unconfirmed operations here.
func (s *Status) Pending() uint64 { return s.Issued - min(s.Folded, s.Issued) }

// IsSettled reports whether the replica and the origin have the same operations and no picture is waiting for an upload or a download.
func (s *Status) IsSettled() bool {
	return s.Phase == Current && s.Pending() == 0 && s.Uploads == 0 && s.Downloads == 0
}

// Status returns the state of the replica.
func (m *Machine) Status() Status {
	c := m.p.Cursor()
	issued, confirmed := m.p.Outbox()
	t := &m.origin
	s := Status{
		Phase: m.phase(&c), Epoch: c.Epoch, Cursor: c.Seq, Head: max(t.head, c.Seq),
		Contact: t.contact, AsOf: t.current, Heard: t.streamedAt, Issued: issued, Accepted: min(max(m.push.accepted, confirmed), issued), Folded: confirmed,
		Chunks: len(m.rebase.parts), ChunksDone: m.rebase.next,
		Uploads: len(m.upload.queue), Downloads: m.downloads(),
		BlobsSent: t.sentBlobs, BlobsGot: t.gotBlobs, Rebases: t.rebases, Differences: t.differences, Audited: t.audited,
		Refused: t.refused, Denied: t.denied, Problem: m.problem(), Limit: m.lane[lanePush].over,
	}
	if m.running && m.online {
		var due time.Duration
		for i := range m.lane {
			if l := &m.lane[i]; l.fails > 0 && l.id == 0 && l.next > m.at && (due == 0 || l.next < due) {
				due = l.next
			}
		}
		if due != 0 {
			s.Retry = m.wall.Add(due - m.at)
		}
	}
	return s
}

// problem returns the current problem, for people.
func (m *Machine) problem() string {
	if m.session.paused != "" {
		return m.session.paused
	}
	for i := range m.lane {
		if w := m.lane[i].wrong; w != "" {
			return w
		}
	}
	return ""
}

func (m *Machine) phase(c *partition.Cursor) Phase {
	switch {
	case m.origin.purged:
		return Purged
	case !m.running:
		return Stopped
	case !m.online:
		return Unreachable
	case !m.session.active, m.origin.unreachable:
		return Connecting
	case m.session.rebase:
		return Rebasing
	case m.session.paused != "":
		return Paused
	case m.pull.caught && c.Seq >= m.origin.head && m.lane[lanePull].fails == 0:
		return Current
	}
	return Pulling
}

// downloads returns the number of pictures that are known to be needed. Inputs that were not scanned yet count as one.
func (m *Machine) downloads() int {
	d := &m.load
	if m.o.Blobs == nil {
		return 0
	}
	n := len(d.needs)
	if !d.now.IsZero() {
		n++
	}
	if m.o.Wants.Blobs == wire.BlobsFull {
		n += len(d.eager)
		if d.scans {
			n++
		}
	}
	return n
}

// brief returns the part of the status whose changes produce a StatusChange at once: all but the times.
func (m *Machine) brief() Status {
	s := m.Status()
	s.Contact, s.AsOf, s.Heard, s.Audited, s.Retry = time.Time{}, time.Time{}, time.Time{}, time.Time{}, time.Time{}
	return s
}
