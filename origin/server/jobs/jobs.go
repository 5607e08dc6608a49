// Package jobs fetches and analyses the pictures that calls of the interface wait for.
//
//	call ── jobs ──▶ few at a time of one call ──▶ blobs ──────▶ analysers, one a core ──▶ results
//	 │                                        └──▶ downloads ──▲   first come, first served
//	 └ Enter: bounded calls, else busy                         │
//	                          large calls, films, background ──┴▶ other analysers, one a core, behind a gate
//
// Calls of few pictures go first. All other work has its own analysers, on threads of low priority, so no such call waits for one. It
// also pauses in the middle of a picture or a training while such calls need the cores, but never for more than ten times as long as it
// works.
//
// Callers, which are accounts and applications of the operator, share the calls and the pictures that
// may be under way, and take turns at the analysers. So a flood of one caller neither takes all places
// nor makes the others wait behind it.
//
// A call that waits for downloads is not work: it counts neither against maxCalls nor against
// maxPictures. Downloads have their own bounds, which callers share: one caller takes at
// most half of the places that the others leave. So the slow URLs of one caller delay its own
// calls only.
//
// The engine is one thread and starts nothing, so this package provides its parallelism. A picture uses one core from its bytes to its
// concepts, and so stays in that core's cache. Several pictures use several cores. One call never has more than a few pictures in the
// queue, so a call of 128 does not hold up a call of one; pictures that cost as much as a hundred photos use half of the cores at most.
// Fetching and analysing go picture by picture: the bytes of a call's pictures are never all in memory.
//
// A panic of an analysis costs that picture and its analyser, which is replaced.
package jobs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/auth"
	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/predict"
	"github.com/sightline-dev/sightline/core/predict/raster"
	"github.com/sightline-dev/sightline/origin/server/shares"
)

// Analyser turns pictures into analyses, one at a time; *predict.Analyser is one.
type Analyser interface {
	Analyse(picture []byte, c raster.Crop, w predict.Want) (predict.Analysis, error)
	AnalysePlanes(p raster.Planes, w predict.Want) (predict.Analysis, error)
	AnalyseFrame(f *raster.Frames, w predict.Want) (predict.Analysis, error)
}

var _ Analyser = (*predict.Analyser)(nil)

// Pinner keeps pictures in the blobs until the receiver of a result claims them; *blob.HostedNames is one.
type Pinner interface {
	// Pin keeps data durably until it is unpinned.
	Pin(ctx context.Context, data []byte) (blob.Hash, error)
	Unpin(ctx context.Context, h blob.Hash) error
}

var _ Pinner = (*blob.HostedNames)(nil)

// Options are the settings of a [Pool]. NewAnalyser, Fetch, Blob, Now and Log are required,
// and Keeper where jobs ask to keep.
type Options struct {
	NewAnalyser func(base [32]byte, l raster.Limits) Analyser          // makes an analyser of a network for one thread
	Fetch       func(ctx context.Context, url string) ([]byte, error)  // gets a picture from elsewhere
	Blob        func(ctx context.Context, h blob.Hash) ([]byte, error) // gets a picture from our store or an origin: api.ErrFetch if unavailable
	HasPicture  func(h blob.Hash) bool                                 // reports whether Blob returns a picture without a download; nil: always
	Pinner      Pinner                                                 // keeps the pictures of inputs
	Videos      Videos                                                 // decodes videos of calls
	Now         func() time.Time                                       // the clock
	Log         *slog.Logger                                           // causes of failed fetches at Debug, panics at Error

	Base      [32]byte // the newest network
	Workers   int      // analyses at once; 0 means 1
	Fetches   int      // pictures from the blobs in memory; 0 means 16
	Downloads int      // pictures of calls being downloaded, or downloaded and waiting; 0 means 16

	// Spent is the processor time that the calling thread has used. A picture's time is
	// measured by it, so that a busy machine fails no picture that an idle one analyses; ten
	// times as long by the clock ends it as well. nil: the clock alone.
	Spent func() time.Duration

	// Lower gives the calling thread a low priority for good. Pictures that are not in the front lane, and trainings, have such threads.
	// Steps of an engine have none: they hold locks for which calls wait. nil: no thread has one.
	Lower func()
}

// Bounds of a pool.
const (
	perCall     = 8                       // pictures of one call at once, and downloads of one call besides
	fewPictures = 4                       // of a call that goes first
	maxCalls    = 32                      // calls for each worker, without those that wait for downloads
	maxPictures = 512                     // pictures of calls for each worker that are not done, without downloads
	maxWaiting  = 2048                    // pictures of calls that wait for downloads, at least perCall a call
	pictureTime = 1500 * time.Millisecond // of one analysis, by Spent
)

// Pool runs jobs. It is safe for concurrent use and starts goroutines only inside Run.
type Pool struct {
	o         Options
	turns     fairQueue      // hands out analysers to the front lane
	later     fairQueue      // hands out analysers to the other lanes
	gate      gate           // holds back the other lanes
	fetches   *shares.Shares // a place for each picture from the blobs in memory; one caller may have all
	downloads *shares.Shares // a place for each picture of a call that is downloaded
	behind    *shares.Shares // a place for each picture of the background in memory
	waiting   *shares.Shares // a place for each picture of the calls that wait for downloads
	heavy     *shares.Shares // a place for each heavy picture being analysed; one caller may have all
	trainings *shares.Shares // a place for each training under way; one caller may have all
	calls     *shares.Shares // a place for each call, by caller
	pictures  *shares.Shares // a place for each picture, by caller
	done      atomic.Int64

	mu     sync.Mutex
	unread map[blob.Hash]bool // pictures that could not be read, each of which is logged once
}

// maxUnread is the maximum number of unread pictures that are logged. The log of a store without any would be as long as the store.
const maxUnread = 10_000

// worker is an analyser of each network that was asked for, and when it must give up on its
// picture.
type worker struct {
	pool      *Pool
	analysers map[[32]byte]Analyser
	limits    raster.Limits
	deadline  time.Time     // by the clock
	budget    time.Duration // by Spent

	begun time.Time // of its picture, or when that continued after a wait; zero: the gate does not hold it back
}

// New makes a pool and its analysers.
func New(o Options) *Pool {
	o.Workers, o.Fetches, o.Downloads = cmp.Or(o.Workers, 1), cmp.Or(o.Fetches, 16), cmp.Or(o.Downloads, 16)
	workers, fetches, half := int64(o.Workers), int64(o.Fetches), max(1, int64(o.Workers)/2)
	p := &Pool{
		o: o, unread: map[blob.Hash]bool{},
		fetches: shares.New(fetches, fetches), downloads: shares.New(int64(o.Downloads), 1), behind: shares.New(max(4, int64(o.Downloads)/4), 1),
		calls: shares.New(maxCalls*workers, 1), pictures: shares.New(maxPictures*workers, 1), waiting: shares.New(maxWaiting, perCall),
		heavy: shares.New(half, half), trainings: shares.New(half, half), gate: gate{workers: o.Workers},
	}
	for range o.Workers {
		w := p.newWorker()
		p.analyser(w, o.Base) // before the first picture asks for it
		p.turns.give(w)
		p.later.give(p.newWorker())
	}
	return p
}

func (p *Pool) newWorker() *worker {
	w := &worker{pool: p, analysers: map[[32]byte]Analyser{}}
	w.limits.Pause, w.limits.Expired = w.pause, w.isExpired
	return w
}

// isExpired reports whether the time of the worker's picture is over.
func (w *worker) isExpired() bool {
	w.pause()
	o := &w.pool.o
	return o.Now().After(w.deadline) || o.Spent != nil && o.Spent() > w.budget
}

// pause holds up the worker's picture where the gate holds it back.
func (w *worker) pause() {
	if w.begun.IsZero() {
		return
	}
	from := w.pool.o.Now()
	if w.pool.gate.wait(from.Sub(w.begun)) {
		w.begun = w.pool.o.Now()
		w.deadline = w.deadline.Add(w.begun.Sub(from))
	}
}

// of returns the turns of a lane.
func (p *Pool) of(l lane) *fairQueue {
	if l == front {
		return &p.turns
	}
	return &p.later
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

// Full returns an error while no more calls of a caller are taken.
func (p *Pool) Full(caller string) error {
	if !p.calls.Fits(caller, 1) {
		return p.full(caller)
	}
	return nil
}

// full returns why no more calls of a caller are taken.
func (p *Pool) full(caller string) error {
	return fmt.Errorf("%d calls are in progress, %d of the same caller: %w", p.calls.TotalInUse(), p.calls.InUse(caller), api.ErrBusy)
}

// Enter counts a call in, or returns an error that wraps api.ErrBusy. Every call that came
// in must leave.
func (p *Pool) Enter(caller string) (leave func(), err error) {
	if !p.calls.Try(caller, 1) {
		return nil, p.full(caller)
	}
	return func() { p.calls.Give(caller, 1) }, nil
}

// Waiting returns the places that calls take which wait for downloads; see maxWaiting.
func (p *Pool) Waiting() int64 { return p.waiting.TotalInUse() }

// Load returns the calls and pictures under way without those that wait for downloads, and the
// pictures done since the start.
func (p *Pool) Load() (calls, pictures, done int64) {
	return p.calls.TotalInUse(), p.pictures.TotalInUse(), p.done.Load()
}

// Run runs the jobs of one call, which all have its caller, and returns their results in order. Its error is for the
// whole call: it wraps api.ErrBusy when too many pictures wait, or when ctx was cancelled,
// auth.ErrRate when too many downloads of the caller wait, and api.ErrTimeout when
// ctx's time was over.
func (p *Pool) Run(ctx context.Context, jobs []api.Job) ([]api.Result, error) {
	caller := ""
	if len(jobs) > 0 {
		caller = jobs[0].Caller
	}
	return p.run(ctx, caller, jobs, false)
}

// run is Run for a call of a caller that has entered the pool or not. While the call waits for downloads it is
// not counted in.
func (p *Pool) run(ctx context.Context, caller string, jobs []api.Job, entered bool) ([]api.Result, error) {
	var near, far []int
	for i := range jobs {
		jobs[i].Caller = caller
		if p.far(&jobs[i]) {
			far = append(far, i)
		} else {
			near = append(near, i)
		}
	}
	if len(far) > 0 {
		leave, err := p.wait(caller, len(far))
		if err != nil {
			return nil, err
		}
		defer leave()
		if entered {
			p.calls.Give(caller, 1)
			defer p.calls.Force(caller, 1)
		}
	}
	l := front
	if len(jobs) > fewPictures {
		l = bulk
	}
	if n := int64(len(near)); n > 0 && !p.pictures.Try(caller, n) {
		pending := p.pictures.TotalInUse()
		if pending > 0 {
			return nil, fmt.Errorf("%d pictures are waiting: %w", pending, api.ErrBusy)
		}
		p.pictures.Force(caller, n) // alone it may be larger than its share
	}

	results := make([]api.Result, len(jobs))
	var wg sync.WaitGroup
	p.each(&wg, near, func(i int) {
		defer p.pictures.Give(caller, 1) // not at the end of the call, which may wait for downloads
		results[i] = p.one(ctx, l, &jobs[i], false)
	})
	p.each(&wg, far, func(i int) { results[i] = p.one(ctx, l, &jobs[i], true) })
	wg.Wait()
	err := gaveUp(ctx)
	if err != nil {
		p.release(ctx, results)
	}
	return results, err
}

// each does the jobs of one call at the given places, a few at a time.
func (p *Pool) each(wg *sync.WaitGroup, places []int, do func(i int)) {
	next := new(atomic.Int64)
	for range min(perCall, len(places)) {
		wg.Go(func() {
			for i := next.Add(1) - 1; i < int64(len(places)); i = next.Add(1) - 1 {
				do(places[i])
			}
		})
	}
}

// far reports whether a job waits for the network.
func (p *Pool) far(job *api.Job) bool {
	if job.Data != nil {
		return false
	}
	return job.URL != "" || p.o.HasPicture != nil && !p.o.HasPicture(job.Blob)
}

// goesFirst reports whether a call with these jobs holds back other work: it has few pictures, and waits for nothing else.
func (p *Pool) goesFirst(jobs []api.Job) bool {
	return len(jobs) <= fewPictures && !slices.ContainsFunc(jobs, func(j api.Job) bool { return j.Video.SampleMS > 0 || p.far(&j) })
}

// wait counts a call of a caller in that waits for n downloads.
func (p *Pool) wait(caller string, n int) (leave func(), err error) {
	places := int64(max(n, perCall)) // each call holds a connection and goroutines
	switch {
	case p.waiting.Try(caller, places):
		return func() { p.waiting.Give(caller, places) }, nil
	case p.waiting.InUse(caller) == 0:
		return nil, fmt.Errorf("too many downloads wait: %w", api.ErrBusy)
	}
	return nil, fmt.Errorf("%w: too many pictures of this application wait for their downloads", auth.ErrRate)
}

// release releases the pictures of results that nobody takes.
func (p *Pool) release(ctx context.Context, results []api.Result) {
	for i := range results {
		if h := results[i].Blob; !h.IsZero() {
			if err := p.o.Pinner.Unpin(context.WithoutCancel(ctx), h); err != nil {
				p.o.Log.Error("cannot release picture", "hash", h.String(), "error", err)
			}
		}
	}
}

// gaveUp returns the reason why a context has ended, as an error of the interface.
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
// for its turn while as many as may be are under way. When ctx ends the result's error
// wraps api.ErrBusy, and nothing is held.
func (p *Pool) Picture(ctx context.Context, job *api.Job) api.Result {
	r := p.one(ctx, back, job, true)
	if err := gaveUp(ctx); err != nil {
		p.release(ctx, []api.Result{r})
		return api.Result{Err: err}
	}
	return r
}

// Behind runs background work other than pictures on one worker. f runs while no other lane wants the worker. Every few milliseconds,
// where it can pause, f calls yield with the time that it has worked since its start or its last pause. The worker is free during yield.
// yield returns an error when ctx has ended, and f should then return.
func (p *Pool) Behind(ctx context.Context, f func(yield func(worked time.Duration) error)) error {
	w, err := p.later.take(ctx, back, "")
	if err != nil {
		return err
	}
	p.gate.move(0, 1)
	defer func() {
		p.gate.move(0, -1)
		if w != nil {
			p.later.give(w)
		}
	}()
	f(func(worked time.Duration) error {
		if w != nil {
			p.later.give(w)
			w = nil
		}
		p.gate.wait(worked)
		w, err = p.later.take(ctx, back, "")
		return err
	})
	return ctx.Err()
}

// one fetches and analyses one picture.
func (p *Pool) one(ctx context.Context, l lane, job *api.Job, far bool) (r api.Result) {
	if job.Video.SampleMS > 0 {
		return p.video(ctx, job, far)
	}
	leave, err := p.room(ctx, l, job, far)
	if err != nil {
		return api.Result{Err: gaveUp(ctx)}
	}
	defer leave()
	picture, passing, err := p.bytes(ctx, job)
	if err != nil {
		return api.Result{Err: err, Passing: passing}
	}
	if l != back && far { // from here on it is work
		p.pictures.Force(job.Caller, 1)
		defer p.pictures.Give(job.Caller, 1)
	}
	r = p.inTurn(ctx, l, picture, job)
	if r.Err == nil && job.Keep {
		p.keep(ctx, picture, &r)
	}
	return r
}

// room waits for a place in memory for a picture.
func (p *Pool) room(ctx context.Context, l lane, job *api.Job, far bool) (leave func(), err error) {
	places := p.downloads
	if l == back {
		places = p.behind
	} else if !far {
		places = p.fetches
	}
	if err := places.Take(ctx, job.Caller); err != nil {
		return nil, err
	}
	return func() { places.Give(job.Caller, 1) }, nil
}

// inTurn analyses a picture when a worker is free.
func (p *Pool) inTurn(ctx context.Context, l lane, picture []byte, job *api.Job) api.Result {
	if weight := weigh(picture); weight > heavyPixels {
		if p.heavy.Take(ctx, job.Caller) != nil {
			return api.Result{Err: gaveUp(ctx)}
		}
		defer func() {
			if weight > hugePixels {
				runtime.GC() // or the garbage of this one adds to the memory of the next
			}
			p.heavy.Give(job.Caller, 1)
		}()
	}
	return p.analyse(ctx, l, job, func(_ *worker, a Analyser) (predict.Analysis, error) { return a.Analyse(picture, job.Crop, job.Want) })
}

// keep holds an analysed picture. The worker is somebody else's by now: this waits for disks.
func (p *Pool) keep(ctx context.Context, picture []byte, r *api.Result) {
	info, err := raster.Inspect(picture)
	if err == nil {
		r.ContentType = "image/" + info.Format
		r.Blob, err = p.o.Pinner.Pin(ctx, picture)
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

// A picture that weighs more than heavyPixels takes the heavy lane. One of more than hugePixels leaves 64 MB of garbage or more, so the
// garbage is collected at once.
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
		return 0 // the decoder will return an error at once
	}
	pixels := int64(info.Width) * int64(info.Height)
	if info.Format == "jpeg" {
		pixels /= 4
	}
	return pixels
}

// bytes gets a job's picture. After an error, passing reports whether a later try may succeed.
func (p *Pool) bytes(ctx context.Context, job *api.Job) (picture []byte, passing bool, err error) {
	if job.Data != nil {
		return job.Data, false, nil
	}
	if job.URL == "" {
		b, err := p.o.Blob(ctx, job.Blob)
		switch {
		case errors.Is(err, api.ErrFetch): // the picture of another node, unavailable now
			p.o.Log.Debug("cannot get picture", "hash", job.Blob.String(), "error", err)
		case err != nil:
			p.o.Log.Log(ctx, p.unreadLevel(job.Blob), "cannot read picture", "hash", job.Blob.String(), "error", err)
		}
		return b, false, err
	}
	b, err := p.o.Fetch(ctx, job.URL)
	passing, err = p.downloadError(ctx, job.URL, err)
	return b, passing, err
}

// unreadLevel is the level at which a failed read of a picture is logged: Error the first time, Debug afterwards.
func (p *Pool) unreadLevel(h blob.Hash) slog.Level {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.unread[h] || len(p.unread) >= maxUnread {
		return slog.LevelDebug
	}
	p.unread[h] = true
	return slog.LevelError
}

// downloadError turns the error of a download into one for the caller. passing reports whether a later try may succeed.
func (p *Pool) downloadError(ctx context.Context, url string, err error) (passing bool, _ error) {
	if err == nil {
		return false, nil
	}
	if ctx.Err() != nil {
		return false, gaveUp(ctx)
	}
	if errors.Is(err, raster.ErrTooLarge) {
		return false, err
	}
	var told interface{ Cause() error }
	if errors.As(err, &told) {
		p.o.Log.Debug("cannot download", "url", url, "error", told.Cause())
	}
	var failure interface{ Passing() bool }
	return errors.As(err, &failure) && failure.Passing(), api.ErrFetch
}

// analyse has an analyser do work when a worker is free. One that panics is replaced.
func (p *Pool) analyse(ctx context.Context, l lane, job *api.Job, work func(*worker, Analyser) (predict.Analysis, error)) (r api.Result) {
	turns := p.of(l)
	w, err := turns.take(ctx, l, job.Caller)
	if err != nil {
		return api.Result{Err: gaveUp(ctx)}
	}
	defer func() {
		p.done.Add(1)
		turns.give(w)
	}()
	if l == front {
		r.Analysis, r.Err = p.attempt(&w, job, work)
		return r
	}
	p.gate.move(0, 1)
	defer p.gate.move(0, -1)
	w.begun = p.o.Now()
	var analysed sync.WaitGroup
	analysed.Go(func() {
		p.lower()
		r.Analysis, r.Err = p.attempt(&w, job, work)
	})
	analysed.Wait()
	return r
}

// lower gives the calling goroutine a thread of low priority, which ends with it: an ordinary user cannot raise the priority again.
func (p *Pool) lower() {
	if p.o.Lower != nil {
		runtime.LockOSThread()
		p.o.Lower()
	}
}

// attempt has the analyser of a worker do work within the time of a picture. It replaces the worker if that panics.
func (p *Pool) attempt(w **worker, job *api.Job, work func(*worker, Analyser) (predict.Analysis, error)) (a predict.Analysis, err error) {
	defer func() {
		if v := recover(); v != nil {
			p.o.Log.Error("panic", "job", job.URL, "blob", job.Blob.String(), "panic", fmt.Sprint(v), "stack", string(debug.Stack()))
			a, err = predict.Analysis{}, api.ErrInternal
			*w = p.newWorker()
		}
	}()
	(*w).deadline = p.o.Now().Add(pictureTime)
	if p.o.Spent != nil {
		runtime.LockOSThread() // Spent is the thread's
		defer runtime.UnlockOSThread()
		(*w).deadline = p.o.Now().Add(10 * pictureTime)
		(*w).budget = p.o.Spent() + pictureTime
	}
	return work(*w, p.analyser(*w, job.Base))
}
