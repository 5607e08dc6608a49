package core_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sightline-dev/sightline/core"
	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/api/apitest"
	"github.com/sightline-dev/sightline/core/kv/memkv"
)

// TestInputsInTurn posts many more inputs by URL to one application than tasks are handed out at once. It gets half of the tasks, and an
// input of another application is handed out although no task has been handed back.
func TestInputsInTurn(t *testing.T) {
	w := apitest.NewWorld(t, memkv.New(), apitest.Tiny(t), nil, nil)
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
	w := apitest.NewWorld(t, memkv.New(), apitest.Tiny(t), nil, nil)
	call := func(n apitest.Tenant, method, path, body string) string {
		t.Helper()
		got := w.Serve(t, api.Request{Method: method, Path: "/v2" + path, Body: []byte(body), Authorization: "Key " + n.Key})
		if got.Status != 200 {
			t.Fatalf("%s %s = %d %s", method, path, got.Status, got.Body)
		}
		return string(got.Body)
	}
	settle := func(owner string) apitest.Tenant {
		n := w.NewTenant(t, owner, "en")
		call(n, "POST", "/inputs", `{"inputs":[{"data":{"image":{"url":"http://pictures.test/red.png"},"concepts":[{"id":"warm"}]}},`+
			`{"data":{"image":{"url":"http://pictures.test/blue.png"},"concepts":[{"id":"cold"}]}}]}`)
		call(n, "POST", "/models", `{"model":{"id":"heat","output_info":{"data":{"concepts":[{"id":"warm"},{"id":"cold"}]}}}}`)
		w.Step(t, time.Second)
		return n
	}
	train := func(n apitest.Tenant) { call(n, "POST", "/models/heat/versions", "") }
	ours := []apitest.Tenant{settle("anna"), settle("anna"), settle("anna"), settle("anna"), settle("anna"), settle("anna")}
	others := []apitest.Tenant{settle(""), settle("bert")}
	for range 4 {
		for _, n := range ours {
			train(n)
		}
	}
	var running []core.Task
	trainings := func(n apitest.Tenant, versions int) (ended int) {
		t.Helper()
		for strings.Count(call(n, "GET", "/models/heat/versions", ""), `"code":21100`) < versions {
			tasks, err := w.Engine.Take(w.Now, 8)
			if err != nil {
				t.Fatal(err)
			}
			if running = append(running, tasks...); len(running) != 2 || running[0].Training == nil || running[1].Training == nil {
				t.Fatalf("%d tasks, want two trainings", len(running))
			}
			task := running[0]
			if err := w.Engine.Done(t.Context(), task, w.Do(task)); err != nil {
				t.Fatal(err)
			}
			running = running[1:]
			ended++
		}
		return ended
	}
	for round := range 4 {
		for _, n := range others {
			train(n)
			if ended := trainings(n, round+1); ended > 2 {
				t.Errorf("round %d: the training of another caller ends as number %d", round, ended)
			}
		}
	}
}
