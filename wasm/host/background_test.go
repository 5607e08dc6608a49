package host

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/api/apitest"
)

// TestOnlyWritesAreLookedAfter has the background ask an instance soon after it has written, and after a request
// that only reads no sooner than it would have anyway.
func TestOnlyWritesAreLookedAfter(t *testing.T) {
	n := newNode(t, anotherRuntime(t), nil)
	ten := n.tenant()
	n.must(ten, "GET", "/v2/inputs", "", `"inputs":[]`)
	n.background()
	w, err := n.fleet.writer(ten.app)
	if err != nil {
		t.Fatal(err)
	}
	look := func(after time.Duration) (tasks int, asked bool) {
		t.Helper()
		now := apitest.Start.Add(after)
		taken, err := n.fleet.Take(now, 4)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := n.fleet.Step(context.Background(), now); err != nil {
			t.Fatal(err)
		}
		if w.taken.Equal(now) != w.stepped.Equal(now) {
			t.Errorf("after %v: asked for tasks at %v, to step at %v", after, w.taken, w.stepped)
		}
		return len(taken), w.taken.Equal(now)
	}
	n.must(ten, "POST", general, predictBody("red.png"), `"name":"red"`)
	n.must(ten, "GET", "/v2/inputs", "", `"inputs":[]`)
	if _, asked := look(time.Millisecond); asked {
		t.Error("the instance was asked after a prediction and a list")
	}
	n.must(ten, "POST", "/v2/inputs", `{"inputs":[{"id":"a","data":{"image":{"url":"http://pictures.test/red.png"}}}]}`, `"code":30001`)
	if tasks, asked := look(2 * time.Millisecond); !asked || tasks != 1 {
		t.Errorf("after an input was added: asked %v, %d tasks, want 1", asked, tasks)
	}
	for _, after := range []time.Duration{3 * time.Millisecond, 4 * time.Millisecond} {
		look(after) // what the step left to do
	}
	if _, asked := look(5 * time.Millisecond); asked {
		t.Error("the instance is asked again with nothing written")
	}
	if _, asked := look(askEvery + 5*time.Millisecond); !asked {
		t.Errorf("the instance is not asked after %v", askEvery)
	}
}

// TestInputsInTurn has one application ask for many more inputs by URL than tasks are handed out at once. It gets half of the tasks,
// and an input of another application is handed out although no task has been handed back.
func TestInputsInTurn(t *testing.T) {
	n := newNode(t, anotherRuntime(t), nil)
	first, second := n.tenant(), n.tenant()
	add := func(ten tenant, count int) {
		inputs := make([]string, count)
		for i := range inputs {
			inputs[i] = fmt.Sprintf(`{"data":{"image":{"url":"http://pictures.test/red.png?%d"}}}`, i)
		}
		n.must(ten, "POST", "/v2/inputs", `{"inputs":[`+strings.Join(inputs, ",")+`]}`, `"code":30001`)
	}
	const most = 8
	out, left := map[string]int{}, most
	take := func() {
		t.Helper()
		for range 2 * most {
			tasks, err := n.fleet.Take(apitest.Start, left)
			if err != nil {
				t.Fatal(err)
			}
			for _, task := range tasks {
				out[task.Picture.App]++
			}
			left -= len(tasks)
		}
	}
	add(first, 100)
	take()
	if out[first.app] != most/2 || len(out) != 1 {
		t.Errorf("one application has %v of %d tasks, want half", out, most)
	}
	add(second, 1)
	take()
	if out[second.app] != 1 {
		t.Errorf("another application has none of %d tasks: %v", most, out)
	}
}

// TestJobsSayWhoAsks begins a call: the guest's job names the application, by which a host shares downloads.
func TestJobsSayWhoAsks(t *testing.T) {
	n := newNode(t, anotherRuntime(t), nil)
	ten := n.tenant()
	body := `{"inputs":[{"data":{"image":{"url":"http://pictures.test/red.png"}}}]}`
	call := n.fleet.Begin(context.Background(), &api.Request{Method: "POST", Path: general, Authorization: "Key " + ten.key, Body: []byte(body)})
	if jobs := call.Jobs(); len(jobs) != 1 || jobs[0].App != ten.app {
		t.Errorf("the jobs are %+v, want one of application %s", jobs, ten.app)
	}
	call.GiveUp(api.ErrBusy)
}
