package auth

import (
	"container/list"
	"fmt"
	"math"
	"sync"
	"time"
)

// Rate is the permitted frequency of an action. The zero Rate is unlimited.
type Rate struct {
	PerSecond float64
	Burst     int // calls at once after a pause; at least 1 if there is a limit
}

// Limiter limits each of many callers to one rate. It is a set of token buckets, and stores for each only the
// time at which it would be full again (the generic cell rate algorithm of ATM Forum TM 4.0).
//
//	        ├────────── burst ──────────┤
//	──now───┬───────┬───────┬───────────┬──▶ t
//	        │ 1/rate│       full at     │
//	        a call moves "full at" by 1/rate to the right, and is refused beyond the burst
//
// A Limiter remembers a limited number of callers and forgets the one whose last call is the oldest. A forgotten caller has a full
// bucket again. It is safe for concurrent use. A nil Limiter limits nobody.
type Limiter struct {
	rate       Rate
	maxCallers int

	mu     sync.Mutex
	byName map[Hash]*list.Element
	order  *list.List    // of bucket, most recent call first
	last   time.Time     // time of the last call, on the limiter's own clock
	back   time.Duration // difference to the time of callers, after that was set back
}

type bucket struct {
	name Hash
	full time.Time // time at which the bucket is full
}

// NewLimiter returns a limiter that remembers at most the given number of callers, about 200 bytes each. It
// returns nil if r is unlimited.
func NewLimiter(r Rate, maxCallers int) *Limiter {
	if !(r.PerSecond > 0) {
		return nil
	}
	r.Burst = max(r.Burst, 1)
	return &Limiter{rate: r, maxCallers: max(maxCallers, 1), byName: map[Hash]*list.Element{}, order: list.New()}
}

// longest is the maximum time in which a bucket fills, in nanoseconds: 36 years.
const longest = 1 << 60

// Take counts one call of a caller and returns nil. If the caller exceeds the rate, Take returns a [*RateError].
func (l *Limiter) Take(name Hash, now time.Time) error { return l.TakeN(name, 1, now) }

// TakeN counts n calls of a caller if there is room for one. So a caller may exceed the burst once, and then waits longer: a use of any
// size is possible.
func (l *Limiter) TakeN(name Hash, n int64, now time.Time) error {
	if l == nil {
		return nil
	}
	step := time.Duration(min(float64(time.Second)/l.rate.PerSecond, longest))
	room := time.Duration(min(float64(l.rate.Burst)*float64(step), longest))
	l.mu.Lock()
	defer l.mu.Unlock()
	now = l.tick(now)
	e, known := l.byName[name]
	full := now
	if known {
		if b := e.Value.(*bucket); b.full.After(now) {
			full = b.full
		}
	}
	if wait := full.Add(step).Sub(now) - room; wait > 0 {
		return &RateError{Rate: l.rate, Wait: wait}
	}
	l.keep(e, bucket{name, full.Add(time.Duration(min(float64(n)*float64(step), longest)))})
	return nil
}

// longestCall is the maximum time by which calls overtake each other. A clock that goes back further was set back.
const longestCall = time.Minute

// tick returns now on a clock that never runs backwards: if the clock of the callers is set back, full buckets must not become empty. The
// caller holds mu.
func (l *Limiter) tick(now time.Time) time.Time {
	now = now.Add(l.back)
	if d := l.last.Sub(now); d > 0 {
		if d > longestCall {
			l.back += d
		}
		now = l.last
	}
	l.last = now
	return now
}

func (l *Limiter) keep(e *list.Element, b bucket) {
	if e != nil {
		*e.Value.(*bucket) = b
		l.order.MoveToFront(e)
		return
	}
	if l.order.Len() >= l.maxCallers {
		last := l.order.Remove(l.order.Back()).(*bucket)
		delete(l.byName, last.name)
	}
	l.byName[b.name] = l.order.PushFront(&b)
}

// RateError is an ErrRate with the time to wait.
type RateError struct {
	Rate Rate          // zero: the limit is the host's
	Wait time.Duration // time until the next call can succeed
}

// Seconds returns the wait in whole seconds, at least one.
func (e *RateError) Seconds() int64 { return max(1, int64(math.Ceil(e.Wait.Seconds()))) }

func (e *RateError) Error() string {
	if e.Rate == (Rate{}) {
		return fmt.Sprintf("%v; try again in %d s", ErrRate, e.Seconds())
	}
	return fmt.Sprintf("%v: at most %v requests per second, and %d at once; try again in %d s",
		ErrRate, e.Rate.PerSecond, e.Rate.Burst, e.Seconds())
}

// Unwrap returns ErrRate, for errors.Is.
func (e *RateError) Unwrap() error { return ErrRate }
