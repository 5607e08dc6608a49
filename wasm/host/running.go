package host

import (
	"sync"
	"time"
)

// running holds the running call of each instance, with the time when the call began or last wrote.
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

// wrote records that the running call of in makes progress. A joining replica may write for a long time in one call.
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
