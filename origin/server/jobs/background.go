package jobs

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"

	"github.com/sightline-dev/sightline/core"
	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/training"
)

// Engine is the part of an engine that the background work needs.
type Engine interface {
	// Take returns at most n tasks that are due. Even with an error it may return tasks.
	Take(now time.Time, n int) ([]core.Task, error)
	// Done gives a task's result to the engine.
	Done(ctx context.Context, t core.Task, r core.Result) error
	// Step does some maintenance and reports whether more is due.
	Step(ctx context.Context, now time.Time) (more bool, err error)
}

// Background does work that no request waits for. It runs an engine's tasks on the pool, returns the results, and calls the engine's
// maintenance steps.
type Background struct {
	Engine Engine
	Pool   *Pool
	Now    func() time.Time
	Pause  func(context.Context, time.Duration) // waits, until its context ends
	Log    *slog.Logger
}

const (
	atOnce = 32                    // maximum number of tasks in progress, most of which wait for downloads
	idle   = 20 * time.Millisecond // pause before asking an idle engine again
)

// Run works until ctx ends. Then it cancels the running tasks and waits for them. The engine hands them out again after the next start.
func (b *Background) Run(ctx context.Context) {
	var tasks sync.WaitGroup
	defer tasks.Wait()
	begun := make(chan struct{}, atOnce)
	tasks.Go(func() { b.steps(ctx) })
	for ctx.Err() == nil {
		dueTasks, err := b.Engine.Take(b.Now(), atOnce-len(begun))
		if err != nil && ctx.Err() == nil {
			b.Log.Error("cannot take background tasks", "error", err)
		}
		for _, t := range dueTasks {
			begun <- struct{}{} // never blocks: only this loop starts tasks
			tasks.Go(func() {
				defer func() { <-begun }()
				b.do(ctx, t)
			})
		}
		switch {
		case err != nil:
			b.Pause(ctx, time.Second) // a retry may succeed
		case len(dueTasks) == 0:
			b.Pause(ctx, idle)
		}
	}
}

// do runs one task. A panic costs the task, not the program.
func (b *Background) do(ctx context.Context, t core.Task) {
	defer func() {
		if v := recover(); v != nil {
			b.logPanic(v)
		}
	}()
	var r core.Result
	switch {
	case t.Picture != nil:
		r.Picture = b.Pool.RunBackgroundJob(ctx, t.Picture)
	case t.Training != nil:
		r.Training = b.train(ctx, t.Training)
	default:
		r.Picture.Err = api.ErrInternal
	}
	if ctx.Err() != nil {
		b.Pool.release(ctx, []api.Result{r.Picture})
		if t.Training != nil {
			t.Training.Close()
		}
		return
	}
	if err := b.Engine.Done(ctx, t, r); err != nil && ctx.Err() == nil {
		b.Log.Error("cannot finish background task", "error", err)
	}
}

func (b *Background) logPanic(v any) {
	b.Log.Error("panic", "panic", fmt.Sprint(v), "stack", string(debug.Stack()))
}

// train runs a training to its end and lets requests go first between its steps. If a step panics, train returns an error. The goroutine
// may have a low priority afterwards, so it must end soon.
func (b *Background) train(ctx context.Context, run core.Trainer) (err error) {
	defer func() {
		if v := recover(); v != nil {
			b.logPanic(v)
			err = fmt.Errorf("%w: panic during a training", api.ErrInternal)
		}
	}()
	if err := b.Pool.trainings.Acquire(ctx, "", 1); err != nil {
		return err
	}
	defer b.Pool.trainings.Release("", 1)
	if _, native := run.(*training.Run); native { // a training in a guest blocks the guest's calls during a step, so it keeps its priority
		b.Pool.lower()
	}
	return b.Pool.RunBackground(ctx, func(yield func(worked time.Duration) error) {
		begun := b.Now()
		for !run.Step() {
			worked := b.Now().Sub(begun)
			if worked < workTime {
				continue
			}
			if yield(worked) != nil {
				return
			}
			begun = b.Now()
		}
	})
}

// steps calls the engine's maintenance steps until ctx ends. It pauses if there is nothing to do or requests need the processors.
func (b *Background) steps(ctx context.Context) {
	for ctx.Err() == nil {
		more, err := b.step(ctx)
		if err != nil && ctx.Err() == nil {
			b.Log.Error("background step failed", "error", err)
		}
		switch {
		case err != nil:
			b.Pause(ctx, time.Second) // a retry may succeed
		case !more:
			b.Pause(ctx, idle)
		}
	}
}

// step calls one maintenance step of the engine. If there is more to do, it then waits while requests need the processors.
func (b *Background) step(ctx context.Context) (more bool, err error) {
	b.Pool.gate.move(0, 1)
	defer b.Pool.gate.move(0, -1)
	begun := b.Now()
	more, err = b.Engine.Step(ctx, begun)
	if more {
		b.Pool.gate.wait(b.Now().Sub(begun))
	}
	return more, err
}
