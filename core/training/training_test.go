package training

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/train"
)

// cats adds ten inputs of each of two concepts, and a few others.
func (w *world) cats() {
	w.t.Helper()
	for range 10 {
		w.add(0, "cat")
		w.add(1, "dog")
	}
	w.add(2, "cow")
	w.add(3)
}

func TestTrain(t *testing.T) {
	w := newWorld(t)
	w.cats()
	w.make([]string{"cat", "dog"})
	if v := w.train("one"); v.Code != catalog.VersionTrained || v.Detail != "" || v.Manifest.IsZero() {
		t.Fatalf("version at %d %q", v.Code, v.Detail)
	}
	m := w.manifest("one")
	if m.Version != "one" || m.Base != w.net.base || m.Seq == 0 || len(m.Inputs) != 22 {
		t.Errorf("manifest of %q, base %x, seq %d, %d inputs", m.Version, m.Base, m.Seq, len(m.Inputs))
	}
	for i, in := range m.Inputs {
		want := []log.Label{{Concept: []string{"cat", "dog"}[i%2], Value: log.True}}
		switch i {
		case 20:
			want = []log.Label{{Concept: "cow", Value: log.True}}
		case 21:
			want = nil
		}
		if in.Ord != m.Inputs[0].Ord+uint32(i) || !slices.Equal(in.Labels, want) {
			t.Errorf("input %d is %d with %v, want %v", i, in.Ord, in.Labels, want)
		}
	}
	var head train.Head
	if err := head.UnmarshalBinary(m.Head); err != nil {
		t.Fatal(err)
	}
	for kind := range 4 {
		e := vector(t, kind, 1_000_000+uint64(kind))
		values := head.Values(nil, &e)
		for c := range 2 {
			if present := values[c] >= train.Threshold; present != (kind == c) {
				t.Errorf("kind %d: %s is %v", kind, head.Concepts[c], values[c])
			}
		}
	}
	var metrics train.Metrics
	if err := json.Unmarshal(m.Metrics, &metrics); err != nil {
		t.Fatal(err)
	}
	if metrics.Folds != 10 || len(metrics.Concepts) != 2 || !near(metrics.Macro.ROCAUC, 1, 0.02) {
		t.Errorf("metrics %s", m.Metrics)
	}
}

// TestCodes checks the status code of the training of each kind of training set.
func TestCodes(t *testing.T) {
	both := []string{"cat", "dog"}
	exclusive := setting("concepts_mutually_exclusive")
	tests := []struct {
		name   string
		add    func(*world)
		config []log.Setting
		code   int
	}{
		{"no input", func(*world) {}, nil, catalog.VersionTrained},
		{"no label", func(w *world) { w.add(0); w.add(1, "cow") }, nil, catalog.VersionTrained},
		{"one true", func(w *world) { w.add(0, "cat") }, nil, catalog.VersionTrained},
		{"one of each", func(w *world) { w.add(0, "cat"); w.add(1, "dog") }, nil, catalog.VersionTrained},
		{"no true", func(w *world) { w.add(0, "-cat"); w.add(1, "-dog") }, nil, CodeNoPositives},
		{"no picture", func(w *world) {
			dot := w.pend("cat")
			w.do(&log.InputFetched{Input: dot, Code: 30002, Detail: "404"})
		}, nil, CodeNoData},
		{"exclusive, one class", func(w *world) { w.add(0, "cat"); w.add(1) }, []log.Setting{exclusive}, CodeSingleClass},
		{"exclusive, no label", func(w *world) { w.add(0) }, []log.Setting{exclusive}, catalog.VersionTrained},
		{"exclusive", func(w *world) { w.add(0, "cat"); w.add(1, "dog") }, []log.Setting{exclusive}, catalog.VersionTrained},
		{"closed", func(w *world) { w.add(0, "cat"); w.add(1, "dog") }, []log.Setting{setting("closed_environment")}, catalog.VersionTrained},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t)
			tt.add(w)
			w.make(both, tt.config...)
			v := w.train("one")
			if v.Code != tt.code || (v.Code == catalog.VersionTrained) == v.Manifest.IsZero() {
				t.Errorf("version at %d %q, want %d", v.Code, v.Detail, tt.code)
			}
			unlabelled := tt.name == "no input" || strings.HasSuffix(tt.name, "no label")
			if want := unlabelled || tt.code != catalog.VersionTrained; want != (v.Detail != "") || unlabelled != (v.Detail == unlabelledDetail) {
				t.Errorf("details %q of code %d", v.Detail, v.Code)
			}
		})
	}
}

// TestTrainingWithoutLabels checks that a head trained without labels predicts no concept.
func TestTrainingWithoutLabels(t *testing.T) {
	w := newWorld(t)
	w.add(0)
	w.make([]string{"cat", "dog"})
	w.train("one")
	var head train.Head
	if err := head.UnmarshalBinary(w.manifest("one").Head); err != nil {
		t.Fatal(err)
	}
	e := vector(t, 0, 5)
	for _, v := range head.Values(nil, &e) {
		if v > 0.01 {
			t.Errorf("value %v of an untaught concept", v)
		}
	}
}

func TestTrainingWaitsForPendingInputs(t *testing.T) {
	w := newWorld(t)
	w.add(0, "cat")
	w.pend("cow")
	first, second := w.pend("cat"), w.pend("-dog")
	w.make([]string{"cat", "dog"})
	w.ask("one")
	late := w.pend("cat")
	for _, dot := range []log.Dot{first, second} {
		for range 2 {
			if runs := w.take(); len(runs) != 0 {
				t.Fatalf("%d trainings while an input is pending", len(runs))
			}
		}
		w.finishDownload(dot, 0)
	}
	runs := w.take()
	if len(runs) != 1 || w.q.InProgress() != 1 {
		t.Fatalf("%d trainings once all inputs are there, want 1", len(runs))
	}
	if again := w.take(); len(again) != 0 {
		t.Fatal("a training was handed out twice")
	}
	w.finishDownload(late, 0)
	w.finish(runs[0])
	if m := w.manifest("one"); len(m.Inputs) != 3 || w.q.InProgress() != 0 {
		t.Errorf("%d inputs, want the 3 that were there, %d out", len(m.Inputs), w.q.InProgress())
	}
	if len(w.take()) != 0 {
		t.Error("something is due after the only training has ended")
	}
}

// TestTrainingIgnoresDeletedInputs checks that a training does not wait for an input that is deleted or loses its label.
func TestTrainingIgnoresDeletedInputs(t *testing.T) {
	w := newWorld(t)
	w.add(0, "cat")
	deleted, unlabelled := w.pend("cat"), w.pend("cat")
	w.make([]string{"cat"})
	w.ask("one")
	if len(w.take()) != 0 {
		t.Fatal("trained too early")
	}
	w.do(&log.InputDelete{Input: deleted})
	if len(w.take()) != 0 {
		t.Fatal("trained too early")
	}
	w.do(&log.InputLabels{Input: unlabelled, Labels: []log.Label{{Concept: "cat", Value: log.Removed}}})
	if len(w.take()) != 1 {
		t.Fatal("not trained")
	}
}

// TestChangesDuringTrainingHaveNoEffect checks that changes during a training do not affect it.
func TestChangesDuringTrainingHaveNoEffect(t *testing.T) {
	change := func(w *world) {
		view := w.p.View()
		in, err := view.InputByID("in1")
		view.Close()
		if err != nil {
			t.Fatal(err)
		}
		w.do(&log.InputLabels{Input: in.Dot, Labels: []log.Label{{Concept: "cat", Value: log.False}, {Concept: "dog", Value: log.True}}})
		w.add(0, "dog")
		w.do(&log.ModelPatch{Model: w.model, Add: []string{"cow"}, Version: "other"})
	}
	quiet, busy := newWorld(t), newWorld(t)
	for _, w := range []*world{quiet, busy} {
		w.cats()
		w.make([]string{"cat", "dog"})
		w.ask("one")
		r := w.take()[0]
		if w == busy {
			change(w)
		}
		w.finish(r)
	}
	a, b := quiet.manifest("one"), busy.manifest("one")
	if !bytes.Equal(a.Marshal(), b.Marshal()) {
		t.Error("a change while the training ran is in it")
	}
}

// TestKilledTrainingRepeats checks that a training that is interrupted after any step runs again after the next start, with the same bytes.
func TestKilledTrainingRepeats(t *testing.T) {
	setUp := func() *world {
		w := newWorld(t)
		w.cats()
		w.make([]string{"cat", "dog"})
		w.ask("one")
		return w
	}
	w := setUp()
	w.finish(w.take()[0])
	want := w.manifest("one")
	for cut := 0; ; cut++ {
		w := setUp()
		r := w.take()[0]
		done := false
		for range cut {
			if done = r.Step(); done {
				break
			}
		}
		r.Close() // as the end of the process does
		w.open()
		if v := w.version("one"); v.Code != catalog.VersionQueued {
			t.Fatalf("after %d steps the version is at %d", cut, v.Code)
		}
		again := w.take()
		if len(again) != 1 {
			t.Fatalf("after %d steps %d trainings are due, want 1", cut, len(again))
		}
		w.finish(again[0])
		if got := w.manifest("one"); !bytes.Equal(got.Marshal(), want.Marshal()) {
			t.Fatalf("after %d steps another manifest", cut)
		}
		if done {
			break
		}
	}
}

// TestRetrainingRepeatsManifest trains a version a second time on the same network. The manifest is the same bit for bit, except that
// inputs deleted since then are missing.
func TestRetrainingRepeatsManifest(t *testing.T) {
	for _, config := range [][]log.Setting{nil, {setting("concepts_mutually_exclusive")}, {setting("closed_environment")}} {
		w := newWorld(t)
		w.cats()
		w.add(0, "-dog")
		w.make([]string{"cat", "dog"}, config...)
		w.train("one")
		want := w.manifest("one")

		// Later changes do not count.
		view := w.p.View()
		in, err := view.InputByID("in1")
		view.Close()
		if err != nil {
			t.Fatal(err)
		}
		w.do(&log.InputLabels{Input: in.Dot, Labels: []log.Label{{Concept: "cat", Value: log.False}}})
		w.add(0, "dog")
		w.do(&log.ModelPatch{Model: w.model, Config: []log.Setting{setting("concepts_mutually_exclusive"), setting("closed_environment")}})
		renew := func(id string) []byte {
			t.Helper()
			r, err := Retrain(w.p.View(), w.net, w.version("one"), id)
			if err != nil {
				t.Fatal(err)
			}
			for !r.Step() {
			}
			if r.Err() != nil {
				t.Fatal(r.Err())
			}
			return r.Outcome().Manifest
		}
		if !bytes.Equal(renew("one"), want.Marshal()) {
			t.Errorf("%v: the second manifest differs", config)
		}

		w.do(&log.InputDelete{Input: in.Dot})
		got, err := catalog.UnmarshalManifest(renew("two"))
		if err != nil {
			t.Fatal(err)
		}
		rest := slices.DeleteFunc(slices.Clone(want.Inputs), func(t catalog.TrainingInput) bool { return t.Dot == in.Dot })
		if d := cmp.Diff(rest, got.Inputs); got.Version != "two" || len(rest) != len(want.Inputs)-1 || d != "" {
			t.Errorf("version %s has other inputs than all but the deleted one:\n%s", got.Version, d)
		}
	}
}

// TestFailedTrainingIsRetried checks that a failed training is tried again after a pause, and that the third failure ends it.
func TestFailedTrainingIsRetried(t *testing.T) {
	w := newWorld(t)
	w.add(0, "cat")
	w.make([]string{"cat"})
	w.ask("one")
	panicked := errors.New("panic")
	for try := 1; try <= maxAttempts; try++ {
		runs := w.take()
		if len(runs) != 1 {
			t.Fatalf("try %d: %d trainings due", try, len(runs))
		}
		if err := w.q.Done(context.Background(), w.now, runs[0], panicked); !errors.Is(err, panicked) {
			t.Fatalf("Done = %v, want the trouble", err)
		}
		w.now = w.now.Add(pause - 1)
		if len(w.take()) != 0 {
			t.Fatal("due again too early")
		}
		w.now = w.now.Add(1)
	}
	if v := w.version("one"); v.Code != CodeFailed {
		t.Errorf("version at %d, want %d", v.Code, CodeFailed)
	}
}

// TestBackgroundMissing checks that a training waits for a missing background. Its result is then the same as with the background from the
// start.
func TestBackgroundMissing(t *testing.T) {
	w := newWorld(t)
	w.cats()
	w.make([]string{"cat", "dog"})
	w.ask("one")
	w.net.missing = fs.ErrNotExist
	for range 2 * maxAttempts {
		r := w.take()[0]
		for !r.Step() {
		}
		if err := w.q.Done(context.Background(), w.now, r, nil); !errors.Is(err, ErrNotAnalysed) {
			t.Fatalf("Done = %v, want %v", err, ErrNotAnalysed)
		}
		w.now = w.now.Add(pause)
	}
	if v := w.version("one"); v.Code != catalog.VersionQueued {
		t.Errorf("version at %d, want %d", v.Code, catalog.VersionQueued)
	}
	w.net.missing = nil
	w.finish(w.take()[0])
	if v := w.version("one"); v.Code != catalog.VersionTrained {
		t.Errorf("version at %d, want %d", v.Code, catalog.VersionTrained)
	}
}

// TestTrainingWaitsForAnalysis checks that a training waits for an input that the network has not analysed yet.
func TestTrainingWaitsForAnalysis(t *testing.T) {
	w := newWorld(t)
	w.cats()
	w.make([]string{"cat", "dog"})
	w.ask("one")
	w.net = newNetwork(t, 2, 8)
	w.q = NewQueue(w.p, w.net)
	for range 2 * maxAttempts {
		r := w.take()[0]
		for !r.Step() {
		}
		if err := w.q.Done(context.Background(), w.now, r, nil); !errors.Is(err, ErrNotAnalysed) {
			t.Fatalf("Done = %v, want %v", err, ErrNotAnalysed)
		}
		w.now = w.now.Add(pause)
	}
	if v := w.version("one"); v.Code != catalog.VersionQueued {
		t.Errorf("version at %d, want it to wait", v.Code)
	}
}

// TestStopCountsAsNoAttempt checks that a stop of the program does not count as an attempt.
func TestStopCountsAsNoAttempt(t *testing.T) {
	w := newWorld(t)
	w.add(0, "cat")
	w.make([]string{"cat"})
	w.ask("one")
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for range 2 * maxAttempts {
		if err := w.q.Done(ctx, w.now, w.take()[0], context.Canceled); !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		w.now = w.now.Add(pause)
	}
	if v := w.version("one"); v.Code != catalog.VersionQueued {
		t.Errorf("version at %d, want it to wait", v.Code)
	}
}

// TestModelDeletedDuringTraining checks that a training ends without an error if its model or version was deleted meanwhile.
func TestModelDeletedDuringTraining(t *testing.T) {
	for _, body := range []func(*world) log.Body{
		func(w *world) log.Body { return &log.VersionDelete{Model: w.model, Version: "one"} },
		func(w *world) log.Body { return &log.ModelDelete{Model: w.model} },
		func(*world) log.Body { return &log.ModelDeleteAll{} },
	} {
		w := newWorld(t)
		w.cats()
		w.make([]string{"cat", "dog"})
		w.ask("one")
		r := w.take()[0]
		w.do(body(w))
		w.finish(r)
		if len(w.take()) != 0 || w.q.InProgress() != 0 {
			t.Error("something is left to do")
		}
	}
}

// TestQueueReturnsVersionsInOrder checks that the queue returns versions in order, and at most as many as requested.
func TestQueueReturnsVersionsInOrder(t *testing.T) {
	w := newWorld(t)
	w.cats()
	w.make([]string{"cat", "dog"})
	for _, id := range []string{"a", "b", "c"} {
		w.ask(id)
	}
	var order []string
	for range 3 {
		runs, err := w.q.Take(w.now, 1)
		if err != nil || len(runs) != 1 {
			t.Fatalf("Take = %d, %v", len(runs), err)
		}
		order = append(order, runs[0].version.ID)
		defer w.finish(runs[0])
	}
	if !slices.Equal(order, []string{"a", "b", "c"}) {
		t.Errorf("handed out %v", order)
	}
	if runs, err := w.q.Take(w.now, 0); len(runs) != 0 || err != nil {
		t.Errorf("Take(0) = %d, %v", len(runs), err)
	}
}

// TestSample checks that a sample is bounded and independent of the order of its members.
func TestSample(t *testing.T) {
	one, other := sample{limit: 10}, sample{limit: 10}
	for i := range 1000 {
		one.add(member{ord: uint32(i), dot: log.Dot{Writer: 1, Seq: uint64(i)}})
		other.add(member{ord: uint32(999 - i), dot: log.Dot{Writer: 1, Seq: uint64(999 - i)}})
	}
	ords := func(s *sample) []uint32 {
		var all []uint32
		for _, d := range s.items {
			all = append(all, d.ord)
		}
		slices.Sort(all)
		return all
	}
	a, b := ords(&one), ords(&other)
	if len(a) != 10 || !slices.Equal(a, b) {
		t.Errorf("%v and %v", a, b)
	}
	if a[9] < 500 || a[0] > 500 {
		t.Errorf("%v is no sample of 0 to 999", a)
	}
}

// TestScanInSteps checks that the queue reads a large application in several steps.
func TestScanInSteps(t *testing.T) {
	w := newWorld(t)
	for i := range 2*scanned + 10 {
		if i%50 == 0 {
			w.add(0, "cat")
		} else {
			w.add(2)
		}
	}
	w.make([]string{"cat"})
	if v := w.train("one"); v.Code != catalog.VersionTrained {
		t.Fatalf("version at %d", v.Code)
	}
	if m := w.manifest("one"); len(m.Inputs) != 2*scanned+10 {
		t.Errorf("%d inputs", len(m.Inputs))
	}
}

// TestTooManyConcepts: a version with more concepts than a head can have ends before its inputs are read.
func TestTooManyConcepts(t *testing.T) {
	w := newWorld(t)
	concepts := make([]string, train.MaxConcepts+1)
	for i := range concepts {
		concepts[i] = strconv.Itoa(i)
	}
	w.make(concepts)
	w.add(0, "0")
	w.ask("v")
	runs := w.take()
	if len(runs) != 1 || !runs[0].Step() {
		t.Fatalf("%d runs, want one that ends at once", len(runs))
	}
	w.finish(runs[0])
	if v := w.version("v"); v.Code != CodeFailed || v.Detail != "The version has 16385 concepts, and at most 16384 can be trained." {
		t.Errorf("code %d: %s", v.Code, v.Detail)
	}
}
