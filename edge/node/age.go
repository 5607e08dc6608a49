package node

import (
	"cmp"
	"fmt"
	"sync"
	"time"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/auth"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/register"
)

// keyAge is the time since the origin last confirmed an application's keys.
//
//	heard ────────── max stale ─────────────── 7 days ────────▶
//	  reads and writes   │      reads alone       │   nothing
//
// It only grows until the origin is heard, whatever happens to the clock. It grows by the time between two checks, by the monotonic clock
// or the wall clock, whichever advanced further. It is stored at most once a minute, and a start adds the time without checks.
type keyAge struct {
	store kv.Store
	key   []byte

	mu      sync.Mutex
	old     time.Duration // age at the time at
	at      time.Time
	stored  time.Duration // age in the store
	due     time.Duration // growth of the age since it was last stored
	revoked bool          // the age is not stored any more
}

// never is the age before the first contact.
const never = 100 * 365 * 24 * time.Hour

// storeInterval is the time between two writes of an age.
const storeInterval = time.Minute

// openKeyAge reads the age of an application's keys.
func openKeyAge(store kv.Store, app string, now time.Time) (*keyAge, error) {
	id, err := catalog.ParseAppID(app)
	if err != nil {
		return nil, err
	}
	a := &keyAge{store: store, key: id.LocalKey("heard"), old: never, at: now}
	data, err := kv.Find(store, a.key)
	if data != nil {
		err = a.read(data)
	}
	a.stored = a.old
	a.grow(now)
	return a, err
}

// agedAt is a stored age.
//
//field:message
type agedAt struct {
	old uint64    `wire:"1"` // milliseconds
	at  time.Time `wire:"2,ms"`
}

func (a *keyAge) read(data []byte) error {
	x, err := decodeAgedAt(data)
	a.old = time.Duration(min(x.old, uint64(never/time.Millisecond))) * time.Millisecond
	if !x.at.IsZero() {
		a.at = x.at
	}
	if err != nil {
		return fmt.Errorf("age of keys: %w: %w", kv.ErrCorrupt, err)
	}
	return nil
}

// grow adds the time that has passed. The caller holds mu, unless nobody else has the age yet.
func (a *keyAge) grow(now time.Time) {
	passed := max(now.Sub(a.at), now.Round(0).Sub(a.at.Round(0)), 0)
	a.old = min(a.old+passed, never)
	a.due += passed
	a.at = now
}

// reset sets the age to zero: the origin confirmed the keys at now.
func (a *keyAge) reset(now time.Time) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.grow(now)
	a.old = 0
	return a.persist(a.stored > storeInterval)
}

// look returns the age at now.
func (a *keyAge) look(now time.Time) (time.Duration, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.grow(now)
	return a.old, a.persist(false)
}

// persist stores the age if the last write is at least storeInterval ago. The write need not survive a power cut: the
// previous one does, and has the same effect.
func (a *keyAge) persist(now bool) error {
	if a.revoked || !now && a.due < storeInterval {
		return nil
	}
	a.due = 0
	var b kv.Batch
	b.Put(a.key, encodeAgedAt(nil, &agedAt{uint64(a.old / time.Millisecond), a.at}))
	err := a.store.Apply(&b)
	if err == nil {
		a.stored = a.old
	}
	return err
}

// end stops storing the age, because the application was deleted.
func (a *keyAge) end() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.revoked = true
}

// back undoes end. The age is never, since the origin has not confirmed the keys since.
func (a *keyAge) back() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.revoked {
		a.revoked, a.old, a.stored = false, never, never
	}
}

// admits returns a word for the calls that keys of an age permit: "nothing", "reads", or empty for all calls.
func admits(old, maxStale time.Duration) string {
	switch {
	case old > register.RefuseStale:
		return "nothing"
	case old > cmp.Or(maxStale, register.DefaultMaxStale):
		return "reads"
	}
	return ""
}

// shut returns the error that refuses a call with keys of an age, or nil if the call is permitted.
func shut(old, maxStale time.Duration, r *api.Request) error {
	switch word := admits(old, maxStale); {
	case word == "nothing":
		return fmt.Errorf("%w: no contact with the origin for more than %v, so keys cannot be verified", auth.ErrKeysUnverified, register.RefuseStale)
	case word == "reads" && api.Writes(r.Method, r.Path):
		return fmt.Errorf("%w: no contact with the origin for more than %v; reads work and earlier writes are safe", auth.ErrWritesSuspended, cmp.Or(maxStale, register.DefaultMaxStale))
	}
	return nil
}
