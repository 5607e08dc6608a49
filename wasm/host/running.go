package host

import (
	"sync"
	"time"
)

// running are the calls under way, by when they began, or last wrote.
type running struct {
	mu    sync.Mutex
	calls map[*Instance]time.Time
}

func (r *running) enter(in *Instance, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.calls == nil {
		r.calls = map[*Instance]time.Time{}
	}
	r.calls[in] = now
}

// wrote notes that a call that is under way goes forward: a copy that joins writes for as long as it takes.
func (r *running) wrote(in *Instance, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, ok := r.calls[in]; ok {
		r.calls[in] = now
	}
}

func (r *running) leave(in *Instance) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.calls, in)
}

func (r *running) oldest(now time.Time) (d time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, since := range r.calls {
		d = max(d, now.Sub(since))
	}
	return d
}
