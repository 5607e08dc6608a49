package replica

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/auth"
	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/log/field"
	"github.com/sightline-dev/sightline/core/partition"
	"github.com/sightline-dev/sightline/sync/wire"
)

// renewAfter is the maximum time of a session. A new session gives the replica its current budgets and scopes.
const renewAfter = time.Hour

// versionPause is the pause after a refusal that only an update of the replica or the origin ends.
const versionPause = 10 * time.Minute

// session is the origin's grant for the application.
type session struct {
	active  bool
	opening log.Epoch // of the origin's log
	lacks   bool      // the log lacks the replica's place
	stable  uint64
	limits  wire.Limits
	renew   time.Duration
	rebase  bool   // the log does not continue from the cursor: a snapshot is needed
	paused  string // reason why pulling is not possible until the next session; empty: it is
	drains  bool   // the origin denies access, but still accepts operations of this replica
	dates   bool   // the origin answers dates
}

// startSession requests a session if there is none or the current one is old.
func (m *Machine) startSession(l *lane) error {
	if m.session.active && m.at < m.session.renew {
		return nil
	}
	c, err := m.place()
	if err != nil {
		return err
	}
	at := wire.Position{App: m.o.App.String(), Epoch: c.Epoch, Seq: c.Seq, Chain: c.Chain, Kept: m.p.Kept()}
	if m.o.AppRecords != nil {
		at.Register = m.o.AppRecords.Seq()
	}
	s := wire.Session{
		Min: wire.Oldest, Max: wire.Protocol, Fold: m.p.Rules(), Schema: field.Version, Name: m.o.Name,
		Apps: []wire.Position{at}, Vectors: m.o.Wants.Vectors,
	}
	m.ask(l, Ask{Method: "POST", Path: "/v2/sync/session", Body: s.Encode()})
	return nil
}

// place returns the place that the log must have: the cursor, or if a crash has left a part of a snapshot, which was deleted, the last kept entry.
func (m *Machine) place() (c partition.Cursor, err error) {
	if c = m.p.Cursor(); c.Seq > 0 {
		return c, nil
	}
	err = m.p.KeptAfter(0, func(_ uint64, f partition.Frame) bool {
		c = partition.Cursor{Epoch: f.Epoch, Seq: f.To, Chain: f.Chain}
		return true
	})
	return c, err
}

// handleSessionReply handles the origin's answer to a session request.
func (m *Machine) handleSessionReply(l *lane, body []byte) error {
	o, err := wire.DecodeSessionReply(body)
	if err != nil {
		return err
	}
	if o.Protocol < wire.Oldest || o.Protocol > wire.Protocol || len(o.Grants) != 1 || o.Grants[0].App != m.o.App.String() {
		return fmt.Errorf("%w: the session does not match the request", errAnswer)
	}
	g := &o.Grants[0]
	if g.Do == wire.DoErase || g.Do == wire.DoRefused && !g.Drain {
		m.purge(g.Detail, g.Do == wire.DoRefused)
		return nil
	}
	if g.Do < wire.DoTail || g.Do > wire.DoPause || g.Opening == (log.Epoch{}) {
		return fmt.Errorf("%w: unknown instruction %d in opening %x", errAnswer, g.Do, g.Opening)
	}
	l.succeeded()
	m.origin.denied = ""
	if lacks, err := m.lacking(g); err != nil || lacks {
		return err
	}
	return m.beginSession(&o, g)
}

// beginSession applies the grant g.
func (m *Machine) beginSession(o *wire.SessionReply, g *wire.Grant) error {
	shown, err := m.place()
	if err != nil {
		return err
	}
	s := session{
		active: true, opening: g.Opening, lacks: g.Lacks, stable: g.Stable, limits: o.Limits, renew: m.at + renewAfter,
		dates: slices.ContainsFunc(o.Links, func(l wire.Link) bool { return l.Name == wire.LinkDates }),
	}
	s.rebase = g.Do == wire.DoRebase || g.Do == wire.DoTail && m.rebase.force ||
		(g.Lacks || shown != m.p.Cursor()) && g.Do != wire.DoRefused
	if s.drains = g.Do == wire.DoRefused; s.drains {
		s.paused, s.renew = cmp.Or(g.Detail, noAccess), m.at+versionPause
		for i := range m.lane {
			if i != laneUpload && i != lanePush {
				m.cancel(&m.lane[i])
			}
		}
	}
	if s.opening != m.session.opening {
		m.cancel(&m.lane[lanePush])
		m.push.gap = 0
		m.upload.forget()
		m.rebase.forget()
	}
	if s.opening != m.session.opening || s.rebase || m.pull.fills {
		m.stopPull()
	}
	m.session = s
	if g.Do == wire.DoPause {
		m.pause()
	}
	m.push.accepted, m.push.echo = 0, 0
	if m.origin.head = g.Head; s.drains {
		m.origin.head = m.p.Cursor().Seq // the replica gets no further entries
	}
	return m.purgeIfDrained()
}

// purgeIfDrained ends the machine if the origin denies access and has all operations of this replica.
func (m *Machine) purgeIfDrained() error {
	if !m.session.drains {
		return nil
	}
	left := false
	err := m.p.LocalOps(m.push.accepted, func(uint64, log.Op) bool {
		left = true
		return false
	})
	if err == nil && !left {
		m.purge(m.session.paused, false)
	}
	return err
}

// noAccess is the reason for a refused application if the origin gives none.
const noAccess = "this replica no longer has access to the application"

// pause stops pulling until the next session, because the log needs newer fold rules. The replica keeps its own operations and still pushes
// them.
func (m *Machine) pause() {
	m.session.paused = "the origin's log needs a newer version of this program; update it"
	m.session.renew = m.at + versionPause
	m.stopPull()
}

// end ends the session. The machine requests a new one first.
func (m *Machine) end() {
	m.session.active = false
	m.stopPull()
}

// purge ends the machine, since the replica may no longer store the application. keepOutbox preserves the outbox.
func (m *Machine) purge(why string, keepOutbox bool) {
	m.cancelAll()
	m.running = false
	m.origin.purged = true
	why = cmp.Or(why, noAccess)
	m.session.paused = why
	if !keepOutbox { // operations written from now on would be deleted with the rest
		m.p.Shut(fmt.Errorf("%w: %s", auth.ErrKeyUnknown, why))
	}
	m.effects = append(m.effects, Purge{Reason: why, KeepOutbox: keepOutbox})
}

// handleRefusal handles an answer with an error status. The lane asks again later, and nothing is lost.
func (m *Machine) handleRefusal(i int, l *lane, status int, fields []api.Field, body []byte) error {
	detail := fmt.Sprintf("HTTP status %d", status)
	if status == 507 {
		detail = "the origin's disk is full, or it rejects writes for another reason (HTTP status 507)"
	}
	r := wire.Refusal{Detail: detail}
	if kind, _, _ := strings.Cut(header(fields, "Content-Type"), ";"); strings.EqualFold(strings.TrimSpace(kind), wire.ContentType) {
		if got, err := wire.DecodeRefusal(body); err == nil && got.Status() == status {
			r = got
			r.Detail = cmp.Or(r.Detail, detail)
		}
	}
	wait := max(retryAfter(fields), wait(r.WaitMillis))
	if i == laneSession && status >= 400 && status < 500 && status != 408 && status != 429 {
		m.origin.denied = r.Error()
	}
	if m.returning() && endsBack(&r, status) {
		m.back = back{}
	}
	if done, err := m.refusedHere(i, &r, status); done {
		return err
	}
	switch {
	case r.Code == wire.RefusedGone && (i == laneSession || i == lanePull || i == lanePush):
		m.purge(r.Error(), false)
		return nil
	case r.Code == wire.RefusedProtocol, r.Code == wire.RefusedFeatures, r.Code == wire.RefusedFold:
		m.end()
		m.backOff(&m.lane[laneSession], max(wait, versionPause), &r)
		return nil
	case r.Code == wire.RefusedEpoch, r.Code == wire.RefusedScope, status == 401:
		m.end()
		if i != laneSession {
			l.succeeded()
			l = &m.lane[laneSession]
		}
	}
	m.backOff(l, wait, &r)
	return nil
}

// refusedHere handles a refusal that concerns only one lane. done reports whether it did.
func (m *Machine) refusedHere(i int, r *wire.Refusal, status int) (done bool, err error) {
	switch i {
	case lanePush:
		return m.pushRefused(r, status)
	case laneBack:
		return m.backRefused(r), nil
	case laneRebase, laneAhead:
		return m.snapshotRefused(status), nil
	case laneUpload:
		return m.uploadRefused(r, status), nil
	case laneDownload:
		if done = status == 404 || status == 410; done { // the origin does not have the picture
			m.notGot(&m.lane[laneDownload], blob.ErrNotFound)
		}
	}
	return done, nil
}
