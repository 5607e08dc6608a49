package jobs

import (
	"context"
	"fmt"
	"time"

	"github.com/sightline-dev/sightline/core/api"
)

// maxPauses is the number of calls that wait for the analysis of an input.
const maxPauses = 128

// isPause reports whether the jobs of a call are a pause.
func isPause(jobs []api.Job) bool { return len(jobs) == 1 && jobs[0].Wait > 0 }

// pause lets a call wait for the analysis of an input. Meanwhile the pool does not count it as a call. The error wraps api.ErrBusy if the
// caller holds too many of the places, and api.ErrTimeout if ctx ends.
func (p *Pool) pause(ctx context.Context, caller string, d time.Duration, t *turn) error {
	if !p.pauses.TryAcquire(caller, 1) {
		return fmt.Errorf("too many calls wait for inputs: %w", api.ErrBusy)
	}
	defer p.pauses.Release(caller, 1)
	defer t.pause()()
	paused, stop := context.WithTimeout(ctx, d)
	defer stop()
	<-paused.Done()
	return gaveUp(ctx)
}
