package jobs

import (
	"context"
	"sync"
	"time"
)

// gate holds back other work while calls that go first need the processors. One processor stays free, because such a call also reads, decodes
// and answers. Other work asks the gate between its steps, and waits in the middle of a picture or a training.
type gate struct {
	workers int

	mu    sync.Mutex
	calls int           // calls under way that go first
	other int           // pieces of other work that run
	fewer chan struct{} // closed when there are fewer of either; nil: nothing waits for it
}

// Other work waits after each workTime for at most waitShare times as long, so that it also ends while there are calls all the time.
const (
	workTime  = time.Millisecond
	longWork  = 10 * time.Millisecond // a longer step counts as this
	waitShare = 10
)

// move changes the numbers of calls that go first and of pieces of other work.
func (g *gate) move(calls, other int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.calls += calls
	g.other += other
	if (calls < 0 || other < 0) && g.fewer != nil {
		close(g.fewer)
		g.fewer = nil
	}
}

// full reports whether one of the pieces of other work that run has to wait.
func (g *gate) full() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.narrow()
}

func (g *gate) narrow() bool { return g.calls > 0 && g.calls+g.other >= g.workers }

// wait holds back a piece of other work that has worked for a time since it began or waited last. It returns at once if the piece has not
// worked for workTime, or may continue.
func (g *gate) wait(worked time.Duration) (waited bool) {
	if worked < workTime || !g.full() {
		return false
	}
	ctx, cancel := context.WithTimeout(context.Background(), waitShare*min(worked, longWork))
	defer cancel()
	g.mu.Lock()
	defer g.mu.Unlock()
	for g.narrow() && ctx.Err() == nil {
		if g.fewer == nil {
			g.fewer = make(chan struct{})
		}
		fewer := g.fewer
		g.other--
		g.mu.Unlock()
		select {
		case <-fewer:
		case <-ctx.Done():
		}
		g.mu.Lock()
		g.other++
	}
	return true
}
