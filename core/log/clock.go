package log

import (
	"sync"
	"time"
)

// maxLead is the maximum lead of an operation's clock over ours.
const maxLead = 2 * time.Second

// hlcOf returns the first HLC of a millisecond.
func hlcOf(t time.Time) HLC { return HLC(max(t.UnixMilli(), 0)) << 16 }

// Clock is the hybrid logical clock of one site. Its times always rise, are above all observed times, and are close to the wall clock if
// that is right. It is safe for concurrent use. The idea is from Kulkarni and others (2014), as CockroachDB uses it.
type Clock struct {
	now func() time.Time

	mu   sync.Mutex
	last HLC
}

// NewClock returns a clock that reads the wall clock from now.
func NewClock(now func() time.Time) *Clock { return &Clock{now: now} }

// Next returns a time above every returned or observed one. If more than 65,536 times fall into one millisecond, or the wall clock is
// behind, it runs ahead of the wall clock.
func (c *Clock) Next() HLC {
	wall := hlcOf(c.now())
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last = max(c.last+1, wall)
	return c.last
}

// Observe makes later times exceed at.
func (c *Clock) Observe(at HLC) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last = max(c.last, at)
}

// Accept observes another site's time and returns the time for its operation. That is at, or ours if at is more than two seconds ahead, so
// that a wrong clock does not win permanently.
func (c *Clock) Accept(at HLC) HLC {
	limit := hlcOf(c.now().Add(maxLead)) | (1<<16 - 1)
	if at > limit {
		return c.Next()
	}
	c.Observe(at)
	return at
}
