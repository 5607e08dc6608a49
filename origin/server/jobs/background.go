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
)

// Engine is the engine as the background drives it.
type Engine interface {
	// Take hands out at most n tasks that are due, even with an error.
	Take(now time.Time, n int) ([]core.Task, error)
	// Done hands a task's result back.
	Done(ctx context.Context, t core.Task, r core.Result) error
	// Step does a little maintenance and says whether there is more.
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

// Run works until ctx ends and waits for what is under way, which is given up and will be
// handed out again after the next start.
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
			b.panicked(v)
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

func (b *Background) panicked(v any) {
	b.Log.Error("panic", "panic", fmt.Sprint(v), "stack", string(debug.Stack()))
}

// train runs a training to its end, giving way to requests after each of its steps. A panic
// costs the training, which is told so.
func (b *Background) train(ctx context.Context, run core.Trainer) (err error) {
	defer func() {
		if v := recover(); v != nil {
			b.panicked(v)
			err = fmt.Errorf("%w: panic during a training", api.ErrInternal)
		}
	}()
	if err := b.Pool.trainings.Take(ctx, ""); err != nil {
		return err
	}
	defer b.Pool.trainings.Give("", 1)
	return b.Pool.Behind(ctx, func(yield func(rest func()) error) {
		begun := b.Now()
		for !run.Step() {
			var rest func()
			if d := b.restAfter(b.Now().Sub(begun)); d > 0 {
				rest = func() { b.Pause(ctx, d) }
			}
			if yield(rest) != nil {
				return
			}
			if rest != nil {
				begun = b.Now()
			}
		}
	})
}

// How a training rests. One that never waits for anything keeps a processor from looking at the
// network, which it does when it has nothing else to do: requests would wait for milliseconds.
const (
	restEvery = time.Millisecond
	rest      = 20 * time.Microsecond
	shyness   = 10 // how many times as long as it worked a training rests while every worker is wanted
)

// restAfter is how long a training rests that has worked for so long; 0: not yet. While
// requests wait for pictures it rests as long as it worked, and where they could use every
// worker many times as long. They then find a worker, and what the training leaves to the garbage
// collector costs fewer of them something.
func (b *Background) restAfter(worked time.Duration) time.Duration {
	switch n := b.Pool.pictures.Used(); {
	case n >= int64(b.Pool.o.Workers):
		return shyness * worked
	case n > 0:
		return worked
	case worked >= restEvery:
		return rest
	}
	return 0
}

// steps lets the engine step, without a pause while there is more to do.
func (b *Background) steps(ctx context.Context) {
	for ctx.Err() == nil {
		more, err := b.Engine.Step(ctx, b.Now())
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
