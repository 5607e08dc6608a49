package blob

import (
	"context"
	"time"
)

// Sweeper is a store of pictures that a Cleaner cleans up. *HostedNames implements it.
type Sweeper interface {
	// Sweep deletes the names that have expired or whose application was deleted.
	Sweep(ctx context.Context, now time.Time) (int, error)
	// CollectSome deletes unreferenced pictures among the next n, starting at from.
	CollectSome(ctx context.Context, from Hash, n int) (next Hash, deleted int, err error)
}

var _ Sweeper = (*HostedNames)(nil)

// Cleaner deletes unreferenced pictures in small steps. The zero value does nothing. It is not safe for concurrent use.
type Cleaner struct {
	of      Sweeper
	swept   time.Time // time of the last Sweep
	collect bool      // unreferenced pictures may exist
	from    Hash      // next picture to check
}

// NewCleaner returns a Cleaner that checks all pictures once, since a crash may have left unreferenced ones.
func NewCleaner(of Sweeper) Cleaner { return Cleaner{of: of, collect: true} }

// Restart makes t check all names and pictures again.
func (t *Cleaner) Restart() { t.collect, t.from, t.swept = t.of != nil, Hash{}, time.Time{} }

// Sizes of a step: each part takes some milliseconds.
const (
	sweepEvery = time.Minute
	lookedOnce = 256 // pictures that one step checks
)

// Step does a small part of the pending work and reports whether there is more.
func (t *Cleaner) Step(ctx context.Context, now time.Time) (more bool, err error) {
	if t.of != nil && now.Sub(t.swept) >= sweepEvery {
		if _, err := t.of.Sweep(ctx, now); err != nil {
			return false, err
		}
		t.swept = now
	}
	return t.Collect(ctx)
}

// Collect checks some pictures, deletes the unreferenced ones, and reports whether there are more to check.
func (t *Cleaner) Collect(ctx context.Context) (more bool, err error) {
	if t.collect {
		if t.from, _, err = t.of.CollectSome(ctx, t.from, lookedOnce); err == nil {
			t.collect = !t.from.IsZero()
		}
	}
	return t.collect && err == nil, err
}
