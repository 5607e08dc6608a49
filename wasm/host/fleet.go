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

// DefaultMemoryBytes is the default of FleetOptions.MemoryBytes.
const DefaultMemoryBytes = 2 << 30

// FleetOptions are the services of a [Fleet]. Runtime and Services are required.
type FleetOptions struct {
	Runtime  *Runtime // the fleet owns it: Close closes it
	Services Services // the services of every instance; Store, Hosted, Clock and Rand are required

	// Settings of every instance. The fleet sets Role, App and Store.
	Settings abi.Settings

	Rate         auth.Rate // limits of keys, as in core.Options
	OperatorRate auth.Rate

	Models      *predict.Set                  // public models without their networks; nil: the fleet reads them from the bundles
	MemoryBytes int64                         // memory of all writers in bytes; above it the fleet closes idle ones; 0: DefaultMemoryBytes
	Replica     func(app string) *abi.Replica // returns the replica settings of an application; nil, or a nil result: it is not a replica
	// OnWrite is called after an instance has written to its application, except for pulled entries. It must return at once. If it is nil,
	// the fleet notifies nobody.
	OnWrite func(app string)

	// Admit is called before a call with a credential of an application reaches its instance. If it returns an error, the call is
	// answered with that error. If Admit is nil, all calls pass.
	Admit func(ctx context.Context, app string, r *api.Request) error

	// UnknownCredential is called for a request with a valid form of a credential that has no record, before the request is refused. The
	// host may get newer records from the origin meanwhile. If UnknownCredential is nil, the request is refused at once.
	UnknownCredential func(ctx context.Context, r *api.Request)

	CollectOrphans func() // called when pictures may exist that no record refers to; nil: nobody is notified
}

// Fleet has one instance for each application. Only this instance writes to the application. The host analyses pictures natively: an
// instance would use the same network and the host's kernels, and would return the same bytes.
//
//	request ── credential ──▶ application ──▶ writer: one call at a time ──▶ jobs ─┐
//	     └──── no valid credential ──▶ router, natively: answers with the error       │
//	                                                      analysers, natively ◀──────┘
//
// The fleet opens a writer at the first request of its application, and replaces it when its guest has failed. When all writers together
// have too much memory, the fleet closes the longest unused ones. This loses nothing, because acknowledged writes are in the store. The
// fleet itself finds the application of a request by the credential, because that determines the instance. The instance checks the
// credential again.
//
// A Fleet is safe for concurrent use. It is a jobs.Service and a jobs.Engine, and its analysers are jobs.Analysers.
type Fleet struct {
	o      FleetOptions
	router *router

	mu      sync.Mutex
	writers map[string]*writer
	list    []string  // applications in the order in which the background opens them
	listed  time.Time // time at which list was read
	turn    int       // index into list
	closed  bool
}

// NewFleet returns a fleet and loads its network. If it returns an error, the caller still owns the runtime.
func NewFleet(o FleetOptions) (*Fleet, error) {
	if o.Runtime == nil || o.Services.Store == nil || o.Services.Hosted == nil || o.Services.Clock == nil || o.Services.Rand == nil {
		return nil, fmt.Errorf("%w: Runtime, Store, Hosted, Clock and Rand are required", api.ErrOptions)
	}
	if o.MemoryBytes <= 0 {
		o.MemoryBytes = DefaultMemoryBytes
	}
	if o.Services.Log == nil {
		o.Services.Log = slog.New(slog.DiscardHandler)
	}
	if o.Models == nil {
		var err error
		if o.Models, err = predict.LoadTables(o.Services.Bundles); err != nil {
			return nil, err
		}
	}
	s := &o.Settings
	s.Rate, s.Burst = rateOf(o.Rate, auth.Rate{PerSecond: 10, Burst: 100})
	s.OperatorRate, s.OperatorBurst = rateOf(o.OperatorRate, auth.Rate{})
	f := &Fleet{o: o, writers: map[string]*writer{}}
	var err error
	if f.router, err = newRouter(f); err != nil {
		return nil, err
	}
	if _, err := f.network([32]byte{}); err != nil {
		return nil, err
	}
	return f, nil
}

// rateOf returns r in the form of Settings, where 0 means no limit. It takes values that r does not set from absent.
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

// Refuse returns the answer to a request that the fleet cannot begin or complete.
func (f *Fleet) Refuse(r *api.Request, err error) api.Response { return refuser.Refuse(r, err) }

// errStopping is the error of calls to a closed fleet.
var errStopping = fmt.Errorf("%w: the server is stopping", api.ErrBusy)

// Begin starts a request on the instance of its application.
func (f *Fleet) Begin(ctx context.Context, r *api.Request) *api.Exchange {
	app := f.application(ctx, r)
	if app == "" {
		return f.router.service.Begin(ctx, r)
	}
	if f.o.Admit != nil && r.App == "" && r.Method != "OPTIONS" {
		if err := f.o.Admit(ctx, app, r); err != nil {
			return api.RespondWith(f.Refuse(r, err))
		}
	}
	w, err := f.writer(app)
	if err == nil {
		var call *api.Exchange
		if call, err = w.begin(ctx, r); err == nil {
			return call
		}
	}
	if errors.Is(err, register.ErrApplication) { // the application was deleted a moment ago
		return f.router.service.Begin(ctx, r)
	}
	if ctx.Err() == nil && !errors.Is(err, api.ErrBusy) {
		f.o.Services.Log.Error("cannot open instance", "app", app, "error", err)
		err = api.ErrInternal
	}
	return api.RespondWith(f.Refuse(r, err))
}

// Sync passes an event to the state machine of an application's replica. For a nil event it only returns the status. If the fleet has
// opened the instance again, its machine has not begun a session yet.
func (f *Fleet) Sync(ctx context.Context, app string, e replica.Event) (abi.SyncResult, error) {
	w, err := f.writer(app)
	if err != nil {
		return abi.SyncResult{}, err
	}
	return w.sync(ctx, e)
}

// writer returns the writer of an application.
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

// now returns the time of the runtime's clock.
func (f *Fleet) now() time.Time { return f.o.Runtime.o.Now() }

// all returns the current writers.
func (f *Fleet) all() []*writer {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Collect(maps.Values(f.writers))
}

// Detach ends the writer of a deleted application. When it returns, nothing writes to the application.
func (f *Fleet) Detach(app string) {
	f.mu.Lock()
	w := f.writers[app]
	delete(f.writers, app)
	f.mu.Unlock()
	if w == nil {
		return
	}
	if err := w.retire(); err != nil {
		f.o.Services.Log.Error("cannot close instance", "app", app, "error", err)
	}
}

// Bytes returns the memory of all guests, in bytes.
func (f *Fleet) Bytes() (n int64) {
	for _, w := range f.all() {
		n += w.bytes.Load()
	}
	return n
}

// NewAnalyser returns an analyser for one thread. It uses the network with this base, or the newest network if base is zero. Of l it uses
// only Expired and Pause.
func (f *Fleet) NewAnalyser(base [32]byte, l raster.Limits) (*predict.Analyser, error) {
	set, err := f.network(base)
	if err != nil {
		return nil, err
	}
	return set.NewAnalyser(raster.Limits{Expired: l.Expired, Pause: l.Pause}), nil
}

// network returns the network with this base. For a zero base it returns the newest network.
func (f *Fleet) network(base [32]byte) (*predict.Set, error) {
	if base == [32]byte{} {
		base = f.o.Models.Base()
	}
	if set := f.o.Runtime.network(&f.o.Services, base); set != nil {
		return set, nil
	}
	return nil, fmt.Errorf("%w: network %x is not in the bundles", api.ErrInternal, base[:4])
}

// Close closes all instances after their running calls have returned, and then the runtime.
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
