package replica

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"time"

	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/partition"
	"github.com/sightline-dev/sightline/sync/wire"
)

// renewal is the change of the replica to another site. The origin has operations of the current site that were made elsewhere: by the
// replica itself before its disk was rolled back, or by another copy of its store.
//
//	session ─▶ the lives of the site's operations differ from ours ─▶ session, Leaves ─▶ another site
//	                    last: the newest one that both have               │
//	 operations after last, issued again ◀── those up to last are folded ─┘
type renewal struct {
	wanted bool   // the next session asks for another site
	life   uint64 // random id of that request
	last   uint64 // last operation of the current site that the origin has as it was made here
	epoch  log.Epoch
	site   log.Writer // new site; 0: not leased yet
	old    log.Writer
	lost   bool // the origin does not know the old site: sessions use the new one
}

// parts compares the origin's operations of our site with ours. It reports whether the replica abandons the session for one that asks for
// another site.
func (m *Machine) parts(g *wire.Grant) (bool, error) {
	if m.p.Site() == 0 {
		return false, nil
	}
	if m.asNew() {
		return false, m.p.Renew(m.renewal.site, m.renewal.last, renewsWith(g))
	}
	r := &m.renewal
	leased := r.site != 0 && r.old == m.p.Site()
	last, forked, err := m.p.Fork(m.issued, g.Confirmed, livesIn(g.Lives))
	if err != nil || !forked && !leased && !m.unsure(g) && !m.p.IsRestored() && !m.p.Renewing() {
		m.met = true
		return false, err
	}
	if leased && r.epoch == g.Epoch { // leased by this log
		r.last, m.met = last, true
		err = m.p.Renew(r.site, last, renewsWith(g))
		return m.p.Site() == r.site, err // if the site was taken at once, the next session is the new site's
	}
	if g.Restored { // another replica may give back operations that we send again; the origin links them
		m.give(back{epoch: g.Epoch, leaves: true, issued: m.issued, gave: true})
	} else {
		m.leave(renewal{last: last, epoch: g.Epoch})
	}
	return true, nil
}

// livesIn converts the lives of an answer.
func livesIn(answer []wire.Life) []partition.Life {
	lives := make([]partition.Life, len(answer))
	for i := range answer {
		lives[i] = partition.Life(answer[i])
	}
	return lives
}

// unsure reports whether the log of a grant cannot show if an earlier life of the replica wrote as its site after the current state: the
// log was restored, and this life has not met the earlier log. New operations could then get the names of lost ones, which other replicas
// know. A state without entries does not name a log, so an earlier life may have pulled and written.
func (m *Machine) unsure(g *wire.Grant) bool {
	c := m.p.Cursor()
	return !m.met && c.Epoch != g.Epoch && (g.Restored || c.Epoch != (log.Epoch{}))
}

// renewsWith returns the epoch of the log that must bring back operations before the replica takes another site. A refused application
// brings back none, and the replica is drained.
func renewsWith(g *wire.Grant) log.Epoch {
	if g.Do == wire.DoRefused {
		return log.Epoch{}
	}
	return g.Epoch
}

// asNew reports whether sessions use the site that the replica is about to take.
func (m *Machine) asNew() bool {
	r := &m.renewal
	return r.lost && r.site != 0 && r.old == m.p.Site()
}

// leaving reports whether the replica is about to take another site, which the log of renewal.epoch leases.
func (m *Machine) leaving() bool { return m.renewal.wanted || m.asNew() }

// leave makes the next session ask for another site.
func (m *Machine) leave(r renewal) {
	var name [8]byte
	if _, err := io.ReadFull(m.o.Rand, name[:]); err == nil { // without a random id, a lost answer costs a site
		r.life = binary.LittleEndian.Uint64(name[:])
	}
	r.wanted, r.old = true, m.p.Site()
	m.renewal = r
	m.end()
	m.cancel(&m.lane[lanePush])
}

// replaceSite asks for another site if the origin does not know ours, or reports that it belongs to another replica. If the origin was
// restored from a backup that is older than the lease, the replica first gives back what it lacks: it may have our operations from other
// replicas. An edge that was restored without its identity and enrolled as another edge meets the same log. So does a replica whose lease
// was lost in a rollback of the origin's disk. A replica that has pulled nothing knows no log, so its site may be older than a restore,
// too.
func (m *Machine) replaceSite(r *wire.Refusal) bool {
	c := m.p.Cursor()
	if r.Epoch == (log.Epoch{}) || m.p.Site() == 0 {
		return false
	}
	proves, err := m.proves(&wire.Grant{Epoch: r.Epoch, Do: wire.DoRebase, Restored: true}) // the origin's disk may have been rolled back
	switch {
	case err != nil:
		return false
	case proves:
	case r.Epoch != c.Epoch && !slices.Contains(m.note.left, r.Epoch):
		m.give(back{epoch: r.Epoch, leaves: true, issued: m.issued})
	case r.Epoch != c.Epoch, len(m.note.secretOf(m.p.Site())) > 0: // the origin returns the operations of the site that the log has
		m.give(back{epoch: r.Epoch, leaves: true, issued: m.issued, at: partition.StoredPlace{Run: math.MaxUint32}, ownOffered: true})
	default:
		x := renewal{epoch: r.Epoch, lost: true}
		_, x.last = m.p.Outbox() // later operations may be in the log: sent again they are duplicates
		m.leave(x)
	}
	return true
}

// renew takes the site that the origin leases as a replacement.
func (m *Machine) renew(l *lane, o *wire.SessionReply) error {
	r := &m.renewal
	r.wanted = false
	switch {
	case o.Site == 0, o.Site == log.Origin, !plain(o.Secret):
		return fmt.Errorf("%w: site %d", errAnswer, o.Site)
	case o.Site == r.old:
		m.backOff(l, versionPause, errors.New("the origin does not lease another site: update its program"))
		return nil
	}
	n := m.note
	if n.next == m.p.Site() { // the previous next was taken
		n.secret = n.key
	}
	n.next, n.key = o.Site, bytes.Clone(o.Secret)
	n.renewed = fmt.Sprintf("an older copy of the data of this replica or of the origin was restored; since %s this replica writes as site %d instead of %d and has sent again what the origin lacked",
		m.wall.UTC().Format(time.RFC3339), o.Site, r.old)
	if err := m.writeNote(n); err != nil {
		return err
	}
	r.site = o.Site
	epoch := r.epoch
	switch {
	case o.Grants[0].Do == wire.DoRefused:
		epoch = log.Epoch{}
	case !r.lost: // a late push of an earlier life may have arrived since the lives were compared: the next session compares them again
		m.push.accepted = 0
		l.succeeded()
		return nil
	}
	if err := m.p.Renew(r.site, r.last, epoch); err != nil {
		if errors.Is(err, partition.ErrSite) {
			return fmt.Errorf("%w: %w", errAnswer, err)
		}
		return err
	}
	m.push.accepted, m.met = 0, true
	l.succeeded()
	return nil
}
