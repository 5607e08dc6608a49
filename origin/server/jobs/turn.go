package jobs

import (
	"context"
	"fmt"
	"time"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/shares"
)

// Limits of calls that wait for their turn.
const (
	maxQueue = 1024            // calls that wait
	maxTurn  = 5 * time.Second // for which a call waits
)

// turn is the place of a call in the pool. A call first has one of the places without pictures. If it turns out to have pictures, it moves to one
// of the places with pictures, so a call without pictures never waits behind pictures.
//
//	Enter ──▶ p.brief ──▶ no pictures: answer
//	               └────▶ p.calls ──▶ pictures
type turn struct {
	pool   *Pool
	caller string
	places *shares.Shares // brief or calls of the pool
}

// watchFunc returns a context that ends when the client of a call disconnects, until stop is called. See [api.Request].
type watchFunc func(ctx context.Context) (watched context.Context, stop func())

// enter gives a call of the caller a place, for which it may wait. watch may be nil. The error wraps api.ErrBusy.
func (p *Pool) enter(ctx context.Context, caller string, watch watchFunc) (*turn, error) {
	t := &turn{p, caller, p.brief}
	return t, t.take(ctx, watch)
}

// toPictures moves the call to the places with pictures.
func (t *turn) toPictures(ctx context.Context, watch watchFunc) error {
	if t.places == t.pool.calls {
		return nil
	}
	t.leave()
	t.places = t.pool.calls
	return t.take(ctx, watch)
}

// take takes a place. If it returns an error, the call has no place until the next take.
func (t *turn) take(ctx context.Context, watch watchFunc) (err error) {
	p := t.pool
	if t.places.TryAcquire(t.caller, 1) {
		return nil
	}
	defer func() {
		if err != nil {
			t.places = nil
		}
	}()
	busy := fmt.Errorf("%d calls are in progress, %d of the same caller: %w", t.places.TotalInUse(), t.places.InUse(t.caller), api.ErrBusy)
	if !p.queue.TryAcquire(t.caller, 1) {
		return busy
	}
	defer p.queue.Release(t.caller, 1)
	if watch != nil {
		watched, stop := watch(ctx)
		defer stop()
		ctx = watched
	}
	if !takeInTurn(ctx, t.places, t.caller, 1) {
		return busy
	}
	return nil
}

// takeInTurn takes n places for a caller, and reports whether it took them before its turn ended.
func takeInTurn(ctx context.Context, s *shares.Shares, caller string, n int64) bool {
	if s.TryAcquire(caller, n) { // without a timer
		return true
	}
	ctx, stop := context.WithTimeout(ctx, maxTurn)
	defer stop()
	return s.Acquire(ctx, caller, n) == nil
}

// leave returns the place.
func (t *turn) leave() {
	if t.places != nil {
		t.places.Release(t.caller, 1)
	}
}

// pause returns the place until proceed is called, which takes it again without waiting. A nil turn has no place.
func (t *turn) pause() (proceed func()) {
	if t == nil {
		return func() {}
	}
	t.places.Release(t.caller, 1)
	return func() { t.places.Force(t.caller, 1) }
}
