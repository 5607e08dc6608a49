package core_test

import (
	"fmt"
	"strings"
	"testing"

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
