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
	Stopped     Phase = iota // it has not begun, or was stopped
	Unreachable              // the host knows of no way to the origin
	Connecting               // there is no session
	Rebasing                 // a snapshot is on its way
	Pulling                  // the log has entries beyond the cursor, as far as the replica knows
	Paused                   // nothing may be pulled: the log is folded by newer rules, or the application is refused to us, see Problem
	Current                  // at the last word of the origin we had all of its log
	Purged                   // the application is no longer for this replica to hold
)

// String returns the phase's name, such as "current".
func (p Phase) String() string {
	return [...]string{"stopped", "unreachable", "connecting", "rebasing", "pulling", "paused", "current", "purged"}[p]
}

// originState collects figures for people.
type originState struct {
	head        uint64 // last entry of the origin's log, as it said last
	contact     time.Time
	current     time.Time
	streamedAt  time.Time // a stream brought entries, or the news that there are none: the register before them is the newest
	denied      string    // why there is no session
	problem     string    // that a new session alone ends
	verdicts    [8]uint64
	sentBlobs   uint64
	gotBlobs    uint64
	rebases     uint64
	repairs     uint64
	audited     time.Time
	purged      bool
	unreachable bool // a request was lost, and nothing was answered since
}

// recordVerdicts counts the verdicts of the log on operations of this site.
func (t *originState) recordVerdicts(list []partition.OpVerdict) {
	for i := range list {
		if c := int(list[i].Verdict.Code); c < len(t.verdicts) {
			t.verdicts[c]++
		}
	}
}

// Status is the state of the replica, and its last knowledge of the origin with the time.
type Status struct {
	Phase    Phase     `wire:"1,max=Purged"`
	Site     log.Site  `wire:"2"`     // our own; 0: none was leased yet
	Epoch    log.Epoch `wire:"3"`     // of the log
	Cursor   uint64    `wire:"4"`     // last entry that was folded
	Head     uint64    `wire:"5"`     // last entry of the origin's log at Contact, or later
	Contact  time.Time `wire:"24,ns"` // when the origin last answered at all; zero: not yet
	AsOf     time.Time `wire:"25,ns"` // when it last said that there was no more than what we have; zero: not yet
	Heard    time.Time `wire:"28,ns"` // when a stream last came as far as entries, before which the newest register comes; zero: not yet
	Issued   uint64    `wire:"6"`     // last own operation
	Accepted uint64    `wire:"7"`     // last one that the origin says its log has
	Folded   uint64    `wire:"8"`     // last one that was folded from its log

	Chunks     int `wire:"16"` // of a snapshot on its way
	ChunksDone int `wire:"17"` // of a snapshot on its way
	Uploads    int `wire:"18"` // pictures and objects that are known to be missing at the origin
	Downloads  int `wire:"19"` // pictures that are known to be missing here and are wanted

	BlobsSent uint64    `wire:"9"`  // since New
	BlobsGot  uint64    `wire:"10"` // since New
	Rebases   uint64    `wire:"11"` // likewise
	Repairs   uint64    `wire:"12"` // likewise
	Audited   time.Time `wire:"26,ns"`
	Refused   uint64    `wire:"13"` // own operations since New whose verdict is a conflict

	Denied  string    `wire:"33"`    // why the origin began no session with us, as who we are; empty: it did, or was not asked
	Problem string    `wire:"32"`    // what goes wrong, for people; empty: nothing
	Renewed string    `wire:"34"`    // that and when an older copy of the replica's data was found restored, for people; empty: never
	Retry   time.Time `wire:"27,ns"` // when the next try is made, while something pauses; zero: nothing does
}

// Pending returns the number of unconfirmed operations of this site.
func (s *Status) Pending() uint64 { return s.Issued - min(s.Folded, s.Issued) }

// IsSettled reports whether the replica has all there was, the origin has all of ours, and the
// pictures that either wants are where they should be.
func (s *Status) IsSettled() bool {
	return s.Phase == Current && s.Pending() == 0 && s.Uploads == 0 && s.Downloads == 0
}

// Status returns the state of the replica.
func (m *Machine) Status() Status {
	c := m.p.Cursor()
	issued, confirmed := m.p.Outbox()
	t := &m.origin
	s := Status{
		Phase: m.phase(&c), Site: m.p.Site(), Epoch: c.Epoch, Cursor: c.Seq, Head: max(t.head, c.Seq),
		Contact: t.contact, AsOf: t.current, Heard: t.streamedAt, Issued: issued, Accepted: min(max(m.push.accepted, confirmed), issued), Folded: confirmed,
		Chunks: len(m.rebase.parts), ChunksDone: m.rebase.next,
		Uploads: len(m.upload.queue), Downloads: m.downloads(),
		BlobsSent: t.sentBlobs, BlobsGot: t.gotBlobs, Rebases: t.rebases, Repairs: t.repairs, Audited: t.audited,
		Refused: m.conflicts(), Denied: t.denied, Problem: m.problem(), Renewed: m.note.renewed,
	}
	if m.session.active && !m.sameLog() { // the log that confirmed them no longer exists
		s.Accepted = m.push.accepted
		s.Folded = min(confirmed, s.Accepted)
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
	if m.origin.problem != "" {
		return m.origin.problem
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

// downloads returns the number of pictures that are known to be needed; inputs that were not looked at count as one.
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

// conflicts counts the verdicts that are conflicts.
func (m *Machine) conflicts() (n uint64) {
	for code, count := range m.origin.verdicts {
		if code > 2 {
			n += count
		}
	}
	return n
}

// statusDigest is the part of a status whose changes are reported at once.
type statusDigest struct {
	phase                              Phase
	cursor, head, issued, sent, folded uint64
	chunks, uploads, downloads         int
	problem                            string
}

func (m *Machine) brief() statusDigest {
	c := m.p.Cursor()
	issued, confirmed := m.p.Outbox()
	return statusDigest{
		phase: m.phase(&c), cursor: c.Seq, head: m.origin.head, issued: issued, sent: m.push.accepted, folded: confirmed,
		chunks: m.rebase.next, uploads: len(m.upload.queue), downloads: m.downloads(), problem: m.problem(),
	}
}
