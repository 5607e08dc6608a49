package jobs

import (
	"context"
	"slices"
	"sync"
)

// lane is who waits for a worker: requests before what nobody waits for.
type lane int

const (
	front lane = iota // a request waits
	back              // nobody does
)

// patience is how many workers in a row go to requests while something in the background
// waits; the next one goes there, so that a busy server still gets on with it.
const patience = 64

// turns hands workers to whoever waits: the front lane first, each lane in the order of its
// coming.
type turns struct {
	mu      sync.Mutex
	idle    []*worker
	waiting [2][]chan *worker // by lane; each takes one worker
	passed  int               // turns of the front lane since the back lane had one
}

// take waits for a worker until ctx ends.
func (t *turns) take(ctx context.Context, l lane) (*worker, error) {
	t.mu.Lock()
	if n := len(t.idle); n > 0 { // then nobody waits
		w := t.idle[n-1]
		t.idle = t.idle[:n-1]
		t.mu.Unlock()
		return w, nil
	}
	mine := make(chan *worker, 1)
	t.waiting[l] = append(t.waiting[l], mine)
	t.mu.Unlock()
	select {
	case w := <-mine:
		return w, nil
	case <-ctx.Done():
	}
	t.mu.Lock()
	i := slices.Index(t.waiting[l], mine)
	if i >= 0 {
		t.waiting[l] = slices.Delete(t.waiting[l], i, i+1)
	}
	t.mu.Unlock()
	if i < 0 { // it came at the last moment
		t.give(<-mine)
	}
	return nil, ctx.Err()
}

// give hands a worker on.
func (t *turns) give(w *worker) {
	t.mu.Lock()
	defer t.mu.Unlock()
	l := front
	if n := len(t.waiting[back]); n > 0 && (len(t.waiting[front]) == 0 || t.passed >= patience) {
		l = back
	}
	if len(t.waiting[l]) == 0 {
		t.idle = append(t.idle, w)
		return
	}
	if l == back {
		t.passed = 0
	} else {
		t.passed++
	}
	next := t.waiting[l][0]
	t.waiting[l] = slices.Delete(t.waiting[l], 0, 1)
	next <- w
}
