package log

import (
	"sync"
	"time"
)

// maxLead is the maximum lead of an operation's clock over ours.
const maxLead = 2 * time.Second

// hlcOf is the first HLC of a millisecond.
func hlcOf(t time.Time) HLC { return HLC(max(t.UnixMilli(), 0)) << 16 }

// Clock is the hybrid logical clock of one site: what it gives only rises, is above all that
// it has seen, and is close to the wall clock while that can be trusted. It may be used
// concurrently. The idea is Kulkarni and others' (2014), as CockroachDB uses it.
type Clock struct {
	now func() time.Time

	mu   sync.Mutex
	last HLC
}

// NewClock returns a clock over a wall clock.
func NewClock(now func() time.Time) *Clock { return &Clock{now: now} }

// Next returns a time above every one that was given or seen. When 65,536 of them fall into
// one millisecond, or the wall clock stands behind, it runs ahead.
func (c *Clock) Next() HLC {
	wall := hlcOf(c.now())
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last = max(c.last+1, wall)
	return c.last
}

// Observe takes in a time that was seen.
func (c *Clock) Observe(at HLC) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last = max(c.last, at)
}

// Accept takes in another site's time and returns the one that its operation gets: its own,
// or ours when it is more than two seconds ahead, so that no bad clock wins for ever.
func (c *Clock) Accept(at HLC) HLC {
	limit := hlcOf(c.now().Add(maxLead)) | (1<<16 - 1)
	if at > limit {
		return c.Next()
	}
	c.Observe(at)
	return at
}
