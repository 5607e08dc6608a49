package partition

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/fold"
	"github.com/sightline-dev/sightline/core/index"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/predict/raster"
)

// Submit makes operations of bodies, on behalf of the key or account by. It returns the verdict of each operation once all are durable and
// their effect is visible. The log gets either all of them, in a row, or none. also adds related records to their batch, such as derived
// records; it may be nil, and runs under a lock. Submit borrows bodies until it returns. The result of a training may follow its request:
// see [log.SetLeases].
//
// Submit checks ctx only before it writes. It returns kv.ErrFull before it writes anything, unless all bodies only delete. After
// kv.ErrFailed and other errors of the store, the log may or may not have the operations. If it has them, they take effect later.
//
// On a replica the operations wait in the outbox for the origin, and the verdicts are those of the local state. The log decides, and Pull
// returns the final verdicts. Further error: ErrOutbox.
func (p *Partition) Submit(ctx context.Context, by string, bodies []log.Body, also func(*kv.Batch)) ([]fold.Verdict, error) {
	verdicts, _, err := p.SubmitSpan(ctx, Caller{By: by}, bodies, also)
	return verdicts, err
}

// Span is a run of operations of one writer, from First to Last. The zero Span is empty.
type Span struct {
	Writer      log.Writer
	First, Last uint64
}

// SubmitSpan is [Partition.Submit] for callers with a token. It also returns the span of the new operations.
func (p *Partition) SubmitSpan(ctx context.Context, caller Caller, bodies []log.Body, also func(*kv.Batch)) ([]fold.Verdict, Span, error) {
	if err := ctx.Err(); err != nil {
		return nil, Span{}, err
	}
	if len(bodies) == 0 {
		return nil, Span{}, nil
	}
	first, span, t, wait, err := p.append(caller, bodies, also)
	if err != nil {
		return nil, Span{}, fmt.Errorf("submit: %w", err)
	}
	err = wait()
	if err == nil {
		err = p.foldTo(first + uint64(len(t)) - 1)
	}
	p.drop(first, t)
	if err != nil {
		return nil, Span{}, fmt.Errorf("submit: %w", err)
	}
	return t[:len(bodies)], span, nil
}

// append names the operations and appends them. first is the entry of the first operation, and t the ticket for their verdicts.
func (p *Partition) append(caller Caller, bodies []log.Body, also func(*kv.Batch)) (first uint64, span Span, t []fold.Verdict, wait func() error, err error) {
	if err := p.o.Quota.Prepare(bodies); err != nil {
		return 0, span, nil, nil, err
	}
	defer p.locks.take(appending).unlock()
	if err := p.whyClosed(); err != nil {
		return 0, span, nil, nil, err
	}
	if err := p.o.Store.Room(); err != nil && slices.ContainsFunc(bodies, func(b log.Body) bool { return !log.OnlyDeletes(b) }) {
		return 0, span, nil, nil, err
	}
	if slices.ContainsFunc(bodies, fold.NamesState) {
		v := p.View()
		bodies, err = fold.NameState(v.Reader, bodies)
		if err = errors.Join(err, v.Close()); err != nil {
			return 0, span, nil, nil, err
		}
	}
	if err := p.side.room(len(bodies)); err != nil {
		return 0, span, nil, nil, err
	}
	ops := make([]log.Op, len(bodies))
	p.name(ops)
	for i, body := range bodies {
		ops[i].At, ops[i].By, ops[i].Body, ops[i].Rules = p.clock.Next(), caller.By, body, p.o.Rules
	}
	log.SetLeases(ops)
	first = p.log.LastSeq() + 1
	batch := &kv.Batch{}
	if also != nil {
		also(batch)
	}
	if err := p.side.note(batch, ops, caller.Token, first); err != nil {
		return 0, span, nil, nil, err
	}
	t = p.expect(first, len(ops))
	if _, wait, err = p.log.Append(ops, batch); err != nil {
		p.o.Quota.Cancel(ops)
		p.drop(first, t)
		return 0, span, nil, nil, err
	}
	last := &ops[len(ops)-1]
	p.made(last.Dot.Seq, first)
	return first, Span{Writer: last.Dot.Writer, First: ops[0].Dot.Seq, Last: last.Dot.Seq}, t, wait, nil
}

// foldTo folds at least the entries up to seq, which are durable, and further entries of the same runs. So the first Submit that gets the
// lock folds for those that wait for it.
func (p *Partition) foldTo(seq uint64) error {
	defer p.locks.take(folding).unlock()
	return p.foldLocked(seq)
}

func (p *Partition) foldLocked(seq uint64) error {
	if p.shut {
		return p.closed
	}
	for p.seq < seq {
		entries, err := nextEntries(p.log, p.seq+1)
		if err == nil {
			err = p.side.foldRun(entries)
		}
		if err != nil {
			p.forget()
			return err
		}
	}
	return nil
}

// forget drops the fold's cached facts about a batch that was not written.
func (p *Partition) forget() { p.fold = fold.NewUpTo(p.o.App, p.o.Rules) }

// runEntries is the maximum number of entries in a batch.
const runEntries = 512

// nextEntries reads the entries to fold in one batch.
func nextEntries(l *log.Store, first uint64) ([]log.Entry, error) {
	entries := make([]log.Entry, 0, 16)
	err := l.Read(first, func(e log.Entry) bool {
		entries = append(entries, e)
		return len(entries) < runEntries
	})
	return entries, err
}

// foldEntries folds entries into tx, and shows their times to the clock.
func foldEntries(f *fold.Fold, clock *log.Clock, tx *kv.Overlay, entries []log.Entry) (verdicts []fold.Verdict, out fold.Outcome, err error) {
	if err := f.Begin(tx); err != nil {
		return nil, out, err
	}
	verdicts = make([]fold.Verdict, len(entries))
	for i := range entries {
		clock.Observe(entries[i].Op.At)
		if verdicts[i], err = f.Apply(&entries[i]); err != nil {
			return nil, out, err
		}
	}
	return verdicts, f.End(), nil
}

// findIndexable returns inputs that an index, which may be nil, lacks, and does not find with their changes: another input of the same picture
// brought their derived record. For example, a user adds at a replica a picture that its origin has not analysed.
func findIndexable(ix *index.Index, tx *kv.Overlay, app catalog.AppID, entries []log.Entry, out fold.Outcome) (inputs []catalog.Input, err error) {
	if ix == nil {
		return nil, nil
	}
	changed := make(map[uint32]bool, len(out.Changes)) // inputs whose derived records the index finds with their changes
	pictures := make(map[picture]bool, len(entries))
	brings := func(h blob.Hash, c raster.Crop) {
		if !h.IsZero() {
			pictures[picture{h, c}] = true
		}
	}
	for _, c := range out.Changes {
		if findsDerived(c) {
			changed[ordOf(c)] = true
		}
		if c.After != nil && (c.Before == nil || c.Before.Blob != c.After.Blob) {
			brings(c.After.Blob, c.After.Crop)
		}
	}
	for i := range entries { // an operation that creates no input may bring a record, too
		if b, ok := entries[i].Op.Body.(*log.InputCreate); ok {
			brings(b.Blob, b.Crop)
		}
	}
	r := catalog.Read(tx, app)
	for of := range pictures {
		var failed error
		// All inputs of a picture share its record: the index has all of them or none.
		err := r.ByPicture(of.blob, of.crop, func(ord uint32) bool {
			if changed[ord] {
				return true
			}
			in, err := r.Input(ord)
			lacks := false
			if err == nil {
				lacks, err = ix.Lacks(tx, &in)
			}
			if lacks {
				inputs = append(inputs, in)
			}
			failed = err
			return lacks
		})
		if err = errors.Join(err, failed); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(inputs, func(a, b catalog.Input) int { return cmp.Compare(a.Ord, b.Ord) })
	return inputs, nil
}

// findsDerived reports whether the index looks for the derived record of a changed input: its picture is ready now, or another one, or gone.
func findsDerived(c fold.Change) bool {
	was, is := c.Before, c.After
	return was == nil || is == nil || was.Code != catalog.InputReady || was.Dot != is.Dot || was.Blob != is.Blob || was.Crop != is.Crop
}

// picture identifies the picture of a derived record.
type picture struct {
	blob blob.Hash
	crop raster.Crop
}

// change is the effect of the overlay's batch.
type change struct {
	indexed  fold.Outcome    // changes for the index
	analysed []catalog.Input // otherwise unchanged inputs whose derived records come with the batch
	watched  fold.Outcome    // changes for the watcher
	moved    func()          // runs while the batch becomes visible; nil: the batch changes no state that views show
}

// apply makes the overlay's batch visible, together with the changes of the index.
func (p *Partition) apply(c change) error {
	if p.index != nil {
		defer p.index.KeepUp()  // once views can be taken
		defer p.index.Discard() // after an error
		err := p.index.Stage(p.tx, &c.indexed)
		if err == nil && len(c.analysed) > 0 {
			err = p.index.StageDerived(p.tx, c.analysed)
		}
		if err != nil {
			return fmt.Errorf("index: %w", err)
		}
	}
	defer p.locks.take(showing).unlock()
	if err := p.o.Store.Apply(p.tx.Batch()); err != nil {
		return err
	}
	if p.index != nil {
		p.index.ConfirmStage()
	}
	if p.o.Watch != nil && (c.watched.DeletedAll || len(c.watched.Changes) > 0) {
		p.o.Watch(c.watched)
	}
	if c.moved != nil {
		c.moved()
		p.moves++
		p.cleanupDue = true
	}
	return nil
}

// expect adds a ticket for n entries. The first of them is entry first.
func (p *Partition) expect(first uint64, n int) []fold.Verdict {
	t := make([]fold.Verdict, n)
	defer p.locks.take(waiting).unlock()
	p.tickets[first] = t
	return t
}

// drop deletes a ticket. If its entries are in no log, since another machine writes now, later ones may have their numbers.
func (p *Partition) drop(first uint64, t []fold.Verdict) {
	defer p.locks.take(waiting).unlock()
	if now := p.tickets[first]; len(now) > 0 && len(t) > 0 && &now[0] == &t[0] {
		delete(p.tickets, first)
	}
}

// fillTickets copies the verdicts on the entries starting at first to the tickets that wait for them.
func (p *Partition) fillTickets(first uint64, verdicts []fold.Verdict) {
	defer p.locks.take(waiting).unlock()
	end := first + uint64(len(verdicts))
	for start, t := range p.tickets {
		lo, hi := max(start, first), min(start+uint64(len(t)), end)
		if lo < hi {
			copy(t[lo-start:hi-start], verdicts[lo-first:])
		}
	}
}
