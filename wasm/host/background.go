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

// How often the background looks at what nobody has touched.
const (
	askEvery  = time.Second      // an open instance, which may have tasks that have become due
	listEvery = 10 * time.Minute // applications that have no instance, which is opened for it
)

// Take hands out at most n tasks that are due, from the open instances in turn, of each at most its
// [core.TaskShare]. An instance that is in a call is passed over.
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
		taken, err := w.takeTasks(now, n-len(tasks))
		tasks = append(tasks, taken...)
		errs = append(errs, err)
	}
	return tasks, errors.Join(errs...)
}

// roundRobin are the open writers, another first each time.
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
	if w.in == nil || !w.mayTake && now.Sub(w.taken) < askEvery {
		return nil, nil
	}
	if n = core.TaskShare(n, w.tasks); n == 0 {
		return nil, nil
	}
	w.taken = now
	in := w.in
	tasks, err := in.Take(context.Background(), n)
	for i := range tasks {
		if job := tasks[i].Picture; job != nil {
			job.Caller = w.app
		}
		tasks[i].Ref = fleetRef{w, in, core.Task{Picture: tasks[i].Picture, Ref: tasks[i].Ref}}
	}
	w.tasks += len(tasks)
	w.mayTake = len(tasks) == n // there may be more
	return tasks, w.wrapError(err)
}

// wrapError returns an error with its application.
func (w *writer) wrapError(err error) error {
	if err != nil {
		err = fmt.Errorf("application %s: %w", w.app, err)
	}
	return err
}

// Done hands a task's result back to the instance that handed it out. Where that has ended
// meanwhile the task is handed out again.
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

// Step does some background work in every open instance that has some, and closes the longest unused ones if all together have too much
// memory. It opens one application that was not used yet at a time, since it may have tasks from an earlier time.
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
	w.mayTake = w.mayTake || s.More // a step may make tasks
	if s.Orphans && w.f.o.CollectOrphans != nil {
		w.f.o.CollectOrphans()
	}
	return w.more, w.wrapError(err)
}

// shrink closes writers that nothing waits for, the longest unused first, until all have no more
// memory than they may.
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
		w.turn <- struct{}{} // not used: it keeps its place
	}
	return errors.Join(errs...)
}

// openNext opens the next application that has no instance.
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

// next returns the next application that must be checked.
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
