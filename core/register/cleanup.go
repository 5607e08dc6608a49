package register

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/partition"
)

// cleanup is the state of Step between two calls. It need not survive the process: a register checks all blobs once after Open.
type cleanup struct {
	mu       sync.Mutex   // held during a Step
	pictures blob.Cleaner // zero if the host cleans up pictures
	purge    atomic.Bool  // deleted applications may have data
}

// usable returns the error because of which the register cannot clean up, or nil if it can.
func (r *Register) usable() error {
	switch {
	case r.closed.Load():
		return ErrClosed
	case r.partition == nil:
		return ErrNotOrigin
	}
	return nil
}

// Step does some due background work: it deletes data of deleted applications, and pictures that have expired or whose application was
// deleted. It reports whether more is due.
func (r *Register) Step(ctx context.Context, now time.Time) (more bool, err error) {
	if err := r.usable(); err != nil {
		return false, err
	}
	t := &r.tidy
	t.mu.Lock()
	defer t.mu.Unlock()
	if more, err = r.stepPurge(ctx, now); err != nil {
		return false, fmt.Errorf("deleted applications: %w", err)
	}
	collecting, err := t.pictures.Step(ctx, now)
	if err != nil {
		return false, err
	}
	return more || collecting, ctx.Err()
}

// ScheduleCollect makes the next Steps check all names of pictures and all blobs. They delete the names of deleted applications, and the
// blobs that nothing claims.
func (r *Register) ScheduleCollect() {
	r.tidy.mu.Lock()
	defer r.tidy.mu.Unlock()
	r.tidy.pictures.Restart()
}

// HostedAppDeleted reports whether an application does not exist. IDs are random, so it was deleted. HostedAppDeleted serves as
// blob.HostedOptions.AppDeleted.
func (r *Register) HostedAppDeleted(app blob.AppID) (bool, error) {
	_, err := r.App(catalog.AppID(app).String())
	if errors.Is(err, ErrApplication) {
		return true, nil
	}
	return false, err
}

// References reports whether an input of any application has the picture h, or whether a pending operation or a conflict
// in a replica refers to it. It returns true if it cannot find out. It serves as blob.HostedOptions.References.
func (r *Register) References(h blob.Hash) bool {
	ids, err := r.IDs()
	if err != nil {
		return true
	}
	for _, id := range ids {
		app, err := catalog.ParseAppID(id)
		if err != nil {
			return true
		}
		used := false
		err = catalog.Read(r.o.Store, app).ByBlob(h, func(uint32) bool {
			used = true
			return false
		})
		if err == nil && !used {
			err = partition.NeededPictures(r.o.Store, app, func(claimed blob.Hash) bool {
				used = claimed == h
				return !used
			})
		}
		if used || err != nil {
			return true
		}
	}
	return false
}
