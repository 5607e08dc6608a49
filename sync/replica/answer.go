package replica

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/sync/wire"
)

// answer handles an answer or a piece of it.
func (m *Machine) answer(a *Answer) error {
	i := slices.IndexFunc(m.lane[:], func(l lane) bool { return l.id == a.ID })
	if i < 0 || a.ID == 0 {
		return nil // the request was cancelled
	}
	l := &m.lane[i]
	if l.status == 0 && a.Status != 0 {
		l.status = a.Status
		l.header = append([]api.Field(nil), a.Header...)
	}
	if a.Status != 0 || len(a.Body) > 0 {
		m.origin.contact, m.origin.unreachable = m.wall, false
	}
	good := l.status == 200
	if i == lanePull && good {
		l.limit = m.at + quietLimit
		if err := m.frames(l, a.Body); err != nil || l.id != a.ID {
			return m.wrong(l, err)
		}
	} else if len(l.body)+len(a.Body) > bodyLimits[i] {
		return m.wrong(l, fmt.Errorf("%w: more than %d bytes", errAnswer, bodyLimits[i]))
	} else {
		l.body = append(l.body, a.Body...)
	}
	switch {
	case a.Err != nil:
		m.lost(i, l, a.Err)
		return nil
	case a.More:
		if i == laneDownload {
			l.limit = m.at + answerLimit
		}
		return nil
	}
	return m.finish(i, l, a)
}

// bodyLimits are the maximum bytes of an answer that the machine buffers, by lane.
var bodyLimits = [lanes]int{
	laneSession: 1 << 20, laneBack: 1 << 20, laneRebase: maxObject, laneAhead: maxObject, lanePull: 64 << 10, laneUpload: 1 << 20, lanePush: 1 << 20,
	laneAudit: 64 << 10, laneDates: 1 << 20, laneDownload: maxBlobBytes,
}

// wrong handles an error of a lane, if there is one, and cancels the lane's request. For an invalid answer or a full store the lane pauses. Any
// other error ends the machine.
func (m *Machine) wrong(l *lane, err error) error {
	if err == nil {
		return nil
	}
	m.cancel(l)
	switch {
	case errors.Is(err, errAnswer), errors.Is(err, wire.ErrFormat), errors.Is(err, wire.ErrTooLarge):
		m.backOff(l, 0, err)
		return nil
	case errors.Is(err, kv.ErrFull):
		m.backOff(l, longPause, fmt.Errorf("the disk is full: waiting for space: %w", err))
		return nil
	}
	return fmt.Errorf("%s: %w", l.name, err)
}

// backOff makes a lane pause, for least or longer. least is capped at maxPause.
func (m *Machine) backOff(l *lane, least time.Duration, err error) {
	l.fails++
	l.next = m.at + max(pause(l.fails, m.o.Rand), min(least, maxPause))
	l.wrong, l.over = fmt.Sprintf("%s: %v", l.name, err), ""
	if refusal, ok := errors.AsType[*wire.Refusal](err); ok {
		l.over = refusal.Limit
	}
}

// lost ends a request whose answer did not arrive completely.
func (m *Machine) lost(i int, l *lane, err error) {
	m.origin.unreachable = true
	switch i {
	case laneDownload:
		m.storePart(l)
	case laneUpload:
		m.upload.again()
	case lanePull:
		m.pull.reset()
	}
	l.endRequest()
	m.backOff(l, 0, err)
}

// finish handles a complete answer. a is its last piece.
func (m *Machine) finish(i int, l *lane, a *Answer) error {
	status, fields, body := l.status, l.header, l.body
	l.body = nil
	took := m.at - l.since
	l.endRequest()
	if status == 0 {
		m.backOff(l, 0, fmt.Errorf("%w: no status", errAnswer))
		return nil
	}
	if status < 200 || status > 299 {
		return m.wrong(l, m.handleRefusal(i, l, status, fields, body))
	}
	var err error
	switch i {
	case laneSession:
		err = m.handleSessionReply(l, body)
	case laneBack:
		err = m.tookBack(l, body)
	case laneRebase, laneAhead:
		err = m.gotSnapshot(i, body, a)
	case lanePull:
		err = m.handlePullEnd(l, took)
	case laneUpload:
		err = m.handleUploadReply(l, status, body)
	case lanePush:
		err = m.handlePushReply(l, body)
	case laneAudit:
		err = m.handleDigest(l, body)
	case laneDates:
		err = m.handleDates(l, body)
	case laneDownload:
		err = m.handleDownload(l, status, fields, body)
	}
	return m.wrong(l, err)
}
