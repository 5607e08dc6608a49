package host

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/sightline-dev/sightline/core"
	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/sync/replica"
	"github.com/sightline-dev/sightline/wasm/abi"
)

// writer is the only instance of an application, or its place while no instance is open. The goroutine that holds the turn may use the
// instance. The turn guards all fields below bytes and used.
type writer struct {
	f    *Fleet
	app  string
	turn chan struct{} // holds one token

	bytes atomic.Int64 // memory of the instance; 0: no instance is open
	used  atomic.Int64 // time of the last use in Unix nanoseconds

	in             *Instance     // nil: no instance is open
	calls          int           // number of calls that wait for jobs; each is resumed once
	tasks          int           // number of tasks that were handed out and not handed back
	idle           chan struct{} // closed once calls is 0; nil: nobody waits for that
	retired        bool          // the application was deleted, or the fleet is closed
	guestSnapshots bool          // the instance takes snapshots itself, since the host could not
	died           int           // number of failures since the last call that succeeded
	diedAt         time.Time

	mayTake, mayStep bool      // something has happened since the last Take, and since the last Step
	more             bool      // the last step reported more work
	takenAt, stepped time.Time // times of the last Take and the last Step
}

func newWriter(f *Fleet, app string) *writer {
	w := &writer{f: f, app: app, turn: make(chan struct{}, 1)}
	w.turn <- struct{}{}
	return w
}

// take waits for the turn until ctx ends.
func (w *writer) take(ctx context.Context) error {
	select {
	case <-w.turn:
		return nil
	default:
	}
	select {
	case <-w.turn:
		return nil
	case <-ctx.Done():
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return api.ErrTimeout
		}
		return errStopping
	}
}

// try takes the turn if it is free.
func (w *writer) try() bool {
	select {
	case <-w.turn:
		return true
	default:
		return false
	}
}

// give returns the turn after the caller has used the instance. If the guest has failed, give closes the instance first.
func (w *writer) give() {
	if w.in != nil && w.in.Crashed() != nil {
		w.closeCrashed()
	}
	if w.in != nil {
		w.bytes.Store(w.in.Bytes())
	}
	w.used.Store(w.f.now().UnixNano())
	w.turn <- struct{}{}
}

// After maxDeaths failures in a row, the writer opens no instance until pauseAfterDeaths has passed since the last one.
const (
	maxDeaths        = 3
	pauseAfterDeaths = time.Second
)

// closeCrashed closes an instance whose guest has failed.
func (w *writer) closeCrashed() {
	w.died++
	w.diedAt = w.f.now()
	w.f.o.Services.Log.Error("discarded a failed module instance", "app", w.app, "error", w.in.Crashed())
	if err := w.shut(); err != nil {
		w.f.o.Services.Log.Error("cannot close the failed module instance", "app", w.app, "error", err)
	}
}

// shut closes the instance. That ends the calls and tasks under way.
func (w *writer) shut() error {
	if w.in == nil {
		return nil
	}
	in := w.in
	w.in, w.calls, w.tasks = nil, 0, 0
	w.bytes.Store(0)
	w.signalIdle()
	return in.Close()
}

// scheduleStep makes the background ask the instance for tasks and for a step soon.
func (w *writer) scheduleStep() { w.mayTake, w.mayStep = true, true }

// noteWrites schedules a step and calls OnWrite if the instance has written since its number of writes was since. A request that only reads
// makes nothing due.
func (w *writer) noteWrites(in *Instance, since int) {
	if in.writes == since {
		return
	}
	w.scheduleStep()
	if w.f.o.OnWrite != nil {
		w.f.o.OnWrite(w.app)
	}
}

// noteCommits calls OnWrite if the instance has committed since its number of commits was since. It is for background work, which commits
// operations but not maintenance.
func (w *writer) noteCommits(in *Instance, since int) {
	if in.commits != since && w.f.o.OnWrite != nil {
		w.f.o.OnWrite(w.app)
	}
}

// signalIdle wakes waiters once no call waits for jobs.
func (w *writer) signalIdle() {
	if w.idle != nil && w.calls == 0 {
		close(w.idle)
		w.idle = nil
	}
}

// drainTime is the maximum time that ApplySnapshot waits for calls that wait for their jobs.
const drainTime = 5 * time.Second

// ready opens the instance if none is open. The caller holds the turn, and still holds it after an error.
func (w *writer) ready(ctx context.Context) error {
	if w.retired {
		return errStopping
	}
	if w.in != nil {
		return nil
	}
	if wait := w.diedAt.Add(pauseAfterDeaths).Sub(w.f.now()); w.died >= maxDeaths && wait > 0 && wait <= pauseAfterDeaths {
		return fmt.Errorf("%w: the application's module instance has failed %d times", api.ErrBusy, w.died)
	}
	s := w.f.o.Settings
	s.Role, s.Store, s.App = abi.Engine, abi.StoreHost, w.app
	if w.f.o.Replica != nil {
		s.Replica = w.f.o.Replica(w.app)
	}
	if s.Replica != nil {
		s.Replica.NativeSnapshots = !w.guestSnapshots
	}
	in, err := w.f.o.Runtime.Open(context.WithoutCancel(ctx), w.f.o.Services, s)
	if err != nil {
		if errors.Is(err, ErrCrashed) {
			w.died++
			w.diedAt = w.f.now()
		}
		return err
	}
	w.in, w.more = in, false
	w.scheduleStep()
	w.bytes.Store(in.Bytes())
	return nil
}

// drain waits until no call of the instance waits for jobs, for at most drainTime. The caller holds the turn; drain gives it back while it
// waits.
func (w *writer) drain(ctx context.Context) {
	ctx, stop := context.WithTimeout(ctx, drainTime)
	defer stop()
	for in := w.in; w.calls > 0 && w.in == in; {
		if w.idle == nil {
			w.idle = make(chan struct{})
		}
		idle := w.idle
		w.turn <- struct{}{}
		select {
		case <-idle:
		case <-ctx.Done():
		}
		<-w.turn // its holder gives it back soon
		if ctx.Err() != nil {
			break
		}
	}
}

// retire ends the instance. The writer opens no other one.
func (w *writer) retire() error {
	<-w.turn
	defer w.give()
	w.retired = true
	return w.shut()
}

// begin starts a request.
func (w *writer) begin(ctx context.Context, r *api.Request) (*api.Exchange, error) {
	if err := w.take(ctx); err != nil {
		return nil, err
	}
	defer w.give()
	if err := w.ready(ctx); err != nil {
		return nil, err
	}
	in := w.in
	defer w.noteWrites(in, in.writes)
	call := in.Begin(ctx, r)
	if in.Crashed() == nil {
		w.died = 0
	}
	if call.Done() {
		return call, nil
	}
	w.calls++
	request := *r
	request.Body, request.Header = nil, nil // they belong to the caller
	return api.NewExchange(call.Jobs(), func(results []api.Result) ([]api.Job, api.Response, bool) {
		return w.resume(in, call, &request, results)
	}), nil
}

// sync passes an event to the machine of the application's replica.
func (w *writer) sync(ctx context.Context, e replica.Event) (abi.SyncResult, error) {
	if err := w.take(ctx); err != nil {
		return abi.SyncResult{}, err
	}
	defer w.give()
	if err := w.ready(ctx); err != nil {
		return abi.SyncResult{}, err
	}
	in, before := w.in, w.in.writes
	done, err := in.Sync(ctx, e)
	if in.writes != before {
		w.scheduleStep()
	}
	return done, err
}

// resume continues a call of an instance. If the instance has ended meanwhile, it refuses the call.
func (w *writer) resume(in *Instance, call *api.Exchange, r *api.Request, results []api.Result) ([]api.Job, api.Response, bool) {
	<-w.turn
	defer w.give()
	if w.in != in {
		for i := range results {
			w.f.release(&results[i])
		}
		return nil, w.f.Refuse(r, fmt.Errorf("%w: the instance was replaced", api.ErrBusy)), true
	}
	defer w.noteWrites(in, in.writes)
	call.Resume(results)
	if !call.Done() {
		return call.Jobs(), api.Response{}, false
	}
	w.calls--
	w.signalIdle()
	return nil, call.Response(), true
}

// release unpins the picture of a result that no instance receives.
func (f *Fleet) release(r *api.Result) {
	if r.Blob.IsZero() {
		return
	}
	if err := f.o.Services.Hosted.Unpin(context.Background(), r.Blob); err != nil {
		f.o.Services.Log.Error("cannot release picture", "hash", r.Blob.String(), "error", err)
	}
}

// busy reports whether closing the instance would lose work. The caller holds the turn.
func (w *writer) busy() bool { return w.calls > 0 || w.tasks > 0 || w.more }

// fleetRef identifies a task of a fleet.
type fleetRef struct {
	w    *writer
	in   *Instance
	task core.Task
}
