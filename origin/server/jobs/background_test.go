package jobs

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sightline-dev/sightline/core"
	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/blob"
)

// TestRequestsComeFirst has pictures of the background waiting for the one worker when those
// of a request come.
func TestRequestsComeFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g gauge
		p := New(options(&g, time.Second))
		start := time.Now()
		var wg sync.WaitGroup
		var last [2]time.Duration
		for i := range last {
			wg.Go(func() {
				if r := p.Picture(t.Context(), &api.Job{URL: "http://x"}); r.Err != nil {
					t.Error(r.Err)
				}
				last[i] = time.Since(start)
			})
		}
		synctest.Wait() // one is analysed, one waits
		if _, err := p.Run(t.Context(), urls(3)); err != nil {
			t.Error(err)
		}
		if took := time.Since(start); took != 4*time.Second {
			t.Errorf("three pictures of a request took %v, want 4s: only what was begun is in their way", took)
		}
		wg.Wait()
		if took := max(last[0], last[1]); took != 5*time.Second {
			t.Errorf("the background was done after %v, want 5s", took)
		}
	})
}

// TestTheBackgroundIsNotForgotten keeps the one worker busy with requests for good.
func TestTheBackgroundIsNotForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g gauge
		o := options(&g, time.Second)
		p := New(o)
		ctx, stop := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() { _, _ = p.Run(ctx, urls(500)) })
		synctest.Wait()
		start := time.Now()
		if r := p.Picture(ctx, &api.Job{URL: "http://x"}); r.Err != nil {
			t.Error(r.Err)
		}
		if took := time.Since(start); took < patience*time.Second || took > (patience+3)*time.Second {
			t.Errorf("it waited %v, want about %ds", took, patience)
		}
		stop()
		wg.Wait()
	})
}

// TestWaitingEndsWithItsContext gives up while waiting, in both lanes.
func TestWaitingEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g gauge
		p := New(options(&g, time.Minute))
		var wg sync.WaitGroup
		wg.Go(func() { _, _ = p.Run(t.Context(), urls(1)) })
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		for range 3 {
			wg.Go(func() {
				if r := p.Picture(ctx, &api.Job{URL: "http://x"}); !errors.Is(r.Err, api.ErrTimeout) {
					t.Errorf("Picture = %v", r.Err)
				}
			})
		}
		wg.Go(func() {
			if err := p.Behind(ctx, func(func(func()) error) { t.Error("it ran") }); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("Behind = %v", err)
			}
		})
		wg.Wait()
		if len(p.turns.waiting[front])+len(p.turns.waiting[back]) != 0 || len(p.turns.idle) != 1 {
			t.Errorf("left behind: %+v", &p.turns)
		}
	})
}

// TestBehindGivesWay runs long work that yields each second beside a request.
func TestBehindGivesWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g gauge
		p := New(options(&g, 10*time.Second))
		start := time.Now()
		var wg sync.WaitGroup
		wg.Go(func() {
			err := p.Behind(t.Context(), func(yield func(func()) error) {
				for range 5 {
					time.Sleep(time.Second) // virtual
					if err := yield(nil); err != nil {
						t.Error(err)
					}
				}
			})
			if took := time.Since(start); err != nil || took != 15*time.Second {
				t.Errorf("Behind = %v after %v, want 15s", err, took)
			}
		})
		synctest.Wait()
		if _, err := p.Run(t.Context(), urls(1)); err != nil {
			t.Error(err)
		}
		if took := time.Since(start); took != 11*time.Second {
			t.Errorf("the request took %v, want 11s", took)
		}
		wg.Wait()

		ctx, cancel := context.WithCancel(t.Context())
		var told error
		err := p.Behind(ctx, func(yield func(func()) error) {
			cancel()
			wg.Go(func() { _, _ = p.Run(t.Context(), urls(1)) })
			synctest.Wait()
			told = yield(nil)
		})
		if !errors.Is(told, context.Canceled) || !errors.Is(err, context.Canceled) {
			t.Errorf("yield = %v, Behind = %v, want context.Canceled", told, err)
		}
		wg.Wait()
	})
}

// TestBehindRests lets work rest: a request has the worker meanwhile.
func TestBehindRests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g gauge
		p := New(options(&g, 2*time.Second))
		start := time.Now()
		var wg sync.WaitGroup
		wg.Go(func() {
			err := p.Behind(t.Context(), func(yield func(func()) error) {
				if err := yield(func() { time.Sleep(5 * time.Second) }); err != nil { // virtual
					t.Error(err)
				}
			})
			if took := time.Since(start); err != nil || took != 5*time.Second {
				t.Errorf("Behind = %v after %v, want 5s", err, took)
			}
		})
		synctest.Wait()
		if _, err := p.Run(t.Context(), urls(1)); err != nil {
			t.Error(err)
		}
		if took := time.Since(start); took != 2*time.Second {
			t.Errorf("the request took %v, want 2s", took)
		}
		wg.Wait()
	})
}

// The more workers requests want, the longer a training rests.
func TestTrainingsRest(t *testing.T) {
	var g gauge
	o := options(&g, time.Second)
	o.Workers = 2
	b := &Background{Pool: New(o)}
	tests := []struct {
		pictures     int64
		worked, want time.Duration
	}{
		{0, restEvery - 1, 0},
		{0, restEvery, rest},
		{0, 10 * restEvery, rest},
		{1, 0, 0},
		{1, 300 * time.Microsecond, 300 * time.Microsecond},
		{2, 300 * time.Microsecond, shyness * 300 * time.Microsecond},
		{100, time.Millisecond, shyness * time.Millisecond},
	}
	for _, tt := range tests {
		b.Pool.pictures.Force("", tt.pictures)
		if got := b.restAfter(tt.worked); got != tt.want {
			t.Errorf("beside %d pictures, after %v of work: a rest of %v, want %v", tt.pictures, tt.worked, got, tt.want)
		}
		b.Pool.pictures.Give("", tt.pictures)
	}
}

// keeper counts what is held.
type keeper struct {
	mu   sync.Mutex
	held map[blob.Hash]int
	err  error
}

func (k *keeper) Hold(_ context.Context, data []byte) (blob.Hash, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.err != nil {
		return blob.Hash{}, k.err
	}
	k.held[blob.Sum(data)]++
	return blob.Sum(data), nil
}

func (k *keeper) Release(_ context.Context, h blob.Hash) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.held[h]--; k.held[h] == 0 {
		delete(k.held, h)
	}
	return k.err
}

const pixel = "GIF89a\x01\x00\x01\x00\x80\x00\x00\x00\x00\x00\xff\xff\xff,\x00\x00\x00\x00\x01\x00\x01\x00\x00\x02\x02D\x01\x00;"

func TestKeep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g gauge
		o := options(&g, time.Second)
		k := &keeper{held: map[blob.Hash]int{}}
		o.Keeper = k
		p := New(o)
		jobs := []api.Job{{Data: []byte(pixel), Keep: true}, {Data: []byte(pixel)}, {Data: []byte("bad"), Keep: true}}
		results, err := p.Run(t.Context(), jobs)
		if err != nil {
			t.Fatal(err)
		}
		if r := results[0]; r.Blob != blob.Sum([]byte(pixel)) || r.ContentType != "image/gif" || r.Err != nil {
			t.Errorf("kept: %+v", r)
		}
		if !results[1].Blob.IsZero() || !results[2].Blob.IsZero() || results[2].Err == nil || len(k.held) != 1 {
			t.Errorf("%+v, %+v, %v", results[1], results[2], k.held)
		}
		// A call that is given up holds nothing.
		if err := k.Release(t.Context(), blob.Sum([]byte(pixel))); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
		defer cancel()
		if _, err := p.Run(ctx, []api.Job{jobs[0], jobs[0]}); !errors.Is(err, api.ErrTimeout) || len(k.held) != 0 {
			t.Errorf("Run = %v, %v held", err, k.held)
		}
		// Nor does a picture of the background.
		ctx, cancel = context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		if r := p.Picture(ctx, &jobs[0]); !errors.Is(r.Err, api.ErrTimeout) || len(k.held) != 0 {
			t.Errorf("Picture = %v, %v held", r.Err, k.held)
		}
		k.err = errors.New("disk")
		if r := p.Picture(t.Context(), &jobs[0]); !errors.Is(r.Err, api.ErrInternal) {
			t.Errorf("a picture that cannot be kept: %v", r.Err)
		}
	})
}

type passing struct {
	error
	may bool
}

func (p passing) Passing() bool { return p.may }

func TestPassingFailures(t *testing.T) {
	var g gauge
	o := options(&g, 0)
	var next error
	o.Fetch = func(context.Context, string) ([]byte, error) { return nil, next }
	p := New(o)
	for _, may := range []bool{true, false} {
		next = passing{errors.New("secret"), may}
		if r := p.Picture(t.Context(), &api.Job{URL: "http://x"}); r.Passing != may || !errors.Is(r.Err, api.ErrFetch) || strings.Contains(r.Err.Error(), "secret") {
			t.Errorf("%v: %+v", next, r)
		}
	}
}

// desk is an engine of which tasks are taken and to which they are handed back.
type desk struct {
	mu    sync.Mutex
	open  []core.Task
	done  []string
	steps int // left to do
	took  error
	kept  error
	err   error
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
	return d.kept
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
		d := &desk{steps: 3, took: errors.New("once"), kept: errors.New("full"), err: errors.New("once")}
		for _, url := range []string{"a", "bad", "explode", "b"} {
			d.open = append(d.open, core.Task{Picture: &api.Job{URL: "http://" + url}})
		}
		b := &Background{Engine: d, Pool: New(o), Now: time.Now, Pause: pause, Log: o.Log}
		ctx, stop := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() { b.Run(ctx) })
		time.Sleep(10500 * time.Millisecond) // virtual; between two looks, which are at whole seconds
		d.mu.Lock()
		if len(d.done) != 3 || panics.n.Load() != 1 || d.steps > 0 {
			t.Errorf("done %q, %d panics, %d steps left", d.done, panics.n.Load(), d.steps)
		}
		d.took, d.kept, d.err = nil, nil, nil
		d.open = append(d.open, core.Task{Picture: &api.Job{URL: "http://late"}}, core.Task{Picture: &api.Job{URL: "http://never"}})
		d.mu.Unlock()
		time.Sleep(2 * time.Second) // virtual; a pause after the error, then one of them
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
