package replica

import (
	"fmt"
	"slices"
	"time"

	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/partition"
	"github.com/sightline-dev/sightline/sync/wire"
)

// back offers an origin that was restored from a backup the entries that it lacks. The replica does nothing else with the origin's log before
// that:
//
//	session ─▶ another epoch, Restored ─▶ kept entries, sealed ─▶ session ─▶ snapshot ─▶ own operations that the log still lacks
type back struct {
	epoch log.Epoch // epoch of the log that lacks something; zero: none
	done  log.Epoch // epoch of the last log to which everything was offered

	at    partition.StoredPlace   // position of the last offered entry
	older uint32                  // kept entries of runs before this one are offered last; 0: that is in progress, or there are none
	until uint32                  // run at which the offered entries end; 0: all runs are offered
	run   []partition.StoredEntry // entries to be offered next
	sent  partition.StoredPlace   // position of the last entry in the current request

	proof  []partition.StoredEntry // entries that prove a rollback of the origin, or one position; empty: no proof is in progress
	proved uint64                  // last entry that was shown as proof
}

// lacking starts to give back if the log was restored from a backup since the replica pulled from it. It reports whether it started.
func (m *Machine) lacking(o *wire.SessionReply, g *wire.Grant) (bool, error) {
	b := &m.back
	storedEpoch, at := m.p.StoredEpoch(), m.p.Cursor().Epoch
	if !g.Restored || g.Do == wire.DoRefused && !g.Drain || g.Epoch == b.done || (storedEpoch == (log.Epoch{}) || storedEpoch == g.Epoch) && (at == (log.Epoch{}) || at == g.Epoch) {
		return false, nil
	}
	from, err := m.p.StoredFrom(g.Backup, g.BackupChain)
	if err == nil {
		err = m.remember(g.Epoch)
	}
	if err != nil {
		return false, err
	}
	m.give(back{epoch: g.Epoch, at: from, older: from.Run})
	m.session.limits = o.Limits
	return true, nil
}

// proves starts to show the origin an entry of its log if the log may lack it. The origin's disk may have been rolled back without a
// restore, which the origin does not notice. An origin that lacks the entry starts another epoch, as after a restore. proves reports
// whether it started.
func (m *Machine) proves(g *wire.Grant) (bool, error) {
	c := m.p.Cursor()
	newest := m.p.StoredEpoch()                                                          // epoch of c, or of the snapshot in transfer
	older := g.Epoch != newest && (!g.Restored || slices.Contains(m.note.left, g.Epoch)) // the disk image is older than another restore
	if c.Epoch == (log.Epoch{}) || newest == (log.Epoch{}) || !older && (g.Epoch != newest || !m.behind(g)) {
		return false, nil
	}
	k, sealed, err := m.p.LastStored()
	if err != nil || !sealed || k.At.Seq == m.back.proved {
		return false, err
	}
	proof := []partition.StoredEntry{k}
	if g.Do == wire.DoRebase && k.At.Seq <= g.Head && k.Op.Body != nil { // a log trimmed past the entry knows only names
		if proof, err = m.upTo(k.At); err != nil {
			return false, err
		}
	}
	m.give(back{epoch: g.Epoch, done: m.back.done, proof: proof})
	return true, nil
}

// upTo returns the kept entries that end at the position at: the longest consecutive run that fits one request.
func (m *Machine) upTo(at partition.StoredPlace) (run []partition.StoredEntry, err error) {
	room, chain := pushBytes, log.Chain{}
	err = m.p.EntriesAfter(partition.StoredPlace{Run: at.Run}, func(k partition.StoredEntry) bool {
		if k.Before != chain {
			run, room = nil, pushBytes
		}
		data := log.Encode(nil, &k.Op)
		run, chain = append(run, k), k.Before.Next(data)
		for room -= len(data); len(run) > 1 && (room < 0 || len(run) > wire.MaxOps); run = run[1:] {
			room += len(log.Encode(nil, &run[0].Op))
		}
		return k.At.Seq < at.Seq
	})
	return run, err
}

// behind reports whether the log lacks entries that the replica pulled from it. A grant that drains the replica has no head, so the replica
// shows its proof.
func (m *Machine) behind(g *wire.Grant) bool {
	return g.Drain || g.Do == wire.DoRebase || g.Head < m.p.Cursor().Seq
}

// showProof asks the origin whether its log has the entries in proof.
func (m *Machine) showProof(l *lane) {
	run := m.back.proof
	first, last := &run[0], &run[len(run)-1]
	x := wire.Back{App: m.o.App.String(), Epoch: m.back.epoch, From: first.At.Seq, Chain: first.Before, Seal: last.Seal, Present: true}
	if first.Op.Body != nil {
		x.From, x.Block = first.At.Seq-1, wire.EncodeEntries(entriesIn(run))
	}
	m.ask(l, Ask{Method: "POST", Path: "/v2/sync/back", Body: x.Encode()}, m.where()...)
}

// endProof ends the proof and lets the next session start at once.
func (m *Machine) endProof() {
	m.back = back{done: m.back.done, proved: m.back.last()}
	m.lane[laneSession].next = 0
}

// last returns the last entry in proof.
func (b *back) last() uint64 { return b.proof[len(b.proof)-1].At.Seq }

// proofRefused handles a refusal of a proof. If the log lacks an entry, the origin answers with another epoch.
func (m *Machine) proofRefused(r *wire.Refusal, status int) (done bool, err error) {
	b := &m.back
	switch {
	case r.Code == wire.RefusedEpoch && r.Epoch != b.epoch && r.Epoch != (log.Epoch{}):
		n := m.note
		n.renewed = fmt.Sprintf("the data folder of the origin was set back to an older copy without entry %d; since %s this replica has given back what it lacked",
			b.last(), m.wall.UTC().Format(time.RFC3339))
		m.back = back{}
		return false, m.writeNote(n)
	case r.Code == wire.RefusedScope, r.Code == wire.RefusedGone, status == 401:
		m.back = back{}
		return false, nil
	case r.Code == wire.RefusedEpoch: // the log was never restored
		m.endProof()
		return true, nil
	}
	return false, nil
}

// remember stores the epochs of the logs that the replica leaves for the log of epoch newer.
func (m *Machine) remember(newer log.Epoch) error {
	n := m.note
	n.leave(m.p.Cursor().Epoch)
	if storedEpoch := m.p.StoredEpoch(); storedEpoch != newer {
		n.leave(storedEpoch)
	}
	if len(n.left) == len(m.note.left) {
		return nil
	}
	return m.writeNote(n)
}

// give ends the session and starts to give back.
func (m *Machine) give(b back) {
	m.end()
	m.cancel(&m.lane[lanePush])
	m.upload.forget()
	m.back = b
}

// returning reports whether the replica is giving back.
func (m *Machine) returning() bool { return m.back.epoch != (log.Epoch{}) }

// startBack offers the next entries.
func (m *Machine) startBack(l *lane) error {
	b := &m.back
	if !m.returning() {
		return nil
	}
	if len(b.proof) > 0 {
		m.showProof(l)
		return nil
	}
	if len(b.run) == 0 {
		if err := m.nextRun(); err != nil {
			return err
		}
	}
	for i := range b.run {
		if m.upload.wants(&b.run[i].Op) {
			return nil
		}
	}
	if len(b.run) == 0 {
		m.gave()
		return m.startSession(&m.lane[laneSession])
	}
	first, last := &b.run[0], &b.run[len(b.run)-1]
	x := wire.Back{App: m.o.App.String(), Epoch: b.epoch, From: first.At.Seq - 1, Chain: first.Before, Seal: last.Seal}
	x.Block = wire.EncodeEntries(entriesIn(b.run))
	b.sent = last.At
	m.ask(l, Ask{Method: "POST", Path: "/v2/sync/back", Body: x.Encode()}, m.where()...)
	return nil
}

// entriesIn converts kept entries to log entries.
func entriesIn(run []partition.StoredEntry) []log.Entry {
	entries := make([]log.Entry, len(run))
	for i := range run {
		entries[i] = log.Entry{Seq: run[i].At.Seq, Op: run[i].Op}
	}
	return entries
}

// uploadBack uploads the pictures of the entries to be offered. If an upload finds a picture lost, no other event would continue the offer,
// so uploadBack starts it at once.
func (m *Machine) uploadBack(l *lane) error {
	back := &m.lane[laneBack]
	for {
		lost := len(m.upload.lost)
		if err := m.startUpload(l); err != nil {
			return err
		}
		if l.id != 0 || len(m.upload.lost) == lost || !back.idle(m.at) {
			return nil
		}
		if err := m.startBack(back); err != nil {
			if err = m.wrong(back, err); err != nil {
				return err
			}
		}
	}
}

// nextRun reads the entries that are offered next: consecutive entries that fit a request, up to the last seal among them. The log of the
// first run has accepted the entries of older runs or listed them as conflicts. The restore may have lost that list.
func (m *Machine) nextRun() error {
	b := &m.back
	room, sealed := pushBytes, 0
	err := m.p.EntriesAfter(b.at, func(k partition.StoredEntry) bool {
		if b.until > 0 && k.At.Run >= b.until {
			return false
		}
		if n := len(b.run); n > 0 {
			if prev := b.run[n-1].At; k.At.Run != prev.Run || k.At.Seq != prev.Seq+1 {
				return false
			}
		}
		if room -= len(log.Encode(nil, &k.Op)); room < 0 && sealed > 0 {
			return false
		}
		b.run = append(b.run, k)
		if len(k.Seal) > 0 {
			sealed = len(b.run)
		}
		return len(b.run) < wire.MaxOps
	})
	if err != nil {
		return err
	}
	if sealed > 0 {
		b.run = b.run[:sealed]
	}
	if len(b.run) == 0 && b.older > 0 {
		b.at, b.until, b.older = partition.StoredPlace{}, b.older, 0
		return m.nextRun()
	}
	return nil
}

// tookBack handles the origin's answer to the current request.
func (m *Machine) tookBack(l *lane, body []byte) error {
	b := &m.back
	t, err := wire.DecodeTakenBack(body)
	switch {
	case err != nil:
		return err
	case t.Epoch != b.epoch:
		b.epoch = log.Epoch{}
		return fmt.Errorf("%w: different epoch", errAnswer)
	}
	l.succeeded()
	if len(b.proof) > 0 { // the log has the entries
		m.endProof()
		return nil
	}
	if t.To < b.sent.Seq {
		return fmt.Errorf("%w: entries up to %d instead of %d", errAnswer, t.To, b.sent.Seq)
	}
	b.at, b.run = b.sent, nil
	return nil
}

// gave ends giving back.
func (m *Machine) gave() {
	m.back = back{done: m.back.epoch}
	m.upload.forget()
	m.lane[laneSession].next = 0
}

// endsBack reports whether a refusal ends giving back. The next session then finds out what the log lacks.
func endsBack(r *wire.Refusal, status int) bool {
	return r.Code == wire.RefusedEpoch || r.Code == wire.RefusedScope || r.Code == wire.RefusedGone || status == 401
}

// backRefused handles a refusal of entries.
func (m *Machine) backRefused(r *wire.Refusal, status int) (done bool, err error) {
	b, l := &m.back, &m.lane[laneBack]
	switch {
	case len(b.proof) > 0:
		return m.proofRefused(r, status)
	case r.Code == wire.RefusedBlobs:
		m.upload.forget()
		m.backOff(l, 0, r)
		return true, nil
	case r.Code == wire.RefusedEpoch && r.Epoch == b.epoch: // never restored: a rollback of the disk to before the kept log
		n := m.note
		n.leave(b.epoch)
		m.back = back{}
		if len(n.left) == len(m.note.left) {
			return false, nil
		}
		return false, m.writeNote(n)
	case endsBack(r, status):
		m.back = back{}
		return false, nil
	}
	return false, nil
}

// waiting yields the operations that may need an upload before they are sent.
func (m *Machine) waiting(yield func(op log.Op) bool) error {
	if !m.returning() {
		first := m.push.accepted
		return m.unsent(func(at uint64, op log.Op) bool { return yield(op) && at < first+16*maxRequestHashes })
	}
	for i := range m.back.run {
		if !yield(m.back.run[i].Op) {
			break
		}
	}
	return nil
}
