// Package core is the engine: it answers all of /v2, with the same bytes on every host.
//
//	            ┌───────────────────── Engine ─────────────────────┐
//	Request ──▶ │ auth ── key and its application                  │
//	            │ api ─── routes, statuses, JSON                   │ ──▶ Response
//	            │  ├── predict.Set   public models and the network │
//	   jobs ◀── │  ├── lang          names, 23 languages           │ ◀── results
//	            │  ├── blob.HostedNames   stored pictures          │
//	            │  └── partition     one for each application:     │
//	            │        log ──fold──▶ catalog records + index     │
//	            └──────────▲───────────────────────────────────────┘
//	               store, clock, randomness, blobs, Step: the host's
//
// A host (the origin, an edge, a page) opens an engine with its services, passes requests to it, runs the jobs of calls on its threads,
// and calls Step from time to time. The engine starts no goroutine and waits for nothing.
//
// A host may also have one engine for each application ([Options.App]), such as one in each guest, and one [register.Register], which
// writes the records that the engines read.
package core

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/auth"
	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/jsonio"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/partition"
	"github.com/sightline-dev/sightline/core/predict"
	"github.com/sightline-dev/sightline/core/register"
)

// Options are the services and settings of the host. Fields without "0 means" or "empty means" are required.
type Options struct {
	Store kv.Store // holds applications, keys, logs, records and indexes

	// App is the only application that the engine serves. A [register.Register] on the same store writes the application's record, keys and
	// client, and the engine reads them at each request. The engine writes no data of the register and does not tidy Hosted. Empty means
	// all applications; the engine then opens the register itself.
	App string

	Models *predict.Set // loaded bundles; the host makes its analysers from a set of the same base

	// Follow opens an engine that follows: another machine writes. See [Engine.Advance].
	Follow bool

	// Older loads the bundles of an older network by its base. This network serves the applications that it analysed until they have moved
	// to Models. nil if there are no older networks.
	Older func(base [32]byte) (*predict.Set, error)

	Hosted register.Pictures // stores the pictures that come as base64; *blob.HostedNames
	Clock  func() time.Time
	Rand   io.Reader // source of ids; fit for secrets
	Seals  io.Reader // source of the keys of log seals, see [partition.Origin.Seal]; nil means that logs have no seals

	Tokens   api.Tokens   // issues and reads access tokens; nil if there are none
	Accounts api.Accounts // accounts that own applications; nil if there are none
	Calls    api.Calls    // counts calls; nil if calls are not counted

	// Audit records changes to applications, keys, clients and edges; see [register.Options]. nil means that nothing is recorded.
	Audit func(by register.Caller, a register.Action, target string) error

	Storage     api.Storage                      // nil: storage has no limits
	PictureSize func(h blob.Hash) (int64, error) // bytes of a stored picture, or blob.ErrNotFound; required with Storage

	// SyncStatus returns the sync status of an application that is a replica, and false for other applications. nil if there are no
	// replicas.
	SyncStatus func(app string) (api.SyncStatus, bool)

	// Devices returns the edges of an application, and the replicas that have contacted this origin. nil if the origin knows none.
	Devices func(app string) ([]api.Device, error)

	NoColumns  bool // see index.Options; for a store in memory
	Thumbnails bool // replicas make the thumbnails that they lack, of pictures that the host has or gets

	PublicURL    string              // start of the URLs of hosted pictures; empty means http://127.0.0.1:8080
	PublicAppID  string              // app_id of public models and concepts; empty means by the client, see api.Options
	PredictedTTL time.Duration       // storage time of a picture sent for prediction; 0 means 24 h
	Retention    partition.Retention // retention of each application's log; zero fields mean their defaults
	JSON         jsonio.Limits       // limits of a request's body; zero fields mean jsonio's defaults
	MaxAnswer    int64               // maximum bytes of a response's body; 0 means api.DefaultMaxAnswer

	Rate         auth.Rate // limit of an account key, its tokens and sessions; zero fields: 10 a second, 100 at once; PerSecond < 0: none
	OperatorRate auth.Rate // limit of the operator's own keys; zero means none
	AccountRate  auth.Rate // limit of all calls of an account, besides Rate; zero or PerSecond < 0 means none
}

// Engine answers requests. It is safe for concurrent use if the services in Options are.
type Engine struct {
	Register *register.Register
	service  *api.Service
	apps     *apps
	models   *predict.Set
	hosted   register.Pictures
	nextApp  int        // index of the next application to take tasks from; used by Take only
	stepping sync.Mutex // held by the running Step

	trainings uint64            // number of trainings that Take has handed out
	trained   map[string]uint64 // number of the last of them, by caller and by application; used by Take only
	orphans   atomic.Bool       // there may be pictures that nothing references
	closed    atomic.Bool
}

// Open makes an engine over a store. It returns api.ErrOptions for missing or invalid settings, register.ErrApplication for an App that
// does not exist, and the store's errors.
func Open(o Options) (*Engine, error) {
	if o.Store == nil || o.Models == nil || o.Hosted == nil || o.Clock == nil || o.Rand == nil {
		return nil, fmt.Errorf("%w: Store, Models, Hosted, Clock and Rand are required", api.ErrOptions)
	}
	e := &Engine{models: o.Models, hosted: o.Hosted, trained: map[string]uint64{}}
	err := e.openRegister(&o)
	if err != nil {
		return nil, err
	}
	if e.apps, err = openApps(o, e.Register); err != nil {
		return nil, errors.Join(err, e.Register.Close())
	}
	e.service, err = api.New(api.Options{
		Models: o.Models, Older: e.apps.older(), Hosted: o.Hosted, Apps: appStore{e}, Tokens: o.Tokens, Accounts: o.Accounts, Calls: o.Calls, Storage: o.Storage, SyncStatus: o.SyncStatus, Devices: o.Devices, Thumbnails: o.Thumbnails, Clock: o.Clock, Rand: o.Rand,
		PublicURL: o.PublicURL, PublicAppID: o.PublicAppID,
		PredictedTTL: o.PredictedTTL, JSON: o.JSON, MaxAnswer: o.MaxAnswer, Rate: o.Rate, OperatorRate: o.OperatorRate, AccountRate: o.AccountRate,
	})
	if err != nil {
		return nil, errors.Join(err, e.Close())
	}
	return e, nil
}

// openRegister opens the register. An engine of a single application opens it read-only.
func (e *Engine) openRegister(o *Options) (err error) {
	r := register.Options{
		Store: o.Store, Models: o.Models, Hosted: o.Hosted, Clock: o.Clock, Rand: o.Rand, Seals: o.Seals, Follow: o.Follow,
		Audit: o.Audit, Detach: e.detach, Changed: func(app string) { e.apps.refresh(app) },
	}
	if o.App != "" {
		e.Register = register.ReadOnly(r)
		return nil
	}
	e.Register, err = register.Open(r)
	return err
}

// detach closes a deleted application. Its pictures may be orphans from then on.
func (e *Engine) detach(app string) {
	e.apps.detach(app)
	e.orphans.Store(true)
}

// Models returns the set of public models with a base, for the host's analysers. For a zero or unknown base it returns the newest set.
func (e *Engine) Models(base [32]byte) *predict.Set {
	if set, ok := e.apps.sets[base]; ok {
		return set
	}
	return e.models
}

// Begin starts a request; see [api.Exchange]. On a closed engine the call is done, and refused.
func (e *Engine) Begin(ctx context.Context, r *api.Request) *api.Exchange {
	if e.closed.Load() {
		return api.RespondWith(e.service.Refuse(r, fmt.Errorf("%w: the server is stopping", api.ErrBusy)))
	}
	return e.service.Begin(ctx, r)
}

// Caller returns the caller of a request; see [api.Service.Caller].
func (e *Engine) Caller(ctx context.Context, r *api.Request) (string, error) {
	return e.service.Caller(ctx, r)
}

// Refuse returns the response to a request that the host does not begin or cannot end. For a request that panicked, err is api.ErrInternal.
func (e *Engine) Refuse(r *api.Request, err error) api.Response { return e.service.Refuse(r, err) }

// Close ends the engine, once running calls have ended. It closes none of the host's services.
func (e *Engine) Close() error {
	if e.closed.Swap(true) {
		return nil
	}
	return errors.Join(e.apps.close(), e.Register.Close())
}
