package jobs

import (
	"context"
	"encoding/binary"
	"errors"
	"log/slog"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sightline-dev/sightline/core"
	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/kv/memkv"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/partition"
	"github.com/sightline-dev/sightline/core/predict"
	"github.com/sightline-dev/sightline/core/training"
)

// school is an application with a model to train, its queue, and an engine that hands out its trainings.
type school struct {
	t     testing.TB
	p     *partition.Origin
	q     *training.Queue
	model log.Dot
	bug   atomic.Bool // a step of a training panics
	calm  atomic.Bool // a training is being handed out, so Base must not panic

	mu   sync.Mutex
	errs []error // results of Done
}

var schoolID = catalog.AppID{15: 1}

// Base implements training.Models. Every read of an embedding calls it.
func (s *school) Base() [32]byte {
	if s.bug.Load() && !s.calm.Load() {
		panic("a bug")
	}
	return [32]byte{1}
}

func (s *school) Background() ([]predict.Embedding, error) { return nil, nil }

func newSchool(t testing.TB) *school {
	t.Helper()
	s := &school{t: t}
	var err error
	s.p, err = partition.OpenOrigin(partition.Options{Store: memkv.New(), App: schoolID, Clock: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	s.q = training.NewQueue(s.p, s)
	for i := range 20 {
		concept := []string{"cat", "dog"}[i%2]
		v := make([]float32, predict.Dim)
		v[i%2], v[2+i] = 1, 0.3
		e, err := predict.NewEmbedding(v)
		if err != nil {
			t.Fatal(err)
		}
		data, err := e.MarshalBinary()
		if err != nil {
			t.Fatal(err)
		}
		hash := blob.Sum(binary.LittleEndian.AppendUint64(nil, uint64(i)))
		create := &log.InputCreate{ID: strconv.Itoa(i), URL: "http://x/" + strconv.Itoa(i), Blob: hash, Labels: []log.Label{{Concept: concept, Value: log.True}}}
		s.submit(create, func(b *kv.Batch) {
			catalog.PutDerived(b, schoolID, [32]byte{1}, hash, create.Crop, catalog.DerivedData{Embedding: data})
		})
	}
	s.model = s.submit(&log.ModelCreate{ID: "m", Concepts: []string{"cat", "dog"}}, nil)
	return s
}

func (s *school) submit(body log.Body, also func(*kv.Batch)) log.Dot {
	s.t.Helper()
	verdicts, err := s.p.Submit(context.Background(), "", []log.Body{body}, also)
	if err != nil {
		s.t.Fatal(err)
	}
	return verdicts[0].Dot
}

func (s *school) ask(version string) {
	s.t.Helper()
	s.submit(&log.VersionTrain{Model: s.model, Version: version}, nil)
}

func (s *school) code(version string) int {
	s.t.Helper()
	v := s.p.View()
	defer v.Close()
	got, err := v.Version(s.model, version)
	if err != nil {
		s.t.Fatal(err)
	}
	return got.Code
}

func (s *school) Take(now time.Time, n int) ([]core.Task, error) {
	s.calm.Store(true)
	defer s.calm.Store(false)
	runs, err := s.q.Take(now, n)
	tasks := make([]core.Task, 0, len(runs))
	for _, r := range runs {
		tasks = append(tasks, core.Task{Training: r})
	}
	return tasks, err
}

func (s *school) Done(ctx context.Context, t core.Task, r core.Result) error {
	err := s.q.Done(ctx, time.Now(), t.Training.(*training.Run), r.Training)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.errs = append(s.errs, err)
	return err
}

func (s *school) Step(context.Context, time.Time) (bool, error) { return false, nil }

// TestTrainingsRunInBackground trains several versions in the background, and then one whose training panics.
func TestTrainingsRunInBackground(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSchool(t)
		var g gauge
		panics := &panicLog{Handler: slog.DiscardHandler}
		o := options(&g, time.Second)
		o.Log = slog.New(panics)
		b := &Background{Engine: s, Pool: New(o), Now: time.Now, Pause: pause, Log: o.Log}
		ctx, stop := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		for _, id := range []string{"a", "b", "c"} {
			s.ask(id)
		}
		wg.Go(func() { b.Run(ctx) })
		time.Sleep(time.Second) // virtual
		for _, id := range []string{"a", "b", "c"} {
			if code := s.code(id); code != catalog.VersionTrained {
				t.Errorf("version %s is at %d", id, code)
			}
		}
		if b.Pool.trainings.TotalInUse() != 0 || s.q.InProgress() != 0 {
			t.Errorf("%d trainings hold a token, %d are out", b.Pool.trainings.TotalInUse(), s.q.InProgress())
		}

		s.bug.Store(true)
		s.ask("bad")
		time.Sleep(time.Minute) // virtual
		stop()
		wg.Wait()
		if code := s.code("bad"); code != training.CodeFailed || panics.n.Load() != 3 {
			t.Errorf("after %d panics the version is at %d, want %d after 3", panics.n.Load(), code, training.CodeFailed)
		}
		for _, err := range s.errs[3:] {
			if !errors.Is(err, api.ErrInternal) {
				t.Errorf("Done = %v, want %v", err, api.ErrInternal)
			}
		}
	})
}

// TestTrainingYieldsToCall starts a training while a large call uses the only worker. The program ends before the training gets the worker,
// and the version stays queued.
func TestTrainingYieldsToCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSchool(t)
		var g gauge
		o := options(&g, time.Minute)
		b := &Background{Engine: s, Pool: New(o), Now: time.Now, Pause: pause, Log: o.Log}
		ctx, stop := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() { _, _ = b.Pool.Run(ctx, urls(fewPictures+1)) })
		synctest.Wait()
		s.ask("a")
		wg.Go(func() { b.Run(ctx) })
		time.Sleep(30 * time.Second) // virtual
		if code := s.code("a"); code != catalog.VersionQueued {
			t.Errorf("the version is at %d while a call has the worker", code)
		}
		stop()
		wg.Wait()
		if code := s.code("a"); code != catalog.VersionQueued || len(s.errs) != 0 {
			t.Errorf("the version is at %d, %v", code, s.errs)
		}
	})
}
