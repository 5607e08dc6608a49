package blob

import (
	"context"
	"time"
)

// Sweeper is pictures that a Tidy looks through; *Hosted is one.
type Sweeper interface {
	// Sweep removes the names that have expired.
	Sweep(ctx context.Context, now time.Time) (int, error)
	// CollectSome deletes pictures that nothing claims, some at a time.
	CollectSome(ctx context.Context, from Hash, n int) (next Hash, deleted int, err error)
}

var _ Sweeper = (*HostedNames)(nil)

// Tidy removes pictures that nothing needs, a little at a time. The zero value does nothing. One goroutine uses it at a time.
type Tidy struct {
	of      Sweeper
	swept   time.Time // time of the last Sweep
	collect bool      // pictures may exist that nothing claims
	from    Hash      // the next picture to look at
}

// NewTidy returns a Tidy that looks through all pictures once, since a crash may have left some.
func NewTidy(of Sweeper) Tidy { return Tidy{of: of, collect: true} }

// Again looks through all pictures again.
func (t *Tidy) Again() { t.collect, t.from = t.of != nil, Hash{} }

// Sizes of a step: each part takes some milliseconds.
const (
	sweepEvery = time.Minute
	lookedOnce = 256 // pictures
)

// Step does a little of the work that is due and reports whether there is more.
func (t *Tidy) Step(ctx context.Context, now time.Time) (more bool, err error) {
	if t.of != nil && now.Sub(t.swept) >= sweepEvery {
		if _, err := t.of.Sweep(ctx, now); err != nil {
			return false, err
		}
		t.swept = now
	}
	return t.Collect(ctx)
}

// Collect looks at some of the pictures that may be needed by nothing, and reports whether there are more.
func (t *Tidy) Collect(ctx context.Context) (more bool, err error) {
	if t.collect {
		if t.from, _, err = t.of.CollectSome(ctx, t.from, lookedOnce); err == nil {
			t.collect = !t.from.IsZero()
		}
	}
	return t.collect && err == nil, err
}
