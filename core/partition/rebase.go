package partition

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/fold"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/log"
)

// Rebase replaces the confirmed state by a snapshot and moves the cursor to it. Operations of the outbox that the snapshot does not
// contain stay pending and are folded on top; none is lost. Rebase reads the chunks twice, in their order: first to check the state, then to
// install them. It writes only differences.
//
// Local operations between the confirmed ones and those that the snapshot contains got their verdicts in skipped entries. If the snapshot
// lacks the effect of one, Rebase stores it as a conflict with the verdict of folding it again.
//
// If the snapshot differs by more than ReplicaOptions.BatchBytes, Rebase needs several batches. Until the last batch, views show the
// previous state. If the process ends, or the store fails, in between, the replica is empty, keeps its pending operations, and installs a
// snapshot again.
//
// Errors: ErrChunk, fold.ErrNewer for rules of a newer version, kv.ErrCorrupt for a snapshot with a wrong digest, and those of kv. Except
// after errors of kv, the state is unchanged then.
func (p *Replica) Rebase(ctx context.Context, s Snapshot) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	defer p.locks.take(folding).unlock()
	if err := p.whyClosed(); err != nil {
		return err
	}
	if err := p.o.Store.Room(); err != nil {
		return fmt.Errorf("rebase: %w", err)
	}
	if err := p.foldLocked(p.log.Head()); err != nil {
		return fmt.Errorf("rebase: %w", err)
	}
	m := p.newMix()
	m.rewritten = true
	err := m.undo()
	if err == nil {
		err = m.install(ctx, &s)
	}
	if err == nil {
		catalog.ScheduleDerivedCleanup(p.tx, p.o.App)
		err = m.finish()
	}
	if err == nil && m.other && p.index != nil {
		p.index.DropCaches()
	}
	p.forget() // cached facts of the previous state are invalid
	if err != nil {
		return fmt.Errorf("rebase: %w", errors.Join(err, m.rollBack()))
	}
	return nil
}

// install adopts a snapshot and moves the cursor to it.
func (m *pullBatch) install(ctx context.Context, s *Snapshot) error {
	targets, err := m.targets(s)
	if err == nil {
		err = m.adopt(ctx, s)
	}
	if err != nil {
		return err
	}
	at := Cursor{Epoch: s.Epoch, Seq: s.Seq, Chain: s.Chain, Stable: s.Stable}
	if m.other = s.Lacked; !m.other {
		at.Stable = max(at.Stable, m.note.cursor.Stable)
	}
	m.note.cursor = at
	m.replaceKept()
	return m.confirmSnapshot(targets)
}

// record records the change of an input by a snapshot.
func (m *pullBatch) record(ord uint32, after *catalog.Input) {
	if m.blank {
		m.adopted = append(m.adopted, fold.Change{After: after})
	} else {
		m.ords[ord] = true
	}
}

// adopt replaces the confirmed state by the snapshot's state.
func (m *pullBatch) adopt(ctx context.Context, s *Snapshot) error {
	if s.Fold > m.p.o.Rules {
		return fmt.Errorf("snapshot with fold rules of version %d: %w", s.Fold, fold.ErrNewer)
	}
	visible, err := catalog.Read(m.p.o.Store, m.p.o.App).Counts()
	if err != nil {
		return err
	}
	confirmed, err := catalog.Read(m.p.tx, m.p.o.App).Counts()
	if err != nil {
		return err
	}
	m.blank = visible == catalog.Counts{} && confirmed == catalog.Counts{}
	states, err := m.verify(ctx, s)
	if err != nil {
		return err
	}
	size := uint64(0)
	for i := range s.Chunks {
		size += s.Chunks[i].Size
	}
	m.large = size > uint64(m.p.batch)
	if m.blank && m.large {
		err = m.fill(ctx, s, states)
	} else {
		err = m.differ(s)
	}
	if err != nil {
		return err
	}
	h, err := catalog.Read(m.p.tx, m.p.o.App).Header()
	m.p.clock.Observe(h.Clock)
	return err
}

// differ is adopt for a store with inputs, and for a snapshot of one batch. It writes only differences.
func (m *pullBatch) differ(s *Snapshot) error {
	a, state := catalog.Adopt(m.p.tx, m.p.o.App, m.record), catalog.Read(m.p.tx, m.p.o.App)
	for i := range s.Chunks {
		if m.blank && s.isPlaced(i) {
			continue
		}
		pairs, err := s.pairs(i)
		if err == nil {
			err = a.Keys(pairs)
		}
		if err == nil && !m.blank { // otherwise the index gets the records with their inputs
			err = catalog.InputsOfDerived(state, pairs, func(ord uint32) { m.derived[ord] = true })
		}
		if err == nil && m.large && len(m.p.tx.Batch().Bytes()) > m.p.batch {
			err = m.flush()
		}
		if err != nil {
			return fmt.Errorf("chunk %d: %w", i, err)
		}
	}
	return a.End()
}

// pairs returns the keys and values of a chunk.
func (s *Snapshot) pairs(i int) ([]catalog.Pair, error) {
	data, err := s.Read(i)
	if err != nil {
		return nil, err
	}
	var pairs []catalog.Pair
	err = Unpack(data, func(key, value []byte) bool {
		pairs = append(pairs, catalog.Pair{Key: key, Value: value})
		return true
	})
	return pairs, err
}

// verify checks the chunks that adopt will read, and the state in them against its digest. It returns the number of the chunks with the state.
// Derived records follow the state, also in the last one of these chunks.
func (m *pullBatch) verify(ctx context.Context, s *Snapshot) (states int, err error) {
	digest := fold.NewDigester()
	var h catalog.Header
	for i := range s.Chunks {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		if m.blank && s.isPlaced(i) {
			continue
		}
		data, err := s.Read(i)
		if err == nil {
			err = Unpack(data, func(key, value []byte) bool {
				if catalog.IsStateKey(key) {
					digest.Add(key, value)
					states = i + 1
				}
				if catalog.IsHeaderKey(key) {
					h, err = catalog.DecodeHeader(value)
				}
				return err == nil
			})
		}
		if err != nil {
			return 0, fmt.Errorf("chunk %d: %w", i, err)
		}
	}
	if digest.Sum() != s.Digest || h.Seq != s.Seq {
		return 0, fmt.Errorf("snapshot of entry %d does not match its digest: %w", s.Seq, kv.ErrCorrupt)
	}
	return states, nil
}

// confirmSnapshot finds the own operations that the snapshot contains. Those that it lacks are pending, also if another log had confirmed
// them. It compares clocks to find another operation by the same name: those of the entries that were kept for the snapshot, and that of the
// newest operation of each writer.
//
// targets has the things of the operations in the state of before. If the thing of a pending operation is another one now, a machine has
// continued from an image of its memory and used the name again. The operation is listed, since it means a thing that the log lacks.
func (m *pullBatch) confirmSnapshot(targets map[uint64]log.HLC) error {
	p := m.p
	before, last := m.note.confirmed, p.log.Head()
	m.note.confirmed = nil
	writers := p.outboxWriters()
	own, err := m.ownKept(writers, last)
	if err != nil {
		return err
	}
	if err := m.checkDrawn(writers); err != nil {
		return err
	}
	state := catalog.Read(p.tx, p.o.App)
	var names catalog.Names
	of, foreign := log.Writer(0), log.Writer(0)
	var unclear []log.Op // operations of the writer of, of which the state has the name and shows no clock
	for at, op := range p.local(0, last, &err) {
		if op.Dot.Writer != of {
			of, unclear = op.Dot.Writer, nil
			if names, err = state.Names(of); err != nil {
				return err
			}
		}
		place, known, made, other := m.note.cursor.Seq, names.Has(op.Dot.Seq), log.HLC(0), false
		switch k, kept := own[at]; {
		case kept:
			place, made = k.Seq, k.Op.MadeAt()
		case op.Dot.Seq == names.Last():
			made = names.Newest
		case known:
			made, err = creation(&op).madeAt(state)
		case targets[at] != 0:
			var now log.HLC
			now, err = subject(op.Body).madeAt(state)
			other = now != 0 && now != targets[at]
		}
		switch {
		case made == 0 && known && !before.has(at):
			unclear = append(unclear, op)
		case made != 0 && made != op.At && foreign != of:
			foreign = of
			p.spoil(of)
			err = errors.Join(err, m.listUsed(unclear))
		}
		switch {
		case err != nil:
		case of == foreign || other:
			err = m.list(&Conflict{Op: op, Seq: place, Verdict: usedName})
		case !known:
			continue
		case !before.has(at):
			err = m.findVerdict(op)
		}
		if err != nil {
			return err
		}
		m.note.confirmed = m.note.confirmed.add(at, place)
	}
	return err
}

// checkDrawn makes the process draw another writer if the snapshot has an operation of its writer that it has not made.
func (m *pullBatch) checkDrawn(writers outboxWriters) error {
	p := m.p
	drawn := log.Writer(p.drawn.Load())
	names, err := catalog.Read(p.tx, p.o.App).Names(drawn)
	if newest := names.Last(); newest > 0 && writers.position(log.Dot{Writer: drawn, Seq: newest}, p.log.LastSeq()) == 0 {
		p.spoil(drawn)
	}
	return err
}

// listUsed lists operations whose names another process used.
func (m *pullBatch) listUsed(ops []log.Op) (err error) {
	for i := 0; i < len(ops) && err == nil; i++ {
		err = m.list(&Conflict{Op: ops[i], Seq: m.note.cursor.Seq, Verdict: usedName})
	}
	return err
}

// ownKept returns the kept entries of own operations up to a position, by position.
func (m *pullBatch) ownKept(writers outboxWriters, last uint64) (map[uint64]log.Entry, error) {
	own, floor := map[uint64]log.Entry{}, m.p.log.Floor()
	if floor > last {
		return own, nil
	}
	var failed error
	err := scanFrames(kv.Range, m.p.tx, m.p.o.App, m.note.kept.set, 0, func(_ uint64, f Frame) bool {
		var entries []log.Entry
		entries, failed = log.DecodeRows(f.Rows, f.From)
		for i := range entries {
			if at := writers.position(entries[i].Op.Dot, last); at >= floor && entries[i].Seq <= m.note.cursor.Seq {
				own[at] = entries[i]
			}
		}
		return failed == nil
	})
	return own, errors.Join(err, failed)
}

// targets returns the clocks by which the things of own operations were made, by position, as the visible state has them before a snapshot of a
// log that lacked the replica's place.
func (m *pullBatch) targets(s *Snapshot) (made map[uint64]log.HLC, err error) {
	made = map[uint64]log.HLC{}
	if !s.Lacked {
		return made, nil
	}
	state := catalog.Read(m.p.o.Store, m.p.o.App)
	for at, op := range m.p.local(0, m.p.log.Head(), &err) {
		if made[at], err = subject(op.Body).madeAt(state); err != nil {
			return nil, err
		}
	}
	return made, err
}

// findVerdict lists an operation that the snapshot contains, and that has no verdict here, if it lacks its intended effect. It folds the
// operation again over the snapshot's state, without changing that state.
func (m *pullBatch) findVerdict(op log.Op) error {
	if _, feedback := op.Body.(*log.Feedback); feedback || log.OnlyDeletes(op.Body) {
		return nil // a deleted thing has the intended state; feedback leaves no trace to look for
	}
	p := m.p
	tx := kv.NewOverlay(p.tx)
	w := catalog.Write(tx, p.o.App)
	names, err := w.Names(op.Dot.Writer)
	if err != nil {
		return err
	}
	names.Remove(op.Dot.Seq)
	w.PutNames(op.Dot.Writer, &names)
	verdicts, _, err := p.foldLocal(p.pending, tx, []log.Entry{{Op: op}})
	p.pending = fold.NewPending(p.o.App, p.o.Rules)
	if err != nil {
		return err
	}
	v, lacks := verdicts[0], false
	switch {
	case v.Code == fold.Duplicate:
		lacks = v.Detail != "version" && v.Dot != op.Dot
	case v.Code != fold.OK: // a creation that had its effect may be stale by now
		var made log.HLC
		made, err = creation(&op).madeAt(catalog.Read(p.tx, p.o.App))
		lacks = isConflict(v.Code) && made == 0
	case !appends(op.Body): // otherwise folding it again adds the item again, in any case
		lacks, err = m.changes(tx.Batch())
		v = fold.Verdict{Code: fold.Gone, Detail: "unknown"}
	}
	if err != nil || !lacks {
		return err
	}
	return m.list(&Conflict{Op: op, Seq: m.note.cursor.Seq, Verdict: v})
}

// appends reports whether an operation adds to a list.
func appends(body log.Body) bool {
	b, ok := body.(*log.InputMeta)
	return ok && slices.ContainsFunc(b.Writes, func(w log.MetaWrite) bool { return w.Action == log.MetaAppend })
}

// changes reports whether a batch changes any record other than the position of the fold.
func (m *pullBatch) changes(b *kv.Batch) (bool, error) {
	for _, op := range operations(b) {
		if catalog.IsPositionKey(m.p.o.App, op.Key) {
			continue
		}
		have, err := kv.Find(m.p.tx, op.Key)
		changed := have != nil
		if op.Kind == kv.KindPut {
			changed = have == nil || !bytes.Equal(have, op.Value)
		}
		if err != nil || changed {
			return changed, err
		}
	}
	return false, nil
}
