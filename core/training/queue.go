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

// Partition is an application's state and the way to change it; *partition.Partition is one.
type Partition interface {
	View() *partition.View
	Submit(ctx context.Context, by string, bodies []log.Body, also func(*kv.Batch)) ([]fold.Verdict, error)
}

var _ Partition = (*partition.Partition)(nil)

// pause is how long a version waits that was tried in vain.
const pause = 5 * time.Second

// maxAttempts is how often a training may end in trouble that is not of its set's making
// before its version is given up, at 21115.
const maxAttempts = 3

// Queue hands out the trainings of one application. What is to be done stands in the
// application's state; the queue remembers only what it has handed out. It is safe for
// concurrent use.
type Queue struct {
	partition Partition
	models    Models

	mu      sync.Mutex
	seq     uint64 // of the view in which nothing was due
	idle    bool   // nothing was
	out     map[uint64]*Run
	blocker map[uint64]uint32    // by lease: the pending input that was last seen to hold it up
	tries   map[uint64]int       // by lease
	later   map[uint64]time.Time // by lease: not before
}

// NewQueue makes a queue.
func NewQueue(p Partition, m Models) *Queue {
	return &Queue{
		partition: p, models: m,
		out: map[uint64]*Run{}, blocker: map[uint64]uint32{}, tries: map[uint64]int{}, later: map[uint64]time.Time{},
	}
}

// Take hands out at most n trainings that are due at now and whose inputs are ready, in the
// order in which they were asked for. Each is out until Done. While the application does not
// change it costs one opening of a view.
func (q *Queue) Take(now time.Time, n int) ([]*Run, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	view := q.partition.View()
	defer view.Close()
	if n <= 0 || q.idle && q.seq == view.Seq() {
		return nil, nil
	}
	var waiting []catalog.Version
	if err := view.PendingVersions(func(v catalog.Version) bool {
		waiting = append(waiting, v)
		return true
	}); err != nil {
		return nil, err
	}
	q.forget(waiting)
	var runs []*Run
	q.idle, q.seq = true, view.Seq()
	for _, v := range waiting {
		if q.out[v.Seq] != nil {
			continue
		}
		if len(runs) == n || now.Before(q.later[v.Seq]) {
			q.idle = false
			continue
		}
		ready, err := q.ready(view, &v)
		if err != nil {
			q.idle = false
			return runs, err
		}
		if ready {
			run := Start(q.partition.View(), q.models, v)
			q.out[v.Seq] = run
			runs = append(runs, run)
		}
	}
	return runs, nil
}

// forget drops the notes about versions that wait no more.
func (q *Queue) forget(waiting []catalog.Version) {
	still := make(map[uint64]bool, len(waiting))
	for i := range waiting {
		still[waiting[i].Seq] = true
	}
	gone := func(lease uint64) bool { return !still[lease] }
	maps.DeleteFunc(q.blocker, func(lease uint64, _ uint32) bool { return gone(lease) })
	maps.DeleteFunc(q.tries, func(lease uint64, _ int) bool { return gone(lease) })
	maps.DeleteFunc(q.later, func(lease uint64, _ time.Time) bool { return gone(lease) })
}

// ready reports whether no input that was there when the version was asked for is still
// pending with a label for one of its concepts.
func (q *Queue) ready(view *partition.View, v *catalog.Version) (bool, error) {
	place := places(v)
	holds := func(ord uint32) (bool, error) {
		in, err := view.Input(ord)
		if errors.Is(err, catalog.ErrNotFound) {
			return false, nil
		}
		if err != nil || in.Code != catalog.InputPending || in.Created > v.Created {
			return false, err
		}
		m := judge(in.Labels, place)
		return m.signs != nil, nil
	}
	// The input that was in the way before is most likely still there.
	if ord, ok := q.blocker[v.Seq]; ok {
		if held, err := holds(ord); held || err != nil {
			return false, err
		}
		delete(q.blocker, v.Seq)
	}
	ready := true
	var failed error
	if err := view.PendingInputs(func(ord uint32) bool {
		held, err := holds(ord)
		if held {
			q.blocker[v.Seq] = ord
		}
		failed, ready = err, !held
		return ready && err == nil
	}); err != nil {
		return false, err
	}
	return ready && failed == nil, failed
}

// Done takes back, at now, a run that has ended, or that trouble from outside ended, such as
// a panic, and writes its outcome. A run without an outcome is handed out again later; the
// third time that it ends in trouble its version is given up, at 21115.
func (q *Queue) Done(ctx context.Context, now time.Time, r *Run, trouble error) error {
	r.Close()
	outcome := r.Outcome()
	if trouble == nil {
		trouble = r.Err()
	}
	lease := r.version.Seq
	if outcome == nil && ctx.Err() == nil && !errors.Is(trouble, ErrUnready) && q.tried(lease) {
		outcome = &Outcome{Result: log.VersionResult{
			Model: r.version.Model, Version: r.version.ID, Lease: lease, Code: CodeTrouble,
		}}
	}
	if outcome == nil {
		q.back(lease, now.Add(pause))
		return trouble
	}
	if err := q.submit(ctx, outcome); err != nil {
		q.back(lease, now.Add(pause))
		return fmt.Errorf("result of version %q: %w", r.version.ID, err)
	}
	q.back(lease, time.Time{})
	return trouble
}

// submit writes an outcome. A version that is no more, or that another has ended, is no error.
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

// tried counts an attempt that ended in trouble and reports whether it was the last.
func (q *Queue) tried(lease uint64) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.tries[lease]++
	return q.tries[lease] >= maxAttempts
}

// back notes that a version is no longer out, and when it may be again.
func (q *Queue) back(lease uint64, later time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.out, lease)
	q.later[lease] = later
	q.idle = false
}

// Out is how many trainings are handed out.
func (q *Queue) Out() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.out)
}
