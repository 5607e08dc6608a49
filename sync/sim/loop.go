package sim

import (
	"container/heap"
	"time"
)

// loop is the order in which things happen: a queue by time, and among equal times by turn.
type loop struct {
	now   time.Duration // since the beginning, as nobody in the simulation knows it
	turn  uint64
	queue events
}

type event struct {
	at   time.Duration
	turn uint64
	do   func()
}

type events []event

func (q events) Len() int { return len(q) }
func (q events) Less(i, j int) bool {
	return q[i].at < q[j].at || q[i].at == q[j].at && q[i].turn < q[j].turn
}
func (q events) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *events) Push(x any)   { *q = append(*q, x.(event)) }
func (q *events) Pop() any {
	old := *q
	x := old[len(old)-1]
	old[len(old)-1] = event{}
	*q = old[:len(old)-1]
	return x
}

// after has something done later.
func (l *loop) after(d time.Duration, do func()) {
	l.turn++
	heap.Push(&l.queue, event{l.now + max(d, 0), l.turn, do})
}

// step does the next thing, unless nothing is left or it is later than until.
func (l *loop) step(until time.Duration) bool {
	if len(l.queue) == 0 || l.queue[0].at > until {
		return false
	}
	e := heap.Pop(&l.queue).(event)
	l.now = e.at
	e.do()
	return true
}

// epoch is when simulations begin.
var epoch = time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC)

// clock is one party's idea of the time.
type clock struct {
	loop *loop
	skew time.Duration
}

func (c *clock) now() time.Time { return epoch.Add(c.loop.now + c.skew) }
