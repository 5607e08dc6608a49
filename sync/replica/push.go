package replica

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/sightline-dev/sightline/core/auth"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/partition"
	"github.com/sightline-dev/sightline/sync/wire"
)

// Limits of one push. The origin's limits replace them if they are lower.
const (
	pushOps   = wire.MaxOps
	pushBytes = 192 << 10
)

// noPicture is the reason for refusing an operation if its picture cannot be sent.
const noPicture = "blob: the origin did not receive the picture"

// push is the progress of sending own operations, by their positions in the outbox. It is lost with the process. The next session then sends
// operations again, which changes nothing.
type push struct {
	accepted   uint64        // position up to which the log has the operations, as the origin reports
	first      log.Dot       // first operation of the current push
	at         uint64        // position of that operation
	last       uint64        // position of the last operation of the current push
	gap        log.Writer    // writer whose earlier operations the origin lacks, and the replica, too; 0: none
	maxOps     uint64        // maximum operations of one push, after the origin found a push too large; 0: pushOps
	echo       uint64        // entry up to which the log contains the accepted operations; 0: unknown
	acceptedAt time.Duration // last time when the origin accepted operations
}

// unsent yields the operations that are still to be pushed. An origin that denies access gets all that may not be stable.
func (m *Machine) unsent(yield func(at uint64, op log.Op) bool) error {
	if m.session.drains {
		return m.p.LocalOps(m.push.accepted, yield)
	}
	return m.p.Pending(m.push.accepted, yield)
}

// startPush offers the next operations of the outbox, in order, as far as the origin has their pictures.
func (m *Machine) startPush(l *lane) error {
	if m.session.lacks && !m.session.drains {
		return nil // wait until the snapshot shows which own operations it contains
	}
	at, ops, err := m.batch()
	if err != nil || len(ops) == 0 {
		return err
	}
	m.push.first, m.push.at, m.push.last = ops[0].Dot, at, at+uint64(len(ops))-1
	tokens, err := m.tokens(ops)
	if err != nil {
		return err
	}
	p := wire.Push{
		App: m.o.App.String(), Opening: m.session.opening,
		Writer: m.push.first.Writer, Secret: m.secretOf(m.push.first.Writer), Gap: m.push.gap == m.push.first.Writer,
		Rows: log.EncodeRows(ops), For: behalves(ops), Tokens: tokens,
	}
	err = m.p.LocalOps(m.push.at-2, func(at uint64, op log.Op) bool {
		if at+1 == m.push.at && op.Dot.Writer == p.Writer {
			p.Before = op.At
		}
		return false
	})
	if err == nil {
		m.ask(l, Ask{Method: "POST", Path: "/v2/sync/push", Body: p.Encode()})
	}
	return err
}

// secretOf returns the secret that a push of a writer shows. That of a site of version 0.1.0 is in the machine's note.
func (m *Machine) secretOf(w log.Writer) []byte {
	switch {
	case !w.IsSite():
		return m.p.Secret(w)
	case w == m.note.next:
		return m.note.key
	}
	return m.note.secret
}

// batch returns the first operations that the origin has not accepted and that can be sent now, and the position of the first: a run of one
// writer, at consecutive positions.
func (m *Machine) batch() (first uint64, ops []log.Op, err error) {
	limits := &m.session.limits
	maxOps := min(pushOps, cmp.Or(limits.PushOps, pushOps), cmp.Or(m.push.maxOps, pushOps))
	room := int(min(pushBytes, cmp.Or(limits.PushBytes, pushBytes)))
	err = m.unsent(func(at uint64, op log.Op) bool {
		n := uint64(len(ops))
		if n > 0 && (at != first+n || op.Dot.Writer != ops[0].Dot.Writer) || m.upload.wants(&op) {
			return false
		}
		if m.upload.lacks(&op) {
			partition.Refuse(&op, noPicture)
		}
		if room -= len(log.Encode(nil, &op)); n > 0 && room < 0 {
			return false
		}
		if n == 0 {
			first = at
		}
		ops = append(ops, op)
		return n+1 < maxOps
	})
	return first, ops, err
}

// behalves returns the callers for whom operations were made, by run.
func behalves(ops []log.Op) (runs []wire.Delegation) {
	for i := range ops {
		op := &ops[i]
		if op.By == "" {
			continue
		}
		if n := len(runs) - 1; n >= 0 && runs[n].Subject == op.By && runs[n].Last+1 == op.Dot.Seq {
			runs[n].Last = op.Dot.Seq
			continue
		}
		runs = append(runs, wire.Delegation{First: op.Dot.Seq, Last: op.Dot.Seq, Subject: op.By, Issued: wire.MillisOf(op.At.Time())})
	}
	return runs
}

// tokens returns the access tokens with which operations were made, by run, as far as the partition stored them.
func (m *Machine) tokens(ops []log.Op) (runs []wire.Tokens, err error) {
	for i := range ops {
		op := &ops[i]
		if op.By != auth.ByToken {
			continue
		}
		t, err := m.p.TokenOf(op.Dot)
		if err != nil {
			return nil, err
		}
		if t == (partition.Token{}) {
			continue
		}
		if n := len(runs) - 1; n >= 0 && runs[n].Client == t.Client && runs[n].Generation == t.Generation && runs[n].Last+1 == op.Dot.Seq {
			runs[n].Last = op.Dot.Seq
			continue
		}
		runs = append(runs, wire.Tokens{First: op.Dot.Seq, Last: op.Dot.Seq, Client: t.Client, Generation: t.Generation})
	}
	return runs, nil
}

// handlePushReply handles the answer to a push. It is a preview: an operation is confirmed when the replica folds it from the log.
func (m *Machine) handlePushReply(l *lane, body []byte) error {
	p, err := wire.DecodePushed(body)
	if err != nil {
		return err
	}
	if p.Opening != m.session.opening {
		m.end()
		return fmt.Errorf("%w: different opening", errAnswer)
	}
	first := m.push.first
	if p.Accepted < first.Seq {
		m.backOff(l, wait(p.WaitMillis), errors.New("the origin accepted no operations"))
		return nil
	}
	m.push.accepted = min(m.push.at+p.Accepted-first.Seq, m.push.last)
	m.push.echo, m.push.acceptedAt = max(m.push.echo, p.Head), m.at
	m.upload.forgetLost()
	l.succeeded()
	l.next = m.at + wait(p.WaitMillis)
	return m.purgeIfDrained()
}

// checkEcho is called when the cursor is at the end of the log. It sends accepted operations again that are still pending: the origin's answer
// was wrong, or a snapshot before the answer lacks their names, since a horizon has dropped these. If the pull began after the answer, also a
// log that ends before the reported entry lacks them.
func (m *Machine) checkEcho() {
	if m.push.echo == 0 || m.push.echo > m.p.Cursor().Seq && m.lane[lanePull].since <= m.push.acceptedAt {
		return
	}
	m.push.echo = 0
	if _, settled := m.p.Outbox(); settled < m.push.accepted {
		m.push.accepted = settled
		m.backOff(&m.lane[lanePush], 0, errors.New("the origin acknowledged operations that are missing from its log"))
	}
}

// pushRefused handles the refusals of a push that need more than a pause.
func (m *Machine) pushRefused(r *wire.Refusal, status int) (done bool, err error) {
	l, p := &m.lane[lanePush], &m.push
	switch {
	case r.Code == wire.RefusedSequence:
		return true, m.goBack(r)
	case status == 413 && r.Limit != wire.LimitGaps && p.last > p.at:
		p.maxOps = max((p.last-p.at+1)/2, 1)
		m.backOff(l, 0, r)
		return true, nil
	case status == 413, r.Code == wire.RefusedWriter, r.Code == wire.RefusedContent && m.session.drains:
		m.backOff(l, longPause, r)
		return true, nil
	case r.Code == wire.RefusedContent: // the log has other operations by these names
		m.backOff(l, longPause, r)
		return true, m.p.Disown(log.Dot{Writer: p.first.Writer, Seq: max(p.first.Seq, r.Accepted+1)})
	case r.Code == wire.RefusedBlobs: // the origin lacks pictures that we believed it has
		m.upload.forget()
	}
	return false, nil
}

// goBack continues with the operation after the last one that the origin has of the writer, if that one is pending. If it is confirmed, a new
// session finds out whether the log has lost it. If not, a horizon has dropped its name, and the next push declares the gap. The same holds if
// the outbox has dropped the operation, without the session.
func (m *Machine) goBack(r *wire.Refusal) error {
	p := &m.push
	next, missing := log.Dot{Writer: p.first.Writer, Seq: r.Accepted + 1}, uint64(0)
	find := func(at uint64, op log.Op) bool {
		if op.Dot == next {
			missing = at
		}
		return missing == 0 && at < p.at
	}
	accepted := p.accepted
	p.accepted = 0
	err := m.unsent(find)
	p.accepted = accepted
	if err == nil && missing > 0 {
		p.accepted = missing - 1
	} else if err == nil {
		p.gap = next.Writer
		if err = m.p.LocalOps(0, find); missing > 0 {
			m.end()
		}
	}
	m.backOff(&m.lane[lanePush], wait(r.WaitMillis), r)
	return err
}

// wait returns a pause that the origin asks for, at most maxPause.
func wait(millis uint64) time.Duration {
	return time.Duration(min(millis, uint64(maxPause/time.Millisecond))) * time.Millisecond
}
