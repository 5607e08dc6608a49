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

// Engine is the engine as the background drives it.
type Engine interface {
	// Take hands out at most n tasks that are due, even with an error.
	Take(now time.Time, n int) ([]core.Task, error)
	// Done hands a task's result back.
	Done(ctx context.Context, t core.Task, r core.Result) error
	// Step does a little maintenance and reports whether more is due.
	Step(ctx context.Context, now time.Time) (more bool, err error)
}

// Background does what no request waits for: it takes an engine's tasks to the pool, hands
// the results back, and lets the engine step.
type Background struct {
	Engine Engine
	Pool   *Pool
	Now    func() time.Time
	Pause  func(context.Context, time.Duration) // waits, until its context ends
	Log    *slog.Logger
}

const (
	atOnce = 32                    // tasks under way, most of which wait for downloads
	idle   = 20 * time.Millisecond // between two looks at an engine that had nothing to do
)

// Run works until ctx ends, which also cancels the running tasks, and waits for them. The engine hands them out again after the next
// start.
func (b *Background) Run(ctx context.Context) {
	var tasks sync.WaitGroup
	defer tasks.Wait()
	begun := make(chan struct{}, atOnce)
	tasks.Go(func() { b.steps(ctx) })
	for ctx.Err() == nil {
		taken, err := b.Engine.Take(b.Now(), atOnce-len(begun))
		if err != nil && ctx.Err() == nil {
			b.Log.Error("cannot take background tasks", "error", err)
		}
		for _, t := range taken {
			begun <- struct{}{} // there is room: only this loop begins tasks
			tasks.Go(func() {
				defer func() { <-begun }()
				b.do(ctx, t)
			})
		}
		switch {
		case err != nil:
			b.Pause(ctx, time.Second) // it may pass
		case len(taken) == 0:
			b.Pause(ctx, idle)
		}
	}
}

// do does one task. A panic of ours costs the task, not the program.
func (b *Background) do(ctx context.Context, t core.Task) {
	defer func() {
		if v := recover(); v != nil {
			b.logPanic(v)
		}
	}()
	var r core.Result
	switch {
	case t.Picture != nil:
		r.Picture = b.Pool.Picture(ctx, t.Picture)
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

// train runs a training to its end, giving way to requests between its steps. A panic
// ends the training with an error. The goroutine may have a low priority afterwards, and must end soon.
func (b *Background) train(ctx context.Context, run core.Trainer) (err error) {
	defer func() {
		if v := recover(); v != nil {
			b.logPanic(v)
			err = fmt.Errorf("%w: panic during a training", api.ErrInternal)
		}
	}()
	if err := b.Pool.trainings.Take(ctx, ""); err != nil {
		return err
	}
	defer b.Pool.trainings.Give("", 1)
	if _, native := run.(*training.Run); native { // one in a guest keeps calls from it during a step
		b.Pool.lower()
	}
	return b.Pool.Behind(ctx, func(yield func(worked time.Duration) error) {
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

// steps lets the engine step, without a pause while there is more to do and no request needs the processors.
func (b *Background) steps(ctx context.Context) {
	for ctx.Err() == nil {
		more, err := b.step(ctx)
		if err != nil && ctx.Err() == nil {
			b.Log.Error("background step failed", "error", err)
		}
		switch {
		case err != nil:
			b.Pause(ctx, time.Second) // it may pass
		case !more:
			b.Pause(ctx, idle)
		}
	}
}

// step lets the engine step once. If there is more to do, it gives way to requests afterwards.
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
