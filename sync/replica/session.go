package replica

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/auth"
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
	active bool
	site   log.Writer // site in the request
	epoch  log.Epoch
	stable uint64
	limits wire.Limits
	renew  time.Duration
	rebase bool   // the log does not continue from the cursor: a snapshot is needed
	paused string // reason why pulling is not possible; empty: it is
	drains bool   // the origin denies access, but still accepts operations of this replica
	dates  bool   // the origin answers dates
}

// startSession requests a session if there is none or the current one is old.
func (m *Machine) startSession(l *lane) error {
	if m.session.active && m.at < m.session.renew && m.session.site == m.p.Site() {
		return nil
	}
	c := m.p.Cursor()
	issued, confirmed := m.p.Outbox()
	m.issued = issued
	at := wire.Position{App: m.o.App.String(), Epoch: c.Epoch, Seq: c.Seq, Chain: c.Chain, Issued: issued, Confirmed: confirmed}
	if m.o.AppRecords != nil {
		at.Register = m.o.AppRecords.Seq()
	}
	s := wire.Session{
		Min: wire.Oldest, Max: wire.Protocol, Fold: m.p.Rules(), Schema: field.Version,
		Site: m.p.Site(), Secret: m.note.secretOf(m.p.Site()), Name: m.o.Name,
		Partitions: []wire.Position{at}, Vectors: m.o.Wants.Vectors,
	}
	if m.asNew() {
		s.Site, s.Secret = m.renewal.site, m.note.secretOf(m.renewal.site)
	}
	if m.renewal.wanted {
		s.Site, s.Secret, s.Leaves, s.Life = 0, nil, m.p.Site(), m.renewal.life
	}
	m.ask(l, Ask{Method: "POST", Path: "/v2/sync/session", Body: s.Encode()})
	return nil
}

// handleSessionReply handles the origin's answer to a session request.
func (m *Machine) handleSessionReply(l *lane, body []byte) error {
	o, err := wire.DecodeSessionReply(body)
	if err != nil {
		return err
	}
	if o.Protocol < wire.Oldest || o.Protocol > wire.Protocol {
		m.backOff(l, versionPause, fmt.Errorf("%w: unsupported protocol %d", errAnswer, o.Protocol))
		return nil
	}
	if len(o.Grants) != 1 || o.Grants[0].App != m.o.App.String() {
		return fmt.Errorf("%w: the session does not match the request", errAnswer)
	}
	g := &o.Grants[0]
	if g.Do == wire.DoErase || g.Do == wire.DoRefused && !g.Drain {
		m.purge(g.Detail, g.Do == wire.DoRefused)
		return nil
	}
	if g.Do < wire.DoTail || g.Do > wire.DoPause || g.Epoch == (log.Epoch{}) {
		return fmt.Errorf("%w: unknown instruction %d in epoch %x", errAnswer, g.Do, g.Epoch)
	}
	if proves, err := m.proves(g); err != nil || proves {
		return err
	}
	if lacks, err := m.lacking(&o, g); err != nil || lacks {
		return err
	}
	if m.leaving() && m.renewal.epoch != g.Epoch { // another log: ask which operations of the current site it has
		m.give(back{epoch: g.Epoch, leaves: true, issued: m.issued, gave: true})
		return nil
	}
	if m.renewal.wanted {
		return m.renew(l, &o)
	}
	if err := m.lease(&o); err != nil {
		return err
	}
	if parts, err := m.parts(g); err != nil || parts {
		return err
	}
	m.beginSession(l, &o, g)
	return nil
}

// lease takes a new site. It stores the site's secret first, since a site without it is useless.
func (m *Machine) lease(o *wire.SessionReply) error {
	if !plain(o.Secret) {
		return fmt.Errorf("%w: malformed secret", errAnswer)
	}
	if len(o.Secret) > 0 && !bytes.Equal(o.Secret, m.note.secretOf(o.Site)) && (o.Site == m.p.Site() || m.p.Site() == 0) {
		if err := m.writeNote(persistedState{secret: bytes.Clone(o.Secret), left: m.note.left, renewed: m.note.renewed, dated: m.note.dated}); err != nil {
			return err
		}
	}
	if o.Site == 0 || o.Site == m.p.Site() || m.asNew() && o.Site == m.renewal.site {
		return nil
	}
	err := m.p.Lease(o.Site)
	if errors.Is(err, partition.ErrSite) {
		return fmt.Errorf("%w: %w", errAnswer, err)
	}
	m.met = err == nil
	return err
}

// plain reports whether a secret is valid in a header.
func plain(secret []byte) bool {
	for _, c := range secret {
		if c <= ' ' || c > '~' {
			return false
		}
	}
	return len(secret) <= 256
}

// beginSession applies the grant g.
func (m *Machine) beginSession(l *lane, o *wire.SessionReply, g *wire.Grant) {
	l.succeeded()
	m.origin.denied = ""
	s := session{active: true, site: m.p.Site(), epoch: g.Epoch, stable: g.Stable, limits: o.Limits, renew: m.at + renewAfter, rebase: g.Do == wire.DoRebase, dates: hasDates(o)}
	if left := life(o.Now, o.Until); left > 0 {
		s.renew = min(s.renew, m.at+left/2)
	}
	if c := m.p.Cursor(); g.Do == wire.DoTail && c.Epoch != g.Epoch && c.Epoch != (log.Epoch{}) {
		s.rebase = true // even if the origin answers tail: entries of one epoch are never folded after another's
	}
	if g.Do == wire.DoPause {
		s.pause(m.at)
	}
	if s.drains = g.Do == wire.DoRefused; s.drains {
		s.paused, s.renew = cmp.Or(g.Detail, noAccess), m.at+versionPause
		for i := range m.lane {
			if i != laneUpload && i != lanePush {
				m.cancel(&m.lane[i])
			}
		}
	}
	if s.epoch != m.session.epoch {
		m.cancel(&m.lane[lanePull])
		m.pull.reset()
		m.cancel(&m.lane[lanePush])
		m.upload.forget()
	}
	if s.rebase || m.pull.fills {
		m.cancel(&m.lane[lanePull])
		m.pull.reset()
	}
	if x := m.rebase.manifest; x != nil && x.Epoch != s.epoch {
		m.rebase.forget()
	}
	if s.rebase {
		m.rebase.want(g.Snapshot)
	}
	m.session = s
	m.origin.problem = s.paused
	if g.Detail != "" && m.origin.problem == "" {
		m.origin.problem = "what is written here is refused by the origin and kept as conflicts: " + g.Detail
	}
	if c := m.p.Cursor(); c.Epoch == g.Epoch && g.Head < c.Seq && m.origin.problem == "" {
		m.origin.problem = fmt.Sprintf("the origin's log ends at entry %d, but this replica has entry %d: the data folder of the origin was set back to an older copy", g.Head, c.Seq)
	}
	issued, confirmed := m.p.Outbox()
	m.push.accepted = min(g.Confirmed, issued)
	if m.sameLog() {
		m.push.accepted = max(m.push.accepted, confirmed)
	}
	if m.push.echo = 0; m.push.accepted > confirmed || m.p.Renewing() && m.renewal.last > confirmed {
		m.push.echo, m.push.acceptedAt = g.Head, m.at
	}
	if m.push.foreign = g.Confirmed > issued && !m.p.Renewing(); m.push.foreign {
		m.origin.problem = fmt.Sprintf("the origin has %d operations of this replica's site, but this replica has made %d: another replica uses the site, or this one was restored from an old backup", g.Confirmed, issued)
	}
	if m.origin.head = g.Head; s.drains {
		m.origin.head = m.p.Cursor().Seq // the replica gets no further entries
		m.purgeIfDrained()
	}
}

// purgeIfDrained ends the machine if the origin denies access and has all operations of this replica. The machine continues while the
// origin cannot accept some of them: they were made on another log and were not given back, or another replica uses the site.
func (m *Machine) purgeIfDrained() {
	issued, _ := m.p.Outbox()
	same := m.sameLog() || m.back.done == m.session.epoch
	if m.session.drains && (issued == 0 || same && !m.push.foreign && m.push.accepted >= issued) {
		m.purge(m.session.paused, false)
	}
}

// noAccess is the reason for a refused application if the origin gives none.
const noAccess = "this replica no longer has access to the application"

// pause stops pulling until the next session, because the log needs newer fold rules. The replica keeps its own operations and still pushes
// them.
func (s *session) pause(at time.Duration) {
	s.paused = "the origin's log needs a newer version of this program; update it"
	s.renew = at + versionPause
}

// sameLog reports whether the folded entries belong to the session's log. Only then does that log contain the confirmed operations.
func (m *Machine) sameLog() bool {
	c := m.p.Cursor()
	return c.Epoch == m.session.epoch || c.Epoch == (log.Epoch{})
}

// life returns the time from now until until, both by the origin's clock, so that our clock need not be right.
func life(now, until wire.Millis) time.Duration {
	if until <= now {
		return 0
	}
	return time.Duration(min(uint64(until-now), uint64(365*24*time.Hour/time.Millisecond))) * time.Millisecond
}

// end ends the session. The machine requests a new one first.
func (m *Machine) end() {
	m.session.active = false
	m.cancel(&m.lane[lanePull])
	m.pull.reset()
}

// purge ends the machine, since the replica may no longer store the application. keepOutbox preserves the outbox.
func (m *Machine) purge(why string, keepOutbox bool) {
	m.cancelAll()
	m.running = false
	m.origin.purged = true
	why = cmp.Or(why, noAccess)
	m.origin.problem = why
	if !keepOutbox { // operations written from now on would be deleted with the rest
		m.p.Shut(fmt.Errorf("%w: %s", auth.ErrKeyUnknown, why))
	}
	m.effects = append(m.effects, Purge{Reason: why, KeepOutbox: keepOutbox})
}

// handleRefusal handles an answer with an error status. The lane asks again later, and nothing is lost.
func (m *Machine) handleRefusal(i int, l *lane, status int, fields []api.Field, body []byte) error {
	r := wire.Refusal{Detail: fmt.Sprintf("HTTP status %d", status)}
	if status == 507 {
		r.Detail = "the origin's disk is full, or it rejects writes for another reason (HTTP status 507)"
	}
	if kind, _, _ := strings.Cut(header(fields, "Content-Type"), ";"); strings.EqualFold(strings.TrimSpace(kind), wire.ContentType) {
		if got, err := wire.DecodeRefusal(body); err == nil && got.Status() == status {
			r = got
			if r.Detail == "" {
				r.Detail = fmt.Sprintf("HTTP status %d", status)
			}
		}
	}
	wait := max(retryAfter(fields), time.Duration(min(r.WaitMillis, uint64(maxPause/time.Millisecond)))*time.Millisecond)
	if i == laneSession && status >= 400 && status < 500 && status != 408 && status != 429 {
		m.origin.denied = r.Error()
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
	case i == laneSession && r.Code == wire.RefusedSite && m.replaceSite(&r):
		m.backOff(l, wait, &r)
		return nil
	case r.Code == wire.RefusedEpoch, r.Code == wire.RefusedScope, r.Code == wire.RefusedSite, status == 401:
		m.end()
		if i != laneSession {
			l.succeeded()
			l = &m.lane[laneSession]
		}
		m.backOff(l, wait, &r)
		return nil
	}
	m.backOff(l, wait, &r)
	return nil
}

// refusedHere handles a refusal that concerns only one lane. done reports whether it did.
func (m *Machine) refusedHere(i int, r *wire.Refusal, status int) (done bool, err error) {
	switch i {
	case lanePush:
		return m.pushRefused(r, status), nil
	case laneBack:
		return m.backRefused(r, status)
	case laneRebase, laneAhead:
		return m.snapshotRefused(status), nil
	case laneUpload:
		if m.returning() && endsBack(r, status) {
			m.back = back{}
		}
		return m.uploadRefused(r, status), nil
	case laneDownload:
		return m.downloadRefused(status), nil
	}
	return false, nil
}
