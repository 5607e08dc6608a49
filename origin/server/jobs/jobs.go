// Package jobs fetches and analyses pictures on behalf of API calls.
//
//	call ── jobs ──▶ few at a time of one call ──▶ blobs ──────▶ analysers, one a core ──▶ results
//	 │                                        └──▶ downloads ──▲   first come, first served
//	 └ turn: bounded calls, the others wait, else busy         │
//	                          large calls, films, background ──┴▶ other analysers, one a core, behind a gate
//
// Calls with few pictures go first. All other work has its own analysers, on threads of low priority, so such a call never waits for one.
// Other work also pauses in the middle of a picture or a training while calls with few pictures need the cores. A pause takes at most ten
// times as long as the work before it.
//
// The callers are accounts and applications of the operator. They share the calls and the pictures that may be in progress, and take turns
// at the analysers. So a flood of one caller neither takes all places nor makes the others wait behind it.
//
// A call that waits for downloads is not work: it counts neither against maxCalls nor against maxPictures. Downloads have their own limits,
// which callers share: one caller takes at most half of the places that the others leave. So the slow URLs of one caller delay only its own
// calls.
//
// The engine has one thread and starts no others, so this package provides its parallelism. One core does all work on a picture, from its
// bytes to its concepts, so the picture stays in that core's cache. Several pictures use several cores. One call never has more than a few
// pictures in the queue, so a call of 128 does not hold up a call of one. Pictures that cost as much as a hundred photos use at most half
// of the cores. The pool fetches and analyses picture by picture, so the bytes of a call's pictures are never all in memory.
//
// If an analysis panics, only its picture fails. The pool replaces the analyser.
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
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/predict"
	"github.com/sightline-dev/sightline/core/predict/raster"
	"github.com/sightline-dev/sightline/core/shares"
)

// Analyser turns pictures into analyses, one at a time. *predict.Analyser implements it.
type Analyser interface {
	Analyse(picture []byte, c raster.Crop, w predict.Want) (predict.Analysis, error)
	AnalysePlanes(p raster.Planes, c raster.Crop, w predict.Want) (predict.Analysis, error)
	AnalyseFrame(f *raster.Frames, w predict.Want) (predict.Analysis, error)
}

var _ Analyser = (*predict.Analyser)(nil)

// Pinner keeps pictures in the blobs until the receiver of a result claims them. *blob.HostedNames implements it.
type Pinner interface {
	// Pin stores data durably and keeps it until Unpin.
	Pin(ctx context.Context, data []byte) (blob.Hash, error)
	Unpin(ctx context.Context, h blob.Hash) error
}

var _ Pinner = (*blob.HostedNames)(nil)

// Options are the settings of a [Pool]. NewAnalyser, Fetch, Blob, Now and Log are required. Pinner is required if a job sets Keep, and
// Videos if a job has a video or a picture that package raster does not decode.
type Options struct {
	NewAnalyser func(base [32]byte, l raster.Limits) Analyser          // makes an analyser of the network base for one thread
	Blob        func(ctx context.Context, h blob.Hash) ([]byte, error) // reads a stored or an origin's picture; api.ErrFetch if unavailable
	HasPicture  func(h blob.Hash) bool                                 // reports whether Blob needs no download; nil: it never downloads
	Pinner      Pinner                                                 // keeps the pictures of inputs
	Videos      Videos                                                 // decodes the videos of calls, and pictures that need a module
	Now         func() time.Time                                       // the clock
	Log         *slog.Logger                                           // causes of failed fetches at Debug, panics at Error

	// Fetch downloads a picture for an application.
	Fetch func(ctx context.Context, app catalog.AppID, url string) ([]byte, error)

	Base      [32]byte // base model of the newest network
	Workers   int      // number of analyses at once; 0 means 1
	Fetches   int      // number of pictures from the blobs in memory; 0 means 16
	Downloads int      // number of pictures of calls being downloaded, or downloaded and waiting; 0 means 16

	// ThreadTime returns the processor time that the calling thread has used. The pool limits a picture's processor time, so a busy machine
	// fails no picture that an idle one analyses. The limit by the clock is ten times as long. nil: the pool limits the time by the clock
	// alone.
	ThreadTime func() time.Duration

	// LowerPriority gives the calling thread a low priority for good. The pool calls it for pictures outside the front lane and for
	// trainings. Steps of an engine keep their priority, because they hold locks that calls wait for. nil: all threads keep their priority.
	LowerPriority func()
}

// Limits of a pool.
const (
	perCall     = 8                       // pictures of one call at once, and as many downloads of it
	fewPictures = 4                       // maximum number of pictures of a call that goes first
	maxCalls    = 32                      // calls with pictures for each worker, without calls that wait for downloads, and as many without pictures
	maxPictures = 512                     // unfinished pictures of calls for each worker, without downloads
	maxWaiting  = 2048                    // pictures of calls that wait for downloads; a call counts as at least perCall
	pictureTime = 1500 * time.Millisecond // limit of one analysis, measured by ThreadTime
)

// Pool runs jobs. It is safe for concurrent use and starts goroutines only inside Run.
type Pool struct {
	o         Options
	turns     fairQueue      // hands out analysers to the front lane
	later     fairQueue      // hands out analysers to the other lanes
	gate      gate           // holds back the other lanes
	fetches   *shares.Shares // places for pictures from the blobs in memory; one caller may have all
	downloads *shares.Shares // places for pictures of calls that are downloaded
	behind    *shares.Shares // places for background pictures in memory
	waiting   *shares.Shares // places for pictures of calls that wait for downloads
	heavy     *shares.Shares // places for heavy pictures being analysed; one caller may have all
	trainings *shares.Shares // places for trainings in progress; one caller may have all
	calls     *shares.Shares // places for calls with pictures, by caller
	brief     *shares.Shares // places for other calls, by caller
	queue     *shares.Shares // places for calls that wait for one of the two, by caller
	pictures  *shares.Shares // places for pictures, by caller
	pauses    *shares.Shares // places for calls that wait for the analysis of an input
	done      atomic.Int64

	mu     sync.Mutex
	unread map[blob.Hash]bool // unreadable pictures that were logged, so that each is logged once
}

// maxUnread is the maximum number of unread pictures that are logged as errors. Otherwise a store that lost all pictures would log each
// one.
const maxUnread = 10_000

// worker holds an analyser for each requested network, and the time limits of its current picture.
type worker struct {
	pool      *Pool
	analysers map[[32]byte]Analyser
	limits    raster.Limits
	deadline  time.Time     // time limit by the clock
	budget    time.Duration // time limit by ThreadTime

	begun time.Time // start of its picture, or the end of its last pause; zero: the gate does not pause it
}

// New returns a pool with one analyser of the base network for each worker.
func New(o Options) *Pool {
	o.Workers, o.Fetches, o.Downloads = cmp.Or(o.Workers, 1), cmp.Or(o.Fetches, 16), cmp.Or(o.Downloads, 16)
	workers, fetches, half := int64(o.Workers), int64(o.Fetches), max(1, int64(o.Workers)/2)
	p := &Pool{
		o: o, unread: map[blob.Hash]bool{},
		fetches: shares.New(fetches, fetches), downloads: shares.New(int64(o.Downloads), 1), behind: shares.New(max(4, int64(o.Downloads)/4), 1),
		calls: shares.New(maxCalls*workers, 1), brief: shares.New(maxCalls*workers, 1), queue: shares.New(maxQueue, 1), pictures: shares.New(maxPictures*workers, 1), waiting: shares.New(maxWaiting, perCall),
		pauses: shares.New(maxPauses, 1), heavy: shares.New(half, half), trainings: shares.New(half, half), gate: gate{workers: o.Workers},
	}
	for range o.Workers {
		w := p.newWorker()
		p.analyser(w, o.Base) // load it before the first picture needs it
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

// isExpired reports whether the time limit of the worker's picture has passed. It first pauses if the gate requires it.
func (w *worker) isExpired() bool {
	w.pause()
	o := &w.pool.o
	return o.Now().After(w.deadline) || o.ThreadTime != nil && o.ThreadTime() > w.budget
}

// pause waits while the gate pauses the worker's picture, and extends the picture's deadline by the pause.
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

// of returns the queue for the analysers of lane l.
func (p *Pool) of(l lane) *fairQueue {
	if l == front {
		return &p.turns
	}
	return &p.later
}

// analyser returns the worker's analyser for the network base. It makes the analyser on first use. A zero base means the pool's network.
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

// Full returns an error that wraps api.ErrBusy if a further call of the caller with pictures would not even wait.
func (p *Pool) Full(caller string) error {
	if !p.calls.Fits(caller, 1) && !p.queue.Fits(caller, 1) {
		return fmt.Errorf("%d calls wait, %d of the same caller: %w", p.queue.TotalInUse(), p.queue.InUse(caller), api.ErrBusy)
	}
	return nil
}

// Waiting returns the number of places in use by calls that wait for downloads; see maxWaiting.
func (p *Pool) Waiting() int64 { return p.waiting.TotalInUse() }

// Queued returns the number of calls that wait for a place.
func (p *Pool) Queued() int64 { return p.queue.TotalInUse() }

// Load returns the calls and pictures in progress, without those that wait for downloads, and the number of pictures done since the start.
func (p *Pool) Load() (calls, pictures, done int64) {
	return p.brief.TotalInUse() + p.calls.TotalInUse(), p.pictures.TotalInUse(), p.done.Load()
}

// Run runs the jobs of one call and returns their results in order. The first job's caller counts for all. An error concerns the whole
// call. It wraps api.ErrBusy if too many pictures wait or ctx was cancelled, auth.ErrRate if too many downloads of the caller wait, and
// api.ErrTimeout if ctx's deadline has passed.
func (p *Pool) Run(ctx context.Context, jobs []api.Job) ([]api.Result, error) {
	caller := ""
	if len(jobs) > 0 {
		caller = jobs[0].Caller
	}
	return p.run(ctx, caller, jobs, nil)
}

// run implements Run. t is the place of the call, or nil. While the call waits for downloads, the pool does not count it.
func (p *Pool) run(ctx context.Context, caller string, jobs []api.Job, t *turn) ([]api.Result, error) {
	if isPause(jobs) {
		return []api.Result{{Err: p.pause(ctx, caller, jobs[0].Wait, t)}}, nil
	}
	var near, far []int
	for i := range jobs {
		jobs[i].Caller = caller
		if p.needsDownload(&jobs[i]) {
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
		defer t.pause()()
	}
	l := front
	if len(jobs) > fewPictures {
		l = bulk
	}
	if n := int64(len(near)); n > 0 {
		if err := p.takePictures(ctx, caller, n); err != nil {
			return nil, err
		}
	}

	results := make([]api.Result, len(jobs))
	var wg sync.WaitGroup
	p.each(&wg, near, func(i int) {
		defer p.pictures.Release(caller, 1) // return each place at once, because the call may still wait for downloads
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

// takePictures takes n places for pictures of a caller, and waits for them like a turn.
func (p *Pool) takePictures(ctx context.Context, caller string, n int64) error {
	if p.pictures.TotalInUse() == 0 {
		p.pictures.Force(caller, n) // a single call may be larger than the caller's share
		return nil
	}
	if !takeInTurn(ctx, p.pictures, caller, n) {
		return fmt.Errorf("%d pictures are waiting: %w", p.pictures.TotalInUse(), api.ErrBusy)
	}
	return nil
}

// each calls do for each of the places, a few at a time, on goroutines of wg.
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

// needsDownload reports whether the picture of a job must be downloaded.
func (p *Pool) needsDownload(job *api.Job) bool {
	if job.Data != nil {
		return false
	}
	return job.URL != "" || p.o.HasPicture != nil && !p.o.HasPicture(job.Blob)
}

// hasPriority reports whether a call with these jobs goes before other work: it has few pictures, none that takes long to decode, no videos,
// no downloads and no pause.
func (p *Pool) hasPriority(jobs []api.Job) bool {
	return !isPause(jobs) && len(jobs) <= fewPictures && !slices.ContainsFunc(jobs, func(j api.Job) bool { return isLong(j) || p.needsDownload(&j) })
}

// wait reserves places for a call that waits for n downloads. leave returns the places.
func (p *Pool) wait(caller string, n int) (leave func(), err error) {
	places := int64(max(n, perCall)) // each call holds a connection and goroutines
	switch {
	case p.waiting.TryAcquire(caller, places):
		return func() { p.waiting.Release(caller, places) }, nil
	case p.waiting.InUse(caller) == 0:
		return nil, fmt.Errorf("too many downloads wait: %w", api.ErrBusy)
	}
	return nil, fmt.Errorf("%w: too many pictures of this application wait for their downloads", auth.ErrRate)
}

// release unpins the pictures of results that no caller receives.
func (p *Pool) release(ctx context.Context, results []api.Result) {
	for i := range results {
		if h := results[i].Blob; !h.IsZero() {
			if err := p.o.Pinner.Unpin(context.WithoutCancel(ctx), h); err != nil {
				p.o.Log.Error("cannot release picture", "hash", h.String(), "error", err)
			}
		}
	}
}

// gaveUp returns an API error with the reason why ctx has ended, or nil if it has not.
func gaveUp(ctx context.Context) error {
	switch err := context.Cause(ctx); {
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("%w: send fewer pictures at once", api.ErrTimeout)
	case err != nil:
		return fmt.Errorf("the server is stopping: %w", api.ErrBusy)
	}
	return nil
}

// RunBackgroundJob does one background job. Jobs of requests go first. It waits until the background has a free place. If ctx ends, the
// result's error wraps api.ErrBusy, and no picture stays pinned.
func (p *Pool) RunBackgroundJob(ctx context.Context, job *api.Job) api.Result {
	r := p.one(ctx, back, job, true)
	if err := gaveUp(ctx); err != nil {
		p.release(ctx, []api.Result{r})
		return api.Result{Err: err}
	}
	return r
}

// RunBackground runs background work other than pictures on one worker. f runs while no other lane wants the worker. Every few
// milliseconds, where it can pause, f must call yield with the time that it has worked since its start or its last pause. The worker is
// free during yield. If ctx has ended, yield returns an error, and f should then return.
func (p *Pool) RunBackground(ctx context.Context, f func(yield func(worked time.Duration) error)) error {
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

// one fetches and analyses the picture of a job. far reports whether the picture must be downloaded.
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
	if l != back && far { // from here on the picture counts as work
		p.pictures.Force(job.Caller, 1)
		defer p.pictures.Release(job.Caller, 1)
	}
	r = p.picture(ctx, l, picture, job)
	if r.Err == nil && job.Keep {
		p.keep(ctx, picture, &r)
	}
	return r
}

// room waits for a place in memory for a picture. leave returns the place.
func (p *Pool) room(ctx context.Context, l lane, job *api.Job, far bool) (leave func(), err error) {
	places := p.downloads
	if l == back {
		places = p.behind
	} else if !far {
		places = p.fetches
	}
	if err := places.Acquire(ctx, job.Caller, 1); err != nil {
		return nil, err
	}
	return func() { places.Release(job.Caller, 1) }, nil
}

// inTurn analyses a picture once a worker is free.
func (p *Pool) inTurn(ctx context.Context, l lane, picture []byte, job *api.Job) api.Result {
	if weight := weigh(picture); weight > heavyPixels {
		if p.heavy.Acquire(ctx, job.Caller, 1) != nil {
			return api.Result{Err: gaveUp(ctx)}
		}
		defer func() {
			if weight > hugePixels {
				runtime.GC() // otherwise this picture's garbage adds to the memory of the next
			}
			p.heavy.Release(job.Caller, 1)
		}()
	}
	return p.analyse(ctx, l, job, func(_ *worker, a Analyser) (predict.Analysis, error) { return a.Analyse(picture, job.Crop, job.Want) })
}

// keep pins an analysed picture. The worker is already free, because keep waits for disks.
func (p *Pool) keep(ctx context.Context, picture []byte, r *api.Result) {
	t, err := raster.InspectPicture(picture)
	if err == nil {
		r.ContentType = t.MediaType
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

// A picture that weighs more than heavyPixels needs a place in Pool.heavy. A picture of more than hugePixels leaves at least 64 MB of
// garbage, which is collected at once.
const (
	heavyPixels = 4 << 20
	hugePixels  = 16 << 20
)

// weigh returns the number of pixels that picture costs. A heavy picture costs many times as much as a photo: hundreds of megabytes and up
// to seconds. Heavy pictures use half of the workers, so the others are analysed at once. The decoder reduces a JPEG, also that of camera raw, to an
// eighth of its size or less and keeps only a few rows. For the other formats libraries keep all pixels.
func weigh(picture []byte) int64 {
	info, err := raster.Inspect(picture)
	if err != nil {
		return 0 // the decoder will return an error at once
	}
	pixels := int64(info.Width) * int64(info.Height)
	if info.Format == "jpeg" || info.Format == "raw" {
		pixels /= 4
	}
	return pixels
}

// bytes returns the picture of a job. After an error, passing reports whether a later try may succeed.
func (p *Pool) bytes(ctx context.Context, job *api.Job) (picture []byte, passing bool, err error) {
	if job.Data != nil {
		return job.Data, false, nil
	}
	if job.URL == "" {
		b, err := p.o.Blob(ctx, job.Blob)
		switch {
		case errors.Is(err, api.ErrFetch), errors.Is(err, blob.ErrUnavailable), ctx.Err() != nil: // another machine has the picture, or the caller has left
			p.o.Log.Debug("cannot get picture", "hash", job.Blob.String(), "error", err)
		case err != nil:
			p.o.Log.Log(ctx, p.unreadLevel(job.Blob), "cannot read picture", "hash", job.Blob.String(), "error", err)
		}
		return b, false, err
	}
	b, err := p.o.Fetch(ctx, job.App, job.URL)
	passing, err = p.downloadError(ctx, job.URL, err)
	return b, passing, err
}

// unreadLevel returns the level for logging a failed read of a picture: Error the first time, Debug afterwards.
func (p *Pool) unreadLevel(h blob.Hash) slog.Level {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.unread[h] || len(p.unread) >= maxUnread {
		return slog.LevelDebug
	}
	p.unread[h] = true
	return slog.LevelError
}

// downloadError converts the error of a download into one for the API. passing reports whether a later try may succeed.
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
	var causer interface{ Cause() error }
	if errors.As(err, &causer) {
		p.o.Log.Debug("cannot download", "url", url, "error", causer.Cause())
	}
	var failure interface{ Retryable() bool }
	passing = errors.As(err, &failure) && failure.Retryable()
	var answer interface{ Reason() string }
	if errors.As(err, &answer) && answer.Reason() != "" {
		return passing, api.DownloadError(answer.Reason())
	}
	return passing, api.ErrFetch
}

// analyse calls work with an analyser once a worker is free. If work panics, the worker is replaced.
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

// lower gives the calling goroutine's thread a low priority. The thread ends with the goroutine, because an ordinary user cannot raise the
// priority again.
func (p *Pool) lower() {
	if p.o.LowerPriority != nil {
		runtime.LockOSThread()
		p.o.LowerPriority()
	}
}

// attempt calls work with the worker's analyser, within the time limit of a picture. If work panics, attempt replaces the worker.
func (p *Pool) attempt(w **worker, job *api.Job, work func(*worker, Analyser) (predict.Analysis, error)) (a predict.Analysis, err error) {
	defer func() {
		if v := recover(); v != nil {
			p.o.Log.Error("panic", "job", job.URL, "blob", job.Blob.String(), "panic", fmt.Sprint(v), "stack", string(debug.Stack()))
			a, err = predict.Analysis{}, api.ErrInternal
			*w = p.newWorker()
		}
	}()
	(*w).deadline = p.o.Now().Add(pictureTime)
	if p.o.ThreadTime != nil {
		runtime.LockOSThread() // ThreadTime measures the calling thread
		defer runtime.UnlockOSThread()
		(*w).deadline = p.o.Now().Add(10 * pictureTime)
		(*w).budget = p.o.ThreadTime() + pictureTime
	}
	return work(*w, p.analyser(*w, job.Base))
}
