package replica

import (
	"cmp"
	"fmt"

	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/partition"
	"github.com/sightline-dev/sightline/sync/wire"
)

// back offers the kept frames to a log that lacks the replica's place: the origin was restored from a backup, or its disk went back in time. The
// replica does nothing else with the log before that:
//
//	session ─▶ lacks ─▶ kept frames, after their pictures ─▶ session ─▶ entries above stable ─▶ snapshot ─▶ pending operations
//
// It remembers in memory to which opening it has offered all. Another opening of the log may have lost what it took, and so may this one if the
// machine of the origin was set back with its memory. The replica then finds that the log ends before the snapshot that it needs.
type back struct {
	opening log.Epoch // opening of the log that is offered frames; zero: none
	done    log.Epoch // opening of the log to which all kept frames were offered; zero: none

	most   int               // frames of the next request; 0: as many as fit
	bad    int               // refused frames since the last one that was taken
	next   uint64            // number of the first frame that was not offered
	after  uint64            // number after the last one of frames
	frames []partition.Frame // frames that are offered next
	ops    []log.Op          // their operations
}

// maxBad is the number of refused frames after which the replica passes over all frames of a refused request: the log may know none of its seals.
const maxBad = 3

// lacking starts to give back if the log lacks the replica's place, and this opening of it was not offered everything. It reports whether it
// started.
func (m *Machine) lacking(g *wire.Grant) (bool, error) {
	if !g.Lacks { // the replica is about to keep more
		m.back = back{}
	}
	if !g.Lacks || g.Opening == m.back.done {
		return false, nil
	}
	from, err := m.p.KeptFrom(g.Have, g.HaveChain)
	if err != nil {
		return false, err
	}
	m.end()
	m.cancel(&m.lane[lanePush])
	m.upload.forget()
	m.back = back{opening: g.Opening, next: from}
	return true, nil
}

// returning reports whether the replica is giving back.
func (m *Machine) returning() bool { return m.back.opening != (log.Epoch{}) }

// setBack ends the session because the log has lost entries up to one that it had in this opening. It may have lost all that it was offered.
func (m *Machine) setBack(end, want uint64) error {
	m.back = back{}
	m.rebase.forget()
	m.end()
	return fmt.Errorf("%w: the log ends at entry %d, before %d", errAnswer, end, want)
}

// startBack offers the next frames, as far as the origin has their pictures.
func (m *Machine) startBack(l *lane) error {
	b := &m.back
	if !m.returning() {
		return nil
	}
	if err := m.nextFrames(); err != nil {
		return err
	}
	if len(b.frames) == 0 {
		m.back = back{done: b.opening}
		m.upload.forget()
		m.lane[laneSession].next = 0
		return m.startSession(&m.lane[laneSession])
	}
	for i := range b.ops {
		if m.upload.wants(&b.ops[i]) {
			return nil
		}
	}
	x := wire.Back{App: m.o.App.String(), Opening: b.opening}
	for i := range b.frames {
		f := &b.frames[i]
		e := wire.Entries{Epoch: f.Epoch, From: f.From, To: f.To, Chain: f.Chain, Rows: f.Rows, Seal: f.Seal, Before: f.Before}
		x.Frames = append(x.Frames, e.Encode())
	}
	m.ask(l, Ask{Method: "POST", Path: "/v2/sync/back", Body: x.Encode()})
	return nil
}

// nextFrames reads the frames that are offered next, if it has not: as many as fit a request.
func (m *Machine) nextFrames() error {
	b := &m.back
	if len(b.frames) > 0 {
		return nil
	}
	room := pushBytes
	var failed error
	err := m.p.KeptAfter(b.next, func(n uint64, f partition.Frame) bool {
		entries, err := log.DecodeRows(f.Rows, f.From)
		if failed = err; err != nil {
			return false
		}
		if room -= len(f.Rows); len(b.frames) > 0 && room < 0 {
			return false
		}
		b.frames, b.after = append(b.frames, f), n+1
		for i := range entries {
			b.ops = append(b.ops, entries[i].Op)
		}
		return len(b.frames) < cmp.Or(b.most, wire.MaxFrames) && len(b.ops) < wire.MaxOps
	})
	if err == nil {
		err = failed
	}
	return err
}

// tookBack handles the origin's answer to the current request.
func (m *Machine) tookBack(l *lane, body []byte) error {
	b := &m.back
	t, err := wire.DecodeTakenBack(body)
	switch last := len(b.frames) - 1; {
	case err != nil:
		return err
	case t.Opening != b.opening || t.To != b.frames[last].To:
		m.back = back{}
		return fmt.Errorf("%w: entries up to %d in opening %x", errAnswer, t.To, t.Opening)
	}
	l.succeeded()
	m.upload.forgetLost()
	b.next, b.frames, b.ops, b.most, b.bad = b.after, nil, nil, 0, 0
	return nil
}

// endsBack reports whether a refusal ends giving back. The next session then finds out what the log lacks.
func endsBack(r *wire.Refusal, status int) bool {
	switch r.Code {
	case wire.RefusedEpoch, wire.RefusedScope, wire.RefusedGone, wire.RefusedProtocol, wire.RefusedFeatures, wire.RefusedFold:
		return true
	}
	return status == 401
}

// backRefused handles a refusal of frames. A frame without a seal of the log is not offered again: the log never takes it.
func (m *Machine) backRefused(r *wire.Refusal) (done bool) {
	b := &m.back
	switch r.Code {
	case wire.RefusedBlobs: // the origin lacks pictures that we believed it has
		m.upload.forget()
	case wire.RefusedContent:
		if len(b.frames) > 1 && b.bad < maxBad { // find the one
			b.most = len(b.frames) / 2
		} else {
			b.most, b.bad, b.next = 0, b.bad+1, b.after
		}
		b.frames, b.ops = nil, nil
		m.lane[laneBack].succeeded()
		return true
	}
	return false
}

// waiting yields the operations that may need an upload before they are sent.
func (m *Machine) waiting(yield func(op *log.Op) bool) error {
	if !m.returning() {
		return m.unsent(func(_ uint64, op log.Op) bool { return yield(&op) })
	}
	err := m.nextFrames()
	for i := 0; i < len(m.back.ops) && yield(&m.back.ops[i]); i++ {
		continue
	}
	return err
}
