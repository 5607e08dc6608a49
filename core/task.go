package core

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/ingest"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/reembed"
	"github.com/sightline-dev/sightline/core/register"
	"github.com/sightline-dev/sightline/core/training"
)

// Trainer is a training in progress. *training.Run implements it.
type Trainer interface {
	// Step does a few milliseconds of work and reports whether the training has ended.
	Step() (done bool)
	// Close releases the resources of a training that is not stepped to its end.
	Close()
}

var _ Trainer = (*training.Run)(nil)

// Task is one piece of slow work that no request waits for. Exactly one of Picture and Training is set. It describes the work:
//
//	Picture   an input's picture: fetch it, analyse it and hold it in the blobs
//	Training  a model's version: step until the run has ended, giving way in between
//
// The host hands a finished task back to [Engine.Done] with the field of the same name in a [Result]. If the host does not hand a task
// back, the engine hands it out again after its next start, since the state of the applications determines the tasks.
type Task struct {
	Picture  *api.Job
	Training Trainer
	Ref      any // the task's identity in an engine that forwards to another engine; nil: a task of [Engine]

	run     *training.Run // the same as Training
	app     *application
	input   ingest.Task
	renewed *reembed.Task // input that the newest network analyses
	retrain bool          // the newest network trains the version again
	queue   *training.Queue
}

// Result is the result of a [Task]. The blobs hold a picture until Done releases it.
type Result struct {
	Picture  api.Result
	Training error // error that ended a run early, such as a panic; nil: the run has ended
}

// Take hands out at most n tasks that are due at now, each once. It takes trainings from the callers in turn, and other tasks from the
// applications in turn, at most its [TaskShare] from each caller. If the store is full, or another machine writes, it hands out none, because
// the results could not be written. If the store fails, it returns the error together with the tasks that it took before.
func (e *Engine) Take(now time.Time, n int) ([]Task, error) {
	if e.closed.Load() {
		return nil, register.ErrClosed
	}
	if e.Register.Follows() || errors.Is(e.apps.o.Store.Room(), kv.ErrFull) {
		return nil, nil
	}
	apps, err := e.apps.all()
	if err != nil {
		return nil, err
	}
	trainings, pictures := 0, map[string]int{} // tasks that are handed out; those with pictures by caller
	for _, app := range apps {
		trainings += app.queue().InProgress()
		pictures[app.caller()] += int(app.pictureTasks.Load())
	}
	tasks, err := e.takeTrainings(apps, now, min(n, maxTrainings-trainings))
	if err != nil {
		return tasks, err
	}
	for i := range apps {
		app := apps[(e.nextApp+i)%len(apps)]
		appTasks, err := e.takeOf(app, now, n-len(tasks), pictures[app.caller()])
		for i := range appTasks {
			if job := appTasks[i].Picture; job != nil {
				job.App, job.Caller = app.current.Load().AppID(), app.caller()
				app.pictureTasks.Add(1)
				pictures[job.Caller]++
			}
		}
		tasks = append(tasks, appTasks...)
		if err != nil {
			return tasks, fmt.Errorf("application %s: %w", app.ID, err)
		}
	}
	e.nextApp++ // another application is first in the next call
	return tasks, nil
}

// takeTrainings hands out at most n trainings, one after another, to the caller that got one longest ago, and among its applications to the
// one that got one longest ago. So an account with many applications delays the training of another caller by no more than the trainings
// that run.
func (e *Engine) takeTrainings(apps []*application, now time.Time, n int) (tasks []Task, err error) {
	for len(tasks) < n {
		order := slices.Clone(apps)
		slices.SortStableFunc(order, func(a, b *application) int {
			return cmp.Or(cmp.Compare(e.trained[a.caller()], e.trained[b.caller()]), cmp.Compare(e.trained[a.ID], e.trained[b.ID]))
		})
		before := len(tasks)
		for _, app := range order {
			runs, queue, err := app.takeTrainings(now, 1)
			for _, run := range runs {
				tasks = append(tasks, Task{Training: run, run: run, app: app, queue: queue})
				e.trainings++
				e.trained[app.caller()], e.trained[app.ID] = e.trainings, e.trainings
			}
			if err != nil {
				return tasks, fmt.Errorf("application %s: %w", app.ID, err)
			}
			if len(runs) > 0 {
				break
			}
		}
		if len(tasks) == before {
			break
		}
	}
	return tasks, nil
}

// TaskShare returns the maximum number of further tasks with pictures that a caller may have, if it has present of them and n could be
// handed out. As many are left for other callers. Most tasks wait for downloads, and must not delay those of other callers.
func TaskShare(n, present int) int { return max(0, (n-present+1)/2) }

// takeOf takes at most n tasks of one application, for its inputs and renewals. Its caller already has present tasks.
func (e *Engine) takeOf(app *application, now time.Time, n, present int) (tasks []Task, err error) {
	if e.apps.o.App == "" {
		n = TaskShare(n, present)
	}
	inputs, err := app.inputs.Take(now, n)
	for _, in := range inputs {
		job := api.FetchJob(in.URL, in.Crop, in.Base)
		if in.IsUndated() {
			job = api.DateJob(in.Blob)
		}
		tasks = append(tasks, Task{Picture: job, app: app, input: in})
	}
	if err != nil {
		return tasks, err
	}
	renewals, err := e.takeRenewals(now, app, n-len(tasks))
	return append(tasks, renewals...), err
}

// maxTrainings is the maximum number of simultaneous trainings of all applications. Each may use hundreds of megabytes of memory.
const maxTrainings = 2

// Done processes the result of a task. If it returns an error of the store, the task is due again. It drops the result if the application
// was deleted meanwhile.
func (e *Engine) Done(ctx context.Context, t Task, r Result) error {
	if err := e.finishTask(ctx, t, r); !isDeleted(err) {
		return err
	}
	return nil
}

func (e *Engine) finishTask(ctx context.Context, t Task, r Result) error {
	if t.app != nil && t.Picture != nil {
		t.app.pictureTasks.Add(-1)
	}
	switch {
	case t.retrain:
		return t.app.renew.EndRun(t.run, r.Training)
	case t.run != nil:
		return t.queue.Done(ctx, e.apps.o.Clock(), t.run, r.Training)
	case t.renewed != nil:
		d, cause := e.service.ReembedOutcome(t.app.renew.Base(), &r.Picture)
		return t.app.renew.Done(e.apps.o.Clock(), *t.renewed, d, cause)
	case t.Picture == nil:
		return nil
	}
	var outcome ingest.Outcome
	if t.input.IsUndated() {
		outcome = api.DateOutcome(&r.Picture)
	} else {
		outcome = e.service.FetchOutcome(t.input.Base, &r.Picture)
	}
	err := t.app.inputs.Done(ctx, e.apps.o.Clock(), t.input, &outcome)
	if h := r.Picture.Blob; !h.IsZero() {
		err = errors.Join(err, e.hosted.Unpin(context.WithoutCancel(ctx), h))
	}
	return err
}
