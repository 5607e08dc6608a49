package jobs

import (
	"context"
	"slices"
	"sync"
)

// lane is a priority of waiting work. Pictures of small calls come first, then pictures of large calls, then frames of videos, then
// background work. The front lane has its own workers.
type lane int

const (
	front lane = iota // a picture of a call with few pictures
	bulk              // a picture of a call with many pictures
	films             // a frame of a video
	back              // background work
	lanes
)

// patience is the maximum number of workers in a row that pass a waiting lane. The next worker goes to that lane, so its work also proceeds
// on a busy server.
const patience = 64

// fairQueue gives workers to waiting pictures, first lane first. In each lane the callers take turns, and the pictures of one caller keep
// their order. So a picture waits for at most one picture of each other caller.
type fairQueue struct {
	mu      sync.Mutex
	idle    []*worker
	waiting [lanes][]claim          // by lane, in order of arrival
	served  [lanes]map[string]int64 // by lane and waiting caller: value of count at the caller's last turn
	count   int64                   // number of turns
	passed  [lanes]int              // turns of earlier lanes while this lane waited
}

// claim is a picture, or other work, that waits for a worker.
type claim struct {
	caller string
	grant  chan *worker // receives one worker
}

// take waits for a worker for a caller until ctx ends. The caller must return the worker with give.
func (t *fairQueue) take(ctx context.Context, l lane, caller string) (*worker, error) {
	t.mu.Lock()
	if n := len(t.idle); n > 0 { // then nothing waits
		w := t.idle[n-1]
		t.idle = t.idle[:n-1]
		t.mu.Unlock()
		return w, nil
	}
	grant := make(chan *worker, 1)
	t.waiting[l] = append(t.waiting[l], claim{caller, grant})
	t.mu.Unlock()
	select {
	case w := <-grant:
		return w, nil
	case <-ctx.Done():
	}
	t.mu.Lock()
	i := slices.IndexFunc(t.waiting[l], func(c claim) bool { return c.grant == grant })
	if i >= 0 {
		t.remove(l, i)
	}
	t.mu.Unlock()
	if i < 0 { // a worker was assigned just before ctx ended
		t.give(<-grant)
	}
	return nil, ctx.Err()
}

// give passes a free worker to the next claim, or keeps it as idle.
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
	c.grant <- w
}

// first returns the lane to serve next. waits is false if nothing waits.
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

// remove removes a claim from a lane. It forgets the turn of a caller without further claims.
func (t *fairQueue) remove(l lane, i int) {
	caller := t.waiting[l][i].caller
	t.waiting[l] = slices.Delete(t.waiting[l], i, i+1)
	if !slices.ContainsFunc(t.waiting[l], func(c claim) bool { return c.caller == caller }) {
		delete(t.served[l], caller)
	}
}
