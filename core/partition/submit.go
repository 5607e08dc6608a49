package partition

import (
	"context"
	"fmt"

	"github.com/sightline-dev/sightline/core/fold"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/log"
)

// Submit makes operations of bodies, asked for by the key or account called by, and returns
// what became of each once they, and their effect, can be read and outlive a crash. All of them
// reach the log or none; they follow one another there. also adds to their batch what they
// need beside them, such as derived records; it may be nil, and runs under a lock. Bodies are
// borrowed until Submit returns.
//
// ctx is asked before anything is written, never after. Errors: kv.ErrFull before anything is
// written, unless all that is asked for is to delete; kv.ErrFailed and others of the store, after
// which the operations may or may not be in the log, and if they are, take their effect in time.
func (p *Partition) Submit(ctx context.Context, by string, bodies []log.Body, also func(*kv.Batch)) ([]fold.Verdict, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if len(bodies) == 0 {
		return nil, nil
	}
	first, wait, err := p.append(by, bodies, also)
	if err != nil {
		return nil, fmt.Errorf("submit: %w", err)
	}
	last := first + uint64(len(bodies)) - 1
	err = wait()
	if err == nil {
		err = p.foldTo(last)
	}
	p.waiting.Lock()
	t := p.tickets[first]
	delete(p.tickets, first)
	p.waiting.Unlock()
	if err != nil {
		return nil, fmt.Errorf("submit: %w", err)
	}
	return t.verdicts, nil
}

// append numbers the operations and appends them.
func (p *Partition) append(by string, bodies []log.Body, also func(*kv.Batch)) (first uint64, wait func() error, err error) {
	p.appending.Lock()
	defer p.appending.Unlock()
	if err := p.whyClosed(); err != nil {
		return 0, nil, err
	}
	if err := p.o.Store.Room(); err != nil && !deletes(bodies) {
		return 0, nil, err
	}
	ops := make([]log.Op, len(bodies))
	for i, body := range bodies {
		dot := log.Dot{Site: p.o.Site, Seq: p.last + 1 + uint64(i)}
		ops[i] = log.Op{Dot: dot, At: p.clock.Next(), By: by, Body: body}
	}
	var beside *kv.Batch
	if also != nil {
		beside = &kv.Batch{}
		also(beside)
	}
	first = p.log.Appended() + 1
	p.waiting.Lock()
	p.tickets[first] = &ticket{verdicts: make([]fold.Verdict, len(ops))}
	p.waiting.Unlock()
	if _, wait, err = p.log.Append(ops, beside); err != nil {
		p.waiting.Lock()
		delete(p.tickets, first)
		p.waiting.Unlock()
		return 0, nil, err
	}
	p.last += uint64(len(ops))
	return first, wait, nil
}

// deletes reports whether all the bodies make room.
func deletes(bodies []log.Body) bool {
	for _, body := range bodies {
		switch body.(type) {
		case *log.InputDelete, *log.InputDeleteAll, *log.ModelDelete, *log.ModelDeleteAll,
			*log.VersionDelete, *log.WorkflowDelete, *log.KeyDelete, *log.AppDelete, *log.TokensRevoke:
		default:
			return false
		}
	}
	return true
}

// foldTo folds at least the entries up to one that outlives a crash, and whatever others do.
// The first Submit through the lock so folds for those that wait behind it.
func (p *Partition) foldTo(seq uint64) error {
	p.folding.Lock()
	defer p.folding.Unlock()
	if p.shut {
		return p.closed
	}
	for p.seq < seq {
		if err := p.foldRun(); err != nil {
			// The batch is not there, so what was learnt with it is not so.
			p.fold = fold.New(p.o.App)
			return err
		}
	}
	return nil
}

// runEntries is how many entries share a batch at most.
const runEntries = 512

// foldRun folds some entries and makes their effect visible in one batch. That batch is not
// synced: should a crash take it back, the log, which is, gives it again.
func (p *Partition) foldRun() error {
	entries := make([]log.Entry, 0, 16)
	err := p.log.Read(p.seq+1, func(e log.Entry) bool {
		entries = append(entries, e)
		return len(entries) < runEntries
	})
	if err != nil {
		return err
	}
	p.tx.Reset(p.o.Store)
	if err := p.fold.Begin(p.tx); err != nil {
		return err
	}
	verdicts := make([]fold.Verdict, len(entries))
	for i := range entries {
		p.clock.Observe(entries[i].Op.At)
		if verdicts[i], err = p.fold.Apply(&entries[i]); err != nil {
			return err
		}
	}
	if err := p.apply(p.fold.End(), p.fold.Seq()); err != nil {
		return err
	}
	p.hand(entries[0].Seq, verdicts)
	return nil
}

// apply makes the overlay's batch visible, with what the index makes of it.
func (p *Partition) apply(out fold.Outcome, seq uint64) error {
	if p.index != nil {
		if err := p.index.Stage(p.tx, out.Changes, out.DeletedAll); err != nil {
			p.index.Discard()
			return fmt.Errorf("index: %w", err)
		}
	}
	p.visible.Lock()
	defer p.visible.Unlock()
	if err := p.o.Store.Apply(p.tx.Batch()); err != nil {
		if p.index != nil {
			p.index.Discard()
		}
		return err
	}
	if p.index != nil {
		p.index.Applied()
	}
	if p.o.Watch != nil {
		p.o.Watch(out)
	}
	p.seq = seq
	p.tidy = true
	return nil
}

// hand gives the verdicts on the entries from first on to who waits for them.
func (p *Partition) hand(first uint64, verdicts []fold.Verdict) {
	p.waiting.Lock()
	defer p.waiting.Unlock()
	end := first + uint64(len(verdicts))
	for start, t := range p.tickets {
		lo, hi := max(start, first), min(start+uint64(len(t.verdicts)), end)
		if lo < hi {
			copy(t.verdicts[lo-start:hi-start], verdicts[lo-first:])
		}
	}
}
