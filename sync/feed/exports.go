package feed

import (
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/partition"
	"github.com/sightline-dev/sightline/core/shares"
	"github.com/sightline-dev/sightline/sync/wire"
)

// exports contains the open snapshots, which are expensive to make and which many calls read. Accounts share its places.
//
//	call ──▶ a snapshot that fits? ──yes──▶ read, release
//	            │ no
//	            └──▶ is one being made? ──yes──▶ wait for it, look again
//	                    │ no
//	                    └──▶ quota ─▶ place ─▶ make ──▶ read, release
//
// The newest snapshot of each application and group is open, and the one before it, which readers may still be downloading. No snapshot
// gives its place to another one while calls read it, that is until recentUse after the last call.
type exports struct {
	places *shares.Shares // by account

	mu     sync.Mutex
	open   []*export               // oldest first
	making map[group]chan struct{} // closed when the snapshot is made or could not be made
}

// group identifies snapshots that can replace each other.
type group struct {
	app     string
	vectors wire.Vectors
}

// export is an open snapshot.
type export struct {
	*partition.Export
	manifest []byte
	name     blob.Hash

	group     group
	account   string
	createdAt time.Time
	used      time.Time
	readers   int
	dropped   bool
}

const (
	maxExports   = 64               // open snapshots of all accounts, which share them
	leastExports = 2                // open snapshots that an account may always have while there are places
	keepExport   = 10 * time.Minute // maximum time without a use
	lastExport   = 2 * time.Hour    // maximum age: the store cannot free data of an open snapshot. Most chunks of the next one are the same
	freshExport  = 5 * time.Second  // maximum age of a snapshot that a new reader gets
)

// recentUse is the time after its last use in which a snapshot keeps its place.
const recentUse = time.Minute

// find returns the newest snapshot that want accepts, with one more reader; nil: none. The caller must call release.
func (s *exports) find(now time.Time, want func(*export) bool) *export {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.look(now, want)
}

// look is find for a caller that holds mu.
func (s *exports) look(now time.Time, want func(*export) bool) *export {
	for _, x := range slices.Backward(s.open) {
		if want(x) {
			x.readers++
			x.used = now
			return x
		}
	}
	return nil
}

// get is find among the snapshots of a group. If there is none, get makes one for the application of a call. Errors: a *wire.Refusal over the
// quota or without a place, those of the context and those of build.
func (s *exports) get(c *call, g group, want func(*export) bool, build func() (*export, error)) (*export, error) {
	for {
		s.mu.Lock()
		if x := s.look(c.now, func(x *export) bool { return x.group == g && want(x) }); x != nil {
			s.mu.Unlock()
			return x, nil
		}
		made := s.making[g]
		if made == nil {
			err := s.enter(c, g)
			s.mu.Unlock()
			if err != nil {
				return nil, err
			}
			return s.make(c, g, build)
		}
		s.mu.Unlock()
		select {
		case <-made:
		case <-c.ctx.Done():
			return nil, c.ctx.Err()
		}
	}
}

// enter takes a place for a snapshot of a group and notes that it is being made. The caller must hold mu.
func (s *exports) enter(c *call, g group) error {
	if err := c.f.meters.snapshots.take(c, 0, c.now, "snapshots"); err != nil {
		return err
	}
	if err := s.makeRoom(c, g); err != nil {
		return err
	}
	_ = c.f.meters.snapshots.take(c, 1, c.now, "snapshots") // which the check permits
	if s.making == nil {
		s.making = map[group]chan struct{}{}
	}
	s.making[g] = make(chan struct{})
	return nil
}

// makeRoom takes a place for the account of a call. It drops snapshots of the group except the newest, and, if there is no place, the account's
// snapshots that were not used for the longest time. It drops no snapshot in use. The caller must hold mu.
func (s *exports) makeRoom(c *call, g group) (failed error) {
	newest := true
	for _, x := range slices.Backward(slices.Clone(s.open)) {
		if x.group == g && !newest && !x.inUse(c.now) {
			failed = errors.Join(failed, s.drop(x))
		}
		newest = newest && x.group != g
	}
	for !s.places.TryAcquire(c.account, 1) {
		var idlest *export
		for _, x := range s.open {
			if x.account == c.account && !x.inUse(c.now) && (idlest == nil || x.used.Before(idlest.used)) {
				idlest = x
			}
		}
		if idlest == nil {
			return errors.Join(failed, busy("too many snapshots at once"))
		}
		failed = errors.Join(failed, s.drop(idlest))
	}
	if failed != nil {
		s.places.Release(c.account, 1)
	}
	return failed
}

// make makes a snapshot in a place that was taken, with one reader.
func (s *exports) make(c *call, g group, build func() (*export, error)) (*export, error) {
	var x *export
	defer func() { // also if build panics
		s.mu.Lock()
		defer s.mu.Unlock()
		if x != nil {
			s.open = append(s.open, x)
		} else {
			s.places.Release(c.account, 1)
		}
		close(s.making[g])
		delete(s.making, g)
	}()
	made, err := build()
	if err != nil {
		return nil, err
	}
	x = made
	x.group, x.account, x.createdAt, x.used, x.readers = g, c.account, c.now, c.now, 1
	return x, nil
}

// inUse reports whether calls read a snapshot.
func (x *export) inUse(now time.Time) bool {
	return x.readers > 0 || now.Sub(x.used).Abs() < recentUse
}

// isOld reports whether a snapshot must be dropped. A clock that is set back ends snapshots, too.
func (x *export) isOld(now time.Time) bool {
	return now.Sub(x.used).Abs() > keepExport || now.Sub(x.createdAt).Abs() > lastExport
}

// drop removes a snapshot. Its last reader closes it. The caller must hold mu.
func (s *exports) drop(x *export) error {
	s.open = slices.DeleteFunc(s.open, func(o *export) bool { return o == x })
	x.dropped = true
	return s.finish(x)
}

// finish closes a dropped snapshot without readers, and returns its place. The caller must hold mu.
func (s *exports) finish(x *export) error {
	if !x.dropped || x.readers > 0 {
		return nil
	}
	s.places.Release(x.account, 1)
	return x.Close()
}

// release uncounts a reader.
func (s *exports) release(x *export) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	x.readers--
	return s.finish(x)
}

// dropIf drops the snapshots that a condition selects.
func (s *exports) dropIf(condition func(*export) bool) (failed error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, x := range slices.Clone(s.open) {
		if condition(x) {
			failed = errors.Join(failed, s.drop(x))
		}
	}
	return failed
}
