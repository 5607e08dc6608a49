// Package jobs runs what calls of the interface wait for: pictures to be fetched and
// analysed.
//
//	call ── jobs ──▶ few at a time of one call ──▶ fetch slots ──▶ analysers, one a core ──▶ results
//	 │                                             (or the blobs)    first come, first served
//	 └ Enter: bounded calls, else busy           ▲ background: inputs to be fetched, trainings;
//	                                             └ only while no call waits
//
// The engine is one thread and starts nothing; this is where its parallelism comes from. A
// picture uses one core from its bytes to its concepts, which keeps it in that core's cache;
// several pictures use several. One call never has more than a few pictures in the queue, so
// a call of 128 does not hold up a call of one; pictures that cost as much as a hundred photos
// use half of the cores at most. Fetching and analysing go picture by picture:
// the bytes of a call's pictures are never all in memory.
//
// A panic of an analysis costs that picture and its analyser, which is replaced.
package jobs

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/predict"
	"github.com/sightline-dev/sightline/core/predict/raster"
)

// Analyser turns pictures into analyses, one at a time; *predict.Analyser is one.
type Analyser interface {
	Analyse(picture []byte, c raster.Crop, w predict.Want) (predict.Analysis, error)
}

var _ Analyser = (*predict.Analyser)(nil)

// Keeper holds pictures in the blobs for whoever takes a result; *blob.Hosted is one.
type Keeper interface {
	// Hold keeps data durably until it is released.
	Hold(ctx context.Context, data []byte) (blob.Hash, error)
	Release(ctx context.Context, h blob.Hash) error
}

var _ Keeper = (*blob.Hosted)(nil)

// Options are the settings of a [Pool]. NewAnalyser, Fetch, Blob, Now and Log are required,
// and Keeper where jobs ask to keep.
type Options struct {
	NewAnalyser func(base [32]byte, l raster.Limits) Analyser          // makes an analyser of a network for one thread
	Fetch       func(ctx context.Context, url string) ([]byte, error)  // gets a picture from elsewhere
	Blob        func(ctx context.Context, h blob.Hash) ([]byte, error) // gets a picture that we keep, or that an origin lends us: api.ErrFetch, not now
	Keeper      Keeper                                                 // keeps the pictures of inputs
	Now         func() time.Time                                       // the clock
	Log         *slog.Logger                                           // causes of failed fetches at Debug, panics at Error

	Base        [32]byte      // the newest network
	Workers     int           // analyses at once; 0 means 1
	Fetches     int           // pictures being fetched or waiting, in memory; 0 means 16
	Behind      int           // pictures of the background besides; 0 means a quarter of Fetches, at least 2
	PerCall     int           // pictures of one call at once; 0 means 8
	MaxCalls    int           // calls at once, waiting ones too; 0 means 16 for each worker
	MaxPictures int           // pictures of all calls that are not done; 0 means 256 for each worker
	PictureTime time.Duration // of one analysis, by Spent; 0 means 1.5 s

	// Spent is the processor time that the calling thread has used. A picture's time is
	// measured by it, so that a busy machine fails no picture that an idle one analyses; ten
	// times as long by the clock ends it as well. nil: the clock alone.
	Spent func() time.Duration
}

// Pool runs jobs. It is safe for concurrent use and starts goroutines only inside Run.
type Pool struct {
	o         Options
	turns     turns         // hands out analysers
	fetches   chan struct{} // a token for each picture in memory
	behind    chan struct{} // a token for each of the background's among them
	heavy     chan struct{} // a token for each heavy picture being analysed
	trainings chan struct{} // a token for each training under way
	calls     atomic.Int64
	pictures  atomic.Int64
	done      atomic.Int64
}

// worker is an analyser of each network that was asked for, and when it must give up on its
// picture.
type worker struct {
	analysers map[[32]byte]Analyser
	limits    raster.Limits
	deadline  time.Time     // by the clock
	budget    time.Duration // by Spent
}

// New makes a pool and its analysers.
func New(o Options) *Pool {
	or := func(v *int, d int) {
		if *v <= 0 {
			*v = d
		}
	}
	or(&o.Workers, 1)
	or(&o.Fetches, 16)
	or(&o.Behind, max(2, o.Fetches/4))
	or(&o.PerCall, 8)
	or(&o.MaxCalls, 16*o.Workers)
	or(&o.MaxPictures, 256*o.Workers)
	if o.PictureTime <= 0 {
		o.PictureTime = 1500 * time.Millisecond
	}
	p := &Pool{
		o: o, fetches: make(chan struct{}, o.Fetches), behind: make(chan struct{}, o.Behind),
		heavy: make(chan struct{}, max(1, o.Workers/2)), trainings: make(chan struct{}, max(1, o.Workers/2)),
	}
	for range o.Workers {
		p.turns.give(p.newWorker())
	}
	return p
}

func (p *Pool) newWorker() *worker {
	w := &worker{analysers: map[[32]byte]Analyser{}}
	w.limits.Expired = func() bool {
		return p.o.Now().After(w.deadline) || p.o.Spent != nil && p.o.Spent() > w.budget
	}
	p.analyser(w, p.o.Base) // before the first picture asks for it
	return w
}

// analyser is the worker's of a network.
func (p *Pool) analyser(w *worker, base [32]byte) Analyser {
	if base == [32]byte{} {
		base = p.o.Base
	}
	a, ok := w.analysers[base]
	if !ok {
		a = p.o.NewAnalyser(base, w.limits)
		w.analysers[base] = a
	}
	return a
}

// Full returns an error while no more calls are taken.
func (p *Pool) Full() error {
	if p.calls.Load() >= int64(p.o.MaxCalls) {
		return fmt.Errorf("%d calls are in progress: %w", p.o.MaxCalls, api.ErrBusy)
	}
	return nil
}

// Enter counts a call in, or returns an error that wraps api.ErrBusy. Every call that came
// in must leave.
func (p *Pool) Enter() (leave func(), err error) {
	if p.calls.Add(1) > int64(p.o.MaxCalls) {
		p.calls.Add(-1)
		return nil, fmt.Errorf("%d calls are in progress: %w", p.o.MaxCalls, api.ErrBusy)
	}
	return func() { p.calls.Add(-1) }, nil
}

// Load returns the calls and pictures under way, and the pictures done since the start.
func (p *Pool) Load() (calls, pictures, done int64) {
	return p.calls.Load(), p.pictures.Load(), p.done.Load()
}

// Run runs the jobs of one call and returns their results in order. Its error is for the
// whole call: it wraps api.ErrBusy when too many pictures wait, or when ctx was cancelled,
// and api.ErrTimeout when ctx's time was over.
func (p *Pool) Run(ctx context.Context, jobs []api.Job) ([]api.Result, error) {
	n := int64(len(jobs))
	if pending := p.pictures.Add(n); pending > int64(p.o.MaxPictures) && pending > n {
		p.pictures.Add(-n)
		return nil, fmt.Errorf("%d pictures are waiting: %w", pending-n, api.ErrBusy)
	}
	defer p.pictures.Add(-n)

	results := make([]api.Result, len(jobs))
	var (
		next atomic.Int64
		wg   sync.WaitGroup
	)
	for range min(p.o.PerCall, len(jobs)) {
		wg.Go(func() {
			for i := next.Add(1) - 1; i < n; i = next.Add(1) - 1 {
				results[i] = p.one(ctx, front, &jobs[i])
			}
		})
	}
	wg.Wait()
	err := gaveUp(ctx)
	if err != nil {
		p.release(ctx, results)
	}
	return results, err
}

// release gives up what results hold that nobody takes.
func (p *Pool) release(ctx context.Context, results []api.Result) {
	for i := range results {
		if h := results[i].Blob; !h.IsZero() {
			if err := p.o.Keeper.Release(context.WithoutCancel(ctx), h); err != nil {
				p.o.Log.Error("cannot release picture", "hash", h.String(), "error", err)
			}
		}
	}
}

// gaveUp says why a context has ended, in the interface's words.
func gaveUp(ctx context.Context) error {
	switch err := ctx.Err(); {
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("%w: send fewer pictures at once", api.ErrTimeout)
	case err != nil:
		return fmt.Errorf("the server is stopping: %w", api.ErrBusy)
	}
	return nil
}

// Picture does one job of the background, after everything that requests wait for. It waits
// for its turn while as many as Options.Behind are under way. When ctx ends the result's error
// wraps api.ErrBusy, and nothing is held.
func (p *Pool) Picture(ctx context.Context, job *api.Job) api.Result {
	r := p.one(ctx, back, job)
	if err := gaveUp(ctx); err != nil {
		p.release(ctx, []api.Result{r})
		return api.Result{Err: err}
	}
	return r
}

// Behind runs work of the background that is no picture, at one worker's expense: f runs while
// no request waits for a worker, and calls yield where it can be held up, every few
// milliseconds. The worker is free while rest runs, which may be nil. yield returns an error
// when ctx has ended, and f should then return.
func (p *Pool) Behind(ctx context.Context, f func(yield func(rest func()) error)) error {
	w, err := p.turns.take(ctx, back)
	if err != nil {
		return err
	}
	defer func() {
		if w != nil {
			p.turns.give(w)
		}
	}()
	f(func(rest func()) error {
		if w != nil {
			p.turns.give(w)
			w = nil
		}
		if rest != nil {
			rest()
		}
		w, err = p.turns.take(ctx, back)
		return err
	})
	return ctx.Err()
}

// one fetches and analyses one picture.
func (p *Pool) one(ctx context.Context, l lane, job *api.Job) (r api.Result) {
	tokens := p.fetches
	if l == back {
		tokens = p.behind
	}
	select {
	case tokens <- struct{}{}:
		defer func() { <-tokens }()
	case <-ctx.Done():
		return api.Result{Err: gaveUp(ctx)}
	}
	picture, passing, err := p.bytes(ctx, job)
	if err != nil {
		return api.Result{Err: err, Passing: passing}
	}
	r = p.inTurn(ctx, l, picture, job)
	if r.Err == nil && job.Keep {
		p.keep(ctx, picture, &r)
	}
	return r
}

// inTurn analyses a picture when a worker is free.
func (p *Pool) inTurn(ctx context.Context, l lane, picture []byte, job *api.Job) api.Result {
	if weight := weigh(picture); weight > heavyPixels {
		select {
		case p.heavy <- struct{}{}:
			defer func() {
				if weight > hugePixels {
					runtime.GC() // or the next one's memory is added to what this one has left behind
				}
				<-p.heavy
			}()
		case <-ctx.Done():
			return api.Result{Err: gaveUp(ctx)}
		}
	}
	w, err := p.turns.take(ctx, l)
	if err != nil {
		return api.Result{Err: gaveUp(ctx)}
	}
	return p.analyse(w, picture, job)
}

// keep holds an analysed picture. The worker is somebody else's by now: this waits for disks.
func (p *Pool) keep(ctx context.Context, picture []byte, r *api.Result) {
	info, err := raster.Inspect(picture)
	if err == nil {
		r.ContentType = "image/" + info.Format
		r.Blob, err = p.o.Keeper.Hold(ctx, picture)
	}
	switch {
	case err == nil:
	case ctx.Err() != nil:
		r.Err = gaveUp(ctx)
	default:
		p.o.Log.Error("cannot store picture", "error", err)
		r.Err = fmt.Errorf("%w: store picture: %w", api.ErrInternal, err)
	}
}

// heavyPixels is what a picture may weigh before it takes the heavy lane, and hugePixels
// before what it leaves behind is collected at once: 64 MB and more.
const (
	heavyPixels = 4 << 20
	hugePixels  = 16 << 20
)

// weigh returns the pixels that a picture costs: heavy ones many times what a photo does,
// hundreds of megabytes and up to seconds. Those use half of the workers, so that however
// many come, the others are analysed at once. A JPEG is decoded at an eighth of its size or
// less and keeps to a few rows; of the other formats libraries keep all pixels.
func weigh(picture []byte) int64 {
	info, err := raster.Inspect(picture)
	if err != nil {
		return 0 // the decoder will say so at once
	}
	pixels := int64(info.Width) * int64(info.Height)
	if info.Format == "jpeg" {
		pixels /= 4
	}
	return pixels
}

// bytes gets a job's picture. With an error it says whether another time may do better.
func (p *Pool) bytes(ctx context.Context, job *api.Job) (picture []byte, passing bool, err error) {
	if job.Data != nil {
		return job.Data, false, nil
	}
	if job.URL == "" {
		b, err := p.o.Blob(ctx, job.Blob)
		switch {
		case errors.Is(err, api.ErrFetch): // another's, which is not to be had now
			p.o.Log.Debug("cannot get picture", "hash", job.Blob.String(), "error", err)
		case err != nil:
			p.o.Log.Error("cannot read picture", "hash", job.Blob.String(), "error", err)
		}
		return b, false, err
	}
	b, err := p.o.Fetch(ctx, job.URL)
	if err == nil {
		return b, false, nil
	}
	if ctx.Err() != nil {
		return nil, false, gaveUp(ctx)
	}
	var told interface{ Cause() error }
	if errors.As(err, &told) {
		p.o.Log.Debug("cannot fetch picture", "url", job.URL, "error", told.Cause())
	}
	var failure interface{ Passing() bool }
	return nil, errors.As(err, &failure) && failure.Passing(), api.ErrFetch
}

// analyse uses w and puts it back, or a new one in its place when it panicked.
func (p *Pool) analyse(w *worker, picture []byte, job *api.Job) (r api.Result) {
	defer func() {
		if v := recover(); v != nil {
			p.o.Log.Error("panic", "job", job.URL, "blob", job.Blob.String(), "panic", fmt.Sprint(v), "stack", string(debug.Stack()))
			r = api.Result{Err: api.ErrInternal}
			w = p.newWorker()
		}
		p.done.Add(1)
		p.turns.give(w)
	}()
	w.deadline = p.o.Now().Add(p.o.PictureTime)
	if p.o.Spent != nil {
		runtime.LockOSThread() // Spent is the thread's
		defer runtime.UnlockOSThread()
		w.deadline = p.o.Now().Add(10 * p.o.PictureTime)
		w.budget = p.o.Spent() + p.o.PictureTime
	}
	r.Analysis, r.Err = p.analyser(w, job.Base).Analyse(picture, job.Crop, job.Want)
	return r
}
