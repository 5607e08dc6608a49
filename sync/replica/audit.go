package replica

import (
	"strconv"
	"time"

	"github.com/sightline-dev/sightline/core/fold"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/sync/wire"
)

// retryPause is the pause before the next try of an audit if the state of the origin is at another entry.
const retryPause = time.Minute

// audit compares the digest of the confirmed state with the origin's digest at the same entry. If they differ, the machine downloads a
// snapshot. An audit does not change the outbox.
type audit struct {
	due  time.Duration
	ours wire.Digest // digest of the confirmed state at the entry of the request
}

// startAudit asks for the origin's digest.
func (m *Machine) startAudit(l *lane) error {
	a, c := &m.audit, m.p.Cursor()
	if m.o.Audit < 0 || m.at < a.due || !m.pull.caught || m.origin.head != c.Seq || c.Seq == 0 || m.session.rebase {
		return nil
	}
	if a.ours.Epoch != c.Epoch || a.ours.Seq != c.Seq {
		a.ours = wire.Digest{Epoch: c.Epoch, Seq: c.Seq}
		err := m.p.ReadConfirmed(func(r kv.Reader) (err error) {
			a.ours.Digest, err = fold.Digest(r, m.o.App)
			return err
		})
		if err != nil {
			return err
		}
	}
	m.ask(l, Ask{Method: "GET", Path: "/v2/sync/digest"}, "at", strconv.FormatUint(c.Seq, 10))
	return nil
}

// handleDigest compares the origin's digest with ours. The cursor may have moved since the request.
func (m *Machine) handleDigest(l *lane, body []byte) error {
	theirs, err := wire.DecodeDigest(body)
	if err != nil {
		return err
	}
	l.succeeded()
	ours := m.audit.ours
	if theirs.Epoch != ours.Epoch || theirs.Seq != ours.Seq {
		m.audit = audit{due: m.at + min(retryPause, m.o.Audit)}
		return nil
	}
	m.audit, m.origin.audited = audit{due: m.at + m.o.Audit}, m.wall
	if theirs.Digest != ours.Digest {
		m.origin.differences++
		m.rebase.force = true
		m.end()
		l.wrong = "audit: the state differs from the origin's; downloading a snapshot"
	}
	return nil
}
