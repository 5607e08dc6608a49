package jobs

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sightline-dev/sightline/core"
	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/catalog"
)

// TestRequestsComeFirst makes calls while background pictures run and wait. The calls do not wait for the background, which continues after
// the answers.
func TestRequestsComeFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g gauge
		w := newWaitWorld(func(o *Options) { o.Workers, o.NewAnalyser = 1, options(&g, time.Second).NewAnalyser })
		w.plan["call"] = blobs(3)
		start := time.Now()
		var wg sync.WaitGroup
		var last [2]time.Duration
		for i := range last {
			wg.Go(func() {
				if r := w.Pool.RunBackgroundJob(t.Context(), &api.Job{URL: "http://x"}); r.Err != nil {
					t.Error(r.Err)
				}
				last[i] = time.Since(start)
			})
		}
		time.Sleep(longWork / 2) // virtual; one picture is being analysed, one waits
		begun := time.Now()
		if status := w.call(t.Context(), "", "call"); status != 200 || time.Since(begun) != 3*time.Second {
			t.Errorf("a call of three pictures: %d after %v, want 200 after 3s", status, time.Since(begun))
		}
		wg.Wait()
		if took := max(last[0], last[1]).Round(100 * time.Millisecond); took != 4700*time.Millisecond {
			t.Errorf("the background was done after %v, want 4.7s: it worked an eleventh of the call's three seconds", took)
		}
	})
}

// TestBackgroundProgressesUnderLoad keeps the only worker busy with calls. A background picture is still analysed, at an eleventh of the
// speed.
func TestBackgroundProgressesUnderLoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g gauge
		w := newWaitWorld(func(o *Options) { o.Workers, o.NewAnalyser = 1, options(&g, time.Second).NewAnalyser })
		w.plan["call"] = blobs(1)
		ctx, stop := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		for range 2 {
			wg.Go(func() {
				for ctx.Err() == nil {
					w.call(ctx, "", "call")
				}
			})
		}
		synctest.Wait()
		start := time.Now()
		if r := w.Pool.RunBackgroundJob(ctx, &api.Job{URL: "http://x"}); r.Err != nil {
			t.Error(r.Err)
		}
		if took := time.Since(start).Round(time.Second); took != (1+waitShare)*time.Second {
			t.Errorf("it took %v, want about %ds", took, 1+waitShare)
		}
		stop()
		wg.Wait()
	})
}

// TestWaitingEndsWithItsContext ends the context of a call and of background pictures while they wait.
func TestWaitingEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g gauge
		p := New(options(&g, time.Minute))
		var wg sync.WaitGroup
		wg.Go(func() { _, _ = p.Run(t.Context(), urls(1)) })
		wg.Go(func() { p.RunBackgroundJob(t.Context(), &api.Job{URL: "http://x"}) })
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		for range 3 {
			wg.Go(func() {
				if r := p.RunBackgroundJob(ctx, &api.Job{URL: "http://x"}); !errors.Is(r.Err, api.ErrTimeout) {
					t.Errorf("Picture = %v", r.Err)
				}
			})
			wg.Go(func() {
				if _, err := p.Run(ctx, urls(1)); !errors.Is(err, api.ErrTimeout) {
					t.Errorf("Run = %v", err)
				}
			})
		}
		wg.Go(func() {
			if err := p.RunBackground(ctx, func(func(time.Duration) error) { t.Error("it ran") }); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("Behind = %v", err)
			}
		})
		wg.Wait()
		if len(p.turns.waiting[front])+len(p.later.waiting[back]) != 0 || len(p.turns.idle) != 1 || len(p.later.idle) != 1 {
			t.Errorf("left behind: %+v, %+v", &p.turns, &p.later)
		}
	})
}

// TestBehindYieldsToCalls runs long work that yields every second. A large call gets the worker in between.
func TestBehindYieldsToCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g gauge
		p := New(options(&g, 10*time.Second))
		start := time.Now()
		var wg sync.WaitGroup
		wg.Go(func() {
			err := p.RunBackground(t.Context(), func(yield func(time.Duration) error) {
				for range 5 {
					time.Sleep(time.Second) // virtual
					if err := yield(time.Second); err != nil {
						t.Error(err)
					}
				}
			})
			if took := time.Since(start); err != nil || took != 55*time.Second {
				t.Errorf("Behind = %v after %v, want 55s", err, took)
			}
		})
		synctest.Wait()
		if _, err := p.Run(t.Context(), urls(fewPictures+1)); err != nil {
			t.Error(err)
		}
		if took := time.Since(start); took != 51*time.Second {
			t.Errorf("the large call took %v, want 51s", took)
		}
		wg.Wait()

		ctx, cancel := context.WithCancel(t.Context())
		var yieldErr error
		err := p.RunBackground(ctx, func(yield func(time.Duration) error) {
			cancel()
			wg.Go(func() { _, _ = p.Run(t.Context(), urls(fewPictures+1)) })
			synctest.Wait()
			yieldErr = yield(time.Second)
		})
		if !errors.Is(yieldErr, context.Canceled) || !errors.Is(err, context.Canceled) {
			t.Errorf("yield = %v, Behind = %v, want context.Canceled", yieldErr, err)
		}
		wg.Wait()
	})
}

// TestBehindWaitsForCalls runs work that yields every millisecond. While a call is in progress, the work pauses for ten times as long as it
// works.
func TestBehindWaitsForCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g gauge
		o := options(&g, time.Millisecond)
		o.Workers = 2
		p := New(o)
		steps := 0
		work := func(yield func(time.Duration) error) {
			for end := time.Now().Add(220 * time.Millisecond); time.Now().Before(end); steps++ {
				time.Sleep(workTime) // virtual
				if err := yield(workTime); err != nil {
					t.Error(err)
				}
			}
		}
		if err := p.RunBackground(t.Context(), work); err != nil || steps != 220 {
			t.Errorf("alone: %d steps, %v, want 220", steps, err)
		}
		steps = 0
		p.gate.move(1, 0)
		if err := p.RunBackground(t.Context(), work); err != nil || steps != 20 {
			t.Errorf("beside a call: %d steps, %v, want 20", steps, err)
		}
		steps = 0
		time.AfterFunc(115*time.Millisecond, func() { p.gate.move(-1, 0) })
		if err := p.RunBackground(t.Context(), work); err != nil || steps != 11+105 {
			t.Errorf("beside a call that ends after 115ms: %d steps, %v, want 11 and 105", steps, err)
		}
	})
}

// exercise is a training with a number of steps.
type exercise struct{ steps int }

func (e *exercise) Step() (done bool) {
	time.Sleep(workTime) // virtual
	e.steps--
	return e.steps == 0
}

func (e *exercise) Close() {}

// keeping is an engine that always has maintenance to do.
type keeping struct{ desk }

func (k *keeping) Step(context.Context, time.Time) (bool, error) {
	time.Sleep(3 * workTime) // virtual
	return true, nil
}

// TestTrainingsWaitForCalls checks that trainings and the maintenance of the engine pause after each step while a call is in progress.
func TestTrainingsWaitForCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g gauge
		b := &Background{Engine: &keeping{}, Pool: New(options(&g, 0)), Now: time.Now}
		for calls, want := range []time.Duration{20 * workTime, (20 + 19*waitShare) * workTime} {
			b.Pool.gate.calls = calls
			start := time.Now()
			if err := b.train(t.Context(), &exercise{steps: 20}); err != nil || time.Since(start) != want {
				t.Errorf("beside %d calls: a training took %v, %v, want %v", calls, time.Since(start), err, want)
			}
			start, want = time.Now(), time.Duration(1+calls*waitShare)*3*workTime
			if more, err := b.step(t.Context()); !more || err != nil || time.Since(start) != want {
				t.Errorf("beside %d calls: a step took %v, %v, want %v", calls, time.Since(start), err, want)
			}
		}
	})
}

// TestGate checks that other work waits if it and the small calls, which go first, fill all processors.
func TestGate(t *testing.T) {
	tests := []struct {
		workers, calls, other int
		want                  bool
	}{
		{1, 0, 3, false},
		{1, 1, 1, true},
		{2, 0, 2, false},
		{2, 1, 1, true},
		{4, 1, 2, false},
		{4, 1, 3, true},
		{4, 2, 1, false},
		{4, 3, 1, true},
		{4, 9, 1, true},
	}
	for _, tt := range tests {
		g := gate{workers: tt.workers}
		g.move(tt.calls, tt.other)
		if got := g.full(); got != tt.want {
			t.Errorf("%+v: full() = %v", tt, got)
		}
		if g.wait(workTime - 1) {
			t.Errorf("%+v: work waits before it has worked for %v", tt, workTime)
		}
	}
}

// TestLowPriority checks that work lowers the priority of its threads. Small calls do not, because they go first. Trainings in a guest do
// not, because calls wait for them.
func TestLowPriority(t *testing.T) {
	var g gauge
	var lowered atomic.Int64
	o := options(&g, 0)
	o.LowerPriority = func() { lowered.Add(1) }
	p := New(o)
	b := &Background{Pool: p, Now: time.Now}
	s := newSchool(t)
	s.ask("a")
	runs, err := s.q.Take(time.Now(), 1)
	if err != nil || len(runs) != 1 {
		t.Fatalf("%d trainings, %v", len(runs), err)
	}
	run := func(n int) func() error {
		return func() error {
			_, err := p.Run(t.Context(), urls(n))
			return err
		}
	}
	for name, tt := range map[string]struct {
		work func() error
		want int64
	}{
		"a small call":                {run(fewPictures), 0},
		"a large call":                {run(fewPictures + 1), fewPictures + 1},
		"a picture of the background": {func() error { return p.RunBackgroundJob(t.Context(), &api.Job{URL: "http://x"}).Err }, 1},
		"a training":                  {func() error { return b.train(t.Context(), runs[0]) }, 1},
		"a training of a guest":       {func() error { return b.train(t.Context(), &exercise{steps: 1}) }, 0},
	} {
		lowered.Store(0)
		var err error
		var thread sync.WaitGroup
		thread.Go(func() { err = tt.work() })
		thread.Wait()
		if err != nil || lowered.Load() != tt.want {
			t.Errorf("%s: %v, %d threads have a low priority, want %d", name, err, lowered.Load(), tt.want)
		}
	}
}

// keeper counts the pins of each picture.
type keeper struct {
	mu   sync.Mutex
	pins map[blob.Hash]int
	err  error
}

func (k *keeper) Pin(_ context.Context, data []byte) (blob.Hash, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.err != nil {
		return blob.Hash{}, k.err
	}
	k.pins[blob.Sum(data)]++
	return blob.Sum(data), nil
}

func (k *keeper) Unpin(_ context.Context, h blob.Hash) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.pins[h]--; k.pins[h] == 0 {
		delete(k.pins, h)
	}
	return k.err
}

const pixel = "GIF89a\x01\x00\x01\x00\x80\x00\x00\x00\x00\x00\xff\xff\xff,\x00\x00\x00\x00\x01\x00\x01\x00\x00\x02\x02D\x01\x00;"

func TestKeptPictureIsPinned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g gauge
		o := options(&g, time.Second)
		k := &keeper{pins: map[blob.Hash]int{}}
		o.Pinner = k
		p := New(o)
		jobs := []api.Job{{Data: []byte(pixel), Keep: true}, {Data: []byte(pixel)}, {Data: []byte("bad"), Keep: true}}
		results, err := p.Run(t.Context(), jobs)
		if err != nil {
			t.Fatal(err)
		}
		if r := results[0]; r.Blob != blob.Sum([]byte(pixel)) || r.ContentType != "image/gif" || r.Err != nil {
			t.Errorf("kept: %+v", r)
		}
		if !results[1].Blob.IsZero() || !results[2].Blob.IsZero() || results[2].Err == nil || len(k.pins) != 1 {
			t.Errorf("%+v, %+v, %v", results[1], results[2], k.pins)
		}
		// A call whose context ends pins no picture.
		if err := k.Unpin(t.Context(), blob.Sum([]byte(pixel))); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
		defer cancel()
		if _, err := p.Run(ctx, []api.Job{jobs[0], jobs[0]}); !errors.Is(err, api.ErrTimeout) || len(k.pins) != 0 {
			t.Errorf("Run = %v, %v held", err, k.pins)
		}
		// Nor does a background picture whose context ends.
		ctx, cancel = context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		if r := p.RunBackgroundJob(ctx, &jobs[0]); !errors.Is(r.Err, api.ErrTimeout) || len(k.pins) != 0 {
			t.Errorf("Picture = %v, %v held", r.Err, k.pins)
		}
		k.err = errors.New("disk")
		if r := p.RunBackgroundJob(t.Context(), &jobs[0]); !errors.Is(r.Err, api.ErrInternal) {
			t.Errorf("a picture that cannot be kept: %v", r.Err)
		}
	})
}

type passing struct {
	error
	may bool
}

func (p passing) Retryable() bool { return p.may }

func TestTemporaryFailures(t *testing.T) {
	var g gauge
	o := options(&g, 0)
	var next error
	o.Fetch = func(context.Context, catalog.AppID, string) ([]byte, error) { return nil, next }
	p := New(o)
	for _, may := range []bool{true, false} {
		next = passing{errors.New("secret"), may}
		if r := p.RunBackgroundJob(t.Context(), &api.Job{URL: "http://x"}); r.Passing != may || !errors.Is(r.Err, api.ErrFetch) || strings.Contains(r.Err.Error(), "secret") {
			t.Errorf("%v: %+v", next, r)
		}
	}
}

// desk is an engine with a list of tasks. It records the results that it gets back.
type desk struct {
	mu      sync.Mutex
	open    []core.Task
	done    []string
	steps   int // left to do
	took    error
	doneErr error
	err     error
}

func (d *desk) Take(_ time.Time, n int) ([]core.Task, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	n = min(n, len(d.open))
	tasks := d.open[:n]
	d.open = d.open[n:]
	return tasks, d.took
}

func (d *desk) Done(_ context.Context, t core.Task, r core.Result) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if t.Picture.URL == "http://explode" {
		panic("a bug")
	}
	d.done = append(d.done, fmt.Sprint(t.Picture.URL, " ", r.Picture.Err))
	return d.doneErr
}

func (d *desk) Step(context.Context, time.Time) (bool, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.steps--
	return d.steps > 0, d.err
}

func TestBackground(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g gauge
		panics := &panicLog{Handler: slog.DiscardHandler}
		o := options(&g, time.Second)
		o.Log = slog.New(panics)
		d := &desk{steps: 3, took: errors.New("once"), doneErr: errors.New("full"), err: errors.New("once")}
		for _, url := range []string{"a", "bad", "explode", "b"} {
			d.open = append(d.open, core.Task{Picture: &api.Job{URL: "http://" + url}})
		}
		b := &Background{Engine: d, Pool: New(o), Now: time.Now, Pause: pause, Log: o.Log}
		ctx, stop := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() { b.Run(ctx) })
		time.Sleep(10500 * time.Millisecond) // virtual; between two checks of the engine, which are at whole seconds
		d.mu.Lock()
		if len(d.done) != 3 || panics.n.Load() != 1 || d.steps > 0 {
			t.Errorf("done %q, %d panics, %d steps left", d.done, panics.n.Load(), d.steps)
		}
		d.took, d.doneErr, d.err = nil, nil, nil
		d.open = append(d.open, core.Task{Picture: &api.Job{URL: "http://late"}}, core.Task{Picture: &api.Job{URL: "http://never"}})
		d.mu.Unlock()
		time.Sleep(2 * time.Second) // virtual; a pause after the error, then one of the tasks
		stop()
		wg.Wait()
		if len(d.done) != 4 {
			t.Errorf("done %q: what was under way is given up", d.done)
		}
	})
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}
