package jobs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/predict"
	"github.com/sightline-dev/sightline/core/predict/raster"
	"github.com/sightline-dev/sightline/core/shares"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fake analyses a picture in the time duration, and returns the length of its bytes as the value.
type fake struct {
	duration time.Duration
	busy     *atomic.Int64 // analyses in progress
	peak     *atomic.Int64 // maximum of busy
	limits   raster.Limits
	used     atomic.Bool
}

func (f *fake) Analyse(picture []byte, _ raster.Crop, _ predict.Want) (predict.Analysis, error) {
	if f.used.Swap(true) {
		panic("one analyser is used by two threads")
	}
	defer f.used.Store(false)
	if n := f.busy.Add(1); n > f.peak.Load() {
		f.peak.Store(n)
	}
	defer f.busy.Add(-1)
	switch {
	case bytes.Equal(picture, []byte("panic")):
		f.used.Store(true) // it must never be used again
		defer f.used.Store(true)
		panic("a bug")
	case bytes.Equal(picture, []byte("bad")):
		return predict.Analysis{}, raster.ErrCorrupt
	case bytes.Equal(picture, []byte("slow")):
		for !f.limits.Expired() {
			time.Sleep(10 * time.Millisecond) // virtual
		}
		return predict.Analysis{}, raster.ErrExpired
	}
	for left := f.duration; left > 0; left -= longWork {
		f.limits.Pause()
		time.Sleep(min(left, longWork)) // virtual
	}
	return predict.Analysis{General: []float32{float32(len(picture))}}, nil
}

// AnalysePlanes returns the width as the value.
func (f *fake) AnalysePlanes(p raster.Planes, _ raster.Crop, w predict.Want) (predict.Analysis, error) {
	return f.Analyse(make([]byte, p.Width), raster.Crop{}, w)
}

// AnalyseFrame returns the brightness of the first pixel as the value.
func (f *fake) AnalyseFrame(frames *raster.Frames, w predict.Want) (predict.Analysis, error) {
	img, err := frames.Image(raster.View{Width: 1, Height: 1})
	if err != nil {
		return predict.Analysis{}, err
	}
	return f.Analyse(make([]byte, img.Pix[0]), raster.Crop{}, w)
}

type gauge struct{ busy, peak, analysers atomic.Int64 }

func options(g *gauge, duration time.Duration) Options {
	return Options{
		NewAnalyser: func(_ [32]byte, l raster.Limits) Analyser {
			g.analysers.Add(1)
			return &fake{duration: duration, busy: &g.busy, peak: &g.peak, limits: l}
		},
		Fetch: func(_ context.Context, _ catalog.AppID, url string) ([]byte, error) {
			return []byte(strings.TrimPrefix(url, "http://")), nil
		},
		Blob: func(_ context.Context, h blob.Hash) ([]byte, error) {
			if h == blob.Sum(nil) {
				return nil, blob.ErrNotFound
			}
			return []byte("blob"), nil
		},
		Now: time.Now, Log: slog.New(slog.DiscardHandler),
	}
}

// panicLog counts the panics in a log.
type panicLog struct {
	slog.Handler
	n atomic.Int64
}

func (p *panicLog) Enabled(context.Context, slog.Level) bool { return true }

func (p *panicLog) Handle(ctx context.Context, r slog.Record) error {
	if r.Message == "panic" {
		p.n.Add(1)
	}
	return p.Handler.Handle(ctx, r)
}

func urls(n int) []api.Job {
	out := make([]api.Job, n)
	for i := range out {
		out[i].URL = "http://" + strings.Repeat("x", i+1)
	}
	return out
}

func TestRunKeepsOrderAndUsesEveryWorker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g gauge
		o := options(&g, time.Second)
		o.Workers = 4
		p := New(o)
		start := time.Now()
		results, err := p.Run(t.Context(), urls(40))
		if err != nil {
			t.Fatal(err)
		}
		for i, r := range results {
			if r.Err != nil || r.Analysis.General[0] != float32(i+1) {
				t.Errorf("result %d = %v, %v", i, r.Analysis.General, r.Err)
			}
		}
		if took := time.Since(start); took != 10*time.Second || g.peak.Load() != 4 {
			t.Errorf("40 pictures of a second took %v on %d of 4 workers, want 10s", took, g.peak.Load())
		}
		if calls, pictures, done := p.Load(); calls != 0 || pictures != 0 || done != 40 {
			t.Errorf("Load() = %d, %d, %d after all", calls, pictures, done)
		}
	})
}

// TestSmallCallsComeFirst sends a call of 100 pictures, each of which takes a second of the only worker, and then three calls of one
// picture. The small calls do not wait. They delay the large call by their own time, less the eleventh part that other work always has.
func TestSmallCallsComeFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g gauge
		w := newWaitWorld(func(o *Options) { o.Workers, o.NewAnalyser = 1, options(&g, time.Second).NewAnalyser })
		w.plan["large"], w.plan["small"] = blobs(100), blobs(1)
		start := time.Now()
		var large sync.WaitGroup
		large.Go(func() {
			if status := w.call(t.Context(), "", "large"); status != 200 {
				t.Errorf("the large call: %d, want 200", status)
			}
		})
		time.Sleep(500 * time.Millisecond) // virtual
		for n := range 3 {
			begun := time.Now()
			if status := w.call(t.Context(), "", "small"); status != 200 || time.Since(begun) != time.Second {
				t.Errorf("small call %d: %d after %v, want 200 after 1s", n, status, time.Since(begun))
			}
		}
		large.Wait()
		if took := time.Since(start).Round(100 * time.Millisecond); took != 102700*time.Millisecond {
			t.Errorf("the large call took %v, want 102.7s", took)
		}
	})
}

func TestResultsOfFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g gauge
		var log strings.Builder
		panics := &panicLog{Handler: slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})}
		o := options(&g, 0)
		o.Log = slog.New(panics)
		fetch := o.Fetch
		o.Fetch = func(ctx context.Context, app catalog.AppID, url string) ([]byte, error) {
			if url == "http://private" {
				return nil, causeError{errors.New("10.0.0.1 is not public")}
			}
			return fetch(ctx, app, url)
		}
		p := New(o)
		results, err := p.Run(t.Context(), []api.Job{
			{URL: "http://bad"},
			{URL: "http://panic"},
			{URL: "http://private"},
			{Blob: blob.Sum(nil)},
			{Blob: blob.Sum([]byte("x"))},
			{URL: "http://slow"},
			{URL: "http://panic"},
			{URL: "http://good"},
		})
		if err != nil {
			t.Fatal(err)
		}
		for i, want := range []error{raster.ErrCorrupt, api.ErrInternal, api.ErrFetch, blob.ErrNotFound, nil, raster.ErrExpired, api.ErrInternal, nil} {
			if !errors.Is(results[i].Err, want) {
				t.Errorf("result %d = %v, want %v", i, results[i].Err, want)
			}
		}
		if text := results[2].Err.Error(); text != api.ErrFetch.Error() {
			t.Errorf("a failed fetch tells %q", text)
		}
		if _, err := p.Run(t.Context(), urls(8)); err != nil { // the last job before may have panicked
			t.Fatal(err)
		}
		if panics.n.Load() != 2 || g.analysers.Load() != 4 { // one analyser is for small calls
			t.Errorf("%d panics and %d analysers made, want 2 and 4", panics.n.Load(), g.analysers.Load())
		}
		if !strings.Contains(log.String(), "10.0.0.1 is not public") {
			t.Errorf("the cause of the failed fetch is not in the log:\n%s", &log)
		}
	})
}

// TestUnreadPictures: a picture that cannot be read is logged once, however often callers and the background need it.
func TestUnreadPictures(t *testing.T) {
	var g gauge
	var out bytes.Buffer
	o := options(&g, 0)
	o.Log = slog.New(slog.NewTextHandler(&out, nil))
	o.Blob = func(context.Context, blob.Hash) ([]byte, error) { return nil, blob.ErrNotFound }
	p := New(o)
	for n := range maxUnread + 3 {
		job := api.Job{Blob: blob.Sum(fmt.Append(nil, n/3))}
		if n > 30 {
			job.Blob = blob.Sum(fmt.Append(nil, n))
		}
		if r := p.RunBackgroundJob(t.Context(), &job); !errors.Is(r.Err, blob.ErrNotFound) {
			t.Fatalf("picture %d: %v", n, r.Err)
		}
		if n == 30 {
			if got := strings.Count(out.String(), "cannot read picture"); got != 11 {
				t.Errorf("%d lines about 11 pictures", got)
			}
		}
	}
	if len(p.unread) > maxUnread {
		t.Errorf("%d pictures are remembered", len(p.unread))
	}
}

// TestUnreadIsNotReportedWithoutFault: a picture is not reported if its caller has left, or if the store of pictures does not answer.
func TestUnreadIsNotReportedWithoutFault(t *testing.T) {
	left, leave := context.WithCancel(t.Context())
	leave()
	for _, tt := range []struct {
		ctx context.Context
		err error
	}{{left, context.Canceled}, {t.Context(), fmt.Errorf("get: %w", blob.ErrUnavailable)}} {
		var g gauge
		var out bytes.Buffer
		o := options(&g, 0)
		o.Log = slog.New(slog.NewTextHandler(&out, nil))
		o.Blob = func(context.Context, blob.Hash) ([]byte, error) { return nil, tt.err }
		if _, _, err := New(o).bytes(tt.ctx, &api.Job{Blob: blob.Sum([]byte("picture"))}); !errors.Is(err, tt.err) || out.Len() > 0 {
			t.Errorf("%v: error %v, log %q", tt.err, err, out.String())
		}
	}
}

type causeError struct{ error }

func (c causeError) Cause() error  { return c.error }
func (c causeError) Error() string { return "failed" }

func TestTimeoutOrCancelEndsTheCall(t *testing.T) {
	for name, tt := range map[string]struct {
		end  func(context.Context) (context.Context, context.CancelFunc)
		want error
	}{
		"deadline": {func(c context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeout(c, 5*time.Second)
		}, api.ErrTimeout},
		"cancel": {func(c context.Context) (context.Context, context.CancelFunc) {
			c, cancel := context.WithCancel(c)
			time.AfterFunc(5*time.Second, cancel)
			return c, cancel
		}, api.ErrBusy},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var g gauge
				o := options(&g, time.Second)
				fetch := o.Fetch
				o.Fetch = func(ctx context.Context, app catalog.AppID, url string) ([]byte, error) {
					if url == "http://xx" {
						<-ctx.Done()
						return nil, ctx.Err()
					}
					return fetch(ctx, app, url)
				}
				p := New(o)
				ctx, cancel := tt.end(t.Context())
				defer cancel()
				start := time.Now()
				_, err := p.Run(ctx, urls(100))
				if !errors.Is(err, tt.want) || time.Since(start) > 7*time.Second {
					t.Errorf("Run = %v after %v, want %v after 5s and what was begun", err, time.Since(start), tt.want)
				}
			})
		})
	}
}

func TestBounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g gauge
		o := options(&g, time.Second)
		o.Fetches = 3
		p := New(o)
		p.pictures = shares.New(10, 1)

		var wg sync.WaitGroup
		wg.Go(func() {
			if _, err := p.Run(t.Context(), blobs(12)); err != nil { // more than the limit, but it is the only call
				t.Error(err)
			}
		})
		synctest.Wait()
		if n := p.fetches.TotalInUse(); n != 3 {
			t.Errorf("%d pictures are in memory, want 3", n)
		}
		if _, err := p.Run(t.Context(), blobs(1)); !errors.Is(err, api.ErrBusy) {
			t.Errorf("Run over the bound = %v, want ErrBusy", err)
		}
		wg.Wait()
		if _, err := p.Run(t.Context(), urls(1)); err != nil {
			t.Error(err)
		}
	})
}

// TestHeavyPicturesLeaveWorkers analyses eight heavy pictures and eight light ones, each for a second, on four workers. The light ones do
// not wait for all heavy ones.
func TestHeavyPicturesLeaveWorkers(t *testing.T) {
	var big bytes.Buffer
	if err := png.Encode(&big, image.NewPaletted(image.Rect(0, 0, 2200, 2000), color.Palette{color.Black})); err != nil {
		t.Fatal(err)
	}
	if weigh(big.Bytes()) <= heavyPixels || weigh([]byte("no picture")) > 0 {
		t.Fatal("the weights are wrong")
	}
	synctest.Test(t, func(t *testing.T) {
		var g gauge
		o := options(&g, time.Second)
		o.Workers = 4
		fetch := o.Fetch
		o.Fetch = func(ctx context.Context, app catalog.AppID, url string) ([]byte, error) {
			if url == "http://heavy" {
				return big.Bytes(), nil
			}
			return fetch(ctx, app, url)
		}
		p := New(o)
		var wg sync.WaitGroup
		wg.Go(func() {
			if _, err := p.Run(t.Context(), slices.Repeat([]api.Job{{URL: "http://heavy"}}, 8)); err != nil {
				t.Error(err)
			}
		})
		synctest.Wait()
		start := time.Now()
		if n := g.busy.Load(); n != 2 {
			t.Errorf("%d heavy pictures are analysed at once, want 2", n)
		}
		light := urls(8)
		for i := range light {
			light[i].Caller = "another" // waiting heavy pictures use up the places of their caller
		}
		if _, err := p.Run(t.Context(), light); err != nil {
			t.Error(err)
		}
		if took := time.Since(start); took > 4*time.Second {
			t.Errorf("eight light pictures took %v beside the heavy ones, want at most 4s", took)
		}
		wg.Wait()
	})
}

// TestPictureTimeIsThreadTime checks that the time limit of a picture counts its thread's processor time. An analysis that waits for the
// machine expires late, and one that computes expires early.
func TestPictureTimeIsThreadTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g gauge
		var spent atomic.Int64
		o := options(&g, 0)
		o.ThreadTime = func() time.Duration { return time.Duration(spent.Load()) }
		p := New(o)
		start := time.Now()
		results, err := p.Run(t.Context(), []api.Job{{URL: "http://slow"}})
		if err != nil || !errors.Is(results[0].Err, raster.ErrExpired) || time.Since(start) < 14*time.Second {
			t.Errorf("a picture that waits: %v after %v, want ErrExpired after 15s", results[0].Err, time.Since(start))
		}
		start = time.Now()
		go func() {
			time.Sleep(time.Second) // virtual
			spent.Add(int64(2 * time.Second))
		}()
		results, err = p.Run(t.Context(), []api.Job{{URL: "http://slow"}})
		if err != nil || !errors.Is(results[0].Err, raster.ErrExpired) || time.Since(start) > 2*time.Second {
			t.Errorf("a picture that spends: %v after %v, want ErrExpired after a second", results[0].Err, time.Since(start))
		}
	})
}
