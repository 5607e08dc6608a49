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

// turns hands workers to pictures that wait: the front lane first. In each lane callers take turns, and the pictures of one come in
// their order, so a picture waits for one of each other caller at most.
type turns struct {
	mu      sync.Mutex
	idle    []*worker
	waiting [2][]claim          // by lane, in the order of their coming
	served  [2]map[string]int64 // by lane and caller that waits: the count of turns at its last one
	count   int64               // of turns
	passed  int                 // turns of the front lane since the back lane had one
}

// claim is a picture, or a training, that waits for a worker.
type claim struct {
	caller string
	mine   chan *worker // takes one worker
}

// take waits for a worker for a caller until ctx ends.
func (t *turns) take(ctx context.Context, l lane, caller string) (*worker, error) {
	t.mu.Lock()
	if n := len(t.idle); n > 0 { // then nobody waits
		w := t.idle[n-1]
		t.idle = t.idle[:n-1]
		t.mu.Unlock()
		return w, nil
	}
	mine := make(chan *worker, 1)
	t.waiting[l] = append(t.waiting[l], claim{caller, mine})
	t.mu.Unlock()
	select {
	case w := <-mine:
		return w, nil
	case <-ctx.Done():
	}
	t.mu.Lock()
	i := slices.IndexFunc(t.waiting[l], func(c claim) bool { return c.mine == mine })
	if i >= 0 {
		t.remove(l, i)
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
	next := 0
	for i, c := range t.waiting[l] {
		if t.served[l][c.caller] < t.served[l][t.waiting[l][next].caller] {
			next = i
		}
	}
	c := t.waiting[l][next]
	t.count++
	if t.served[l] == nil {
		t.served[l] = map[string]int64{}
	}
	t.served[l][c.caller] = t.count
	t.remove(l, next)
	c.mine <- w
}

// remove takes a claim out of a lane. A caller of which nothing else waits is forgotten.
func (t *turns) remove(l lane, i int) {
	caller := t.waiting[l][i].caller
	t.waiting[l] = slices.Delete(t.waiting[l], i, i+1)
	if !slices.ContainsFunc(t.waiting[l], func(c claim) bool { return c.caller == caller }) {
		delete(t.served[l], caller)
	}
}
