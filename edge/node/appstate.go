package node

import (
	"context"
	"errors"
	"time"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/register"
)

// loadAppRecord caches the parts of an application's record that every call needs.
func (c *replicaSet) loadAppRecord(one *appReplica) error {
	record, err := catalog.Read(c.store, catalog.Control).App(one.app)
	if err != nil && !errors.Is(err, catalog.ErrNotFound) {
		return err
	}
	trust, err := catalog.Read(c.store, catalog.Control).TrustOf(one.app)
	if err != nil {
		return err
	}
	one.mu.Lock()
	defer one.mu.Unlock()
	one.stale, one.trust, one.account = time.Duration(record.MaxStale)*time.Second, trust, record.Owner
	return nil
}

// applyAppRecord stores an app record that does not delete its application. The origin has no newer one.
func (c *replicaSet) applyAppRecord(ctx context.Context, one *appReplica, seq uint64, data []byte) error {
	one.applying.Lock()
	defer one.applying.Unlock()
	if err := one.age.reset(c.now()); err != nil {
		return err
	}
	if err := register.ApplyAppRecord(ctx, c.store, one.app, seq, data); err != nil {
		return err
	}
	return c.loadAppRecord(one)
}

// forget stops storing the state of a deleted application.
func (one *appReplica) forget() {
	one.age.end()
	one.calls.end()
	one.mu.Lock()
	defer one.mu.Unlock()
	one.account = ""
}

// back undoes forget when the origin gives the edge the application again.
func (one *appReplica) back() {
	one.age.back()
	one.calls.back()
}

// admit returns the error that refuses a call here, or nil if the call is permitted.
func (c *replicaSet) admit(ctx context.Context, app string, r *api.Request) error {
	one := c.of(app)
	if one == nil {
		return nil // the application belongs to this edge
	}
	return shut(one.keyAge(c), one.maxStale(), r)
}

// keyAge returns the time since the origin last confirmed the application's keys.
func (one *appReplica) keyAge(c *replicaSet) time.Duration {
	old, err := one.age.look(c.now())
	if err != nil {
		c.log.Warn("cannot store the age of keys", "app", one.app, "error", err)
	}
	return old
}

func (one *appReplica) maxStale() time.Duration {
	one.mu.Lock()
	defer one.mu.Unlock()
	return one.stale
}
