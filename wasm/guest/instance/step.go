package instance

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/sightline-dev/sightline/core"
	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/wasm/abi"
	"github.com/sightline-dev/sightline/wasm/guest/hostapi"
)

// Step accepts the results of tasks, returns new tasks, and does some background work. The answer is a StepResult.
func (i *Instance) Step(data []byte) []byte {
	s, err := abi.ParseStep(data)
	if err == nil && i.engine == nil {
		err = errNoEngine
	}
	var out abi.StepResult
	if err == nil {
		i.guard("step", func() { err = i.step(&s, &out) }, func() { err = api.ErrInternal })
	}
	if err != nil {
		out.Error = err.Error()
	}
	i.answer = out.Append(i.answer)
	return i.answer
}

func (i *Instance) step(s *abi.Step, out *abi.StepResult) error {
	ctx := context.Background()
	now := hostapi.Clock(i.Imports)()
	var errs []error
	for n := range s.Done {
		errs = append(errs, i.returnTask(ctx, &s.Done[n]))
	}
	if s.Take > 0 {
		errs = append(errs, i.take(now, s.Take, out))
	}
	errs = append(errs, i.train(ctx))
	if !s.Idle {
		more, err := i.engine.Step(ctx, now)
		out.More, out.Orphans = more, i.settings.App != "" && i.engine.Orphans()
		errs = append(errs, err)
		if i.pictures != nil && i.settings.App != "" { // an engine of one application leaves pictures to its host, here the instance
			if out.Orphans {
				i.pictures.tidy.Restart()
			}
			more, err := i.pictures.tidy.Step(ctx, now)
			out.More, out.Orphans = out.More || more, false
			errs = append(errs, err)
		}
	}
	out.Training = len(i.trainings) > 0
	out.More = out.More || out.Training || s.Take > 0 && len(out.Tasks) >= s.Take
	return errors.Join(errs...)
}

// returnTask passes the result of a task to the engine. It ignores an unknown task: the instance was opened again since it handed the task
// out, and will hand it out again.
func (i *Instance) returnTask(ctx context.Context, h *abi.TaskResult) error {
	t, ok := i.tasks[h.Task]
	if !ok {
		return nil
	}
	delete(i.tasks, h.Task)
	return i.engine.Done(ctx, t, core.Result{Picture: i.storePicture(&h.Result)})
}

// take takes at most n new tasks from the engine. It adds pictures to out for the host, and trainings to i.trainings.
func (i *Instance) take(now time.Time, n int, out *abi.StepResult) error {
	tasks, err := i.engine.Take(now, n)
	for _, t := range tasks {
		if t.Training != nil {
			i.trainings = append(i.trainings, t)
			continue
		}
		i.number++
		i.tasks[i.number] = t
		job := *t.Picture
		i.inline(&job)
		out.Tasks = append(out.Tasks, abi.Task{Number: i.number, Job: job})
	}
	return err
}

// train executes one training for a few milliseconds. The trainings take turns.
func (i *Instance) train(ctx context.Context) error {
	if len(i.trainings) == 0 {
		return nil
	}
	t := i.trainings[0]
	i.trainings = i.trainings[1:]
	done := false
	var failed error
	i.guard("training", func() { done = t.Training.Step() }, func() {
		failed = fmt.Errorf("%w: panic in a training", api.ErrInternal)
	})
	if !done && failed == nil {
		i.trainings = append(i.trainings, t)
		return nil
	}
	err := i.engine.Done(ctx, t, core.Result{Training: failed})
	if errors.Is(err, fs.ErrNotExist) {
		return nil // the host will load the network's background embeddings; the engine then hands the training out again
	}
	return err
}
