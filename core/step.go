package core

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sightline-dev/sightline/core/register"
)

// droppedOnce is how many pictures of deleted inputs a step looks at.
const droppedOnce = 64

// Step does a little of what is due at now and no request waits for: work on the indexes,
// tidying after deletions, and what [register.Register.Step] does, unless the engine is one application's.
// It reports whether there is more. It ends early with ctx's error when ctx ends; the next Step
// goes on.
func (e *Engine) Step(ctx context.Context, now time.Time) (more bool, err error) {
	if e.closed.Load() {
		return false, register.ErrClosed
	}
	e.stepping.Lock()
	defer e.stepping.Unlock()
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
	if e.apps.o.App != "" {
		return more, ctx.Err()
	}
	if e.Strays() {
		e.Register.Collect()
	}
	some, err := e.Register.Step(ctx, now)
	return more || some, err
}

// Strays reports whether pictures may have been left that nothing claims, since it was last
// asked. The host of an engine of one application then looks through all pictures that it lends,
// as [register.Register.Collect] does. An engine of all applications does so itself.
func (e *Engine) Strays() bool { return e.strays.Swap(false) }

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
		e.strays.Store(true)
	}
	for _, h := range pictures {
		err = errors.Join(err, e.hosted.Drop(ctx, h))
	}
	return len(pictures) == droppedOnce, errors.Join(err, e.dropHeld(app, len(pictures) > 0))
}

// dropHeld notes that a picture whose input is gone may have been kept for something of a copy that is on its
// way or in dispute. Once no such thing is left, Strays reports true.
func (e *Engine) dropHeld(app *application, dropped bool) error {
	if !app.copied || !dropped && !app.held {
		return nil
	}
	disputed, err := app.Partition.CountConflicts()
	if err != nil {
		return err
	}
	issued, confirmed := app.Partition.Outbox()
	held := disputed > 0 || issued > confirmed
	if app.held && !held {
		e.strays.Store(true)
	}
	app.held = held
	return nil
}
