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
	Burst     int // at once, after a pause; at least 1 where there is a limit
}

// Limiter holds each of many callers to one rate: token buckets, of which only the moment is kept
// at which each would be full again (the generic cell rate algorithm of ATM Forum TM 4.0).
//
//	        ├────────── burst ──────────┤
//	──now───┬───────┬───────┬───────────┬──▶ t
//	        │ 1/rate│       full at     │
//	        a call moves "full at" by 1/rate to the right, and is refused beyond the burst
//
// The callers that asked last are remembered, up to a bound: one that is forgotten has a full
// bucket again. It is safe for concurrent use; nil limits nobody.
type Limiter struct {
	rate Rate
	most int

	mu     sync.Mutex
	byName map[Hash]*list.Element
	order  *list.List // of bucket, the one that asked last first
}

type bucket struct {
	name Hash
	full time.Time // when it is
}

// NewLimiter makes a limiter that remembers at most so many callers, about 200 bytes each. It
// is nil for no limit.
func NewLimiter(r Rate, most int) *Limiter {
	if !(r.PerSecond > 0) {
		return nil
	}
	r.Burst = max(r.Burst, 1)
	return &Limiter{rate: r, most: max(most, 1), byName: map[Hash]*list.Element{}, order: list.New()}
}

// longest is the maximum time in which a bucket fills, in nanoseconds: 36 years.
const longest = 1 << 60

// Take lets one call through, or returns a [*RateError].
func (l *Limiter) Take(name Hash, now time.Time) error {
	if l == nil {
		return nil
	}
	step := time.Duration(min(float64(time.Second)/l.rate.PerSecond, longest))
	room := time.Duration(min(float64(l.rate.Burst)*float64(step), longest))
	l.mu.Lock()
	defer l.mu.Unlock()
	e, known := l.byName[name]
	full := now
	if known {
		b := e.Value.(*bucket)
		if latest := now.Add(room); b.full.After(latest) { // the clock was set back
			b.full = latest
		}
		if b.full.After(now) {
			full = b.full
		}
	}
	if wait := full.Add(step).Sub(now) - room; wait > 0 {
		return &RateError{Rate: l.rate, Wait: wait}
	}
	l.keep(e, bucket{name, full.Add(step)})
	return nil
}

func (l *Limiter) keep(e *list.Element, b bucket) {
	if e != nil {
		*e.Value.(*bucket) = b
		l.order.MoveToFront(e)
		return
	}
	if l.order.Len() >= l.most {
		last := l.order.Remove(l.order.Back()).(*bucket)
		delete(l.byName, last.name)
	}
	l.byName[b.name] = l.order.PushFront(&b)
}

// RateError is ErrRate with how long to wait.
type RateError struct {
	Rate Rate          // zero: a host's own
	Wait time.Duration // until the next call may be let through
}

// Seconds is the wait in whole seconds, at least one.
func (e *RateError) Seconds() int64 { return max(1, int64(math.Ceil(e.Wait.Seconds()))) }

func (e *RateError) Error() string {
	if e.Rate == (Rate{}) {
		return fmt.Sprintf("%v; try again in %d s", ErrRate, e.Seconds())
	}
	return fmt.Sprintf("%v: at most %v requests per second, and %d at once; try again in %d s",
		ErrRate, e.Rate.PerSecond, e.Rate.Burst, e.Seconds())
}

// Unwrap makes it an ErrRate.
func (e *RateError) Unwrap() error { return ErrRate }
