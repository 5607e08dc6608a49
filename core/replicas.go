package core

import (
	"context"
	"fmt"
	"time"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/auth"
	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/ingest"
	"github.com/sightline-dev/sightline/core/partition"
	"github.com/sightline-dev/sightline/core/predict/raster"
)

// This file has the part of an engine that the sync protocol uses, at an origin and at a replica.

// Partition returns an application's log, state and index. The engine closes it, not the caller. Errors: register.ErrApplication and the
// store's.
func (e *Engine) Partition(app string) (*partition.Partition, error) {
	return find(e, app, func(a *application) *partition.Partition { return a.Partition })
}

// Origin is [Engine.Partition] for an application with its own log. For a replica the error is partition.ErrKind.
func (e *Engine) Origin(app string) (*partition.Origin, error) {
	return find(e, app, func(a *application) *partition.Origin { return a.Origin })
}

// Replica is [Engine.Partition] for a replica. For an application with its own log the error is partition.ErrKind.
func (e *Engine) Replica(app string) (*partition.Replica, error) {
	return find(e, app, func(a *application) *partition.Replica { return a.Copy })
}

func find[P any](e *Engine, app string, of func(*application) *P) (*P, error) {
	open, err := e.apps.application(app)
	if err != nil {
		return nil, err
	}
	if p := of(open); p != nil {
		return p, nil
	}
	return nil, fmt.Errorf("application %s: %w", app, partition.ErrKind)
}

// Reopen gives all logs another opening. One of them lacks an entry of the present one, since the machine was set back with its memory.
// Errors: those of [register.Register.Reopen].
func (e *Engine) Reopen() error {
	e.apps.mu.Lock()
	defer e.apps.mu.Unlock()
	opening, err := e.Register.Reopen()
	for _, app := range e.apps.open {
		if err == nil && app.Origin != nil {
			app.Origin.SetOpening(opening)
		}
	}
	return err
}

// Identify returns the caller of a request that is not a call of the interface, and the time at which its credential ends; see
// [api.Service.Identify].
func (e *Engine) Identify(ctx context.Context, r *api.Request) (auth.Principal, time.Time, error) {
	return e.service.Identify(ctx, r)
}

// ServingBase returns the base of the network that serves the application in r.
func (e *Engine) ServingBase(r catalog.Reader) ([32]byte, error) { return e.service.ServingBase(r) }

// ReceivedJob returns the job to analyse a picture of another host's input. The picture's bytes are in the blobs, and this node derives
// its data again. The result is for [Engine.ReceivedOutcome] and holds the picture until its release.
func ReceivedJob(picture blob.Hash, crop raster.Crop, base [32]byte) api.Job {
	job := api.FetchJob("", crop, base)
	job.Blob = picture
	return *job
}

// ReceivedOutcome returns the outcome of a [ReceivedJob].
func (e *Engine) ReceivedOutcome(base [32]byte, r *api.Result) ingest.Outcome {
	return e.service.FetchOutcome(base, r)
}
