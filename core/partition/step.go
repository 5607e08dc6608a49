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

// Step does some of the work that was left for later: it folds what a full store kept from
// being folded, tidies up after deletions, lets the index catch up, trims the log and moves the horizon as
// [Retention] says. It reports whether there is more. Steps may run at the same time as all other calls.
func (p *Partition) Step(ctx context.Context, now time.Time) (more bool, err error) {
	if err := p.whyClosed(); err != nil {
		return false, err
	}
	if err := p.foldTo(p.log.Head()); err != nil {
		return false, fmt.Errorf("step: %w", err)
	}
	if more, err = p.stepTidy(); err != nil {
		return false, fmt.Errorf("step: %w", err)
	}
	again, err := p.stepIndex(ctx)
	if err != nil {
		return false, fmt.Errorf("index: %w", err)
	}
	more = more || again
	if err := p.stepRetention(ctx, now); err != nil {
		return false, fmt.Errorf("log: %w", err)
	}
	return more, nil
}

// stepIndex lets the index catch up. A store that is full has it done later; meanwhile a search compares what the index lacks one by one.
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

// stepRetention trims the log and moves the horizon. A store that is full has it done later.
func (p *Partition) stepRetention(ctx context.Context, now time.Time) error {
	if !p.trimsLog() {
		return nil
	}
	defer p.locks.take(trimming).unlock()
	err := p.stepTrim(now)
	if err == nil {
		err = p.stepHorizon(ctx, now)
	}
	if errors.Is(err, kv.ErrFull) {
		return nil
	}
	return err
}

// stepTidy tidies a little, if everything that was appended is folded.
func (p *Partition) stepTidy() (more bool, err error) {
	defer p.locks.take(appending | folding).unlock()
	if !p.cleanupDue || p.shut {
		return false, nil
	}
	if p.seq < p.log.LastSeq() {
		return false, nil // a Submit is waiting for its sync; another Step will find it done
	}
	if p.replica != nil && p.replica.confirmed < p.seq {
		return false, nil // what pending operations delete may come back
	}
	if waits, err := p.hasStagedDerived(); err != nil || waits {
		return false, err
	}
	p.tx.Reset(p.o.Store)
	if more, err = catalog.Tidy(p.tx, p.o.App, tidyKeys); err != nil {
		return false, err
	}
	if p.tx.Batch().Len() > 0 {
		if err := p.o.Store.Apply(p.tx.Batch()); err != nil {
			return false, err
		}
	}
	p.cleanupDue = more
	return more, nil
}

// AddDerived makes visible, in one batch, derived records that come after their inputs: put
// adds those of the live inputs, which it is called with, in the order of dots. The batch is
// not synced: what a crash takes back is analysed again.
func (p *Partition) AddDerived(dots []log.Dot, put func(w kv.Writer, inputs []catalog.Input)) error {
	if err := p.o.Store.Room(); err != nil {
		return err
	}
	defer p.locks.take(folding).unlock()
	if err := p.whyClosed(); err != nil {
		return err
	}
	p.tx.Reset(p.o.Store)
	state := catalog.Read(p.tx, p.o.App)
	var inputs []catalog.Input
	for _, dot := range dots {
		in, err := state.InputByDot(dot)
		if errors.Is(err, catalog.ErrNotFound) {
			continue
		}
		if err != nil {
			return err
		}
		inputs = append(inputs, in)
	}
	put(p.tx, inputs)
	if p.index == nil {
		return p.o.Store.Apply(p.tx.Batch())
	}
	if err := p.index.StageDerived(p.tx, inputs); err != nil {
		p.index.Discard()
		return fmt.Errorf("index: %w", err)
	}
	defer p.locks.take(showing).unlock()
	if err := p.o.Store.Apply(p.tx.Batch()); err != nil {
		p.index.Discard()
		return err
	}
	p.index.ConfirmStage()
	return nil
}

// Forget has the derived records of a base model removed by the next Steps.
func (p *Partition) Forget(base [32]byte) error {
	defer p.locks.take(folding).unlock()
	if err := p.whyClosed(); err != nil {
		return err
	}
	var b kv.Batch
	catalog.OweBase(&b, p.o.App, base)
	p.cleanupDue = true
	return p.o.Store.Apply(&b)
}

// Tidy makes visible, in one batch, what do writes without an operation: tidying that is owed and
// that the partition cannot do by itself. The batch is not synced; do runs under a lock.
func (p *Partition) Tidy(do func(tx *kv.Overlay) error) error {
	defer p.locks.take(folding).unlock()
	if err := p.whyClosed(); err != nil {
		return err
	}
	p.tx.Reset(p.o.Store)
	if err := do(p.tx); err != nil {
		return err
	}
	return p.o.Store.Apply(p.tx.Batch())
}

// Redact changes operations of the log, starting at an entry, in one batch: see [log.Store.Redact].
func (p *Partition) Redact(from uint64, edit func(log.Body) bool) error {
	defer p.locks.take(appending | folding).unlock()
	if err := p.whyClosed(); err != nil {
		return err
	}
	if p.replica != nil {
		return ErrReplica
	}
	return p.log.Redact(from, edit)
}
