package jobs

import (
	"context"
	"sync"
	"time"
)

// gate pauses other work while calls that go first need the processors. One processor stays free, because such a call also reads, decodes
// and answers. Other work calls the gate between its steps, and may wait in the middle of a picture or a training.
type gate struct {
	workers int

	mu       sync.Mutex
	calls    int           // calls in progress that go first
	other    int           // running pieces of other work
	decrease chan struct{} // closed when calls or other falls; nil: nothing waits for it
}

// After at least workTime of work, other work waits at most waitShare times as long. So it also ends while calls never stop.
const (
	workTime  = time.Millisecond
	longWork  = 10 * time.Millisecond // a longer step counts as longWork
	waitShare = 10
)

// move adds to the numbers of calls that go first and of pieces of other work.
func (g *gate) move(calls, other int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.calls += calls
	g.other += other
	if (calls < 0 || other < 0) && g.decrease != nil {
		close(g.decrease)
		g.decrease = nil
	}
}

// full reports whether a running piece of other work must wait.
func (g *gate) full() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.narrow()
}

func (g *gate) narrow() bool { return g.calls > 0 && g.calls+g.other >= g.workers }

// wait pauses a piece of other work while calls need the processors. worked is the time since it began or last waited. wait returns at once
// if worked is less than workTime or the processors are free.
func (g *gate) wait(worked time.Duration) (waited bool) {
	if worked < workTime || !g.full() {
		return false
	}
	ctx, cancel := context.WithTimeout(context.Background(), waitShare*min(worked, longWork))
	defer cancel()
	g.mu.Lock()
	defer g.mu.Unlock()
	for g.narrow() && ctx.Err() == nil {
		if g.decrease == nil {
			g.decrease = make(chan struct{})
		}
		decrease := g.decrease
		g.other--
		g.mu.Unlock()
		select {
		case <-decrease:
		case <-ctx.Done():
		}
		g.mu.Lock()
		g.other++
	}
	return true
}
