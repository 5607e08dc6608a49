package jobs

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sightline-dev/sightline/core/api"
)

// newCrowdWorld returns a handler with two workers. A call "picture" takes 70 ms of one of them, and a call "label" has no picture.
func newCrowdWorld() *waitWorld {
	var g gauge
	w := newWaitWorld(func(o *Options) { o.NewAnalyser = options(&g, 70*time.Millisecond).NewAnalyser })
	w.plan["picture"] = blobs(1)
	return w
}

// crowd makes n equal calls of a caller at once. It returns the number of those that were not refused, and the longest time of a call.
func (w *waitWorld) crowd(ctx context.Context, caller, name string, n int) (answered int, longest time.Duration) {
	var calls sync.WaitGroup
	var mu sync.Mutex
	for range n {
		calls.Go(func() {
			begun := time.Now()
			status := w.call(ctx, caller, name)
			mu.Lock()
			defer mu.Unlock()
			if longest = max(longest, time.Since(begun)); status != 503 {
				answered++
			}
		})
	}
	calls.Wait()
	return answered, longest
}

// TestManyCallsOfOneCallerAreAnswered: 128 calls of one caller at once are all answered. Meanwhile a call of another caller waits for a few
// pictures only, and calls without pictures do not wait.
func TestManyCallsOfOneCallerAreAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newCrowdWorld()
		var done sync.WaitGroup
		done.Go(func() {
			if n, longest := w.crowd(t.Context(), "many", "picture", 128); n != 128 || longest > maxTurn {
				t.Errorf("%d of 128 calls were answered, within %v", n, longest)
			}
		})
		synctest.Wait()
		if n, _, _ := w.Pool.Load(); n != maxCalls || w.Pool.queue.InUse("many") != 128-maxCalls {
			t.Errorf("%d calls are in progress and %d wait, want %d of 128", n, w.Pool.queue.InUse("many"), maxCalls)
		}
		if n, longest := w.crowd(t.Context(), "other", "picture", 1); n != 1 || longest > 3*70*time.Millisecond {
			t.Errorf("another caller's call: %d answered, after %v", n, longest)
		}
		if n, longest := w.crowd(t.Context(), "many", "label", 16); n != 16 || longest != 0 {
			t.Errorf("calls without pictures: %d answered, after %v, want 16 at once", n, longest)
		}
		done.Wait()
		if n, _, _ := w.Pool.Load(); n != 0 || w.Pool.queue.TotalInUse() != 0 {
			t.Errorf("%d calls and %d that wait are left", n, w.Pool.queue.TotalInUse())
		}
	})
}

// TestTurnEnds: a call that gets no place waits until its turn has lasted too long, its own limit ends, or its client disconnects. One caller
// lets at most half of the calls wait that may, and the others are refused at once.
func TestTurnEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newCrowdWorld()
		w.Pool.calls.Force("", maxCalls*2) // by other calls, which never end
		wait := func(limit time.Duration, watch watchFunc, caller string) (status int, after time.Duration) {
			begun := time.Now()
			h := Handler{Service: w, Pool: w.Pool, Timeout: limit}
			status = h.Serve(t.Context(), &api.Request{Method: "POST", Path: "/v2/inputs", Caller: caller, Body: []byte("picture"), Watch: watch}).Status
			return status, time.Since(begun)
		}
		if status, after := wait(time.Minute, nil, "a"); status != 503 || after != maxTurn {
			t.Errorf("without a place: %d after %v, want 503 after %v", status, after, maxTurn)
		}
		if status, after := wait(time.Second, nil, "a"); status != 503 || after != time.Second {
			t.Errorf("with a limit of 1s: %d after %v, want 503 after it", status, after)
		}
		if status := w.Serve(t.Context(), &api.Request{Method: "GET", Path: "/v2/models"}).Status; status == 503 {
			t.Error("a call without a body needs a place")
		}
		leaves := func(ctx context.Context) (context.Context, func()) { return context.WithTimeout(ctx, 2*time.Second) }
		if status, after := wait(time.Minute, leaves, "a"); status != 503 || after != 2*time.Second {
			t.Errorf("a client that disconnects after 2s: %d after %v", status, after)
		}

		var waits atomic.Int64
		var calls sync.WaitGroup
		for range maxQueue {
			calls.Go(func() {
				if _, after := wait(time.Minute, nil, "many"); after > 0 {
					waits.Add(1)
				}
			})
		}
		synctest.Wait()
		if w.Pool.Full("many") == nil || w.Pool.Full("other") != nil {
			t.Errorf("Full = %v, for another caller %v", w.Pool.Full("many"), w.Pool.Full("other"))
		}
		calls.Wait()
		if n := waits.Load(); n != maxQueue/2 {
			t.Errorf("%d calls of one caller have waited, want %d", n, maxQueue/2)
		}
		if w.Pool.queue.TotalInUse() != 0 || w.Pool.brief.TotalInUse() != 0 {
			t.Errorf("%d calls wait and %d are in progress at the end", w.Pool.queue.TotalInUse(), w.Pool.brief.TotalInUse())
		}
	})
}
