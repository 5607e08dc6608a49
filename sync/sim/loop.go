package sim

import (
	"slices"
	"time"
)

// loop is the order in which things happen: a queue by time, and among equal times in the order in which they were queued.
type loop struct {
	now   time.Duration // since the beginning, as nobody in the simulation knows it
	queue []event
}

type event struct {
	at time.Duration
	do func()
}

// after has something done later.
func (l *loop) after(d time.Duration, do func()) {
	e := event{l.now + max(d, 0), do}
	i, _ := slices.BinarySearchFunc(l.queue, e.at, func(queued event, at time.Duration) int {
		if queued.at <= at {
			return -1
		}
		return 1
	})
	l.queue = slices.Insert(l.queue, i, e)
}

// step does the next thing, unless nothing is left or it is later than until.
func (l *loop) step(until time.Duration) bool {
	if len(l.queue) == 0 || l.queue[0].at > until {
		return false
	}
	e := l.queue[0]
	l.queue = slices.Delete(l.queue, 0, 1)
	l.now = e.at
	e.do()
	return true
}

// epoch is the time at which simulations begin.
var epoch = time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC)

// clock is one party's idea of the time.
type clock struct {
	loop *loop
	skew time.Duration
}

func (c *clock) now() time.Time { return epoch.Add(c.loop.now + c.skew) }
