package host

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/sightline-dev/sightline/core"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/register"
)

// Intervals at which the background checks instances and applications that were not used.
const (
	askEvery  = time.Second      // for an open instance, whose tasks may be due
	listEvery = 10 * time.Minute // for the list of applications; those without an instance get one
)

// Take returns at most n tasks that are due. It takes them from the open instances in turn, from each at most its [core.TaskShare]. It
// skips instances that are in a call.
func (f *Fleet) Take(now time.Time, n int) ([]core.Task, error) {
	if n <= 0 {
		return nil, nil
	}
	var tasks []core.Task
	var errs []error
	for _, w := range f.roundRobin() {
		if len(tasks) == n {
			break
		}
		batch, err := w.takeTasks(now, n-len(tasks))
		tasks = append(tasks, batch...)
		errs = append(errs, err)
	}
	return tasks, errors.Join(errs...)
}

// roundRobin returns the open writers, sorted by application. Each call starts with the next one.
func (f *Fleet) roundRobin() []*writer {
	all := slices.DeleteFunc(f.all(), func(w *writer) bool { return w.bytes.Load() == 0 })
	slices.SortFunc(all, func(a, b *writer) int { return cmp.Compare(a.app, b.app) })
	if len(all) == 0 {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.turn++
	first := f.turn % len(all)
	return append(all[first:len(all):len(all)], all[:first]...)
}

func (w *writer) takeTasks(now time.Time, n int) ([]core.Task, error) {
	if !w.try() {
		return nil, nil
	}
	defer w.give()
	if w.in == nil || !w.mayTake && now.Sub(w.takenAt) < askEvery {
		return nil, nil
	}
	if n = core.TaskShare(n, w.tasks); n == 0 {
		return nil, nil
	}
	w.takenAt = now
	in := w.in
	tasks, err := in.Take(context.Background(), n)
	for i := range tasks {
		if job := tasks[i].Picture; job != nil {
			job.Caller = w.app
		}
		tasks[i].Ref = fleetRef{w, in, core.Task{Picture: tasks[i].Picture, Ref: tasks[i].Ref}}
	}
	w.tasks += len(tasks)
	w.mayTake = len(tasks) == n // the instance may have more
	return tasks, w.wrapError(err)
}

// wrapError adds the application to an error. It returns nil for nil.
func (w *writer) wrapError(err error) error {
	if err != nil {
		err = fmt.Errorf("application %s: %w", w.app, err)
	}
	return err
}

// Done passes a task's result to the instance that handed the task out. If that instance has ended, Done drops the result, and a new
// instance hands the task out again.
func (f *Fleet) Done(ctx context.Context, t core.Task, r core.Result) error {
	ref, ok := t.Ref.(fleetRef)
	if !ok {
		return fmt.Errorf("%w: the task belongs to another fleet", ErrCrashed)
	}
	w := ref.w
	<-w.turn
	defer w.give()
	if w.in != ref.in {
		f.release(&r.Picture)
		return nil
	}
	w.tasks--
	w.scheduleStep()
	defer w.noteCommits(w.in, w.in.commits)
	return w.wrapError(w.in.Done(context.WithoutCancel(ctx), ref.task, r))
}

// Step does some background work in every open instance that has some. If all instances together exceed FleetOptions.MemoryBytes, it closes
// the least recently used ones. It opens one application without an instance, since that may have tasks from an earlier time. It reports
// whether more work is left.
func (f *Fleet) Step(ctx context.Context, now time.Time) (more bool, err error) {
	var errs []error
	for _, w := range f.roundRobin() {
		if ctx.Err() != nil {
			return more, ctx.Err()
		}
		some, err := w.step(now)
		more = more || some
		errs = append(errs, err)
	}
	errs = append(errs, f.shrink())
	some, err := f.openNext(ctx, now)
	return more || some, errors.Join(append(errs, err)...)
}

func (w *writer) step(now time.Time) (more bool, err error) {
	if !w.try() {
		return false, nil
	}
	defer w.give()
	if w.in == nil || !w.more && !w.mayStep && now.Sub(w.stepped) < askEvery {
		return false, nil
	}
	w.mayStep, w.stepped = false, now
	defer w.noteCommits(w.in, w.in.commits)
	s, err := w.in.Step(context.Background())
	w.more = s.More && err == nil
	w.mayTake = w.mayTake || s.More // a step may create tasks
	if s.Orphans && w.f.o.CollectOrphans != nil {
		w.f.o.CollectOrphans()
	}
	return w.more, w.wrapError(err)
}

// shrink closes idle writers, the least recently used first, until the memory of all is at most MemoryBytes.
func (f *Fleet) shrink() error {
	all := f.all()
	total := int64(0)
	for _, w := range all {
		total += w.bytes.Load()
	}
	if total <= f.o.MemoryBytes {
		return nil
	}
	slices.SortFunc(all, func(a, b *writer) int { return cmp.Compare(a.used.Load(), b.used.Load()) })
	var errs []error
	for _, w := range all {
		if total <= f.o.MemoryBytes {
			break
		}
		n := w.bytes.Load()
		if n == 0 || !w.try() {
			continue
		}
		if w.in != nil && !w.busy() {
			errs = append(errs, w.shut())
			total -= n
		}
		w.turn <- struct{}{} // not give, which would count as a use
	}
	return errors.Join(errs...)
}

// openNext opens the next application of the list, unless it has an instance. more reports whether the list may have more.
func (f *Fleet) openNext(ctx context.Context, now time.Time) (more bool, err error) {
	app, err := f.next(now)
	if app == "" || err != nil {
		return false, err
	}
	w, err := f.writer(app)
	if err != nil {
		return false, err
	}
	if w.take(ctx) != nil {
		return false, nil
	}
	defer w.give()
	if w.in != nil {
		return true, nil
	}
	err = w.ready(ctx)
	if errors.Is(err, register.ErrApplication) {
		err = nil
	}
	return err == nil, w.wrapError(err)
}

// next returns the next application of the list, or an empty string at its end. It reads the list again after listEvery.
func (f *Fleet) next(now time.Time) (app string, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return "", nil
	}
	if f.listed.IsZero() || now.Sub(f.listed) >= listEvery {
		f.list = f.list[:0]
		err := f.o.records().Apps(func(a catalog.App) bool {
			f.list = append(f.list, a.ID)
			return true
		})
		if err != nil {
			return "", err
		}
		f.listed = now
	}
	if len(f.list) > 0 {
		app, f.list = f.list[0], f.list[1:]
	}
	return app, nil
}
