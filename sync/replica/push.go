package replica

import (
	"errors"
	"fmt"
	"time"

	"github.com/sightline-dev/sightline/core/auth"
	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/catalog"
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

// push is the progress of sending own operations. It is lost with the process. The next session then sends operations again, which changes
// nothing.
type push struct {
	accepted uint64 // last own operation that the log has, as the origin reports
	last     uint64 // last operation of the current push
	maxOps   int    // maximum operations of one push, after the origin found a push too large; 0: pushOps
	echo     uint64 // entry up to which the log contains the accepted operations; 0: unknown
	foreign  bool   // the origin has operations of our site that this replica never made

	acceptedAt time.Duration // last time when the origin accepted operations
}

// startPush offers the next operations of the outbox, in order, as far as the origin has their pictures.
func (m *Machine) startPush(l *lane) error {
	issued, confirmed := m.p.Outbox()
	older := m.p.Older()
	switch {
	case m.sameLog():
		m.push.accepted = max(m.push.accepted, confirmed)
	case m.session.drains && m.back.done == m.session.epoch: // no snapshot will arrive, and the replica gave back all that the log lacked
		older = issued
	default:
		return nil // wait until the snapshot shows which own operations it contains
	}
	if m.p.Site() == 0 || m.p.Renewing() || m.session.site != m.p.Site() || m.push.foreign || m.push.accepted >= issued {
		return nil
	}
	ops, err := m.batch()
	if err != nil || len(ops) == 0 {
		return err
	}
	tokens, err := m.tokens(ops)
	if err != nil {
		return err
	}
	m.push.last = ops[len(ops)-1].Dot.Seq
	lives, err := m.p.Lives(m.p.Site(), max(ops[0].Dot.Seq-1, 1), m.push.last)
	if err != nil {
		return err
	}
	c := m.p.Cursor()
	p := wire.Push{
		App: m.o.App.String(), Epoch: m.session.epoch, Base: c.Seq, Chain: c.Chain, Seal: m.p.CursorSeal(), Site: m.p.Site(),
		Block: wire.EncodeOps(ops), For: behalves(ops), Tokens: tokens, Older: older,
	}
	for _, l := range lives {
		p.Lives = append(p.Lives, wire.Life(l))
	}
	m.ask(l, Ask{Method: "POST", Path: "/v2/sync/push", Body: p.Encode()}, m.where()...)
	return nil
}

// batch returns the first operations that the origin has not accepted and that can be sent now.
func (m *Machine) batch() (ops []log.Op, err error) {
	maxOps, room := pushOps, pushBytes
	if n := m.session.limits.PushOps; n > 0 && n < uint64(maxOps) {
		maxOps = int(n)
	}
	if n := m.session.limits.PushBytes; n > 0 && n < uint64(room) {
		room = int(n)
	}
	if m.push.maxOps > 0 {
		maxOps = min(maxOps, m.push.maxOps)
	}
	var failed error
	next := m.push.accepted + 1
	err = m.p.Pending(m.push.accepted, func(op log.Op) bool {
		if op.Dot.Seq != next {
			failed = fmt.Errorf("%w: the origin asked for operation %d; the oldest stored one is %d", errAnswer, next, op.Dot.Seq)
			return false
		}
		next++
		if m.upload.wants(&op) {
			return false
		}
		if m.upload.lacks(&op) {
			partition.Refuse(&op, noPicture)
		}
		room -= len(log.Encode(nil, &op))
		if len(ops) > 0 && room < 0 {
			return false
		}
		ops = append(ops, op)
		return len(ops) < maxOps
	})
	return ops, errors.Join(err, failed)
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
	if p.Epoch != m.session.epoch {
		m.end()
		return fmt.Errorf("%w: different epoch", errAnswer)
	}
	issued, _ := m.p.Outbox()
	if p.Accepted > issued {
		return fmt.Errorf("%w: %d operations accepted of %d", errAnswer, p.Accepted, issued)
	}
	if p.Accepted <= m.push.accepted {
		m.backOff(l, wait(p.WaitMillis), errors.New("the origin accepted no operations"))
		return nil
	}
	m.push.accepted = p.Accepted
	m.push.echo, m.push.acceptedAt = max(m.push.echo, p.Head), m.at
	l.succeeded()
	l.next = m.at + wait(p.WaitMillis)
	m.purgeIfDrained()
	return nil
}

// checkEcho is called when the cursor is at the end of the log. The log must contain the operations that the origin accepted; checkEcho
// sends missing ones again. If the pull began after the acknowledgement and the log is shorter, the log has lost them.
func (m *Machine) checkEcho() {
	_, confirmed := m.p.Outbox()
	if m.push.echo == 0 || m.push.echo > m.p.Cursor().Seq && m.lane[lanePull].since <= m.push.acceptedAt {
		return
	}
	m.push.echo = 0
	if m.p.Renewing() && confirmed < m.renewal.last { // the next session compares the lives again
		m.renewal = renewal{}
		m.end()
		m.backOff(&m.lane[laneSession], 0, errors.New("operations are missing from the origin's log that were in it before"))
		return
	}
	if confirmed < m.push.accepted {
		m.push.accepted = confirmed
		m.backOff(&m.lane[lanePush], 0, errors.New("the origin acknowledged operations that are missing from its log"))
	}
}

// pushRefused handles the refusals of a push that need more than a pause.
func (m *Machine) pushRefused(r *wire.Refusal, status int) (done bool) {
	l := &m.lane[lanePush]
	_, confirmed := m.p.Outbox()
	switch {
	case r.Code == wire.RefusedSequence && r.Accepted >= confirmed && r.Accepted < m.push.accepted:
		m.push.accepted = r.Accepted
		m.backOff(l, wait(r.WaitMillis), r)
		return true
	case r.Code == wire.RefusedSequence:
		// The origin's log lost operations that we saw in it, or has operations that another life of this replica may have made.
		m.end()
		m.backOff(l, wait(r.WaitMillis), r)
		return true
	case status == 413 && m.push.last > m.push.accepted+1:
		m.push.maxOps = max(int(m.push.last-m.push.accepted)/2, 1)
		m.backOff(l, 0, r)
		return true
	case status == 413, r.Code == wire.RefusedContent:
		m.backOff(l, longPause, r)
		return true
	case r.Code == wire.RefusedBlobs: // the origin lacks pictures that we believed it has
		m.upload.forget()
	}
	return false
}

// wait returns a pause that the origin asks for, at most maxPause.
func wait(millis uint64) time.Duration {
	return time.Duration(min(millis, uint64(maxPause/time.Millisecond))) * time.Millisecond
}

// requiredBlobs returns the picture and the object that the origin must have before it gets op; zero: none.
func requiredBlobs(op *log.Op) (picture, object blob.Hash) {
	switch b := op.Body.(type) {
	case *log.InputCreate:
		return b.Blob, blob.Hash{}
	case *log.InputFetched:
		return b.Blob, blob.Hash{}
	case *log.VersionResult:
		return blob.Hash{}, b.Manifest
	}
	return blob.Hash{}, blob.Hash{}
}

// manifest returns an object from our catalog, such as a version's manifest.
func (m *Machine) manifest(h blob.Hash) ([]byte, error) {
	data, err := catalog.Read(m.o.Store, m.o.App).Object(h)
	if errors.Is(err, catalog.ErrNotFound) {
		return nil, blob.ErrNotFound
	}
	return data, err
}
