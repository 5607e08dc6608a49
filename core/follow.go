package core

import (
	"context"
	"errors"
	"fmt"

	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/register"
)

// An engine of a cluster leads or follows. The one that leads writes, as an engine without a cluster does. One that follows answers reads, and
// every write gets kv.ErrFollows:
//
//	leads     ─ Commit ─▶ the cluster's order of batches ─▶ visible ─ wait returns ─▶ fold
//	follows                              └────────────────▶ visible ─ Advance ─────▶ fold

// Advance takes in a batch that another machine has committed, once it is visible in the store. The caller shows the next batch after it.
// Errors: those of partition.Origin.Advance. The engine must then be opened again.
func (e *Engine) Advance(ctx context.Context, b *kv.Batch) error {
	touched := catalog.ChangedApps(b)
	if touched[catalog.Control] {
		if err := e.Register.Advance(ctx); err != nil {
			return fmt.Errorf("register: %w", err)
		}
		for _, app := range e.apps.opened() {
			e.apps.refresh(app.ID)
		}
	}
	for id := range touched {
		app, err := e.apps.application(id.String())
		if errors.Is(err, register.ErrApplication) {
			continue // the control log, or a deleted application
		}
		if err == nil && app.Origin != nil {
			err = app.Origin.Advance(ctx)
		}
		if err == nil {
			app.mu.Lock()
			_, err = e.followOrigin(e.apps.o.Clock(), app)
			app.mu.Unlock()
		}
		if err != nil && !isDeleted(err) {
			return fmt.Errorf("application %v: %w", id, err)
		}
	}
	return nil
}

// Lead makes an engine that followed write. All batches of the cluster are visible, and Advance has taken them in. Errors: those of the store and
// of the random source. The engine must then be opened again.
func (e *Engine) Lead() error {
	e.apps.mu.Lock()
	defer e.apps.mu.Unlock()
	opening, err := e.Register.Lead()
	for id, app := range e.apps.open {
		if err == nil && app.Origin != nil {
			err = app.Origin.Lead(opening)
		}
		if err == nil {
			err = e.apps.begin(app, id)
		}
	}
	e.orphans.Store(true) // the queues of deleted pictures were on the other machine
	return err
}

// Follow makes an engine that led follow. The store refuses its writes already, and every write that waits for the store has its result. Tasks
// that were handed out come back by Done, which refuses their results. Errors: those of the store.
func (e *Engine) Follow(ctx context.Context) error {
	e.apps.mu.Lock()
	defer e.apps.mu.Unlock()
	err := e.Register.Follow(ctx)
	for id, app := range e.apps.open {
		if app.Origin != nil {
			app.inputs.Follow()
			err = errors.Join(err, app.Origin.Follow(ctx))
		}
		if e.apps.storage != nil {
			e.apps.storage.forget(id)
		}
	}
	return err
}

// opened returns the open applications.
func (a *apps) opened() (apps []*application) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, app := range a.open {
		apps = append(apps, app)
	}
	return apps
}
