package core

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/register"
)

// droppedOnce is the maximum number of pictures of deleted inputs that a step handles.
const droppedOnce = 64

// Step does a part of the due work that no request waits for: on the indexes, and cleaning up after deletions. The engine of all
// applications also calls [register.Register.Step]. Step reports whether more is due. When ctx ends, it returns early with ctx's error,
// and the next Step continues.
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
		if err != nil && !isDeleted(err) {
			return false, fmt.Errorf("application %s: %w", app.ID, err)
		}
		more = more || some
	}
	if e.apps.o.App != "" || e.Register.Follows() {
		return more, ctx.Err()
	}
	if e.Orphans() {
		e.Register.ScheduleCollect()
	}
	some, err := e.Register.Step(ctx, now)
	return more || some, err
}

// Orphans reports whether there may be new orphans since the last call: pictures that nothing references. The host of an engine of one
// application must then check all pictures that it provides, as [register.Register.ScheduleCollect] does. An engine of all applications
// does so itself.
func (e *Engine) Orphans() bool { return e.orphans.Swap(false) }

// stepApp does the part of a Step for one application.
func (e *Engine) stepApp(ctx context.Context, now time.Time, app *application) (more bool, err error) {
	some, err := app.Partition.Step(ctx, now)
	if err != nil {
		return false, err
	}
	purged, err := e.purgeDeleted(ctx, app)
	if err != nil {
		return false, err
	}
	moved, err := e.stepRenewal(ctx, now, app, !some)
	if err != nil || app.Copy != nil || e.Register.Follows() || errors.Is(e.apps.o.Store.Room(), kv.ErrFull) {
		return some || purged || moved, err
	}
	left, err := app.inputs.StepBacklog()
	return some || purged || moved || left, err
}

// purgeDeleted deletes pictures of deleted inputs, unless another input has them too.
func (e *Engine) purgeDeleted(ctx context.Context, app *application) (more bool, err error) {
	pictures, all := app.inputs.TakeOrphanCandidates(droppedOnce)
	if all {
		e.orphans.Store(true)
	}
	for _, h := range pictures {
		err = errors.Join(err, e.hosted.Drop(ctx, h))
	}
	return len(pictures) == droppedOnce, errors.Join(err, e.scheduleOrphanScan(app, len(pictures) > 0))
}

// scheduleOrphanScan notes pictures of deleted inputs that a replica may still need: its outbox or a conflict may refer to them. Once both
// are empty, the host looks for orphans.
func (e *Engine) scheduleOrphanScan(app *application, dropped bool) error {
	if app.Copy == nil || !dropped && !app.hasUnsettled {
		return nil
	}
	disputed, err := app.Partition.CountConflicts()
	if err != nil {
		return err
	}
	issued, confirmed := app.Copy.Outbox()
	unsettled := disputed > 0 || issued > confirmed
	if app.hasUnsettled && !unsettled {
		e.orphans.Store(true)
	}
	app.hasUnsettled = unsettled
	return nil
}
