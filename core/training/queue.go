package training

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/fold"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/partition"
)

// Partition gives access to an application's state and changes it. *partition.Partition implements it.
type Partition interface {
	View() *partition.View
	// MadeBy reports whether operations of a writer were made here.
	MadeBy(w log.Writer) bool
	// IsResponsible reports whether this partition must do what an operation asks for.
	IsResponsible(dot log.Dot) bool
	Submit(ctx context.Context, by string, bodies []log.Body, also func(*kv.Batch)) ([]fold.Verdict, error)
}

var _ Partition = (*partition.Partition)(nil)

// pause is the time before the next attempt to train a version.
const pause = 5 * time.Second

// lead is the time in which another replica may train a version that it requested.
const lead = 15 * time.Minute

// maxAttempts is the number of failed trainings of a version after which the version ends at 21115. Failures because of the training set
// do not count.
const maxAttempts = 3

// Queue hands out the trainings of one application. The application's state has the pending ones; the queue remembers only those that it
// has handed out. It is safe for concurrent use.
type Queue struct {
	partition Partition
	models    Models

	mu      sync.Mutex
	seen    uint64 // View.Moves when nothing was due
	idle    bool   // nothing was due at seen
	out     map[log.Dot]*Run
	blocker map[log.Dot]log.Dot   // by lease: the pending input that the version was last seen to wait for
	tries   map[log.Dot]int       // number of failed attempts by lease
	later   map[log.Dot]time.Time // by lease: time before which the version is not trained
}

// leaseOf returns the lease of a version's training: the operation that requested it. An older version has no such lease;
// its place in the log, without a writer, is its lease.
func leaseOf(v *catalog.Version) log.Dot {
	if v.RequestedAt != (log.Dot{}) {
		return v.RequestedAt
	}
	return log.Dot{Seq: v.Seq}
}

// NewQueue returns a queue of the trainings of p.
func NewQueue(p Partition, m Models) *Queue {
	return &Queue{
		partition: p, models: m,
		out: map[log.Dot]*Run{}, blocker: map[log.Dot]log.Dot{}, tries: map[log.Dot]int{}, later: map[log.Dot]time.Time{},
	}
}

// Take hands out at most n due trainings with complete inputs, in the order of their requests. The caller must return each with Done. A
// replica trains only versions that its site requested. A partition with a log trains versions that other sites requested only after
// they had time to do so. The first result of a training counts. While the application does not change, a call only opens a view.
func (q *Queue) Take(now time.Time, n int) ([]*Run, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	view := q.partition.View()
	defer view.Close()
	if n <= 0 || q.idle && q.seen == view.Generation() {
		return nil, nil
	}
	waiting, err := catalog.Collect(view.PendingVersions)
	if err != nil {
		return nil, err
	}
	q.forget(waiting)
	var runs []*Run
	q.idle, q.seen = true, view.Generation()
	for _, v := range waiting {
		lease := leaseOf(&v)
		if q.out[lease] != nil || !q.partition.IsResponsible(v.RequestedAt) {
			continue
		}
		if len(runs) == n || now.Before(q.later[lease]) || now.Before(q.begins(&v)) {
			q.idle = false
			continue
		}
		ready, err := q.ready(view, &v)
		if err != nil {
			q.idle = false
			return runs, err
		}
		if ready {
			run := startRun(q.partition.View(), q.models, v)
			q.out[lease] = run
			runs = append(runs, run)
		}
	}
	return runs, nil
}

// begins returns the time from which a version may be trained here.
func (q *Queue) begins(v *catalog.Version) time.Time {
	if q.partition.MadeBy(v.RequestedAt.Writer) || v.RequestedAt == (log.Dot{}) {
		return time.Time{}
	}
	return v.Created.Time().Add(lead)
}

// forget drops the state of versions that no longer wait.
func (q *Queue) forget(waiting []catalog.Version) {
	still := make(map[log.Dot]bool, len(waiting))
	for i := range waiting {
		still[leaseOf(&waiting[i])] = true
	}
	isStale := func(lease log.Dot) bool { return !still[lease] }
	maps.DeleteFunc(q.blocker, func(lease, _ log.Dot) bool { return isStale(lease) })
	maps.DeleteFunc(q.tries, func(lease log.Dot, _ int) bool { return isStale(lease) })
	maps.DeleteFunc(q.later, func(lease log.Dot, _ time.Time) bool { return isStale(lease) })
}

// ready reports whether the version can be trained: no input with a label for one of its concepts, from before the
// request, is still pending.
func (q *Queue) ready(view *partition.View, v *catalog.Version) (bool, error) {
	place := places(v.Concepts)
	lease := leaseOf(v)
	blocks := func(in *catalog.Input, err error) (bool, error) {
		if errors.Is(err, catalog.ErrNotFound) {
			return false, nil
		}
		if err != nil || in.Code != catalog.InputPending || in.Created > v.Created {
			return false, err
		}
		m := judge(in.Labels, place)
		return m.signs != nil, nil
	}
	// The input that the version waited for before is most likely still pending.
	if dot, ok := q.blocker[lease]; ok {
		in, err := view.InputByDot(dot)
		if blocked, err := blocks(&in, err); blocked || err != nil {
			return false, err
		}
		delete(q.blocker, lease)
	}
	ready := true
	var failed error
	if err := view.PendingInputs(0, func(ord uint32) bool {
		in, err := view.Input(ord)
		blocked, err := blocks(&in, err)
		if blocked {
			q.blocker[lease] = in.Dot
		}
		failed, ready = err, !blocked
		return ready && err == nil
	}); err != nil {
		return false, err
	}
	return ready && failed == nil, failed
}

// Done returns a run to the queue, at now, and writes its outcome. trouble is an error that ended the run from outside, such as
// a panic. The queue hands out a run without an outcome again later. After the third trouble
// its version ends at 21115.
func (q *Queue) Done(ctx context.Context, now time.Time, r *Run, trouble error) error {
	r.Close()
	outcome := r.Outcome()
	if trouble == nil {
		trouble = r.Err()
	}
	lease := leaseOf(&r.version)
	if outcome == nil && ctx.Err() == nil && !errors.Is(trouble, ErrNotAnalysed) && q.countAttempt(lease) {
		outcome = &Outcome{Result: log.VersionResult{Model: r.version.Model, Version: r.version.ID, Code: CodeFailed}}
		outcome.hold(&r.version)
	}
	if outcome == nil {
		q.requeue(lease, now.Add(pause))
		return trouble
	}
	if err := q.submit(ctx, outcome); err != nil {
		q.requeue(lease, now.Add(pause))
		return fmt.Errorf("result of version %q: %w", r.version.ID, err)
	}
	q.requeue(lease, time.Time{})
	return trouble
}

// submit writes an outcome. It is not an error if the version was deleted or has ended elsewhere.
func (q *Queue) submit(ctx context.Context, o *Outcome) error {
	result := o.Result
	var also func(*kv.Batch)
	if o.Manifest != nil {
		view := q.partition.View()
		app := view.AppID()
		view.Close()
		result.Manifest = blob.Sum(o.Manifest)
		also = func(b *kv.Batch) { catalog.PutObject(b, app, o.Manifest) }
	}
	_, err := q.partition.Submit(ctx, "", []log.Body{&result}, also)
	return err
}

// countAttempt counts a failed attempt and reports whether it was the last one.
func (q *Queue) countAttempt(lease log.Dot) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.tries[lease]++
	return q.tries[lease] >= maxAttempts
}

// requeue removes a version from those handed out, and sets the time before which it is not handed out again.
func (q *Queue) requeue(lease log.Dot, later time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.out, lease)
	q.later[lease] = later
	q.idle = false
}

// Progress returns [Run.Progress] of a version's training. It returns false if the training is not handed out.
func (q *Queue) Progress(v *catalog.Version) (share float64, out bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, r := range q.out {
		if r.version.Model == v.Model && r.version.ID == v.ID {
			return r.Progress(), true
		}
	}
	return 0, false
}

// InProgress returns the number of trainings that are handed out.
func (q *Queue) InProgress() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.out)
}
