package core_test

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/api/apitest"
	"github.com/sightline-dev/sightline/core/kv/kvtest"
	"github.com/sightline-dev/sightline/core/kv/memkv"
	"github.com/sightline-dev/sightline/core/predict"
	"github.com/sightline-dev/sightline/core/register"
)

// newTrainingWorld returns a world in which a training was requested. The inputs of the training are not downloaded yet.
func newTrainingWorld(t testing.TB, set *predict.Set) *apitest.World {
	t.Helper()
	w := apitest.NewWorld(t, kvtest.OrLate(t, memkv.New()), set, nil, map[string]string{})
	for _, r := range []api.Request{
		{Method: "POST", Path: "/v2/inputs", Body: []byte(`{"inputs":[` +
			`{"id":"r","data":{"image":{"url":"http://pictures.test/red.png"},"concepts":[{"id":"warm"}]}},` +
			`{"id":"b","data":{"image":{"url":"http://pictures.test/blue.png"},"concepts":[{"id":"cold"}]}},` +
			`{"id":"h","data":{"image":{"url":"http://pictures.test/half.png"},"concepts":[{"id":"cold"},{"id":"warm"}]}},` +
			`{"id":"w","data":{"image":{"url":"http://pictures.test/white.png"},"concepts":[{"id":"bright"}]}}]}`)},
		{Method: "POST", Path: "/v2/models", Body: []byte(`{"model":{"id":"heat","output_info":{"data":{"concepts":[{"id":"warm"},{"id":"cold"}]}}}}`)},
		{Method: "POST", Path: "/v2/models/heat/versions"},
	} {
		if got := w.Serve(t, r); got.Status != 200 {
			t.Fatalf("%s %s = %d %s", r.Method, r.Path, got.Status, got.Body)
		}
	}
	return w
}

// predictionOf returns the model's prediction of a picture, without the IDs that are generated for each call.
func predictionOf(t testing.TB, w *apitest.World) string {
	t.Helper()
	r := api.Request{Method: "POST", Path: "/v2/models/heat/outputs", Body: []byte(`{"inputs":[{"id":"x","data":{"image":{"url":"http://pictures.test/half.png"}}}]}`)}
	got := w.Serve(t, r)
	_, data, ok := strings.Cut(string(got.Body), `"data":{"concepts":`)
	if got.Status != 200 || !ok {
		t.Fatalf("%d %s", got.Status, got.Body)
	}
	return data
}

// TestTrainingKilled kills the program after each piece of work between the request for a training and its end. After the next start the
// training has the same result.
func TestTrainingKilled(t *testing.T) {
	set := apitest.Tiny(t)
	quiet := newTrainingWorld(t, set)
	quiet.Step(t, 0)
	want := predictionOf(t, quiet)
	for cut := 0; ; cut++ {
		w := newTrainingWorld(t, set)
		ended := work1by1(t, w, cut)
		w.Open(t, w.Store)
		w.Step(t, 0)
		if got := predictionOf(t, w); got != want {
			t.Fatalf("killed after %d pieces of work it predicts %s, want %s", cut, got, want)
		}
		if ended {
			return
		}
	}
}

// work1by1 does n pieces of work, including the steps of a training. It reports whether no work is left.
func work1by1(t testing.TB, w *apitest.World, n int) (ended bool) {
	t.Helper()
	ctx := context.Background()
	for {
		tasks, err := w.Engine.Take(w.Now, 1)
		if err != nil {
			t.Fatal(err)
		}
		for _, task := range tasks {
			for task.Training != nil {
				if n--; n < 0 {
					task.Training.Close() // as the end of the program does
					return false
				}
				if task.Training.Step() {
					break
				}
			}
			if n--; n < 0 {
				return false
			}
			if err := w.Engine.Done(ctx, task, w.RunTask(task)); err != nil {
				t.Fatal(err)
			}
		}
		if n--; n < 0 {
			return false
		}
		more, err := w.Engine.Step(ctx, w.Now)
		if err != nil {
			t.Fatal(err)
		}
		if !more && len(tasks) == 0 {
			return true
		}
	}
}

// TestTrainingProgress checks that a version has the progress of its training while the training runs, and only then.
func TestTrainingProgress(t *testing.T) {
	w := newTrainingWorld(t, apitest.Tiny(t))
	progress := func() (share float64, reported bool) {
		t.Helper()
		got := w.Serve(t, api.Request{Method: "GET", Path: "/v2/models/heat/versions", Query: "show=progress"})
		var all struct {
			Versions []struct{ ID string } `json:"model_versions"`
		}
		if err := json.Unmarshal(got.Body, &all); err != nil || len(all.Versions) == 0 || strings.Contains(string(got.Body), "progress") {
			t.Fatalf("%d %s", got.Status, got.Body)
		}
		version := "/v2/models/heat/versions/" + all.Versions[0].ID
		if got = w.Serve(t, api.Request{Method: "GET", Path: version}); strings.Contains(string(got.Body), "progress") {
			t.Fatalf("a request that does not ask for the progress gets %s", got.Body)
		}
		got = w.Serve(t, api.Request{Method: "GET", Path: version, Query: "show=progress"})
		var one struct {
			Version struct{ Progress *float64 } `json:"model_version"`
		}
		if err := json.Unmarshal(got.Body, &one); err != nil || got.Status != 200 {
			t.Fatalf("%d %s", got.Status, got.Body)
		}
		if one.Version.Progress == nil {
			return 0, false
		}
		return *one.Version.Progress, true
	}
	if share, reported := progress(); reported {
		t.Fatalf("progress %v before the training", share)
	}
	var trained bool
	for !trained {
		tasks, err := w.Engine.Take(w.Now, 8)
		if err != nil || len(tasks) == 0 {
			t.Fatal("no training: ", err)
		}
		for _, task := range tasks {
			var last float64
			for task.Training != nil && !task.Training.Step() {
				share, reported := progress()
				if !reported || share < last || share > 1 {
					t.Fatalf("progress %v, %v after %v", share, reported, last)
				}
				last = share
			}
			if trained = task.Training != nil; trained && last < 0.2 {
				t.Errorf("the last progress was %v", last)
			}
			if err := w.Engine.Done(context.Background(), task, w.RunTask(task)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if share, reported := progress(); reported {
		t.Fatalf("progress %v after the training", share)
	}
}

// TestTrainingsBounded checks that only a few trainings run at once, and that all of them end.
func TestTrainingsBounded(t *testing.T) {
	w := newTrainingWorld(t, apitest.Tiny(t))
	for range 5 {
		w.Serve(t, api.Request{Method: "POST", Path: "/v2/models/heat/versions"})
	}
	for range 3 { // the inputs that the trainings wait for
		w.Round(t)
	}
	tasks, err := w.Engine.Take(w.Now, 100)
	if err != nil || len(tasks) != 3 || tasks[0].Training == nil || tasks[1].Training == nil || tasks[2].Picture == nil {
		t.Fatalf("%d tasks, %v; want 2 trainings and an input that none waits for", len(tasks), err)
	}
	if more, err := w.Engine.Take(w.Now, 100); len(more) != 0 || err != nil {
		t.Fatalf("%d more, %v", len(more), err)
	}
	for _, task := range tasks {
		if err := w.Engine.Done(context.Background(), task, w.RunTask(task)); err != nil {
			t.Fatal(err)
		}
	}
	w.Step(t, 0)
	got := w.Serve(t, api.Request{Method: "GET", Path: "/v2/models/heat/versions"})
	if n := bytes.Count(got.Body, []byte(`"code":21100`)); n != 6 {
		t.Errorf("%d of 6 versions are trained: %s", n, got.Body)
	}
}

// TestTrainingsInTurn checks that the trainings of one application do not delay those of another.
func TestTrainingsInTurn(t *testing.T) {
	w := newTrainingWorld(t, apitest.Tiny(t))
	ctx := context.Background()
	app, _, err := w.Engine.Register.CreateApp(ctx, register.Caller{}, register.NewApp{Name: "other", Language: "en"})
	if err != nil {
		t.Fatal(err)
	}
	other, _, err := w.Engine.Register.CreateKey(ctx, register.Caller{}, register.NewKey{App: app.ID, Scopes: []string{"All"}})
	if err != nil {
		t.Fatal(err)
	}
	for range 10 {
		w.Serve(t, api.Request{Method: "POST", Path: "/v2/models/heat/versions"})
	}
	for _, r := range []api.Request{
		{Method: "POST", Path: "/v2/models", Body: []byte(`{"model":{"id":"m","output_info":{"data":{"concepts":[{"id":"x"}]}}}}`)},
		{Method: "POST", Path: "/v2/models/m/versions"},
	} {
		r.Authorization = "Key " + other
		if got := w.Serve(t, r); got.Status != 200 {
			t.Fatalf("%d %s", got.Status, got.Body)
		}
	}
	for round := 0; ; round++ {
		got := w.Serve(t, api.Request{Method: "GET", Path: "/v2/models/m", Authorization: "Key " + other})
		if strings.Contains(string(got.Body), `"code":21100`) {
			break
		}
		if round == 12 {
			t.Fatalf("after %d rounds the other application waits: %s", round, got.Body)
		}
		w.Round(t)
	}
}
