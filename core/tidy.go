package core

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/catalog"
)

// tidying is what Step remembers between two calls. None of it needs to outlive the program:
// an engine that is opened looks through all blobs once.
type tidying struct {
	mu      sync.Mutex // held by the one Step
	swept   time.Time  // when pictures whose time is over were last looked for
	collect bool       // blobs may be left that nothing claims
	from    blob.Hash  // where looking for them goes on

	purge atomic.Bool // deleted applications may hold something
}

// Sizes of a step: each piece takes some milliseconds.
const (
	sweepEvery  = time.Minute
	droppedOnce = 64  // pictures of deleted inputs
	lookedOnce  = 256 // blobs
)

// Step does a little of what is due at now and no request waits for: work on the indexes,
// tidying after deletions, sweeping pictures whose time is over. It reports whether there is
// more. It ends early with ctx's error when ctx ends; the next Step goes on.
func (e *Engine) Step(ctx context.Context, now time.Time) (more bool, err error) {
	if e.closed.Load() {
		return false, ErrClosed
	}
	t := &e.tidy
	t.mu.Lock()
	defer t.mu.Unlock()
	apps, err := e.apps.all()
	if err != nil {
		return false, err
	}
	for _, app := range apps {
		some, err := e.stepApp(ctx, now, app)
		if err != nil && !gone(err) {
			return false, fmt.Errorf("application %s: %w", app.ID, err)
		}
		more = more || some
	}
	purging, err := e.stepPurge(ctx, now)
	if err != nil {
		return false, fmt.Errorf("deleted applications: %w", err)
	}
	more = more || purging
	if now.Sub(t.swept) >= sweepEvery {
		if _, err := e.hosted.Sweep(ctx, now); err != nil {
			return false, err
		}
		t.swept = now
	}
	if err := e.stepCollect(ctx); err != nil {
		return false, err
	}
	return more || t.collect, ctx.Err()
}

// stepCollect deletes some blobs that nothing claims, if there may be such.
func (e *Engine) stepCollect(ctx context.Context) (err error) {
	t := &e.tidy
	if t.collect {
		if t.from, _, err = e.hosted.CollectSome(ctx, t.from, lookedOnce); err == nil {
			t.collect = !t.from.IsZero()
		}
	}
	return err
}

// stepApp is the part of a Step that is one application's.
func (e *Engine) stepApp(ctx context.Context, now time.Time, app *application) (more bool, err error) {
	some, err := app.Partition.Step(ctx, now)
	if err != nil {
		return false, err
	}
	gone, err := e.dropGone(ctx, app)
	if err != nil {
		return false, err
	}
	moved, err := e.stepRenewal(ctx, now, app, !some)
	return some || gone || moved, err
}

// dropGone deletes pictures of deleted inputs, unless another input has them too.
func (e *Engine) dropGone(ctx context.Context, app *application) (more bool, err error) {
	pictures, all := app.inputs.Gone(droppedOnce)
	if all {
		e.tidy.collect, e.tidy.from = true, blob.Hash{}
	}
	for _, h := range pictures {
		err = errors.Join(err, e.hosted.Drop(ctx, h))
	}
	return len(pictures) == droppedOnce, err
}

// Keeps reports whether an input of any application has the picture h, or cannot be looked up:
// what blob.HostedOptions.Keep wants to know.
func (e *Engine) Keeps(h blob.Hash) bool {
	ids, err := e.apps.ids()
	if err != nil {
		return true
	}
	for _, id := range ids {
		app, err := catalog.ParseAppID(id)
		if err != nil {
			return true
		}
		used := false
		err = catalog.Read(e.apps.o.Store, app).ByBlob(h, func(uint32) bool {
			used = true
			return false
		})
		if used || err != nil {
			return true
		}
	}
	return false
}
