package jobs

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/auth"
	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/shares"
)

const downloadTime = 30 * time.Second // time of a slow URL

// waitWorld is a handler whose calls have the jobs in plan that the body of the request names. Slow URLs answer after downloadTime.
type waitWorld struct {
	*Handler
	plan map[string][]api.Job
	slow atomic.Int64 // downloads of slow URLs in progress
	peak atomic.Int64
}

func newWaitWorld(change func(*Options)) *waitWorld {
	w := &waitWorld{plan: map[string][]api.Job{}}
	var g gauge
	o := options(&g, 0)
	o.Workers, o.Fetches = 2, 64
	o.Fetch = func(ctx context.Context, _ catalog.AppID, url string) ([]byte, error) {
		if !strings.HasPrefix(url, "http://slow") {
			return []byte("picture"), nil
		}
		if n := w.slow.Add(1); n > w.peak.Load() {
			w.peak.Store(n)
		}
		defer w.slow.Add(-1)
		select {
		case <-time.After(downloadTime): // virtual
			return nil, errors.New("timeout")
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	if change != nil {
		change(&o)
	}
	w.Handler = &Handler{Service: w, Pool: New(o)}
	return w
}

// Begin implements [Service].
func (w *waitWorld) Begin(_ context.Context, r *api.Request) *api.Exchange {
	jobs := append([]api.Job(nil), w.plan[string(r.Body)]...)
	for i := range jobs {
		jobs[i].Caller = r.Caller
	}
	return api.NewExchange(jobs, func(results []api.Result) ([]api.Job, api.Response, bool) {
		failed := 0
		for i := range results {
			if results[i].Err != nil {
				failed++
			}
		}
		if failed == len(results) {
			return nil, api.Response{Status: 400}, true
		}
		return nil, api.Response{Status: 200}, true
	})
}

// Refuse implements [Service].
func (w *waitWorld) Refuse(_ *api.Request, err error) api.Response {
	if errors.Is(err, auth.ErrRate) {
		return api.Response{Status: http.StatusTooManyRequests}
	}
	return api.Response{Status: http.StatusServiceUnavailable}
}

// call sends a request of an application with a name in plan as its body, and returns the status.
func (w *waitWorld) call(ctx context.Context, app, name string) int {
	return w.Serve(ctx, &api.Request{Method: "POST", Path: "/v2/models/m/outputs", App: app, Caller: app, Body: []byte(name)}).Status
}

func slowURLs(n int) []api.Job {
	jobs := make([]api.Job, n)
	for i := range jobs {
		jobs[i].URL = "http://slow"
	}
	return jobs
}

func blobs(n int) []api.Job {
	jobs := make([]api.Job, n)
	for i := range jobs {
		jobs[i].Blob = blob.Sum([]byte("x"))
	}
	return jobs
}

// TestSlowURLsDelayNoOtherApplication sends one application's calls with slow URLs, in numbers that once filled a limit. All of them wait.
// Meanwhile another application's calls with base64 and with a URL are answered at once, and the server is ready.
func TestSlowURLsDelayNoOtherApplication(t *testing.T) {
	for name, attack := range map[string]struct {
		calls int
		jobs  []api.Job
	}{
		"pictures": {4, slowURLs(128)},
		"calls":    {32, slowURLs(8)},
		"base64":   {5, append(slowURLs(1), blobs(127)...)},
		"first":    {5, append(slowURLs(16), blobs(112)...)},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWaitWorld(nil)
				w.plan["attack"], w.plan["base64"], w.plan["url"] = attack.jobs, blobs(128), []api.Job{{URL: "http://fast"}}
				ctx, stop := context.WithCancel(t.Context())
				var answered atomic.Int64
				var calls sync.WaitGroup
				for range attack.calls {
					calls.Go(func() {
						w.call(ctx, "attacker", "attack")
						answered.Add(1)
					})
					synctest.Wait() // base64 pictures are analysed now
				}
				if n := answered.Load(); n != 0 {
					t.Errorf("%d of %d calls with slow URLs were answered at once", n, attack.calls)
				}
				if err := w.Pool.Full("other"); err != nil {
					t.Errorf("Full() = %v while calls wait for slow URLs", err)
				}
				if calls, pictures, _ := w.Pool.Load(); calls != 0 || pictures != 0 {
					t.Errorf("%d calls and %d pictures count as work while all wait for slow URLs", calls, pictures)
				}
				start := time.Now()
				for _, other := range []string{"base64", "url"} {
					if status := w.call(t.Context(), "other", other); status != 200 || time.Since(start) != 0 {
						t.Errorf("another application's call with %s: %d after %v, want 200 at once", other, status, time.Since(start))
					}
				}
				if status := w.call(t.Context(), "attacker", "base64"); status != 200 || time.Since(start) != 0 {
					t.Errorf("the same application's call with base64: %d after %v, want 200 at once", status, time.Since(start))
				}
				stop()
				calls.Wait()
			})
		})
	}
}

// TestManyWaitingCallsAreRefused sends the maximum number of waiting calls of one application. Its next call is refused with status 429.
// Its calls with base64 and the calls of others are not. In the end all places are free.
func TestManyWaitingCallsAreRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWaitWorld(nil)
		w.plan["slow"], w.plan["base64"], w.plan["url"] = slowURLs(128), blobs(1), []api.Job{{URL: "http://fast"}}
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		statuses := make(chan int, 20)
		var calls sync.WaitGroup
		for range 20 {
			calls.Go(func() { statuses <- w.call(ctx, "attacker", "slow") })
		}
		synctest.Wait()
		if n := len(statuses); n != 12 {
			t.Errorf("%d of 20 calls with 128 slow URLs are refused at once, want 12: half of 2,048 places is the application's", n)
		}
		for range len(statuses) {
			if status := <-statuses; status != http.StatusTooManyRequests {
				t.Errorf("a call above the share: %d, want 429", status)
			}
		}
		if status := w.call(ctx, "attacker", "base64"); status != 200 {
			t.Errorf("a call with base64 of the same application: %d, want 200", status)
		}
		if status := w.call(ctx, "other", "url"); status != 200 {
			t.Errorf("a call with a URL of another application: %d, want 200", status)
		}
		if n, peak := w.Pool.Waiting(), w.peak.Load(); n != 1024 || peak != 8 {
			t.Errorf("%d places are taken and %d downloads were under way, want 1,024 and 8", n, peak)
		}
		stop()
		calls.Wait()
		if calls, pictures, _ := w.Pool.Load(); calls != 0 || pictures != 0 || w.Pool.Waiting() != 0 || w.Pool.downloads.TotalInUse() != 0 {
			t.Errorf("%d calls, %d pictures, %d places and %d downloads are left", calls, pictures, w.Pool.Waiting(), w.Pool.downloads.TotalInUse())
		}
	})
}

// TestFullWaitingPlacesRefuseCalls fills all places with waiting calls of another application. The next call is refused with status 503.
func TestFullWaitingPlacesRefuseCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWaitWorld(nil)
		w.Pool.waiting = shares.New(perCall, perCall)
		w.plan["slow"] = slowURLs(1)
		ctx, stop := context.WithCancel(t.Context())
		var first sync.WaitGroup
		first.Go(func() { w.call(ctx, "first", "slow") })
		synctest.Wait()
		if status := w.call(ctx, "second", "slow"); status != http.StatusServiceUnavailable {
			t.Errorf("a call that finds no place: %d, want 503", status)
		}
		stop()
		first.Wait()
	})
}

// TestSlowInputsDelayNoOtherApplication lets background pictures of one application wait for slow URLs. Pictures of another application are
// analysed at once.
func TestSlowInputsDelayNoOtherApplication(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWaitWorld(nil)
		ctx, stop := context.WithCancel(t.Context())
		var slow sync.WaitGroup
		for range 32 {
			slow.Go(func() { w.Pool.RunBackgroundJob(ctx, &api.Job{URL: "http://slow", Caller: "attacker"}) })
		}
		synctest.Wait()
		start := time.Now()
		if r := w.Pool.RunBackgroundJob(ctx, &api.Job{URL: "http://fast", Caller: "other"}); r.Err != nil || time.Since(start) != 0 {
			t.Errorf("another application's picture: %v after %v, want none at once", r.Err, time.Since(start))
		}
		stop()
		slow.Wait()
	})
}

// TestRemoteBlobCountsAsDownload sends calls that wait for pictures that are not stored on the node yet.
func TestRemoteBlobCountsAsDownload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		remote := blob.Sum([]byte("elsewhere"))
		w := newWaitWorld(func(o *Options) {
			o.HasPicture = func(h blob.Hash) bool { return h != remote }
			o.Blob = func(ctx context.Context, h blob.Hash) ([]byte, error) {
				if h == remote {
					<-ctx.Done()
					return nil, api.ErrFetch
				}
				return []byte("blob"), nil
			}
		})
		w.plan["elsewhere"], w.plan["base64"] = []api.Job{{Blob: remote}}, blobs(1)
		ctx, stop := context.WithCancel(t.Context())
		var calls sync.WaitGroup
		for range 100 {
			calls.Go(func() { w.call(ctx, "first", "elsewhere") })
		}
		synctest.Wait()
		if status := w.call(t.Context(), "second", "base64"); status != 200 {
			t.Errorf("a call with base64 while others wait for pictures from elsewhere: %d, want 200", status)
		}
		stop()
		calls.Wait()
	})
}

// TestFloodOfOneCaller sends 100 calls of 128 pictures of one application. Most are refused after they have waited. Each picture takes a second of a worker. Calls
// of another application are accepted, and answered within three seconds.
func TestFloodOfOneCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g gauge
		w := newWaitWorld(func(o *Options) { o.NewAnalyser = options(&g, time.Second).NewAnalyser })
		w.plan["flood"], w.plan["one"] = blobs(128), blobs(1)
		ctx, stop := context.WithCancel(t.Context())
		statuses := make(chan int, 100)
		var calls sync.WaitGroup
		for range cap(statuses) {
			calls.Go(func() { statuses <- w.call(ctx, "attacker", "flood") })
		}
		time.Sleep(2 * maxTurn) // virtual: for a place, and for places of pictures
		synctest.Wait()
		if n := len(statuses); n < 90 || n == cap(statuses) {
			t.Errorf("%d of %d calls of one application were refused, want most", n, cap(statuses))
		}
		if err := w.Pool.Full("other"); err != nil {
			t.Errorf("Full() = %v for another application", err)
		}
		for range 3 {
			time.Sleep(100 * time.Millisecond) // virtual: the worker has begun a picture
			start := time.Now()
			if status := w.call(t.Context(), "other", "one"); status != 200 || time.Since(start) > 3*time.Second {
				t.Errorf("another application's call: %d after %v, want 200 within three seconds", status, time.Since(start))
			}
		}
		stop()
		calls.Wait()
		if calls, pictures, _ := w.Pool.Load(); calls != 0 || pictures != 0 {
			t.Errorf("%d calls and %d pictures are left", calls, pictures)
		}
	})
}

// TestPauses lets 100 calls of one caller wait for inputs. Half of the places accept them, and the others do not wait. Another caller's
// call waits, and a paused call does not count as one in progress.
func TestPauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWaitWorld(nil)
		pause := func(caller string) error {
			place, err := w.Pool.enter(t.Context(), caller, nil)
			if err != nil {
				return err
			}
			defer place.leave()
			results, err := w.Pool.run(t.Context(), caller, []api.Job{{Wait: time.Second}}, place)
			return errors.Join(err, results[0].Err)
		}
		refused := make(chan error, 100)
		var calls sync.WaitGroup
		for range cap(refused) {
			calls.Go(func() {
				if err := pause("attacker"); err != nil {
					refused <- err
				}
			})
			synctest.Wait()
		}
		if n := cap(refused) - len(refused); n != maxPauses/2 {
			t.Errorf("%d calls of one caller wait, want %d", n, maxPauses/2)
		}
		if err := <-refused; !errors.Is(err, api.ErrBusy) {
			t.Errorf("a call that does not wait: %v, want ErrBusy", err)
		}
		if inProgress, _, _ := w.Pool.Load(); inProgress != 0 {
			t.Errorf("%d calls are in progress while all pause", inProgress)
		}
		start := time.Now()
		if err := pause("other"); err != nil || time.Since(start) != time.Second {
			t.Errorf("another caller's call: %v after %v, want none after 1s", err, time.Since(start))
		}
		calls.Wait()
		if n, _, _ := w.Pool.Load(); n != 0 || w.Pool.pauses.TotalInUse() != 0 {
			t.Errorf("%d calls and %d pauses are left", n, w.Pool.pauses.TotalInUse())
		}
		ctx, stop := context.WithCancel(t.Context())
		stop()
		if results, err := w.Pool.Run(ctx, []api.Job{{Wait: time.Second}}); err != nil || !errors.Is(results[0].Err, api.ErrBusy) {
			t.Errorf("a pause while the server stops: %v, %v", results, err)
		}
	})
}
