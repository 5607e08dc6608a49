package partition

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/log"
)

// Step does some of the postponed work: it folds entries that a full store delayed, cleans up after deletions, lets the index catch up,
// trims the log and moves the horizon as [Retention] specifies. It reports whether more work is left. Step may run concurrently with all
// other calls.
func (p *Partition) Step(ctx context.Context, now time.Time) (more bool, err error) {
	switch err := p.whyClosed(); {
	case errors.Is(err, kv.ErrFollows):
		return p.stepFollowing(ctx)
	case err != nil:
		return false, err
	}
	if err := p.foldTo(p.log.Head()); err != nil {
		return false, fmt.Errorf("step: %w", err)
	}
	if more, err = p.stepTidy(); err != nil {
		return false, fmt.Errorf("step: %w", err)
	}
	moreIndexing, err := p.stepIndex(ctx)
	if err != nil {
		return false, fmt.Errorf("index: %w", err)
	}
	more = more || moreIndexing
	if err := p.side.step(ctx, now); err != nil {
		return false, fmt.Errorf("log: %w", err)
	}
	return more, nil
}

// stepIndex lets the index catch up. If the store is full, it postpones the work: a search meanwhile compares unindexed inputs one by one.
func (p *Partition) stepIndex(ctx context.Context) (more bool, err error) {
	if p.index == nil {
		return false, nil
	}
	if err = p.o.Store.Room(); err == nil {
		more, err = p.index.Step(ctx, indexSteps)
	}
	if errors.Is(err, kv.ErrFull) {
		return false, nil
	}
	return more, err
}

// stepTidy does some of the due cleanup, if everything that was appended is folded.
func (p *Partition) stepTidy() (more bool, err error) {
	defer p.locks.take(appending | folding).unlock()
	if !p.cleanupDue || p.shut {
		return false, nil
	}
	if p.seq < p.log.LastSeq() || p.deriving > 0 {
		return false, nil // a Submit or an AddDerived is waiting for its sync; a later Step will clean up
	}
	if may, err := p.side.tidies(); err != nil || !may {
		return false, err
	}
	p.tx.Reset(p.o.Store)
	if more, err = catalog.Tidy(p.tx, p.o.App, tidyKeys); err != nil {
		return false, err
	}
	if p.tx.Batch().Len() > 0 { // data that came by a commit are deleted by a commit
		if err := kv.CommitAndWait(p.o.Store, p.tx.Batch()); err != nil {
			return false, err
		}
	}
	p.cleanupDue = more
	return more, nil
}

// AddDerived commits derived records that come after their inputs, and then adds the inputs to the index. It calls put with the existing inputs
// among dots, in the same order; put writes their records.
func (p *Partition) AddDerived(dots []log.Dot, put func(w kv.Writer, inputs []catalog.Input)) error {
	if err := p.o.Store.Room(); err != nil {
		return err
	}
	wait, err := p.putDerived(dots, put)
	if err != nil {
		return err
	}
	err = wait()
	defer p.locks.take(folding).unlock()
	if p.deriving--; err != nil {
		return err
	}
	return p.arrivals.add(dots)
}

// putDerived commits the records.
func (p *Partition) putDerived(dots []log.Dot, put func(w kv.Writer, inputs []catalog.Input)) (wait func() error, err error) {
	defer p.locks.take(folding).unlock()
	if err := p.whyClosed(); err != nil {
		return nil, err
	}
	p.tx.Reset(p.o.Store)
	inputs, err := existing(catalog.Read(p.tx, p.o.App), dots)
	if err != nil {
		return nil, err
	}
	put(p.tx, inputs)
	if wait, err = p.o.Store.Commit(p.tx.Batch()); err == nil {
		p.deriving++
	}
	return wait, err
}

// existing returns the existing inputs among dots.
func existing(state catalog.Reader, dots []log.Dot) (inputs []catalog.Input, err error) {
	for _, dot := range dots {
		in, err := state.InputByDot(dot)
		if err == nil {
			inputs = append(inputs, in)
		} else if !errors.Is(err, catalog.ErrNotFound) {
			return nil, err
		}
	}
	return inputs, nil
}

// ForgetBase marks the derived records of a base model for deletion by the next Steps.
func (p *Partition) ForgetBase(base [32]byte) error {
	return p.Tidy(func(tx *kv.Overlay) error {
		catalog.ScheduleBaseCleanup(tx, p.o.App, base)
		p.cleanupDue = true
		return nil
	})
}

// Tidy makes the writes of do visible and durable in one batch, without an operation. It is for cleanup that the partition cannot do by
// itself. do runs under a lock.
func (p *Partition) Tidy(do func(tx *kv.Overlay) error) error {
	defer p.locks.take(folding).unlock()
	if err := p.whyClosed(); err != nil {
		return err
	}
	p.tx.Reset(p.o.Store)
	if err := do(p.tx); err != nil {
		return err
	}
	return kv.CommitAndWait(p.o.Store, p.tx.Batch())
}
