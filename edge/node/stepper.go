package node

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/origin/server/cli"
	"github.com/sightline-dev/sightline/origin/server/synclink"
	"github.com/sightline-dev/sightline/sync/replica"
	"github.com/sightline-dev/sightline/wasm/host"
)

// errReplaced ends a link whose machine no longer exists, because its instance died or was closed. The next machine needs another
// link, since the outstanding answers belong to requests that it has not sent.
var errReplaced = errors.New("the application's instance was replaced")

// errSnapshotInstalled is errReplaced after the host installed a snapshot: the next link begins at once.
var errSnapshotInstalled = fmt.Errorf("%w: a snapshot was installed", errReplaced)

// stepper is the state machine in an application's instance.
type stepper struct {
	ctx   context.Context
	fleet *host.Fleet
	one   *appReplica
	c     *replicaSet
	begun bool
}

var _ synclink.Stepper = (*stepper)(nil)

// Step implements [synclink.Stepper].
func (s *stepper) Step(_ time.Time, e replica.Event) ([]replica.Effect, error) {
	done, err := s.fleet.Sync(s.ctx, s.one.app, e)
	_, stop := e.(replica.Stop)
	if err == nil && s.begun && !stop && done.Status.Phase == replica.Stopped {
		return nil, errReplaced
	}
	if err != nil {
		return nil, fmt.Errorf("instance: %w", errors.Join(api.ErrInternal, err))
	}
	s.begun = !stop
	s.one.mu.Lock()
	before := s.one.status
	s.one.status = done.Status
	if s.one.firstSync != nil && s.one.firstSync.report(&done.Status) {
		s.one.firstSync = nil
	}
	s.one.mu.Unlock()
	for _, x := range done.Effects {
		if take, ok := x.(replica.InstallSnapshot); ok {
			return nil, s.take(take)
		}
	}
	if originUnreachable(&done.Status) {
		s.one.giveUp(blob.ErrNotFound)
	}
	if sawOriginData(&before, &done.Status) {
		if err := s.one.age.reset(s.c.now()); err != nil {
			s.c.log.Warn("cannot store the age of keys", "app", s.one.app, "error", err)
		}
	}
	return done.Effects, nil
}

// take installs a snapshot natively, which ends the machine. The next instance has a new one.
func (s *stepper) take(x replica.InstallSnapshot) error {
	if err := s.fleet.ApplySnapshot(s.ctx, s.one.app, x.Manifest); err != nil {
		return fmt.Errorf("snapshot: %w", err)
	}
	return errSnapshotInstalled
}

// place stores a chunk of a snapshot under its final keys.
func (s *stepper) place(ctx context.Context, hash blob.Hash, piece []byte) (bool, error) {
	return s.fleet.Place(ctx, s.one.app, hash, piece)
}

// sawOriginData reports whether a stream of the origin has sent entries, or the end of them. Changes of the keys come before these.
func sawOriginData(before, now *replica.Status) bool {
	return !now.Heard.IsZero() && !now.Heard.Equal(before.Heard)
}

// effect handles the effects that a link does not handle.
func (one *appReplica) effect(x replica.Effect) {
	one.mu.Lock()
	defer one.mu.Unlock()
	switch x := x.(type) {
	case replica.Purge:
		one.own = x.KeepOutbox
	case replica.BlobReady:
		for _, w := range one.waits[x.Blob] {
			w <- x.Err // it has room
		}
		delete(one.waits, x.Blob)
	}
}

// firstSync reports the steps of the first sync of an application in the log.
type firstSync struct {
	c     *replicaSet
	app   string
	begun time.Time
	chunk func(percent int) // reports the progress of the snapshot
}

func (c *replicaSet) newFirstSync(app string) *firstSync {
	c.log.Info("joined application, fetching its data", "app", app)
	return &firstSync{c: c, app: app, begun: c.now(), chunk: cli.NewStepProgress(io.Discard, "", func(percent int) {
		c.log.Info("fetching the application's data", "app", app, "percent", percent)
	})}
}

// report logs the progress of a replica, and reports whether its first sync has ended.
func (f *firstSync) report(s *replica.Status) (ended bool) {
	switch {
	case s.Phase == replica.Current:
		f.c.log.Info("application is in sync", "app", f.app, "seconds", f.c.now().Sub(f.begun).Round(100*time.Millisecond).Seconds())
		return true
	case s.Phase == replica.Rebasing && s.Chunks > 0:
		f.chunk(min(100*s.ChunksDone/s.Chunks, 99))
	case s.Phase == replica.Pulling && s.Head > 0:
		f.chunk(int(min(100*s.Cursor/s.Head, 99)))
	}
	return false
}
