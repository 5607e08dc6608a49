package replica

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/partition"
	"github.com/sightline-dev/sightline/sync/wire"
)

// back offers an origin that was restored from a backup the entries and operations that it lacks. The replica does nothing else with the
// origin's log before that:
//
//	session ─▶ another epoch, Restored ─▶ kept entries, sealed ─▶ own operations that were in the log ─▶ session
//
// At a gap between the kept entries, the replica offers own operations first, since those that a snapshot brought are in the gap. If a
// restored origin does not know the replica's site, the replica also does this before it takes another site.
type back struct {
	epoch  log.Epoch // epoch of the log that lacks something; zero: none
	done   log.Epoch // epoch of the last log to which everything was offered
	backup uint64    // last entry of the origin's backup; 0: unknown
	leaves bool      // the origin does not know our site, or we are about to leave it: the replica takes another site at the end
	issued uint64    // number of own operations when leaves was set
	gave   bool      // everything was offered; the replica only has to ask which operations of the site the log has

	at         partition.StoredPlace   // position of the last offered entry
	older      uint32                  // kept entries of runs before this one are offered last; 0: that is in progress, or there are none
	until      uint32                  // run at which the offered entries end; 0: all runs are offered
	run        []partition.StoredEntry // entries to be offered next
	sent       partition.StoredPlace   // position of the last entry in the current request
	own        bool                    // own operations are being offered
	ownOffered bool                    // own operations were offered
	sites      []log.Writer            // sites whose own operations are still to be offered
	had        uint64                  // last operation of our current site that the log had in the beginning
	after      uint64                  // last operation of sites[0] that the origin has
	count      int                     // number of own operations in the current request
	asking     bool                    // the current request only asks which operations of our site the log has
	shared     bool                    // issued is now the last operation that both sides have; the next request sends it to the origin

	lives map[ofSite]wire.Life // lives of the last offered operations

	proof  []partition.StoredEntry // entries that prove a rollback of the origin, or one position; empty: no proof is in progress
	proved uint64                  // last entry that was shown as proof
}

// ofSite identifies a site in a run of kept entries.
type ofSite struct {
	run  uint32
	site log.Writer
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
	m.give(back{epoch: g.Epoch, backup: g.Backup, at: from, older: from.Run, had: g.Confirmed, leaves: m.leaving(), issued: m.issued})
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

// behind reports whether the log lacks entries that the replica pulled from it. A grant that drains the replica has no head, so behind
// compares the last operation of the replica that the log has.
func (m *Machine) behind(g *wire.Grant) bool {
	if g.Drain {
		_, confirmed := m.p.Outbox()
		return g.Confirmed < confirmed
	}
	return g.Do == wire.DoRebase || g.Head < m.p.Cursor().Seq
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

// startBack offers the next entries or own operations.
func (m *Machine) startBack(l *lane) error {
	b := &m.back
	if !m.returning() {
		return nil
	}
	if len(b.proof) > 0 {
		m.showProof(l)
		return nil
	}
	if !b.own && len(b.run) == 0 && !b.gave {
		if err := m.nextRun(); err != nil {
			return err
		}
	}
	if b.own {
		return m.offerOwn(l)
	}
	for i := range b.run {
		if m.upload.wants(&b.run[i].Op) {
			return nil
		}
	}
	if len(b.run) == 0 {
		if b.leaves && m.p.Site() != 0 {
			_, confirmed := m.p.Outbox()
			b.asking = true
			m.ask(l, Ask{Method: "POST", Path: "/v2/sync/back", Body: (&wire.Back{
				App: m.o.App.String(), Epoch: b.epoch, Site: m.p.Site(), Confirmed: confirmed, Issued: b.issued,
			}).Encode()}, m.where()...)
			return nil
		}
		m.gave(0)
		return m.startSession(&m.lane[laneSession])
	}
	first, last := &b.run[0], &b.run[len(b.run)-1]
	x := wire.Back{App: m.o.App.String(), Epoch: b.epoch, From: first.At.Seq - 1, Chain: first.Before, Seal: last.Seal}
	lives := map[log.Writer]uint64{}
	for i := range b.run {
		k := &b.run[i]
		d := k.Op.Dot
		if was := b.lives[ofSite{k.At.Run, d.Writer}]; was.ID != 0 && was.First+1 == d.Seq { // the life of the operation before this one
			lives[d.Writer] = was.ID
			x.Lives = append(x.Lives, wire.SiteLife{Site: d.Writer, Life: was})
		}
		if lives[d.Writer] != k.Life {
			lives[d.Writer] = k.Life
			x.Lives = append(x.Lives, wire.SiteLife{Site: d.Writer, Life: wire.Life{First: d.Seq, ID: k.Life}})
		}
	}
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
	room, sealed, gap := pushBytes, 0, false
	err := m.p.EntriesAfter(b.at, func(k partition.StoredEntry) bool {
		if b.until > 0 && k.At.Run >= b.until {
			return false
		}
		if n := len(b.run); n > 0 {
			if prev := b.run[n-1].At; k.At.Run != prev.Run || k.At.Seq != prev.Seq+1 {
				return false
			}
		} else {
			gap = k.At.Run != b.at.Run && k.At.Seq > b.backup+1 || k.At.Run == b.at.Run && k.At.Seq != b.at.Seq+1
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
	if (gap || len(b.run) == 0) && !b.ownOffered {
		b.run = nil
		b.own = true
		b.sites, err = m.p.ConfirmedSites()
	}
	if err == nil && len(b.run) == 0 && b.ownOffered && b.older > 0 {
		b.at, b.until, b.older = partition.StoredPlace{}, b.older, 0
		return m.nextRun()
	}
	return err
}

// ownBatch reads the own operations that are offered next. lost are the operations among them that the log lacks and that need a missing
// picture.
func (m *Machine) ownBatch() (ops, lost []log.Op, err error) {
	b := &m.back
	maxOps, room := pushOps, pushBytes
	if n := m.session.limits.PushOps; n > 0 && n < uint64(maxOps) {
		maxOps = int(n)
	}
	if m.push.maxOps > 0 {
		maxOps = min(maxOps, m.push.maxOps)
	}
	next := b.after + 1
	err = m.p.ConfirmedAfter(b.sites[0], b.after, func(op log.Op) bool {
		if b.sites[0] == m.p.Site() && len(ops) == 0 { // the operations before are stable. An origin that lacks them refuses the rest
			next = op.Dot.Seq
		}
		for ; next < op.Dot.Seq && len(ops) < maxOps; next++ {
			ops = append(ops, log.Op{Dot: log.Dot{Writer: op.Dot.Writer, Seq: next}, Body: &log.Refused{Reason: "lost"}})
		}
		if len(ops) >= maxOps || m.upload.wants(&op) {
			return false
		}
		if m.upload.lacks(&op) {
			if op.Dot.Writer != m.p.Site() || op.Dot.Seq > b.had {
				lost = append(lost, op)
			}
			partition.Refuse(&op, noPicture)
		}
		if room -= len(log.Encode(nil, &op)); len(ops) > 0 && room < 0 {
			return false
		}
		ops = append(ops, op)
		next++
		return len(ops) < maxOps
	})
	return ops, lost, err
}

// offerOwn offers own operations that were in the log, one site after another.
func (m *Machine) offerOwn(l *lane) error {
	b := &m.back
	for len(b.sites) > 0 {
		ops, lost, err := m.ownBatch()
		if err == nil && len(lost) > 0 {
			err = m.p.Lose(lost, noPicture) // possibly no other replica has their content
		}
		if err != nil {
			return err
		}
		if len(ops) == 0 {
			if !m.upload.first.IsZero() && !m.upload.known[m.upload.first] {
				return nil // a picture is being uploaded
			}
			b.sites, b.after = b.sites[1:], 0
			continue
		}
		tokens, err := m.tokens(ops)
		if err != nil {
			return err
		}
		b.count = len(ops)
		first, last := ops[0].Dot, ops[len(ops)-1].Dot
		lives, err := m.p.Lives(first.Writer, max(first.Seq-1, 1), last.Seq)
		if err != nil {
			return err
		}
		p := wire.Push{
			App: m.o.App.String(), Epoch: b.epoch, Base: m.p.Cursor().Seq, Site: first.Writer,
			Block: wire.EncodeOps(ops), For: behalves(ops), Tokens: tokens, Again: true, Older: last.Seq,
		}
		for _, l := range lives {
			p.Lives = append(p.Lives, wire.Life(l))
		}
		m.ask(l, Ask{Method: "POST", Path: "/v2/sync/push", Body: p.Encode()}, m.where()...)
		return nil
	}
	b.own, b.ownOffered = false, true
	return m.startBack(l)
}

// tookBack handles the origin's answer to the current request.
func (m *Machine) tookBack(l *lane, body []byte) error {
	b := &m.back
	if b.own {
		p, err := wire.DecodePushed(body)
		switch {
		case err != nil:
			return err
		case p.Epoch != b.epoch:
			b.epoch = log.Epoch{}
			return fmt.Errorf("%w: different epoch", errAnswer)
		case p.Accepted <= b.after:
			m.backOff(l, wait(p.WaitMillis), errors.New("the origin accepted no operations"))
			return nil
		}
		b.after = p.Accepted
		l.succeeded()
		l.next = m.at + wait(p.WaitMillis)
		return nil
	}
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
	if b.asking {
		return m.handleSiteReply(&t)
	}
	if t.To < b.sent.Seq {
		return fmt.Errorf("%w: entries up to %d instead of %d", errAnswer, t.To, b.sent.Seq)
	}
	if b.lives == nil {
		b.lives = map[ofSite]wire.Life{}
	}
	for i := range b.run {
		k := &b.run[i]
		b.lives[ofSite{k.At.Run, k.Op.Dot.Writer}] = wire.Life{First: k.Op.Dot.Seq, ID: k.Life}
	}
	b.at, b.run = b.sent, nil
	return nil
}

// handleSiteReply handles the origin's answer about our site. If both sides have operations after the last common one, the replica asks
// again with that one. From its number the origin knows which operations the replica sends again as another site.
func (m *Machine) handleSiteReply(t *wire.TakenBack) error {
	b := &m.back
	if b.shared {
		m.gave(b.issued)
		return nil
	}
	last, _, err := m.p.Fork(b.issued, t.Confirmed, livesIn(t.Lives))
	switch {
	case err != nil:
		return err
	case last < min(b.issued, t.Confirmed):
		b.shared, b.issued = true, last
	default:
		m.gave(last)
	}
	return nil
}

// gave ends giving back. If the replica takes another site, last is the last own operation that the log has.
func (m *Machine) gave(last uint64) {
	b := m.back
	m.back = back{done: b.epoch}
	m.upload.forget()
	m.lane[laneSession].next = 0
	if b.leaves {
		m.leave(renewal{epoch: b.epoch, last: last, lost: true})
	}
}

// endsBack reports whether a refusal ends giving back. The next session then finds out what the log lacks.
func endsBack(r *wire.Refusal, status int) bool {
	return r.Code == wire.RefusedEpoch || r.Code == wire.RefusedScope || r.Code == wire.RefusedGone || status == 401
}

// backRefused handles a refusal of entries or operations. If the origin refuses a site's operations for good, the replica continues with
// the next site.
func (m *Machine) backRefused(r *wire.Refusal, status int) (done bool, err error) {
	b, l := &m.back, &m.lane[laneBack]
	switch {
	case len(b.proof) > 0:
		return m.proofRefused(r, status)
	case b.own && r.Code == wire.RefusedSequence && r.Accepted > b.after:
		b.after = r.Accepted
		l.succeeded()
		return true, nil
	case r.Code == wire.RefusedBlobs:
		m.upload.forget()
		m.backOff(l, 0, r)
		return true, nil
	case b.own && status == 413 && b.count > 1:
		m.push.maxOps = max(b.count/2, 1)
		m.backOff(l, 0, r)
		return true, nil
	case b.own && (r.Code == wire.RefusedSequence || r.Code == wire.RefusedSite || r.Code == wire.RefusedEpoch && r.Epoch == (log.Epoch{})):
		b.sites, b.after = b.sites[1:], 0
		l.succeeded()
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
	b := &m.back
	switch {
	case !m.returning():
		return m.p.Pending(m.push.accepted, func(op log.Op) bool { return yield(op) && op.Dot.Seq < m.push.accepted+16*maxRequestHashes })
	case b.own && len(b.sites) > 0:
		return m.p.ConfirmedAfter(b.sites[0], b.after, func(op log.Op) bool { return yield(op) && op.Dot.Seq < b.after+16*maxRequestHashes })
	}
	for i := range b.run {
		if !yield(b.run[i].Op) {
			break
		}
	}
	return nil
}
