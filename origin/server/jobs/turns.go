package jobs

import (
	"context"
	"slices"
	"sync"
)

// lane is a queue for workers: pictures of small calls before those of large ones, these before frames of videos, and these before
// the background. The front lane has its own workers.
type lane int

const (
	front lane = iota // a picture of a call that has few
	bulk              // a picture of a call that has many
	films             // a frame of a video
	back              // the background
	lanes
)

// patience is the maximum number of workers in a row that pass a waiting lane. The next worker goes to that lane, so that its work
// proceeds on a busy server too.
const patience = 64

// fairQueue hands workers to pictures that wait: the first lane first. In each lane callers take turns, and the pictures of one come in
// their order, so a picture waits for one of each other caller at most.
type fairQueue struct {
	mu      sync.Mutex
	idle    []*worker
	waiting [lanes][]claim          // by lane, in the order of their coming
	served  [lanes]map[string]int64 // by lane and caller that waits: the count of turns at its last one
	count   int64                   // of turns
	passed  [lanes]int              // turns of the lanes before this one while it waited
}

// claim is a picture, or a training, that waits for a worker.
type claim struct {
	caller string
	mine   chan *worker // takes one worker
}

// take waits for a worker for a caller until ctx ends.
func (t *fairQueue) take(ctx context.Context, l lane, caller string) (*worker, error) {
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
func (t *fairQueue) give(w *worker) {
	t.mu.Lock()
	defer t.mu.Unlock()
	l, waits := t.first()
	if !waits {
		t.idle = append(t.idle, w)
		return
	}
	for later := l + 1; later < lanes; later++ {
		if len(t.waiting[later]) > 0 {
			t.passed[later]++
		}
	}
	t.passed[l] = 0
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

// first returns the lane that is served next, and whether something waits at all.
func (t *fairQueue) first() (l lane, waits bool) {
	for other := lanes - 1; other >= front; other-- {
		if len(t.waiting[other]) > 0 {
			if l, waits = other, true; t.passed[other] >= patience {
				break
			}
		}
	}
	return l, waits
}

// remove takes a claim out of a lane. A caller of which nothing else waits is forgotten.
func (t *fairQueue) remove(l lane, i int) {
	caller := t.waiting[l][i].caller
	t.waiting[l] = slices.Delete(t.waiting[l], i, i+1)
	if !slices.ContainsFunc(t.waiting[l], func(c claim) bool { return c.caller == caller }) {
		delete(t.served[l], caller)
	}
}
