// Package core is the engine: everything that /v2 does, on the same bytes at every host.
//
//	            ┌──────────────── Engine ────────────────┐
//	Request ──▶ │ api ── routes, statuses, JSON          │ ──▶ Response
//	            │  ├── predict.Set   models and network  │
//	   jobs ◀── │  ├── lang          names, 23 languages │ ◀── results
//	            │  └── blob.Hosted   pictures kept       │
//	            └──────────▲─────────────────────────────┘
//	               clock, randomness, blobs, Step: lent by the host
//
// A host (the origin, an edge, a page) opens an engine with what it lends, hands it
// requests, runs the jobs that calls ask for on its own threads, and calls Step from time
// to time. The engine starts nothing of its own and waits for nothing.
package core

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/jsonio"
	"github.com/sightline-dev/sightline/core/predict"
)

// ErrClosed is returned by Step on an engine that is closed.
var ErrClosed = errors.New("engine closed")

// Options are what a host lends and sets. Fields without "0 means" or "empty means" are needed.
type Options struct {
	Models *predict.Set // the loaded bundles; the host's analysers are made from the same set
	Hosted *blob.Hosted // keeps the pictures that come as base64
	Clock  func() time.Time
	Rand   io.Reader // ids are made from it; fit for secrets

	PublicURL       string        // start of hosted pictures' addresses; empty means http://127.0.0.1:8080
	PublicAppID     string        // app_id of public models and concepts; empty means null
	DefaultLanguage string        // the application's; empty means "en"
	KeepPredicted   time.Duration // life of a picture sent to be predicted; 0 means 24 h
	JSON            jsonio.Limits // of a request's body; zero fields mean jsonio's defaults
}

// Engine answers requests. It is safe for concurrent use, as far as what it was lent is.
type Engine struct {
	service *api.Service
	models  *predict.Set
	hosted  *blob.Hosted
	closed  atomic.Bool
}

// Open makes an engine. It returns api.ErrOptions for settings that are missing or cannot be.
func Open(o Options) (*Engine, error) {
	if o.Models == nil || o.Hosted == nil {
		return nil, fmt.Errorf("%w: Models and Hosted are needed", api.ErrOptions)
	}
	service, err := api.New(api.Options{
		Models: o.Models, Hosted: o.Hosted, Clock: o.Clock, Rand: o.Rand,
		PublicURL: o.PublicURL, PublicAppID: o.PublicAppID, DefaultLanguage: o.DefaultLanguage,
		KeepPredicted: o.KeepPredicted, JSON: o.JSON,
	})
	if err != nil {
		return nil, err
	}
	return &Engine{service: service, models: o.Models, hosted: o.Hosted}, nil
}

// Models is the set of public models, for the host's analysers.
func (e *Engine) Models() *predict.Set { return e.models }

// Begin starts a request; see [api.Call]. On a closed engine the call is done, and refused.
func (e *Engine) Begin(ctx context.Context, r *api.Request) *api.Call {
	if e.closed.Load() {
		return api.Answered(e.service.Refuse(r, fmt.Errorf("%w: the server is stopping", api.ErrBusy)))
	}
	return e.service.Begin(ctx, r)
}

// Refuse is the answer to a request that the host does not begin or cannot end, such as one
// that panicked: then err is api.ErrInternal.
func (e *Engine) Refuse(r *api.Request, err error) api.Response { return e.service.Refuse(r, err) }

// Hosted returns the picture behind a hosted name; the error is blob.ErrNotFound.
func (e *Engine) Hosted(name string) (blob.Picture, error) { return e.service.Hosted(name) }

// Step does the work that is due at now and no request waits for: it sweeps the pictures
// whose time is over, and returns how many. It ends early with ctx's error when ctx ends; the
// next Step goes on. Once a minute is enough.
func (e *Engine) Step(ctx context.Context, now time.Time) (swept int, err error) {
	if e.closed.Load() {
		return 0, ErrClosed
	}
	return e.hosted.Sweep(ctx, now)
}

// Close ends the engine; calls under way may still be finished. It closes nothing that was
// lent.
func (e *Engine) Close() error {
	e.closed.Store(true)
	return nil
}
