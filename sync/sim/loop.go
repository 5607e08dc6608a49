package sim

import (
	"slices"
	"time"
)

// loop is the event queue of a run. Events are ordered by time, and events of the same time by the order in which they were added.
type loop struct {
	now   time.Duration // true time since the beginning, which no party knows
	queue []event
}

type event struct {
	at time.Duration
	do func()
}

// after schedules do at d from now; a negative d counts as 0.
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

// step runs the next event. It returns false if no event is left, or the next one is later than until.
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

// epoch is the time at which all runs begin.
var epoch = time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC)

// clock is the clock of one party: the true time plus skew.
type clock struct {
	loop *loop
	skew time.Duration
}

func (c *clock) now() time.Time { return epoch.Add(c.loop.now + c.skew) }
