package reembed

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"testing"
	"testing/iotest"
	"time"

	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/fold"
	"github.com/sightline-dev/sightline/core/index"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/kv/memkv"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/partition"
	"github.com/sightline-dev/sightline/core/predict"
	"github.com/sightline-dev/sightline/core/training"
)

// network has only the base of a network.
type network struct{ base [32]byte }

func (n network) Base() [32]byte                           { return n.base }
func (n network) Background() ([]predict.Embedding, error) { return nil, nil }

var (
	app  = catalog.AppID{15: 1}
	old  = network{[32]byte{1}}
	next = network{[32]byte{2}}
)

// numbers is a random source without chance.
type numbers struct{ n byte }

func (r *numbers) Read(p []byte) (int, error) {
	for i := range p {
		r.n++
		p[i] = r.n
	}
	return len(p), nil
}

// world is an application that the old network serves.
type world struct {
	t     testing.TB
	store *memkv.Store
	now   time.Time
	p     *partition.Origin
	w     *Worker
	n     int // inputs made
}

func newWorld(t testing.TB, inputs int) *world {
	t.Helper()
	w := &world{t: t, store: memkv.New(), now: time.Unix(1_700_000_000, 0)}
	w.open()
	w.do(nil, &log.NetworkSwitch{Base: old.base})
	for range inputs {
		w.add()
	}
	return w
}

// open opens the application as after a start of a program with the next network.
func (w *world) open() {
	w.t.Helper()
	space := func(n network) index.Space { return index.Space{Base: n.base, Concepts: []string{"ai_x"}} }
	to := space(next)
	p, err := partition.OpenOrigin(partition.Options{
		Store: w.store, App: app, Clock: func() time.Time { return w.now }, Index: &index.Options{Space: space(old), Next: &to},
	})
	if err != nil {
		w.t.Fatal(err)
	}
	w.p, w.w = p, New(Options{App: app, Partition: p.Partition, Models: next, Rand: &numbers{}})
}

func (w *world) do(also func(*kv.Batch), body log.Body) log.Dot {
	w.t.Helper()
	w.now = w.now.Add(time.Millisecond)
	verdicts, err := w.p.Submit(context.Background(), "test", []log.Body{body}, also)
	if err != nil || verdicts[0].Code != fold.OK {
		w.t.Fatalf("%T: %+v, %v", body, verdicts, err)
	}
	return verdicts[0].Dot
}

// derivedRecord returns the derived record that a network computes for the n-th input.
func (w *world) derivedRecord(n int) catalog.DerivedData {
	w.t.Helper()
	v := make([]float32, predict.Dim)
	v[n%2], v[2+n%100] = 1, 0.3
	e, err := predict.NewEmbedding(v)
	if err != nil {
		w.t.Fatal(err)
	}
	data, err := e.MarshalBinary()
	if err != nil {
		w.t.Fatal(err)
	}
	return catalog.DerivedData{Embedding: data, Values: []float32{0.5}}
}

// add adds an input that the old network has analysed, of one of two concepts in turn.
func (w *world) add() log.Dot {
	w.t.Helper()
	n := w.n
	w.n++
	hash := blob.Sum(binary.LittleEndian.AppendUint64(nil, uint64(n)))
	create := &log.InputCreate{
		ID: fmt.Sprint(n), URL: fmt.Sprintf("http://x/%d", n), Blob: hash, Labels: []log.Label{{Concept: fmt.Sprint("c", n%2), Value: log.True}},
	}
	return w.do(func(b *kv.Batch) { catalog.PutDerived(b, app, old.base, hash, create.Crop, w.derivedRecord(n)) }, create)
}

// take takes what is due once a look is.
func (w *world) take(n int) []Task {
	w.t.Helper()
	w.now = w.now.Add(lookEvery)
	tasks, err := w.w.Take(w.now, n)
	if err != nil {
		w.t.Fatal(err)
	}
	return tasks
}

// analyse brings tasks to their end.
func (w *world) analyse(tasks ...Task) {
	w.t.Helper()
	for _, task := range tasks {
		d := w.derivedRecord(int(task.Ord))
		if err := w.w.Done(w.now, task, &d, Unreadable); err != nil {
			w.t.Fatal(err)
		}
	}
}

// progress sees how far the worker says it is.
func (w *world) progress(done, failed, all uint64, serving bool) {
	w.t.Helper()
	if d, f, a, s := w.w.Progress(); d != done || f != failed || a != all || s != serving {
		w.t.Errorf("%d done and %d failed of %d, serving %v; want %d, %d, %d, %v", d, f, a, s, done, failed, all, serving)
	}
}

// change asks for the change and sees whether it is made.
func (w *world) change(want bool) {
	w.t.Helper()
	done, err := w.w.Switch(context.Background())
	if err != nil || done != want {
		w.t.Fatalf("Switch = %v, %v, want %v", done, err, want)
	}
}

func TestEveryInputIsTakenOnce(t *testing.T) {
	w := newWorld(t, 5)
	w.progress(0, 0, 0, true) // nothing is known
	first := w.take(2)
	rest := w.take(10)
	if len(first) != 2 || len(rest) != 3 || len(w.take(10)) != 0 {
		t.Fatalf("taken %d and %d, want 2 and 3 and no more", len(first), len(rest))
	}
	seen := map[uint32]bool{}
	for _, task := range append(first, rest...) {
		if seen[task.Ord] || task.Blob.IsZero() || task.Dot == (log.Dot{}) {
			t.Errorf("task %+v", task)
		}
		seen[task.Ord] = true
	}
	w.progress(0, 0, 5, false)
	w.analyse(first...)
	w.progress(2, 0, 5, false)
	if w.w.HasAnalysedAll() {
		t.Error("all is analysed while three pictures are out")
	}
	w.change(false)
	w.analyse(rest...)
	w.add() // by the old network alone, after the last look
	if more := w.take(10); len(more) != 1 {
		t.Fatalf("%d tasks for a new input", len(more))
	} else {
		w.analyse(more...)
	}
	w.take(10)
	w.progress(6, 0, 6, false)
	if !w.w.HasAnalysedAll() || w.w.Serving() {
		t.Errorf("analysed %v, serving %v", w.w.HasAnalysedAll(), w.w.Serving())
	}
	w.change(true)
	if !w.w.Serving() {
		t.Error("the next network does not serve after the change")
	}
	v := w.p.View()
	defer v.Close()
	if h, err := v.Header(); err != nil || h.Base != next.base {
		t.Errorf("base %x, %v", h.Base, err)
	}
}

// A kill loses what was out, and nothing else.
func TestRestartContinues(t *testing.T) {
	w := newWorld(t, 4)
	tasks := w.take(3)
	w.analyse(tasks[0])
	w.open()
	left := w.take(10)
	if len(left) != 3 {
		t.Fatalf("%d tasks after the start, want 3", len(left))
	}
	w.progress(1, 0, 4, false)
	w.analyse(left...)
	w.open()
	if len(w.take(10)) != 0 || !w.w.HasAnalysedAll() {
		t.Error("something is left to do")
	}
	w.change(true)
	w.open()
	w.take(1)
	w.progress(4, 0, 4, true)
}

func TestUnreadablePictures(t *testing.T) {
	w := newWorld(t, 2)
	tasks := w.take(2)
	w.analyse(tasks[0])
	bad := tasks[1]
	for range 5 { // what passes does not count
		if err := w.w.Done(w.now, bad, nil, Transient); err != nil {
			t.Fatal(err)
		}
		if again := w.take(1); len(again) != 1 || again[0].Ord != bad.Ord {
			t.Fatalf("tasks %+v after trouble that passes", again)
		}
	}
	for try := 1; try <= maxTries; try++ {
		w.progress(1, 0, 2, false)
		if err := w.w.Done(w.now, bad, nil, Unreadable); err != nil {
			t.Fatal(err)
		}
		if again := w.take(1); len(again) == 1 != (try < maxTries) {
			t.Fatalf("tasks %+v after %d tries", again, try)
		}
	}
	w.progress(1, 1, 2, false)
	if !w.w.HasAnalysedAll() {
		t.Error("a picture given up holds up the change")
	}
	w.change(true)
	w.open() // the next start tries again, for the network that serves
	if again := w.take(1); len(again) != 1 || again[0].Ord != bad.Ord {
		t.Errorf("tasks %+v after a start", again)
	}
}

// TestRefusedRecords: if the store refuses a record, its picture has not failed and is due again.
func TestRefusedRecords(t *testing.T) {
	w := newWorld(t, 1)
	if err := w.p.Close(); err != nil {
		t.Fatal(err)
	}
	for range maxTries + 1 {
		tasks := w.take(1)
		if len(tasks) != 1 {
			t.Fatalf("tasks %+v, want the input", tasks)
		}
		d := w.derivedRecord(0)
		if err := w.w.Done(w.now, tasks[0], &d, Unreadable); !errors.Is(err, kv.ErrClosed) {
			t.Fatalf("Done = %v, want ErrClosed", err)
		}
	}
}

// TestMissingPictures: a missing picture is tried again after pauses that double. It holds up neither the others nor the change.
func TestMissingPictures(t *testing.T) {
	w := newWorld(t, 2)
	tasks := w.take(2)
	w.analyse(tasks[0])
	var tried []int
	for second, due := 0, tasks[1:]; second < 3*3600; second++ {
		for _, task := range due {
			tried = append(tried, second)
			if err := w.w.Done(w.now, task, nil, Missing); err != nil {
				t.Fatal(err)
			}
		}
		if w.w.Missing() != 1 {
			t.Fatalf("%d pictures are missing", w.w.Missing())
		}
		due = w.take(2)
	}
	if want := "[0 1 3 7 15 31 63 127 255 511 1023 2047 4095 7695]"; fmt.Sprint(tried) != want {
		t.Errorf("tried at %v, want %s", tried, want)
	}
	w.progress(1, 1, 2, false)
	w.change(true)
	w.do(nil, &log.InputDelete{Input: tasks[1].Dot})
	w.take(1)
	if n := w.w.Missing(); n != 0 {
		t.Errorf("%d pictures are missing after the deletion", n)
	}
}

func TestDeletedInputsAreLeftOut(t *testing.T) {
	w := newWorld(t, 3)
	first := w.take(1)
	v := w.p.View()
	second, err := v.Input(first[0].Ord + 1)
	v.Close()
	if err != nil {
		t.Fatal(err)
	}
	w.do(nil, &log.InputDelete{Input: first[0].Dot})
	w.do(nil, &log.InputDelete{Input: second.Dot})
	w.analyse(first...) // its result comes to nothing
	if rest := w.take(10); len(rest) != 1 || rest[0].Ord != first[0].Ord+2 {
		t.Fatalf("tasks %+v, want the third input", rest)
	} else {
		w.analyse(rest...)
	}
	w.take(1)
	w.progress(1, 0, 1, false)
	w.change(true)
}

// trainOld creates a model and trains a version of it with the old network. It returns the model.
func (w *world) trainOld(version string) log.Dot {
	w.t.Helper()
	model := w.do(nil, &log.ModelCreate{ID: "m", Concepts: []string{"c0", "c1"}})
	w.do(nil, &log.VersionTrain{Model: model, Version: version})
	q := training.NewQueue(w.p, old)
	runs, err := q.Take(w.now, 1)
	if err != nil || len(runs) != 1 {
		w.t.Fatalf("%d runs, %v", len(runs), err)
	}
	finish(runs[0])
	if err := q.Done(w.t.Context(), w.now, runs[0], nil); err != nil {
		w.t.Fatal(err)
	}
	return model
}

// TestVersionsAreRetrained trains a model with the old network. The renewal must train it again with the next network.
func TestVersionsAreRetrained(t *testing.T) {
	w := newWorld(t, 20)
	model := w.trainOld("one")
	w.analyse(w.take(100)...)
	w.take(1)
	if !w.w.HasAnalysedAll() {
		t.Fatal("something is left to be analysed")
	}
	w.change(false) // its version is the old network's

	anew := func() *training.Run {
		t.Helper()
		runs, err := w.w.Trainings(w.now, 5)
		if err != nil || len(runs) != 1 {
			t.Fatalf("%d trainings, %v, want one", len(runs), err)
		}
		return runs[0]
	}
	run := anew()
	if more, err := w.w.Trainings(w.now, 5); err != nil || len(more) != 0 {
		t.Errorf("%d more trainings, %v", len(more), err)
	}
	w.change(false) // it is out
	trouble := errors.New("a panic")
	if err := w.w.EndRun(run, trouble); !errors.Is(err, trouble) {
		t.Errorf("Trained = %v", err)
	}
	run = anew()
	finish(run)
	if err := w.w.EndRun(run, nil); err != nil {
		t.Fatal(err)
	}
	w.change(true)
	v := w.p.View()
	defer v.Close()
	current, err := v.CurrentVersion(model)
	if err != nil || current.ID == "one" {
		t.Fatalf("current version %q, %v", current.ID, err)
	}
	if m, err := v.Manifest(&current); err != nil || m.Base != next.base || m.Version != current.ID || len(m.Inputs) != 20 {
		t.Errorf("manifest of %q by %x with %d inputs, %v", m.Version, m.Base, len(m.Inputs), err)
	}
	if _, err := v.Version(model, "one"); err != nil {
		t.Errorf("the old version: %v", err)
	}
}

// TestVersionsAfterSwitchAreRetrained adds a version of the old network after the switch. It is trained again, also after a call that asked
// for no training and after a training that failed.
func TestVersionsAfterSwitchAreRetrained(t *testing.T) {
	w := newWorld(t, 20)
	w.analyse(w.take(100)...)
	w.take(1)
	w.change(true)
	model := w.trainOld("late")
	trainings := func(n int) []*training.Run {
		t.Helper()
		w.now = w.now.Add(lateEvery)
		runs, err := w.w.Trainings(w.now, n)
		if err != nil || len(runs) != n {
			t.Fatalf("%d trainings, %v, want %d", len(runs), err, n)
		}
		return runs
	}
	trainings(0)
	trouble := errors.New("a panic")
	if err := w.w.EndRun(trainings(1)[0], trouble); !errors.Is(err, trouble) {
		t.Errorf("Trained = %v", err)
	}
	run := trainings(1)[0]
	finish(run)
	if err := w.w.EndRun(run, nil); err != nil {
		t.Fatal(err)
	}
	if done, err := w.w.Publish(t.Context()); !done || err != nil {
		t.Fatalf("Publish = %v, %v", done, err)
	}
	v := w.p.View()
	defer v.Close()
	current, err := v.CurrentVersion(model)
	if err != nil {
		t.Fatal(err)
	}
	if m, err := v.Manifest(&current); err != nil || current.ID == "late" || m.Base != next.base {
		t.Errorf("current version %q by %x, %v", current.ID, m.Base, err)
	}
	if done, err := w.w.Publish(t.Context()); done || err != nil {
		t.Errorf("Publish again = %v, %v", done, err)
	}
}

func TestIDsNeedARandomSource(t *testing.T) {
	w := newWorld(t, 4)
	w.trainOld("one")
	w.w.o.Rand = iotest.ErrReader(io.ErrUnexpectedEOF)
	if _, err := w.w.Trainings(w.now, 1); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("Trainings = %v", err)
	}
}

func finish(r *training.Run) {
	for !r.Step() {
	}
}
