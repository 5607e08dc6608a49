package host

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/auth"
	"github.com/sightline-dev/sightline/core/predict"
	"github.com/sightline-dev/sightline/core/predict/raster"
	"github.com/sightline-dev/sightline/core/register"
	"github.com/sightline-dev/sightline/sync/replica"
	"github.com/sightline-dev/sightline/wasm/abi"
)

// DefaultMemoryBytes is the default memory of a fleet's writers above which idle ones are closed.
const DefaultMemoryBytes = 2 << 30

// FleetOptions are the services of a [Fleet]. Runtime and Lent are required.
type FleetOptions struct {
	Runtime *Runtime // the fleet's from now on: Close closes it
	Lent    Lent     // to every instance; Store, Hosted and Bundles among it

	// Settings of every instance. Role, App and Store are the fleet's to say.
	Settings abi.Settings

	Rate         auth.Rate // as core.Options has them
	OperatorRate auth.Rate

	Models      *predict.Set                  // public models, tables suffice; nil: read from the bundles
	MemoryBytes int64                         // of all writers; 0 means DefaultMemoryBytes
	Replica     func(app string) *abi.Replica // how an application is kept a copy; nil, or an answer of nil: it stands alone
	// Wrote is called for an application whose instance has written, except for pulled entries; nil: nobody is notified. It must return
	// at once.
	Wrote func(app string)

	// Admit is asked before a call that shows a credential of an application reaches its instance: an error is what
	// it is answered with. nil: all are let through.
	Admit func(ctx context.Context, app string, r *api.Request) error

	Strays func() // told that pictures may be left that nothing claims; nil: nobody is
}

// Fleet has one instance for each application, the only one that writes it. Pictures are analysed natively: an instance would
// do the same with the network and the loops of the host, and gives the same bytes.
//
//	request ── credential ──▶ application ──▶ writer: one call at a time ──▶ jobs ─┐
//	     └──── none that is good ──▶ front, natively: says so as /v2 does            │
//	                                                      analysers, natively ◀──────┘
//
// A writer is opened when its application is first asked for something, replaced when its guest dies,
// and closed, the longest unused first, when all of them have too much memory. Nothing is
// lost with it: what was acknowledged is in the store. The application of a request is found by its
// credential here, since which instance is to check it depends on that; the instance checks it
// again.
//
// It is safe for concurrent use. It is a jobs.Service and a jobs.Engine, and its analysers are
// jobs.Analysers.
type Fleet struct {
	o     FleetOptions
	front *front

	mu      sync.Mutex
	writers map[string]*writer
	list    []string  // applications in the order in which the background looks at them
	listed  time.Time // when they were read
	turn    int       // of list
	closed  bool
}

// NewFleet makes a fleet, and compiles its network. With an error the runtime is still the caller's.
func NewFleet(o FleetOptions) (*Fleet, error) {
	if o.Runtime == nil || o.Lent.Store == nil || o.Lent.Hosted == nil || o.Lent.Clock == nil || o.Lent.Rand == nil {
		return nil, fmt.Errorf("%w: Runtime, Store, Hosted, Clock and Rand are required", api.ErrOptions)
	}
	if o.MemoryBytes <= 0 {
		o.MemoryBytes = DefaultMemoryBytes
	}
	if o.Lent.Log == nil {
		o.Lent.Log = slog.New(slog.DiscardHandler)
	}
	if o.Models == nil {
		var err error
		if o.Models, err = predict.LoadTables(o.Lent.Bundles); err != nil {
			return nil, err
		}
	}
	s := &o.Settings
	s.Rate, s.Burst = rateOf(o.Rate, auth.Rate{PerSecond: 10, Burst: 100})
	s.OperatorRate, s.OperatorBurst = rateOf(o.OperatorRate, auth.Rate{})
	f := &Fleet{o: o, writers: map[string]*writer{}}
	var err error
	if f.front, err = newFront(f); err != nil {
		return nil, err
	}
	if _, err := f.network([32]byte{}); err != nil {
		return nil, err
	}
	return f, nil
}

// rateOf is a rate as settings have it: 0 for none.
func rateOf(r, absent auth.Rate) (rate, burst uint32) {
	if r.PerSecond == 0 {
		r.PerSecond = absent.PerSecond
	}
	if r.Burst == 0 {
		r.Burst = absent.Burst
	}
	if r.PerSecond <= 0 {
		return 0, 0
	}
	return uint32(math.Ceil(r.PerSecond)), uint32(max(r.Burst, 0))
}

// Refuse is the answer to a request that is not begun or cannot be ended.
func (f *Fleet) Refuse(r *api.Request, err error) api.Response { return refuser.Refuse(r, err) }

// errStopping is the error of calls to a closed fleet.
var errStopping = fmt.Errorf("%w: the server is stopping", api.ErrBusy)

// Begin starts a request on the instance of its application.
func (f *Fleet) Begin(ctx context.Context, r *api.Request) *api.Exchange {
	app := f.front.application(r)
	if app == "" {
		return f.front.service.Begin(ctx, r)
	}
	if f.o.Admit != nil && r.App == "" && r.Method != "OPTIONS" {
		if err := f.o.Admit(ctx, app, r); err != nil {
			return api.Answered(f.Refuse(r, err))
		}
	}
	w, err := f.writer(app)
	if err == nil {
		var call *api.Exchange
		if call, err = w.begin(ctx, r); err == nil {
			return call
		}
	}
	if errors.Is(err, register.ErrApplication) { // deleted a moment ago
		return f.front.service.Begin(ctx, r)
	}
	if ctx.Err() == nil && !errors.Is(err, api.ErrBusy) {
		f.o.Lent.Log.Error("cannot open instance", "app", app, "error", err)
		err = api.ErrInternal
	}
	return api.Answered(f.Refuse(r, err))
}

// Sync tells the machine of an application's copy an event, nil to ask for its status alone. An instance that was
// opened again has a machine that has not begun.
func (f *Fleet) Sync(ctx context.Context, app string, e replica.Event) (abi.Synced, error) {
	w, err := f.writer(app)
	if err != nil {
		return abi.Synced{}, err
	}
	return w.sync(ctx, e)
}

// writer is that of an application.
func (f *Fleet) writer(app string) (*writer, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return nil, errStopping
	}
	w, ok := f.writers[app]
	if !ok {
		w = newWriter(f, app)
		f.writers[app] = w
	}
	return w, nil
}

// Runtime returns the runtime of all instances.
func (f *Fleet) Runtime() *Runtime { return f.o.Runtime }

// now is the clock that runs.
func (f *Fleet) now() time.Time { return f.o.Runtime.o.Now() }

// all are the writers there are now.
func (f *Fleet) all() []*writer {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Collect(maps.Values(f.writers))
}

// Detach ends what serves an application that was deleted: when it returns nothing writes to it.
func (f *Fleet) Detach(app string) {
	f.mu.Lock()
	w := f.writers[app]
	delete(f.writers, app)
	f.mu.Unlock()
	if w == nil {
		return
	}
	if err := w.retire(); err != nil {
		f.o.Lent.Log.Error("cannot close instance", "app", app, "error", err)
	}
}

// Bytes returns how much memory the guests have.
func (f *Fleet) Bytes() (n int64) {
	for _, w := range f.all() {
		n += w.bytes.Load()
	}
	return n
}

// NewAnalyser makes an analyser, for one thread, of the network with a base, the newest for zero. Of l only Expired and Pause count.
func (f *Fleet) NewAnalyser(base [32]byte, l raster.Limits) (*predict.Analyser, error) {
	set, err := f.network(base)
	if err != nil {
		return nil, err
	}
	return set.NewAnalyser(raster.Limits{Expired: l.Expired, Pause: l.Pause}), nil
}

// network returns the network with a base, the newest for zero.
func (f *Fleet) network(base [32]byte) (*predict.Set, error) {
	if base == [32]byte{} {
		base = f.o.Models.Base()
	}
	if set := f.o.Runtime.network(&f.o.Lent, base); set != nil {
		return set, nil
	}
	return nil, fmt.Errorf("%w: network %x is not in the bundles", api.ErrInternal, base[:4])
}

// Close ends all instances once the calls that are running in them have returned, and the runtime.
func (f *Fleet) Close() error {
	f.mu.Lock()
	if f.closed {
		f.mu.Unlock()
		return nil
	}
	f.closed = true
	f.mu.Unlock()
	var err error
	for _, w := range f.all() {
		err = errors.Join(err, w.retire())
	}
	return errors.Join(err, f.o.Runtime.Close(context.Background()))
}
