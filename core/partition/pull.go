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

// Run is a run of entries of the log that a replica pulls. Frame.Before counts only in the first run of a replica.
type Run struct {
	Frame
	Entries []log.Entry     // of the frame
	Stable  uint64          // last entry that the origin will never lose; 0: unchanged
	Attach  func(*kv.Batch) // adds records that the entries need, such as derived records; nil: none
}

// OpVerdict is the origin's verdict on one of this replica's operations.
type OpVerdict struct {
	Op      log.Op // as the replica submitted it
	Verdict fold.Verdict
}

// Pull folds entries of the log that follow the cursor. One batch makes their effect, the new cursor, and the pending operations over the
// new state visible. The batch is not synced: after a crash the caller pulls again, and it syncs once it has caught up. Pull returns the
// verdicts on own operations among the entries. It stores conflicts until they are dismissed.
//
// The cost grows with the number of pending operations, which are folded again, so runs should be long if there are many. Pull borrows the
// entries. Errors: ErrCursor, ErrChain, kv.ErrFull unless all entries only delete, and others of kv. After an error the state is
// unchanged.
func (p *Replica) Pull(ctx context.Context, r Run) ([]OpVerdict, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if base, ok := network(r.Entries); ok && p.index != nil {
		if err := p.arrivals.prepareSwitch(ctx, base); err != nil {
			return nil, fmt.Errorf("pull: %w", err)
		}
	}
	defer p.locks.take(folding).unlock()
	if err := p.whyClosed(); err != nil {
		return nil, err
	}
	// An operation that was pushed before its Submit folded it may be in the run.
	if err := p.foldLocked(p.log.Head()); err != nil {
		return nil, fmt.Errorf("pull: %w", err)
	}
	verdicts, err := p.pull(&r)
	if err != nil {
		p.forget()
		return nil, fmt.Errorf("pull: %w", err)
	}
	return verdicts, nil
}

// check checks that a run follows the cursor, and returns the cursor after it. Only the chain shows that it does: the epoch of entries changes
// with each opening of the log.
func (r *Run) check(at Cursor) (Cursor, error) {
	if at.Seq > 0 {
		r.Before = at.Chain
	}
	if r.From != at.Seq || r.To < r.From || uint64(len(r.Entries)) != r.To-r.From {
		return at, fmt.Errorf("%d entries from %d to %d with the cursor at %d: %w", len(r.Entries), r.From, r.To, at.Seq, ErrCursor)
	}
	for i := range r.Entries {
		if at.Seq++; r.Entries[i].Seq != at.Seq {
			return at, fmt.Errorf("entry %d, want %d: %w", r.Entries[i].Seq, at.Seq, ErrCursor)
		}
	}
	if !r.hasChain() {
		return at, fmt.Errorf("entry %d: %w", at.Seq, ErrChain)
	}
	return Cursor{Epoch: r.Epoch, Seq: r.To, Chain: r.Chain, Stable: max(at.Stable, r.Stable)}, nil
}

// pull is Pull under its lock.
func (p *Replica) pull(r *Run) ([]OpVerdict, error) {
	cursor, err := r.check(p.cursor)
	if err != nil {
		return nil, err
	}
	if err := p.o.Store.Room(); err != nil && slices.ContainsFunc(r.Entries, func(e log.Entry) bool { return !log.OnlyDeletes(e.Op.Body) }) {
		return nil, err
	}
	m := p.newMix()
	m.note.cursor = cursor
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
	if err := m.keepRun(&r.Frame); err != nil {
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
		if !ours || op.Kind != kv.KindPut || !catalog.IsDerivedKey(key) {
			continue
		}
		have, err := kv.Find(p.o.Store, op.Key)
		if err != nil {
			return err
		}
		if have == nil {
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
	p         *Replica
	note      replicaState
	undone    bool            // some pending operation was undone
	ords      map[uint32]bool // ordinals of inputs that may have changed
	log       fold.Outcome    // outcome of the entries
	verdicts  []OpVerdict
	rewritten bool // something other than entries changed the state

	derived     map[uint32]bool // ordinals of inputs whose derived records came
	derivedKeys []catalog.Pair  // keys of derived records that came with entries, of any writer
	large       bool            // the batch is the last one of a large snapshot
	torn        bool            // the store has a part of that snapshot
	watched     []fold.Change   // changes by the earlier batches, for the watcher
	done        int             // number of writers that leave the outbox
	blank       bool            // the state had no input, with and without pending operations
	other       bool            // the snapshot belongs to another log, where an ordinal may mean another input
	adopted     []fold.Change   // inputs that came while blank, instead of ords
}

func (p *Replica) newMix() *pullBatch {
	p.tx.Reset(p.o.Store)
	m := &pullBatch{p: p, ords: map[uint32]bool{}, derived: map[uint32]bool{}, note: p.replicaState}
	m.note.confirmed = slices.Clone(m.note.confirmed)
	return m
}

func (m *pullBatch) undo() error {
	p := m.p
	m.undone = m.note.confirmed.after(p.log.Floor()-1) <= p.seq
	return catalog.Undo(p.tx, p.o.App, func(ord uint32) { m.ords[ord] = true })
}

// entries folds entries of the log.
func (m *pullBatch) entries(entries []log.Entry) error {
	p := m.p
	if len(entries) == 0 {
		return nil
	}
	verdicts, out, err := foldEntries(p.fold, p.clock, p.tx, entries)
	if err != nil {
		return err
	}
	m.log = out
	if err := p.recordDeletion(p.tx, entries, verdicts); err != nil {
		return err
	}
	writers, floor, last := p.outboxWriters(), p.log.Floor(), p.log.LastSeq()
	own := map[uint64]int{} // indexes of our operations among the entries, by their positions
	for i := range entries {
		op := &entries[i].Op
		switch at := writers.position(op.Dot, last); {
		case at == 0:
			p.spoil(op.Dot.Writer)
		case at >= floor && !m.note.confirmed.has(at):
			if _, again := own[at]; !again { // it came again after a horizon dropped its name, and has no effect then
				own[at] = i
			}
		}
	}
	if len(own) == 0 {
		return nil
	}
	return m.confirm(entries, verdicts, own)
}

// confirm records the log's verdicts on own operations. If an entry has the name of an operation, but another clock, another process has
// given the name: a machine has continued from an image of its memory. The operations of that writer from this one on are then listed with
// their content, and are no longer pending.
func (m *pullBatch) confirm(entries []log.Entry, verdicts []fold.Verdict, own map[uint64]int) (err error) {
	positions := slices.Sorted(maps.Keys(own))
	for at, op := range m.p.local(positions[0]-1, positions[len(positions)-1], &err) {
		i, found := own[at]
		if !found || m.note.confirmed.has(at) { // disown lists later operations of its writer
			continue
		}
		m.note.confirmed = m.note.confirmed.add(at, m.note.cursor.Seq)
		c := Conflict{Op: op, Seq: entries[i].Seq, Verdict: verdicts[i]}
		if entries[i].Op.MadeAt() == op.At {
			err = m.verdict(&c)
		} else {
			c.Verdict = usedName
			err = errors.Join(m.list(&c), m.disown(op.Dot))
		}
		if err != nil {
			return err
		}
	}
	return err
}

// Disown lists the pending operations of a writer, starting at one of them, as conflicts with their content, since the log has others by these
// names. They are no longer pending, and the next operation has another writer. Errors: those of kv. After an error the state is unchanged.
func (p *Replica) Disown(from log.Dot) error {
	defer p.locks.take(folding).unlock()
	if err := p.whyClosed(); err != nil {
		return err
	}
	err := p.foldLocked(p.log.Head())
	if err == nil {
		err = p.rewrite(func(m *pullBatch) error { return m.disown(from) })
	}
	if err != nil {
		p.forget()
		return fmt.Errorf("disown: %w", err)
	}
	return nil
}

// disown lists the pending operations of a writer, starting at one of them.
func (m *pullBatch) disown(from log.Dot) (err error) {
	m.p.spoil(from.Writer)
	for at, op := range m.p.local(0, m.p.log.Head(), &err) {
		if op.Dot.Writer != from.Writer || op.Dot.Seq < from.Seq || m.note.confirmed.has(at) {
			continue
		}
		if err = m.list(&Conflict{Op: op, Seq: m.note.cursor.Seq, Verdict: usedName}); err != nil {
			return err
		}
		m.note.confirmed = m.note.confirmed.add(at, m.note.cursor.Seq)
	}
	return err
}

// usedName is the verdict on an operation whose name another process has given to another operation.
var usedName = fold.Verdict{Code: fold.Refused, Detail: "the name of the operation was used twice: this machine continued from a copy of its memory"}

// verdict records the log's verdict on an operation of this replica.
func (m *pullBatch) verdict(c *Conflict) (err error) {
	m.verdicts = append(m.verdicts, OpVerdict{Op: c.Op, Verdict: c.Verdict})
	if isConflict(c.Verdict.Code) {
		err = m.list(c)
	}
	if c.Verdict.Code != fold.OK {
		scheduleCleanup(m.p.tx, m.p.o.App, c.Op.Body)
	}
	return err
}

// list stores a conflict.
func (m *pullBatch) list(c *Conflict) (err error) {
	if c.ID, err = m.p.takeName(&c.Op); err == nil {
		PutConflict(m.p.tx, m.p.o.App, c)
	}
	return err
}

// scheduleCleanup records that the picture or objects written with an operation may be unreferenced and can then be deleted.
func scheduleCleanup(w kv.Writer, app catalog.AppID, body log.Body) {
	switch b := body.(type) {
	case *log.InputCreate:
		if !b.Blob.IsZero() {
			catalog.SchedulePictureCleanup(w, app, b.Blob, b.Crop)
		}
	case *log.VersionResult:
		catalog.ScheduleObjectCleanup(w, app)
	}
}

// finish folds the operations that are still pending, and makes the whole batch visible.
func (m *pullBatch) finish() error {
	p := m.p
	if m.rewritten {
		p.deleteDeletions(p.tx)
	}
	p.pending = fold.NewPending(p.o.App, p.o.Rules)
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
	var floor uint64
	m.note.confirmed, floor = m.note.confirmed.stable(p.log.Floor(), m.note.cursor.Stable)
	if floor > p.log.Floor() {
		if err := m.leave(floor); err != nil {
			return err
		}
	}
	if err := m.deleteStable(); err != nil {
		return err
	}
	p.tx.Put(noteKey(p.o.App), m.note.encode())
	c.moved = func() {
		p.replicaState, p.writers = m.note, p.writers[m.done:]
		p.at = h.Seq
		p.unpin()
	}
	if err = p.apply(c); err != nil || floor <= p.log.Floor() {
		return err
	}
	return p.log.Trim(floor)
}

// refoldPending folds the operations that are still pending, and records how to undo them.
func (m *pullBatch) refoldPending() (out fold.Outcome, err error) {
	p := m.p
	var entries []log.Entry
	for at, op := range p.local(m.note.confirmed.after(p.log.Floor()-1)-1, p.seq, &err) {
		if !m.note.confirmed.has(at) {
			entries = append(entries, log.Entry{Seq: at, Op: op})
		}
	}
	if err != nil || len(entries) == 0 {
		return out, err
	}
	over := kv.NewOverlay(p.tx)
	verdicts, out, err := p.foldLocal(p.pending, over, entries)
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
	if pending.DeletedAll && m.large { // the store already has the undone state
		err := before.Inputs(0, func(in catalog.Input) bool {
			m.ords[in.Ord] = true
			return true
		})
		if err != nil {
			return changes, watched, err
		}
	}
	for _, ord := range slices.Sorted(maps.Keys(m.ords)) {
		was, is, differ, err := catalog.DiffInput(before, after, ord)
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
	if len(m.watched) > 0 {
		c.watched.Changes = append(m.watched, c.watched.Changes...)
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
	return catalog.InputsOfDerived(r, m.derivedKeys, func(ord uint32) {
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
