package core_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sightline-dev/sightline/core"
	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/api/apitest"
	"github.com/sightline-dev/sightline/core/kv/kvtest"
	"github.com/sightline-dev/sightline/core/kv/memkv"
)

// TestInputsInTurn posts many more inputs by URL to one application than tasks are handed out at once. It gets half of the tasks, and an
// input of another application is handed out although no task has been handed back.
func TestInputsInTurn(t *testing.T) {
	w := apitest.NewWorld(t, kvtest.OrLate(t, memkv.New()), apitest.Tiny(t), nil, nil)
	first, sibling, second := w.NewTenant(t, "anna", "en"), w.NewTenant(t, "anna", "en"), w.NewTenant(t, "", "en")
	add := func(n apitest.Tenant, count int) {
		t.Helper()
		var inputs []string
		for i := range count {
			inputs = append(inputs, fmt.Sprintf(`{"data":{"image":{"url":"http://pictures.test/red.png?%d"}}}`, i))
		}
		body := `{"inputs":[` + strings.Join(inputs, ",") + `]}`
		got := w.Serve(t, api.Request{Method: "POST", Path: "/v2/inputs", Authorization: "Key " + n.Key, Body: []byte(body)})
		if got.Status != 200 {
			t.Fatalf("%d %s", got.Status, got.Body)
		}
	}
	const maxTasks = 8
	out := map[string]int{}
	take := func() {
		t.Helper()
		for range 2 * maxTasks {
			left := maxTasks
			for _, n := range out {
				left -= n
			}
			tasks, err := w.Engine.Take(w.Now, left)
			if err != nil {
				t.Fatal(err)
			}
			for _, task := range tasks {
				out[task.Picture.Caller]++
			}
		}
	}
	add(first, 60)
	add(sibling, 40)
	take()
	if out["anna"] != maxTasks/2 || len(out) != 1 {
		t.Errorf("the applications of one account have %v of %d tasks, want half", out, maxTasks)
	}
	add(second, 1)
	take()
	if out[second.App] != 1 {
		t.Errorf("another application has none of %d tasks: %v", maxTasks, out)
	}
}

// TestTrainingsOfAccountsInTurn requests many trainings in six applications of an account. Each training of another caller is one of the next
// two that end.
func TestTrainingsOfAccountsInTurn(t *testing.T) {
	w := newTrainer(t)
	ours := []apitest.Tenant{w.settle("anna"), w.settle("anna"), w.settle("anna"), w.settle("anna"), w.settle("anna"), w.settle("anna")}
	others := []apitest.Tenant{w.settle(""), w.settle("bert")}
	for range 4 {
		for _, n := range ours {
			w.train(n)
		}
	}
	for round := range 4 {
		for _, n := range others {
			w.train(n)
			ended := 0
			for ; w.trained(n) <= round; ended++ {
				w.endOne()
			}
			if ended > 2 {
				t.Errorf("round %d: the training of another caller ends as number %d", round, ended)
			}
		}
	}
}

// TestTrainingsOfApplicationsInTurn requests many trainings in the first application of an account. They do not delay those of its others.
func TestTrainingsOfApplicationsInTurn(t *testing.T) {
	w := newTrainer(t)
	apps := []apitest.Tenant{w.settle("anna"), w.settle("anna"), w.settle("anna")}
	for _, n := range apps {
		for range 6 {
			w.train(n)
		}
	}
	for range 7 { // two of them run when the third application is the next
		w.endOne()
	}
	for i, n := range apps {
		if got := w.trained(n); got < 1 || got > 3 {
			t.Errorf("of seven trainings, application %d has %d", i, got)
		}
	}
}

// trainer is a world in which at most two trainings run.
type trainer struct {
	*apitest.World
	t       *testing.T
	running []core.Task
}

func newTrainer(t *testing.T) *trainer {
	return &trainer{World: apitest.NewWorld(t, kvtest.OrLate(t, memkv.New()), apitest.Tiny(t), nil, nil), t: t}
}

// must sends a request with the key of an application.
func (w *trainer) must(n apitest.Tenant, method, path, body string) string {
	w.t.Helper()
	got := w.Serve(w.t, api.Request{Method: method, Path: "/v2" + path, Body: []byte(body), Authorization: "Key " + n.Key})
	if got.Status != 200 {
		w.t.Fatalf("%s %s = %d %s", method, path, got.Status, got.Body)
	}
	return string(got.Body)
}

// settle creates an application with a model that can be trained.
func (w *trainer) settle(owner string) apitest.Tenant {
	w.t.Helper()
	n := w.NewTenant(w.t, owner, "en")
	w.must(n, "POST", "/inputs", `{"inputs":[{"data":{"image":{"url":"http://pictures.test/red.png"},"concepts":[{"id":"warm"}]}},`+
		`{"data":{"image":{"url":"http://pictures.test/blue.png"},"concepts":[{"id":"cold"}]}}]}`)
	w.must(n, "POST", "/models", `{"model":{"id":"heat","output_info":{"data":{"concepts":[{"id":"warm"},{"id":"cold"}]}}}}`)
	w.Step(w.t, time.Second)
	return n
}

func (w *trainer) train(n apitest.Tenant) { w.must(n, "POST", "/models/heat/versions", "") }

// trained returns the number of trainings of an application that have ended.
func (w *trainer) trained(n apitest.Tenant) int {
	return strings.Count(w.must(n, "GET", "/models/heat/versions", ""), `"code":21100`)
}

// endOne takes trainings until two run, and ends the first.
func (w *trainer) endOne() {
	w.t.Helper()
	tasks, err := w.Engine.Take(w.Now, 8)
	if err != nil {
		w.t.Fatal(err)
	}
	if w.running = append(w.running, tasks...); len(w.running) != 2 || w.running[0].Training == nil || w.running[1].Training == nil {
		w.t.Fatalf("%d tasks, want two trainings", len(w.running))
	}
	task := w.running[0]
	if err := w.Engine.Done(w.t.Context(), task, w.RunTask(task)); err != nil {
		w.t.Fatal(err)
	}
	w.running = w.running[1:]
}
