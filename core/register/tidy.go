package register

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/partition"
)

// tidying is what Step remembers between two calls. None of it needs to outlive the program:
// a register that is opened looks through all blobs once.
type tidying struct {
	mu      sync.Mutex // held by the one Step
	swept   time.Time  // when pictures whose time is over were last looked for
	collect bool       // blobs may be left that nothing claims
	sweeper sweeper    // nil: pictures are tidied elsewhere
	from    blob.Hash  // where looking for them goes on

	purge atomic.Bool // deleted applications may hold something
}

// Sizes of a step: each piece takes some milliseconds.
const (
	sweepEvery = time.Minute
	lookedOnce = 256 // blobs
)

// usable is why nothing can be tidied; nil: it can.
func (r *Register) usable() error {
	switch {
	case r.closed.Load():
		return ErrClosed
	case r.partition == nil:
		return ErrElsewhere
	}
	return nil
}

// Step does a little of what is due at now and no request waits for: removing what deleted
// applications held, sweeping pictures whose time is over. It reports whether there is more.
func (r *Register) Step(ctx context.Context, now time.Time) (more bool, err error) {
	if err := r.usable(); err != nil {
		return false, err
	}
	t := &r.tidy
	t.mu.Lock()
	defer t.mu.Unlock()
	if more, err = r.stepPurge(ctx, now); err != nil {
		return false, fmt.Errorf("deleted applications: %w", err)
	}
	if t.sweeper != nil && now.Sub(t.swept) >= sweepEvery {
		if _, err := t.sweeper.Sweep(ctx, now); err != nil {
			return false, err
		}
		t.swept = now
	}
	if err := r.stepCollect(ctx); err != nil {
		return false, err
	}
	return more || t.collect, ctx.Err()
}

// Collect has the next Steps look through all blobs for those that nothing claims.
func (r *Register) Collect() {
	r.tidy.mu.Lock()
	defer r.tidy.mu.Unlock()
	r.tidy.recollect()
}

// recollect begins anew to look for blobs that nothing claims; mu is held.
func (t *tidying) recollect() { t.collect, t.from = t.sweeper != nil, blob.Hash{} }

// stepCollect deletes some blobs that nothing claims, if there may be such.
func (r *Register) stepCollect(ctx context.Context) (err error) {
	t := &r.tidy
	if t.collect {
		if t.from, _, err = t.sweeper.CollectSome(ctx, t.from, lookedOnce); err == nil {
			t.collect = !t.from.IsZero()
		}
	}
	return err
}

// Keeps reports whether an input of any application has the picture h, or something in a copy of one
// that is on its way or in dispute, or cannot be looked up: what blob.HostedOptions.Keep wants to know.
func (r *Register) Keeps(h blob.Hash) bool {
	ids, err := r.IDs()
	if err != nil {
		return true
	}
	for _, id := range ids {
		app, err := catalog.ParseAppID(id)
		if err != nil {
			return true
		}
		used := false
		err = catalog.Read(r.o.Store, app).ByBlob(h, func(uint32) bool {
			used = true
			return false
		})
		if err == nil && !used {
			err = partition.Claims(r.o.Store, app, func(claimed blob.Hash) bool {
				used = claimed == h
				return !used
			})
		}
		if used || err != nil {
			return true
		}
	}
	return false
}
