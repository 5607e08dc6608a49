package partition

import (
	"context"
	"fmt"
	"time"

	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/kv"
)

// Work of one Step.
const (
	tidyKeys   = 1024
	indexSteps = 64
)

// Step does some of the work that was left for later: it folds what a full store kept from
// being folded, tidies up after deletions, and lets the index catch up. It reports whether there is
// more. Steps may run beside everything else.
func (p *Partition) Step(ctx context.Context, _ time.Time) (more bool, err error) {
	if p.isClosed() {
		return false, kv.ErrClosed
	}
	if err := p.foldTo(p.log.Head()); err != nil {
		return false, fmt.Errorf("step: %w", err)
	}
	if more, err = p.stepTidy(); err != nil {
		return false, fmt.Errorf("step: %w", err)
	}
	if p.index != nil {
		again, err := p.index.Step(ctx, indexSteps)
		if err != nil {
			return false, fmt.Errorf("index: %w", err)
		}
		more = more || again
	}
	return more, nil
}

// stepTidy tidies a little, if everything that was appended is folded.
func (p *Partition) stepTidy() (more bool, err error) {
	p.appending.Lock()
	defer p.appending.Unlock()
	p.folding.Lock()
	defer p.folding.Unlock()
	if !p.tidy {
		return false, nil
	}
	if p.seq < p.log.Appended() {
		return false, nil // a Submit is waiting for its sync; another Step will find it done
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
	p.tidy = more
	return more, nil
}
