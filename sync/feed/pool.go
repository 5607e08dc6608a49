package feed

import (
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/sightline-dev/sightline/core/shares"
	"github.com/sightline-dev/sightline/sync/wire"
)

// pool contains values of one kind that are expensive to make and that many calls read: the open snapshots. Accounts share its
// places.
//
//	call ──▶ a value that fits? ──yes──▶ read, release
//	            │ no
//	            └──▶ is one being made? ──yes──▶ wait for it, look again
//	                    │ no
//	                    └──▶ quota ─▶ place ─▶ make ──▶ read, release
//
// A pool has the newest value of each application and group, and the one before it, which readers may still be downloading. No value gives
// its place to another value while calls read it, that is until recentUse after the last call.
type pool[V any] struct {
	name   string         // of its values, in refusals
	places *shares.Shares // by account
	quota  *quota         // of made values
	idle   time.Duration  // maximum time without a use
	age    time.Duration  // maximum age
	end    func(*V) error // closes a value

	mu     sync.Mutex
	open   []*pooled[V]            // oldest first
	making map[group]chan struct{} // closed when the value is made or could not be made
}

// group identifies values that can replace each other.
type group struct {
	app     string
	vectors wire.Vectors
}

// pooled is a value in a pool.
type pooled[V any] struct {
	value     V
	group     group
	account   string
	createdAt time.Time
	used      time.Time
	readers   int
	dropped   bool
}

// recentUse is the time after its last use in which a value keeps its place.
const recentUse = time.Minute

// find returns the newest value that want accepts, with one more reader; nil: none. The caller must call release.
func (p *pool[V]) find(now time.Time, want func(*pooled[V]) bool) *pooled[V] {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.look(now, want)
}

// look is find for a caller that holds mu.
func (p *pool[V]) look(now time.Time, want func(*pooled[V]) bool) *pooled[V] {
	for _, x := range slices.Backward(p.open) {
		if want(x) {
			x.readers++
			x.used = now
			return x
		}
	}
	return nil
}

// get is find among the values of a group. If there is none, get makes one for the application of a call. Errors: a *wire.Refusal over the
// quota or without a place, those of the context and those of build.
func (p *pool[V]) get(c *call, g group, want func(*pooled[V]) bool, build func() (V, error)) (*pooled[V], error) {
	for {
		p.mu.Lock()
		if x := p.look(c.now, func(x *pooled[V]) bool { return x.group == g && want(x) }); x != nil {
			p.mu.Unlock()
			return x, nil
		}
		made := p.making[g]
		if made == nil {
			err := p.enter(c, g)
			p.mu.Unlock()
			if err != nil {
				return nil, err
			}
			return p.make(c, g, build)
		}
		p.mu.Unlock()
		select {
		case <-made:
		case <-c.ctx.Done():
			return nil, c.ctx.Err()
		}
	}
}

// enter takes a place for a value of a group and notes that it is being made. The caller must hold mu.
func (p *pool[V]) enter(c *call, g group) error {
	if err := p.quota.take(c, 0, c.now, p.name); err != nil {
		return err
	}
	if err := p.makeRoom(c, g); err != nil {
		return err
	}
	if err := p.quota.take(c, 1, c.now, p.name); err != nil {
		p.places.Give(c.account, 1)
		return err
	}
	if p.making == nil {
		p.making = map[group]chan struct{}{}
	}
	p.making[g] = make(chan struct{})
	return nil
}

// makeRoom takes a place for the account of a call. It drops values that are too old, those of the group except the newest, and, if there is
// no place, the account's values that were not used for the longest time. It drops no value in use. The caller must hold mu.
func (p *pool[V]) makeRoom(c *call, g group) (failed error) {
	newest := true
	for _, x := range slices.Backward(slices.Clone(p.open)) {
		old := p.isOld(x, c.now)
		if x.group == g && !old {
			old, newest = !newest && !x.inUse(c.now), false
		}
		if old {
			failed = errors.Join(failed, p.drop(x))
		}
	}
	for !p.places.Try(c.account, 1) {
		var idlest *pooled[V]
		for _, x := range p.open {
			if x.account == c.account && !x.inUse(c.now) && (idlest == nil || x.used.Before(idlest.used)) {
				idlest = x
			}
		}
		if idlest == nil {
			return errors.Join(failed, busy("too many "+p.name+" at once"))
		}
		failed = errors.Join(failed, p.drop(idlest))
	}
	if failed != nil {
		p.places.Give(c.account, 1)
	}
	return failed
}

// make makes a value in a place that was taken, with one reader.
func (p *pool[V]) make(c *call, g group, build func() (V, error)) (_ *pooled[V], err error) {
	x := &pooled[V]{group: g, account: c.account, createdAt: c.now, used: c.now, readers: 1}
	made := false
	defer func() { // also if build panics
		p.mu.Lock()
		defer p.mu.Unlock()
		if made {
			p.open = append(p.open, x)
		} else {
			p.places.Give(x.account, 1)
		}
		close(p.making[g])
		delete(p.making, g)
	}()
	if x.value, err = build(); err != nil {
		return nil, err
	}
	made = true
	return x, nil
}

// inUse reports whether calls read a value.
func (x *pooled[V]) inUse(now time.Time) bool {
	return x.readers > 0 || now.Sub(x.used).Abs() < recentUse
}

// isOld reports whether a value must be dropped. A clock that is set back ends values, too.
func (p *pool[V]) isOld(x *pooled[V], now time.Time) bool {
	return now.Sub(x.used).Abs() > p.idle || now.Sub(x.createdAt).Abs() > p.age
}

// drop removes a value. Its last reader closes it. The caller must hold mu.
func (p *pool[V]) drop(x *pooled[V]) error {
	p.open = slices.DeleteFunc(p.open, func(o *pooled[V]) bool { return o == x })
	x.dropped = true
	return p.finish(x)
}

// finish closes a dropped value without readers, and returns its place. The caller must hold mu.
func (p *pool[V]) finish(x *pooled[V]) error {
	if !x.dropped || x.readers > 0 {
		return nil
	}
	p.places.Give(x.account, 1)
	return p.end(&x.value)
}

// release uncounts a reader.
func (p *pool[V]) release(x *pooled[V]) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	x.readers--
	return p.finish(x)
}

// sweep drops values that were not used for a while or are too old, and those of deleted applications.
func (p *pool[V]) sweep(now time.Time, isDeleted func(app string) bool) (failed error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, x := range slices.Clone(p.open) {
		if p.isOld(x, now) || isDeleted(x.group.app) {
			failed = errors.Join(failed, p.drop(x))
		}
	}
	return failed
}

// close closes all values. No call may be in progress.
func (p *pool[V]) close() (failed error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, x := range slices.Clone(p.open) {
		failed = errors.Join(failed, p.drop(x))
	}
	return failed
}
