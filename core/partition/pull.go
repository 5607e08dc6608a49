package partition

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/fold"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/log"
)

// Run is a run of entries of the log that a replica pulls: those after From, up to To.
type Run struct {
	Epoch    log.Epoch
	From, To uint64
	Chain    log.Chain // chain of the log up to To
	Entries  []log.Entry
	Rows     [][]byte        // encoded operations of the entries, as the origin sent them; nil: Entries has them
	Stable   uint64          // last entry that the origin will never lose; 0: unchanged
	Lives    []SiteLife      // lives that made the entries, as far as the origin recorded them
	Seal     []byte          // seal by which the origin recognizes the log up to To; nil: none
	Attach   func(*kv.Batch) // adds records that the entries need, such as derived records; nil: none
}

// OpVerdict is the origin's verdict on one of this replica's operations.
type OpVerdict struct {
	Op      log.Op // as the replica submitted it
	Verdict fold.Verdict
}

// Pull folds entries of the log that follow the cursor. One batch makes their effect, the new cursor, and the pending operations over the
// new state visible. The batch is not synced: after a crash the caller pulls again, and it syncs once it has caught up. Pull returns the
// verdicts on operations of this site among the entries. It stores conflicts until they are dismissed.
//
// The cost grows with the number of pending operations, which are folded again, so runs should be long if there are many. Pull borrows the
// entries. Errors: ErrCursor, ErrChain, ErrSite, kv.ErrFull unless all entries only delete, and others of kv. After an error the state is
// unchanged.
func (p *Partition) Pull(ctx context.Context, r Run) ([]OpVerdict, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if p.replica == nil {
		return nil, ErrReplica
	}
	if base, ok := r.network(); ok && p.index != nil {
		if err := p.meet(ctx, base); err != nil {
			return nil, fmt.Errorf("pull: %w", err)
		}
	}
	defer p.rest().unlock()
	if err := p.whyClosed(); err != nil {
		return nil, err
	}
	// An operation that was pushed before its Submit folded it may be in the run.
	if err := p.foldAll(); err != nil {
		return nil, fmt.Errorf("pull: %w", err)
	}
	verdicts, err := p.pull(&r)
	if err != nil {
		p.forget()
		return nil, fmt.Errorf("pull: %w", err)
	}
	return verdicts, nil
}

// rest takes folding, and also appending while Pull may replace the outbox.
func (p *Partition) rest() hold {
	for {
		if p.Renewing() {
			return p.locks.take(appending | folding)
		}
		lock := p.locks.take(folding)
		if p.replica.renewal == nil {
			return lock
		}
		lock.unlock()
	}
}

// foldAll folds the appended operations that survive a crash. If Pull may replace the outbox, it syncs and folds all of them.
func (p *Partition) foldAll() error {
	if p.replica.renewal != nil {
		if err := p.log.Settle(); err != nil {
			return err
		}
	}
	return p.foldLocked(p.log.Head())
}

// check checks that a run follows the cursor, and returns the cursor after it.
func (r *Run) check(at Cursor) (Cursor, error) {
	begins := at.Seq == 0 && at.Epoch == (log.Epoch{})
	if begins {
		at.Epoch, at.Chain = r.Epoch, log.Chain(r.Epoch)
	}
	switch {
	case r.Epoch != at.Epoch:
		return at, fmt.Errorf("epoch %x, want %x: %w", r.Epoch, at.Epoch, ErrChain)
	case r.From != at.Seq || r.To < r.From || uint64(len(r.Entries)) != r.To-r.From:
		return at, fmt.Errorf("%d entries from %d to %d with the cursor at %d: %w", len(r.Entries), r.From, r.To, at.Seq, ErrCursor)
	}
	for i := range r.Entries {
		if at.Seq++; r.Entries[i].Seq != at.Seq {
			return at, fmt.Errorf("entry %d, want %d: %w", r.Entries[i].Seq, at.Seq, ErrCursor)
		}
		at.Chain = at.Chain.Next(r.row(i))
	}
	if at.Chain != r.Chain {
		return at, fmt.Errorf("entry %d: %w", at.Seq, ErrChain)
	}
	at.Stable = max(at.Stable, r.Stable)
	return at, nil
}

// row returns the encoded operation of an entry.
func (r *Run) row(i int) []byte {
	if r.Rows != nil {
		return r.Rows[i]
	}
	return log.Encode(nil, &r.Entries[i].Op)
}

// pull is Pull under its lock.
func (p *Partition) pull(r *Run) ([]OpVerdict, error) {
	cursor, err := r.check(p.replica.cursor)
	if err != nil {
		return nil, err
	}
	if err := p.o.Store.Room(); err != nil && slices.ContainsFunc(r.Entries, func(e log.Entry) bool { return !log.Deletes(e.Op.Body) }) {
		return nil, err
	}
	m := p.newMix()
	m.note.cursor, m.lives = cursor, bySite(r.Lives)[m.note.site]
	if r.Attach != nil {
		var batch kv.Batch
		r.Attach(&batch)
		if err := m.noteNewDerived(&batch); err != nil {
			return nil, err
		}
		replay(p.tx, &batch)
	}
	if err := m.undo(); err != nil {
		return nil, err
	}
	if err := m.entries(r.Entries); err != nil {
		return nil, err
	}
	if r.To > r.From {
		m.note.seal = bytes.Clone(r.Seal)
	}
	if err := m.keepRun(r, chainBefore(r, p.replica.cursor)); err != nil {
		return nil, err
	}
	return m.verdicts, m.finish()
}

// noteNewDerived records the keys of derived records in the batch that the store lacks.
func (m *pullBatch) noteNewDerived(batch *kv.Batch) error {
	p := m.p
	all, _ := p.o.App.Range()
	for op := range batch.Each {
		key, ours := bytes.CutPrefix(op.Key, all)
		if !ours || op.Kind != kv.KindPut || !catalog.DerivedTable(key) {
			continue
		}
		_, err := p.o.Store.Get(op.Key)
		if err != nil && !isMissing(err) {
			return err
		}
		if err != nil {
			m.derivedKeys = append(m.derivedKeys, catalog.Pair{Key: bytes.Clone(key)})
		}
	}
	return nil
}

// replay adds a batch's operations to w.
func replay(w kv.Writer, b *kv.Batch) {
	for _, op := range operations(b) {
		switch op.Kind {
		case kv.KindPut:
			w.Put(op.Key, op.Value)
		case kv.KindDelete:
			w.Delete(op.Key)
		case kv.KindDeleteRange:
			w.DeleteRange(op.Key, op.Value)
		}
	}
}

// pullBatch builds the batch of a Pull. It undoes the pending operations, folds the entries, and folds the operations that are still
// pending again.
type pullBatch struct {
	p         *Partition
	note      replicaState
	confirmed uint64          // last local operation in the log
	undone    bool            // some pending operation was undone
	ords      map[uint32]bool // ordinals of inputs that may have changed
	log       fold.Outcome    // outcome of the entries
	verdicts  []OpVerdict
	lives     []Life // lives that made the entries of our site
	rewritten bool   // something other than entries changed the state

	derived     map[uint32]bool // ordinals of inputs whose derived records came
	derivedKeys []catalog.Pair  // keys of derived records that came with entries, of any site
	large       *large          // a snapshot that takes more than one batch; nil: none
	renewed     *renewedOutbox  // outbox under another site; nil: the site stays
	blank       bool            // the state had no input
	other       bool            // the snapshot belongs to another log, where an ordinal may mean another input
	adopted     []fold.Change   // inputs that came while blank, instead of ords
}

func (p *Partition) newMix() *pullBatch {
	p.tx.Reset(p.o.Store)
	return &pullBatch{p: p, ords: map[uint32]bool{}, derived: map[uint32]bool{}, note: p.replica.replicaState}
}

func (m *pullBatch) undo() error {
	p := m.p
	m.confirmed = p.replica.confirmed
	m.undone = m.confirmed < p.seq
	return catalog.Undo(p.tx, p.o.App, func(ord uint32) { m.ords[ord] = true })
}

// entries folds entries of the log.
func (m *pullBatch) entries(entries []log.Entry) error {
	p := m.p
	if len(entries) == 0 {
		return nil
	}
	verdicts, out, err := p.foldEntries(p.fold, p.tx, entries)
	if err != nil {
		return err
	}
	m.log = out
	if err := p.recordDeletion(p.tx, entries, verdicts); err != nil {
		return err
	}
	var own []int // indexes of our operations among the entries
	for i := range entries {
		dot := entries[i].Op.Dot
		if m.note.site == 0 || dot != (log.Dot{Writer: m.note.site, Seq: m.confirmed + uint64(len(own)) + 1}) {
			continue
		}
		if dot.Seq > p.replica.lastLocal(dot.Seq) { // another life of the replica made it
			continue
		}
		if dot.Seq > p.seq {
			return fmt.Errorf("operation %d of writer %v was not created here: %w", dot.Seq, dot.Writer, ErrSite)
		}
		own = append(own, i)
	}
	if len(own) == 0 {
		return nil
	}
	if err := m.noteVerdicts(entries, verdicts, own); err != nil {
		return err
	}
	m.note.ack(acknowledgement{seq: entries[own[len(own)-1]].Seq, local: m.confirmed})
	return nil
}

// noteVerdicts records the origin's verdicts on local operations.
func (m *pullBatch) noteVerdicts(entries []log.Entry, verdicts []fold.Verdict, own []int) error {
	p := m.p
	var ops []log.Op // those of our operations that the outbox still has
	err := p.own(m.confirmed, entries[own[len(own)-1]].Op.Dot.Seq, func(op log.Op) bool {
		ops = append(ops, op)
		return true
	})
	if err != nil {
		return err
	}
	for _, i := range own {
		c := Conflict{Op: entries[i].Op, Seq: entries[i].Seq, Verdict: verdicts[i]}
		if len(ops) > 0 && ops[0].Dot == c.Op.Dot {
			if err := m.checkLocal(&c.Op, &ops[0]); err != nil {
				return err
			}
			c.Op, ops = ops[0], ops[1:]
		}
		m.verdicts = append(m.verdicts, OpVerdict{Op: c.Op, Verdict: c.Verdict})
		if isConflict(c.Verdict.Code) {
			if c.ID, err = p.takeName(&c.Op); err != nil {
				return err
			}
			p.tx.Put(conflictKey(p.o.App, c.Op.Dot), c.encode())
		}
		if c.Verdict.Code != fold.OK {
			scheduleCleanup(p.tx, p.o.App, c.Op.Body)
		}
		m.confirmed = c.Op.Dot.Seq
	}
	return nil
}

// checkLocal compares an entry with the local operation of the same name. If the same life made both, the clock and the names in the body
// may differ: the origin may have set the clock back and renamed them.
func (m *pullBatch) checkLocal(entry, own *log.Op) error {
	p := m.p
	ours, err := p.lifeAt(own.Dot.Writer, own.Dot.Seq)
	expected := *own
	if ours.ID != 0 && ours.ID == lifeOf(m.lives, own.Dot.Seq) {
		expected.At, expected.Made = entry.At, entry.Made
	}
	if err != nil || sameOp(entry, &expected) {
		return err
	}
	defer p.locks.take(showing).unlock()
	p.replica.parted = own.Dot.Seq
	return fmt.Errorf("operation %d of writer %v is not the one that was created here: %w", own.Dot.Seq, own.Dot.Writer, ErrSite)
}

// sameOp reports whether an entry of the log may be the local operation own. The origin may have set its clock back, removed an author that
// it does not know, or refused it. It may have renamed the dots in the body that their replica sends again as another site.
func sameOp(entry, own *log.Op) bool {
	if _, refused := entry.Body.(*log.Refused); refused {
		return true
	}
	expected := *own
	expected.At, expected.By, expected.Made = entry.At, entry.By, entry.Made
	theirs, ours := log.Encode(nil, entry), log.Encode(nil, &expected)
	return bytes.Equal(theirs, ours) || entry.At == own.At && bytes.Equal(nameless(theirs), nameless(ours))
}

// nameless removes the dots from the body of an encoded operation.
func nameless(data []byte) []byte {
	op, err := log.Decode(bytes.Clone(data))
	if err != nil {
		return data
	}
	log.Rename(op.Body, func(log.Dot) log.Dot { return log.Dot{} })
	return log.Encode(nil, &op)
}

// scheduleCleanup records that the picture or objects written with an operation may be unreferenced and can then be deleted.
func scheduleCleanup(w kv.Writer, app catalog.AppID, body log.Body) {
	switch b := body.(type) {
	case *log.InputCreate:
		if !b.Blob.IsZero() {
			catalog.OwePicture(w, app, b.Blob, b.Crop)
		}
	case *log.VersionResult:
		catalog.OweObjects(w, app)
	}
}

// finish folds the operations that are still pending, and makes the whole batch visible.
func (m *pullBatch) finish() error {
	p := m.p
	if m.rewritten {
		p.deleteDeletions(p.tx)
	}
	p.replica.pending = fold.NewPending(p.o.App, p.o.Rules)
	if err := m.renew(); err != nil {
		return err
	}
	pending, err := m.refoldPending()
	if err != nil {
		return err
	}
	h, err := catalog.Read(p.tx, p.o.App).Header()
	if err != nil {
		return err
	}
	c, err := m.change(pending)
	if err != nil {
		return err
	}
	stable := m.note.dropStable()
	if stable > 0 {
		if err := p.forgetTokens(p.tx, m.note.site, stable); err != nil {
			return err
		}
	}
	if err := m.deleteStable(); err != nil {
		return err
	}
	p.tx.Put(noteKey(p.o.App), m.note.encode())
	c.moved = func() {
		p.replica.replicaState, p.replica.confirmed = m.note, m.confirmed
		p.at = h.Seq
		p.unpin()
		if m.renewed != nil {
			m.switchSite()
		}
	}
	var wait func() error
	if m.renewed != nil { // a full disk refuses this one batch completely, and it survives a crash before the new site pushes anything
		c.write = func(b *kv.Batch) (err error) {
			wait, err = p.o.Store.Commit(b)
			return err
		}
	}
	err = p.apply(c)
	switch {
	case err != nil:
		return err
	case m.renewed != nil:
		if err := wait(); err != nil {
			return fmt.Errorf("%w: %v", kv.ErrFailed, err) // not kv.ErrFull, after which the replica would continue
		}
		return nil
	case stable == 0:
		return nil
	}
	return p.log.Trim(stable + 1)
}

// switchSite gives the replica its new site while the batch becomes visible.
func (m *pullBatch) switchSite() {
	p, n := m.p, uint64(len(m.renewed.ops))
	m.renewed.restarted()
	p.seq, p.last = n, n
	p.replica.renewal, p.replica.restored, p.replica.noted, p.replica.parted = nil, false, 0, 0
	if n > 0 {
		p.replica.noted = m.note.site
	}
	defer p.locks.take(waiting).unlock()
	clear(p.tickets) // they have their verdicts
}

// refoldPending folds the operations that are still pending, and records how to undo them.
func (m *pullBatch) refoldPending() (out fold.Outcome, err error) {
	p := m.p
	var entries []log.Entry
	if m.renewed != nil {
		for i := range m.renewed.ops {
			entries = append(entries, log.Entry{Op: m.renewed.ops[i]})
		}
	} else {
		err = p.own(m.confirmed, p.seq, func(op log.Op) bool {
			entries = append(entries, log.Entry{Op: op})
			return true
		})
	}
	if err != nil || len(entries) == 0 {
		return out, err
	}
	over := kv.NewOverlay(p.tx)
	verdicts, out, err := p.foldLocal(p.replica.pending, over, entries)
	if err != nil {
		return out, err
	}
	if err := p.noteNames(p.tx, entries, verdicts); err != nil {
		return out, err
	}
	if err := p.noteUndo(p.tx, p.tx, over.Batch()); err != nil {
		return out, err
	}
	replay(p.tx, over.Batch())
	return out, nil
}

// net returns the changes of the inputs between the visible state and the next one, and the changes for the watcher, which contain only
// deletions by the log.
func (m *pullBatch) net(pending fold.Outcome) (changes, watched fold.Outcome, err error) {
	p := m.p
	if !m.undone && !m.rewritten && len(pending.Changes) == 0 && !pending.DeletedAll {
		return m.log, m.log, nil
	}
	if m.blank && !pending.DeletedAll {
		out := fold.Outcome{Changes: append(m.adopted, pending.Changes...)}
		return out, out, nil
	}
	for _, c := range m.adopted {
		m.ords[c.After.Ord] = true
	}
	for _, out := range []fold.Outcome{m.log, pending} {
		for _, c := range out.Changes {
			m.ords[ordOf(c)] = true
		}
	}
	before, after := catalog.Read(p.o.Store, p.o.App), catalog.Read(p.tx, p.o.App)
	if m.log.DeletedAll {
		before = catalog.Read(nothing{}, p.o.App)
	}
	changes.DeletedAll = m.log.DeletedAll
	if pending.DeletedAll && m.large != nil { // the store already has the undone state
		err := before.Inputs(0, func(in catalog.Input) bool {
			m.ords[in.Ord] = true
			return true
		})
		if err != nil {
			return changes, watched, err
		}
	}
	for _, ord := range slices.Sorted(maps.Keys(m.ords)) {
		was, is, differ, err := catalog.Differ(before, after, ord)
		if err != nil {
			return changes, watched, err
		}
		if differ {
			changes.Changes = append(changes.Changes, fold.Change{Before: was, After: is})
		}
	}
	watched.DeletedAll = m.log.DeletedAll
	for _, c := range m.log.Changes {
		if c.After == nil {
			watched.Changes = append(watched.Changes, c)
		}
	}
	for _, c := range changes.Changes {
		if c.After != nil || c.Before.Ord >= fold.PendingOrds || m.rewritten {
			watched.Changes = append(watched.Changes, c)
		}
	}
	return changes, watched, nil
}

// change returns the changes of net, with the inputs whose derived records came.
func (m *pullBatch) change(pending fold.Outcome) (c change, err error) {
	if c.indexed, c.watched, err = m.net(pending); err != nil {
		return c, err
	}
	if m.large != nil {
		c.watched.Changes = append(m.large.watched, c.watched.Changes...)
	}
	r := catalog.Read(m.p.tx, m.p.o.App)
	if err := m.noteIndexable(r, c.indexed.Changes); err != nil {
		return c, err
	}
	for _, ord := range slices.Sorted(maps.Keys(m.derived)) {
		in, err := r.Input(ord)
		if err == nil {
			c.analysed = append(c.analysed, in)
		} else if !errors.Is(err, catalog.ErrNotFound) {
			return c, err
		}
	}
	return c, nil
}

// noteIndexable adds stored inputs without a derived record to m.derived if their record arrived with another input of the same picture.
func (m *pullBatch) noteIndexable(r catalog.Reader, changes []fold.Change) error {
	if len(m.derivedKeys) == 0 {
		return nil
	}
	indexed := map[uint32]bool{}
	for _, c := range changes {
		if findsDerived(c) {
			indexed[ordOf(c)] = true
		}
	}
	return catalog.Derives(r, m.derivedKeys, func(ord uint32) {
		if !indexed[ord] {
			m.derived[ord] = true
		}
	})
}

func ordOf(c fold.Change) uint32 {
	if c.After != nil {
		return c.After.Ord
	}
	return c.Before.Ord
}

func isMissing(err error) bool { return errors.Is(err, kv.ErrNotFound) }

// nothing is an empty store.
type nothing struct{}

func (nothing) Get([]byte) ([]byte, error)                                 { return nil, kv.ErrNotFound }
func (nothing) Scan(_, _ []byte, _ func(key, value []byte) bool) error     { return nil }
func (nothing) ScanBack(_, _ []byte, _ func(key, value []byte) bool) error { return nil }
