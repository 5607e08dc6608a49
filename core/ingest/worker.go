package ingest

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/fold"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/log/form"
	"github.com/sightline-dev/sightline/core/partition"
	"github.com/sightline-dev/sightline/core/predict/raster"
	"github.com/sightline-dev/sightline/core/predict/raster/exif"
)

// Partition is the part of the application's partition that a worker uses.
type Partition interface {
	View() *partition.View
	// IsResponsible reports whether this host must do the work that an operation asks for.
	IsResponsible(dot log.Dot) bool
	Submit(ctx context.Context, by string, bodies []log.Body, also func(*kv.Batch)) ([]fold.Verdict, error)
	Tidy(do func(tx *kv.Overlay) error) error
}

var _ Partition = (*partition.Partition)(nil)

// Worker hands out the pending inputs of one application and stores the outcomes. It is safe for concurrent use.
type Worker struct {
	app   catalog.AppID
	inbox inbox

	mu        sync.Mutex              // locked before the partition's lock and the inbox's
	base      [32]byte                // base model of tasks handed out from now on
	partition Partition               // nil until Attach
	tries     map[log.Dot]*retryState // of the pending inputs that were taken
	dots      map[uint32]log.Dot      // dots of pending inputs by ordinal; the ordinals may change at a replica
	next      time.Time               // time when the next waiting input is due; zero if none waits
	unread    backlog
	undated   backlog
}

// retryState records the tries of one input.
type retryState struct {
	handedOut bool // its task is in progress
	seen      bool // met by the present scan
	failed    int  // consecutive failed tries
	due       time.Time
}

// New returns a worker of app. base identifies the network and tables from which embeddings and values derive.
func New(app catalog.AppID, base [32]byte) *Worker {
	w := &Worker{
		app: app, base: base, tries: map[log.Dot]*retryState{}, dots: map[uint32]log.Dot{},
	}
	w.backlogs()
	return w
}

// Attach gives the worker its partition, which was opened with Watch. After Follow, the worker looks at all pending inputs again. Errors:
// the store's.
func (w *Worker) Attach(p Partition) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.partition = p
	w.inbox.open()
	v := p.View()
	return errors.Join(w.unread.load(v), w.undated.load(v), v.Close())
}

// Follow makes the worker forget the inputs to come, since another machine does the work.
func (w *Worker) Follow() { w.inbox.close() }

// SetBase changes the base model that analyses inputs from now on.
func (w *Worker) SetBase(base [32]byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.base = base
}

// Task is a pending input. The host fetches the picture at URL and analyses it with the base model. If IsUndated, it is a ready input, and
// the host reads the metadata of the picture Blob.
type Task struct {
	Base [32]byte
	Dot  log.Dot
	URL  string
	Crop raster.Crop
	Blob blob.Hash

	from     *backlog // queue that has the input; nil: it is pending
	readEXIF bool     // the input gets the place that its picture's file has
}

// readsEXIF reports whether an input gets the place that its picture's file has. Any write of its place counts more.
func readsEXIF(in *catalog.Input) bool {
	return in.ReadEXIF && in.Geo == nil && in.GeoAt == (log.Stamp{})
}

// IsUndated reports whether the task reads the date of a ready input.
func (t *Task) IsUndated() bool { return t.from != nil && t.from.name == undatedName }

// Outcome is the result of a [Task]. If Code is 30000, it includes the picture and the data derived from it; of an undated input only
// Derived.Taken.
type Outcome struct {
	Code   int
	Detail string // of an error
	Retry  Retry

	Blob        blob.Hash
	ContentType string
	Derived     *catalog.DerivedData
	Thumb       []byte     // JPEG
	Place       *log.Point // place that the picture's file has; nil: none
}

// Retry selects whether an input with an error is tried again.
type Retry int

// Never, Limited and Always are the values of [Retry].
const (
	Never   Retry = iota // the picture causes the error
	Limited              // the error may pass: at most [maxTries] tries in all
	Always               // the error has nothing to do with the picture
)

// maxTries is the maximum number of tries of an input if its error may pass.
const maxTries = 4

// pauses are the times before the second and each later try.
var pauses = [maxTries - 1]time.Duration{time.Second, 5 * time.Second, 25 * time.Second}

// Take hands out at most n pending inputs, the oldest first. They are due, this host must process them, and no task for them is in
// progress. After them it hands out inputs of StepBacklog.
func (w *Worker) Take(now time.Time, n int) ([]Task, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.partition == nil || n <= 0 {
		return nil, nil
	}
	tasks, err := w.takePending(now, n)
	if err != nil {
		return tasks, err
	}
	for _, b := range []*backlog{&w.unread, &w.undated} {
		some, err := w.takeBacklog(b, now, n-len(tasks))
		if tasks = append(tasks, some...); err != nil {
			return tasks, err
		}
	}
	return tasks, nil
}

// takePending is Take for pending inputs.
func (w *Worker) takePending(now time.Time, n int) ([]Task, error) {
	due := !w.next.IsZero() && !now.Before(w.next)
	if !w.inbox.look() && !due {
		return nil, nil
	}
	moved := w.inbox.haveMoved()
	w.inbox.settle()
	v := w.partition.View()
	if moved || w.inbox.haveMoved() { // a move noted just now concerns the next call, too
		clear(w.dots)
	}
	tasks, err := w.scan(v, now, n)
	return tasks, errors.Join(err, v.Close())
}

// scan walks through the queue until it has n tasks.
func (w *Worker) scan(v *partition.View, now time.Time, n int) ([]Task, error) {
	var tasks []Task
	var failed error
	full := false
	w.next = time.Time{}
	for _, t := range w.tries {
		t.seen = false
	}
	known := w.dots
	w.dots = make(map[uint32]log.Dot, len(known))
	err := v.PendingInputs(0, func(ord uint32) bool {
		var in catalog.Input
		dot, ok := known[ord]
		if !ok {
			if in, failed = v.Input(ord); failed != nil {
				return false
			}
			dot = in.Dot
		}
		w.dots[ord] = dot
		if !w.partition.IsResponsible(dot) {
			return true
		}
		t := w.tries[dot]
		if t != nil {
			t.seen = true
		}
		switch {
		case t != nil && t.handedOut:
			return true
		case t != nil && now.Before(t.due):
			if w.next.IsZero() || t.due.Before(w.next) {
				w.next = t.due
			}
			return true
		case len(tasks) == n:
			full = true
			return false
		}
		if ok {
			if in, failed = v.Input(ord); failed != nil {
				return false
			}
		}
		if t == nil {
			t = &retryState{seen: true}
			w.tries[dot] = t
		}
		t.handedOut = true
		tasks = append(tasks, Task{Base: w.base, Dot: dot, URL: in.URL, Crop: in.Crop, readEXIF: readsEXIF(&in)})
		return true
	})
	if err = errors.Join(err, failed); err != nil || full {
		w.inbox.put(downloadEvent{pending: true})
		return tasks, err
	}
	for dot, t := range w.tries {
		if !t.seen && !t.handedOut { // deleted while it waited
			delete(w.tries, dot)
		}
	}
	return tasks, nil
}

// Done takes the outcome of a task. The input reaches its end or waits for another try. An unread input that fails again keeps its status.
// Done returns errors of the store; the input then waits too.
func (w *Worker) Done(ctx context.Context, now time.Time, t Task, o *Outcome) error {
	if w.waits(t, o.Retry, now) {
		return nil
	}
	if t.from != nil && o.Code != catalog.InputReady {
		w.forget(t)
		return nil
	}
	if t.IsUndated() {
		return w.date(now, t, o.Derived.Taken)
	}
	body := &log.InputFetched{Input: t.Dot, Code: o.Code}
	var also func(*kv.Batch)
	if o.Code == catalog.InputReady {
		body.Blob, body.ContentType = o.Blob, o.ContentType
		also = func(b *kv.Batch) {
			catalog.PutDerived(b, w.app, t.Base, o.Blob, t.Crop, *o.Derived)
			catalog.PutThumb(b, w.app, o.Blob, t.Crop, o.Thumb)
		}
	} else {
		body.Detail = form.Line(o.Detail, form.MaxDetailBytes)
	}
	bodies := []log.Body{body}
	if t.readEXIF && o.Code == catalog.InputReady && o.Place != nil {
		bodies = append(bodies, &log.InputGeo{Input: t.Dot, Geo: o.Place})
	}
	_, err := w.partition.Submit(ctx, "", bodies, also) // any verdict will do: a deleted input is at its end, too
	if err != nil {
		w.waits(t, Always, now)
		return err
	}
	w.forget(t)
	return nil
}

// date stores the date of a ready input.
func (w *Worker) date(now time.Time, t Task, taken exif.Time) error {
	err := w.partition.Tidy(func(tx *kv.Overlay) error {
		return catalog.PutTaken(tx, w.app, t.Base, &catalog.Input{Blob: t.Blob, Crop: t.Crop}, taken)
	})
	if err != nil {
		w.waits(t, Always, now)
		return err
	}
	w.forget(t)
	return nil
}

// forget removes an input that reached its end from the record of tries.
func (w *Worker) forget(t Task) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if t.from != nil {
		t.from.remove(t.Dot)
		return
	}
	delete(w.tries, t.Dot)
}

// waits returns an input to the queue if another try is due to it. It reports whether it does.
func (w *Worker) waits(t Task, r Retry, now time.Time) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	tried := w.tries[t.Dot]
	if t.from != nil {
		tried = t.from.stateOf(t.Dot)
	}
	if r == Never || tried == nil {
		return false
	}
	if r == Limited {
		if tried.failed++; tried.failed >= maxTries {
			return false
		}
	}
	tried.handedOut = false
	tried.due = now.Add(pauses[max(tried.failed-1, 0)])
	if w.next.IsZero() || tried.due.Before(w.next) {
		w.next = tried.due
	}
	return true
}
