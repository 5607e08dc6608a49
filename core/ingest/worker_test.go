package ingest_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/fold"
	"github.com/sightline-dev/sightline/core/ingest"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/kv/memkv"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/partition"
	"github.com/sightline-dev/sightline/core/predict/raster"
)

var (
	app  = catalog.AppID{1}
	base = [32]byte{2}
	noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
)

// shop is a worker and its partition on a store in memory.
type shop struct {
	testing.TB
	store  *memkv.Store
	p      *partition.Partition
	origin *partition.Origin // nil: p is a replica
	worker *ingest.Worker
	now    time.Time
}

var openings uint64

// opening returns an epoch that no other partition of the tests has.
func opening() (e log.Epoch) {
	openings++
	binary.BigEndian.PutUint64(e[:], openings)
	return e
}

func open(t testing.TB, store *memkv.Store) *shop {
	t.Helper()
	s := &shop{TB: t, store: store, worker: ingest.New(app, base), now: noon}
	var err error
	s.origin, err = partition.OpenOrigin(partition.Options{
		Store: store, App: app, Clock: func() time.Time { return s.now }, Watch: s.worker.Watch, Epoch: opening(),
	})
	if err != nil {
		t.Fatal(err)
	}
	s.p = s.origin.Partition
	if tasks, err := s.worker.Take(s.now, 9); len(tasks) > 0 || err != nil {
		t.Errorf("a worker without a partition hands out %v, %v", tasks, err)
	}
	if err := s.worker.Attach(s.p); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *shop) submit(bodies ...log.Body) []fold.Verdict {
	s.Helper()
	verdicts, err := s.p.Submit(s.Context(), "test", bodies, nil)
	if err != nil {
		s.Fatal(err)
	}
	return verdicts
}

func (s *shop) add(ids ...string) {
	s.Helper()
	for _, id := range ids {
		s.submit(&log.InputCreate{ID: id, URL: "http://x/" + id, Crop: raster.Crop{Right: 0.5, Bottom: 1}})
	}
}

// take takes up to n tasks and returns them with the ends of their URLs.
func (s *shop) take(n int) ([]ingest.Task, string) {
	s.Helper()
	tasks, err := s.worker.Take(s.now, n)
	if err != nil {
		s.Fatal(err)
	}
	ids := ""
	for _, t := range tasks {
		ids += t.URL[len("http://x/"):]
	}
	return tasks, ids
}

func (s *shop) finishTask(t ingest.Task, o ingest.Outcome) {
	s.Helper()
	if err := s.worker.Done(s.Context(), s.now, t, &o); err != nil {
		s.Fatal(err)
	}
}

func (s *shop) input(id string) catalog.Input {
	s.Helper()
	in, err := catalog.Read(s.store, app).InputByID(id)
	if err != nil {
		s.Fatal(err)
	}
	return in
}

// good returns the outcome for a downloaded picture with these bytes.
func good(picture string) ingest.Outcome {
	return ingest.Outcome{
		Code: catalog.InputReady, Blob: blob.Sum([]byte(picture)), ContentType: "image/png",
		Derived: &catalog.DerivedData{Embedding: make([]byte, 516), Values: []float32{0.5}}, Thumb: []byte("jpeg"),
	}
}

func TestInputsAreHandedOutOnceInOrder(t *testing.T) {
	s := open(t, memkv.New())
	if _, ids := s.take(5); ids != "" {
		t.Errorf("an empty queue gives %q", ids)
	}
	s.add("a", "b", "c", "d", "e")
	first, ids := s.take(2)
	if ids != "ab" {
		t.Errorf("Take(2) = %q, want ab", ids)
	}
	if want := (ingest.Task{Base: base, Dot: s.input("a").Dot, URL: "http://x/a", Crop: raster.Crop{Right: 0.5, Bottom: 1}}); first[0] != want {
		t.Errorf("a task is %+v, want %+v", first[0], want)
	}
	if _, ids = s.take(0); ids != "" {
		t.Errorf("Take(0) = %q", ids)
	}
	s.submit(&log.InputDelete{Input: s.input("d").Dot})
	if _, ids = s.take(9); ids != "ce" {
		t.Errorf("the rest is %q, want ce", ids)
	}
	if _, ids = s.take(9); ids != "" {
		t.Errorf("once more: %q", ids)
	}
	// After a start the worker hands out the unfinished inputs again.
	if _, ids = open(t, s.store).take(9); ids != "abce" {
		t.Errorf("after a start %q, want abce", ids)
	}
}

func TestDoneWritesTheWholeResult(t *testing.T) {
	s := open(t, memkv.New())
	s.add("a", "b", "c")
	tasks, _ := s.take(3)
	s.finishTask(tasks[0], good("picture"))
	s.finishTask(tasks[1], ingest.Outcome{Code: 30002, Detail: "no"})
	in := s.input("a")
	if in.Code != catalog.InputReady || in.Blob != blob.Sum([]byte("picture")) || in.ContentType != "image/png" {
		t.Errorf("record %+v", in)
	}
	r := catalog.Read(s.store, app)
	if d, err := r.DerivedOfInput(base, &in); err != nil || d.Values[0] != 0.5 {
		t.Errorf("derived %+v, %v", d, err)
	}
	if thumb, err := r.Thumb(in.Blob, in.Crop); err != nil || string(thumb) != "jpeg" {
		t.Errorf("thumbnail %q, %v", thumb, err)
	}
	if in = s.input("b"); in.Code != 30002 || in.Detail != "no" {
		t.Errorf("record %+v", in)
	}
	// The result for an input that was deleted meanwhile is dropped.
	s.submit(&log.InputDelete{Input: tasks[2].Dot})
	s.finishTask(tasks[2], good("picture"))
	if n, err := r.Counts(); err != nil || n != (catalog.Counts{Processed: 1, Errors: 1}) {
		t.Errorf("counts %+v, %v", n, err)
	}
	if _, ids := s.take(9); ids != "" {
		t.Errorf("left: %q", ids)
	}
}

func TestTemporaryFailures(t *testing.T) {
	s := open(t, memkv.New())
	s.add("a", "b")
	failure := ingest.Outcome{Code: 30002, Retry: ingest.Limited}
	tasks, _ := s.take(1)
	s.finishTask(tasks[0], failure)
	b, ids := s.take(9)
	if ids != "b" {
		t.Errorf("a waits, yet %q", ids)
	}
	for i, pause := range []time.Duration{time.Second, 5 * time.Second, 25 * time.Second} {
		s.now = s.now.Add(pause - 1)
		if _, ids := s.take(9); ids != "" {
			t.Errorf("try %d comes early: %q", i+2, ids)
		}
		s.now = s.now.Add(1)
		tasks, ids := s.take(9)
		if ids != "a" {
			t.Fatalf("try %d: %q, want a", i+2, ids)
		}
		s.finishTask(tasks[0], failure)
	}
	if in := s.input("a"); in.Code != 30002 {
		t.Errorf("after the last try a is at %d", in.Code)
	}
	// The worker retries for ever if the error has nothing to do with the picture.
	for range 20 {
		s.finishTask(b[0], ingest.Outcome{Code: 40030, Retry: ingest.Always})
		s.now = s.now.Add(time.Second)
		if b, ids = s.take(9); ids != "b" {
			t.Fatalf("left: %q, want b", ids)
		}
	}
	// The worker forgets an input that is deleted while it waits.
	s.finishTask(b[0], failure)
	s.submit(&log.InputDelete{Input: b[0].Dot})
	s.now = s.now.Add(time.Minute)
	if _, ids = s.take(9); ids != "" {
		t.Errorf("left: %q", ids)
	}
}

// fullPartition is a partition that rejects all writes.
type fullPartition struct{ *partition.Partition }

func (fullPartition) Submit(context.Context, string, []log.Body, func(*kv.Batch)) ([]fold.Verdict, error) {
	return nil, kv.ErrFull
}

func TestUnstoredResultIsWantedAgain(t *testing.T) {
	s := open(t, memkv.New())
	s.add("a")
	tasks, _ := s.take(1)
	if err := s.worker.Attach(fullPartition{s.p}); err != nil {
		t.Fatal(err)
	}
	o := good("picture")
	if err := s.worker.Done(t.Context(), s.now, tasks[0], &o); !errors.Is(err, kv.ErrFull) {
		t.Errorf("Done = %v, want the store's error", err)
	}
	if err := s.worker.Attach(s.p); err != nil {
		t.Fatal(err)
	}
	s.now = s.now.Add(time.Second)
	tasks, ids := s.take(1)
	if ids != "a" {
		t.Fatalf("Take = %q, want a again", ids)
	}
	s.finishTask(tasks[0], good("picture"))
	if in := s.input("a"); in.Code != catalog.InputReady {
		t.Errorf("a is at %d", in.Code)
	}
}

func TestPicturesOfDeletedInputsAreCandidates(t *testing.T) {
	s := open(t, memkv.New())
	s.add("failed")
	var want []blob.Hash
	for i := range 5 {
		picture := blob.Sum(fmt.Append(nil, i))
		s.submit(&log.InputCreate{ID: fmt.Sprint(i), Blob: picture, ContentType: "image/png"})
		want = append(want, picture)
	}
	for i := range 3 {
		s.submit(&log.InputDelete{Input: s.input(fmt.Sprint(i)).Dot})
	}
	s.submit(&log.InputDelete{Input: s.input("failed").Dot}) // this input has no picture
	if got, all := s.worker.TakeOrphanCandidates(2); !slices.Equal(got, want[:2]) || all {
		t.Errorf("Gone(2) = %v, %v, want %v", got, all, want[:2])
	}
	if got, all := s.worker.TakeOrphanCandidates(2); !slices.Equal(got, want[2:3]) || all {
		t.Errorf("Gone(2) = %v, %v, want %v", got, all, want[2:3])
	}
	s.submit(&log.InputDeleteAll{})
	if got, all := s.worker.TakeOrphanCandidates(2); len(got) != 0 || !all {
		t.Errorf("Gone(2) = %v, %v, want all", got, all)
	}
	if got, all := s.worker.TakeOrphanCandidates(2); len(got) != 0 || all {
		t.Errorf("Gone(2) = %v, %v, want nothing", got, all)
	}
}

// TestTakeReturnsReadErrors checks that Take returns errors of reading the queue, and that the next call reads it again.
func TestTakeReturnsReadErrors(t *testing.T) {
	s := open(t, memkv.New())
	s.add("a")
	in := s.input("a")
	s.submit(&log.InputLabels{Input: in.Dot, Labels: []log.Label{{Concept: "x", Value: log.True}}})
	if err := s.store.Close(); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := s.worker.Take(s.now, 1); !errors.Is(err, kv.ErrClosed) {
			t.Errorf("Take = %v, want kv.ErrClosed", err)
		}
	}
}

// TestReplicaTakesOnlyItsInputs checks that a replica leaves inputs of other writers to those and to the origin. A replica does not take
// its own input again when the log gives it another ordinal.
func TestReplicaTakesOnlyItsInputs(t *testing.T) {
	origin := open(t, memkv.New())
	origin.add("theirs")
	s := &shop{TB: t, store: memkv.New(), worker: ingest.New(app, base), now: noon}
	replica, err := partition.OpenReplica(partition.Options{
		Store: s.store, App: app, Clock: func() time.Time { return s.now }, Watch: s.worker.Watch, Epoch: opening(),
	}, partition.ReplicaOptions{})
	if err != nil {
		t.Fatal(err)
	}
	s.p = replica.Partition
	if err := s.worker.Attach(s.p); err != nil {
		t.Fatal(err)
	}
	pull := func() {
		t.Helper()
		l := origin.p.Log()
		r := partition.Run{Frame: partition.Frame{Epoch: l.EpochOf(l.Head()).Epoch, From: replica.Cursor().Seq, To: l.Head()}}
		err := l.Read(r.From+1, func(e log.Entry) bool {
			r.Entries, r.Rows = append(r.Entries, e), log.AppendRow(r.Rows, log.Encode(nil, &e.Op))
			return true
		})
		if err != nil {
			t.Fatal(err)
		}
		if r.Before, err = l.Chain(r.From); err == nil {
			r.Chain, err = l.Chain(r.To)
		}
		if err != nil {
			t.Fatal(err)
		}
		if _, err := replica.Pull(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	pull()
	s.add("mine")
	tasks, ids := s.take(9)
	if ids != "mine" {
		t.Fatalf("a replica takes %q", ids)
	}
	var ops []log.Op
	if err := replica.Pending(0, func(_ uint64, op log.Op) bool { ops = append(ops, op); return true }); err != nil {
		t.Fatal(err)
	}
	if _, _, err := origin.origin.Accept(t.Context(), ops, nil); err != nil {
		t.Fatal(err)
	}
	pull()
	if _, ids := s.take(9); ids != "" {
		t.Errorf("a replica takes %q again", ids)
	}
	if err := s.worker.Done(t.Context(), s.now, tasks[0], &ingest.Outcome{Code: 30002, Retry: ingest.Limited}); err != nil {
		t.Fatal(err)
	}
	s.now = s.now.Add(time.Minute)
	if _, ids := s.take(9); ids != "mine" {
		t.Errorf("a replica takes %q after a pause", ids)
	}
	if _, ids := origin.take(9); ids != "theirsmine" {
		t.Errorf("an origin takes %q", ids)
	}
}
