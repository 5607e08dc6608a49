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

// writer is the one instance of an application, or its place. The holder of the turn may use it; the turn guards all fields below it.
type writer struct {
	f    *Fleet
	app  string
	turn chan struct{} // holds one token

	bytes atomic.Int64 // of the instance; 0: none is open
	used  atomic.Int64 // when it was last used, as Unix nanoseconds

	in             *Instance     // nil: none
	calls          int           // that wait for jobs; each is resumed once
	tasks          int           // that are being done
	idle           chan struct{} // not nil: closed when calls is 0
	retired        bool          // the application was deleted, or the fleet is closed
	guestSnapshots bool          // the instance takes snapshots itself, since the host could not
	died           int           // deaths since a call last went well
	diedAt         time.Time

	mayTake, mayStep bool      // something has happened since it was asked for tasks, and to step
	more             bool      // the last step reported more work
	taken, stepped   time.Time // when it was last asked
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

// give hands the turn back, when what was done with the instance is over.
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

// A guest that dies again and again is left alone for a while.
const (
	maxDeaths = 3
	mourning  = time.Second
)

// closeCrashed closes a dead instance.
func (w *writer) closeCrashed() {
	w.died++
	w.diedAt = w.f.now()
	w.f.o.Services.Log.Error("discarded a failed module instance", "app", w.app, "error", w.in.Crashed())
	if err := w.shut(); err != nil {
		w.f.o.Services.Log.Error("cannot close the failed module instance", "app", w.app, "error", err)
	}
}

// shut closes the instance; calls and tasks that are under way are over with it.
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

// scheduleStep has the background look at the instance soon.
func (w *writer) scheduleStep() { w.mayTake, w.mayStep = true, true }

// noteWrites does so if the instance has written since: a request that only reads makes nothing due.
func (w *writer) noteWrites(in *Instance, since int) {
	if in.writes == since {
		return
	}
	w.scheduleStep()
	if w.f.o.Wrote != nil {
		w.f.o.Wrote(w.app)
	}
}

// noteCommits tells Wrote where the instance has committed since, in the background: operations are committed, and upkeep is not.
func (w *writer) noteCommits(in *Instance, since int) {
	if in.commits != since && w.f.o.Wrote != nil {
		w.f.o.Wrote(w.app)
	}
}

// signalIdle wakes waiters once no call waits for jobs.
func (w *writer) signalIdle() {
	if w.idle != nil && w.calls == 0 {
		close(w.idle)
		w.idle = nil
	}
}

// drainTime limits the time for which ApplySnapshot waits for calls that wait for their jobs.
const drainTime = 5 * time.Second

// ready opens the instance where there is none; the turn is the caller's, also with an error.
func (w *writer) ready(ctx context.Context) error {
	if w.retired {
		return errStopping
	}
	if w.in != nil {
		return nil
	}
	if wait := w.diedAt.Add(mourning).Sub(w.f.now()); w.died >= maxDeaths && wait > 0 && wait <= mourning {
		return fmt.Errorf("%w: the application's module instance has failed %d times", api.ErrBusy, w.died)
	}
	s := w.f.o.Settings
	s.Role, s.Store, s.App = abi.Engine, abi.StoreLent, w.app
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

// drain waits, without the turn, until no call of the instance waits for jobs, for drainTime at most.
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

// retire ends the instance, and the writer with it.
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
	asked := *r
	asked.Body, asked.Header = nil, nil // the caller's
	return api.NewExchange(call.Jobs(), func(results []api.Result) ([]api.Job, api.Response, bool) {
		return w.resume(in, call, &asked, results)
	}), nil
}

// sync tells the machine of a copy an event.
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

// resume continues a call of an instance. If the instance has ended meanwhile, nothing of the call is done.
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

// release gives up what a result holds that no instance takes.
func (f *Fleet) release(r *api.Result) {
	if r.Blob.IsZero() {
		return
	}
	if err := f.o.Services.Hosted.Unpin(context.Background(), r.Blob); err != nil {
		f.o.Services.Log.Error("cannot release picture", "hash", r.Blob.String(), "error", err)
	}
}

// busy reports whether closing the instance would lose work: the turn is the caller's.
func (w *writer) busy() bool { return w.calls > 0 || w.tasks > 0 || w.more }

// fleetRef is how a task of a fleet is known.
type fleetRef struct {
	w    *writer
	in   *Instance
	task core.Task
}
