package host

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/api/apitest"
	"github.com/sightline-dev/sightline/core/auth"
	"github.com/sightline-dev/sightline/core/register"
)

// TestOnlyWritesWakeTheBackground: the background asks an instance for work soon after a request that writes. A request that only reads
// does not change the time of the next ask.
func TestOnlyWritesWakeTheBackground(t *testing.T) {
	n := newNode(t, anotherRuntime(t), nil)
	ten := n.tenant()
	n.must(ten, "GET", "/v2/inputs", "", `"inputs":[]`)
	n.background()
	w, err := n.fleet.writer(ten.app)
	if err != nil {
		t.Fatal(err)
	}
	look := func(after time.Duration) (tasks int, polled bool) {
		t.Helper()
		now := apitest.Start.Add(after)
		batch, err := n.fleet.Take(now, 4)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := n.fleet.Step(context.Background(), now); err != nil {
			t.Fatal(err)
		}
		if w.takenAt.Equal(now) != w.stepped.Equal(now) {
			t.Errorf("after %v: asked for tasks at %v, to step at %v", after, w.takenAt, w.stepped)
		}
		return len(batch), w.takenAt.Equal(now)
	}
	n.must(ten, "POST", general, predictBody("red.png"), `"name":"red"`)
	n.must(ten, "GET", "/v2/inputs", "", `"inputs":[]`)
	if _, polled := look(time.Millisecond); polled {
		t.Error("the instance was asked after a prediction and a list")
	}
	n.must(ten, "POST", "/v2/inputs", `{"inputs":[{"id":"a","data":{"image":{"url":"http://pictures.test/red.png"}}}]}`, `"code":30001`)
	if tasks, polled := look(2 * time.Millisecond); !polled || tasks != 1 {
		t.Errorf("after an input was added: asked %v, %d tasks, want 1", polled, tasks)
	}
	for _, after := range []time.Duration{3 * time.Millisecond, 4 * time.Millisecond} {
		look(after) // background work that the step left
	}
	if _, polled := look(5 * time.Millisecond); polled {
		t.Error("the instance is asked again with nothing written")
	}
	if _, polled := look(askEvery + 5*time.Millisecond); !polled {
		t.Errorf("the instance is not asked after %v", askEvery)
	}
}

// TestInputsInTurn: one application adds many more inputs by URL than the limit of concurrent tasks. It gets half of the tasks. An input
// of another application gets a task before any task is done.
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
	const limit = 8
	out, left := map[string]int{}, limit
	take := func() {
		t.Helper()
		for range 2 * limit {
			tasks, err := n.fleet.Take(apitest.Start, left)
			if err != nil {
				t.Fatal(err)
			}
			for _, task := range tasks {
				out[task.Picture.Caller]++
			}
			left -= len(tasks)
		}
	}
	add(first, 100)
	take()
	if out[first.app] != limit/2 || len(out) != 1 {
		t.Errorf("one application has %v of %d tasks, want half", out, limit)
	}
	add(second, 1)
	take()
	if out[second.app] != 1 {
		t.Errorf("another application has none of %d tasks: %v", limit, out)
	}
}

// TestApplicationsOfAccountAreOneCaller: Caller returns the id of an application of the operator, and the same caller for all applications
// of an account.
func TestApplicationsOfAccountAreOneCaller(t *testing.T) {
	n := newNode(t, anotherRuntime(t), nil)
	callerOf := func(key string) string {
		t.Helper()
		caller, err := n.fleet.Caller(context.Background(), &api.Request{Method: "POST", Path: general, Authorization: "Key " + key})
		if err != nil {
			t.Fatal(err)
		}
		return caller
	}
	if one := n.tenant(); callerOf(one.key) != one.app {
		t.Errorf("an application of the operator has the caller %q, want its id %q", callerOf(one.key), one.app)
	}
	for range 2 {
		app, _, err := n.control.CreateApp(context.Background(), register.Caller{Account: "ada"}, register.NewApp{Name: "test", Language: "en", Owner: "ada"})
		if err != nil {
			t.Fatal(err)
		}
		key, _, err := n.control.CreateKey(context.Background(), register.Caller{Account: "ada"}, register.NewKey{App: app.ID, Scopes: auth.All.Names()})
		if err != nil {
			t.Fatal(err)
		}
		if got := callerOf(key); got != "ada" {
			t.Errorf("an application of an account has the caller %q, want the account", got)
		}
	}
}

// TestBackgroundWritesAreReported: the fleet calls OnWrite for operations of the background, such as the end of a download or of a training,
// so that a replica sends them at once. It does not call OnWrite for maintenance.
func TestBackgroundWritesAreReported(t *testing.T) {
	wrote := map[string]int{}
	n := newNode(t, anotherRuntime(t), func(o *FleetOptions) { o.OnWrite = func(app string) { wrote[app]++ } })
	ten := n.tenant()
	since := func(name string, want int) {
		t.Helper()
		n.background()
		if got := wrote[ten.app]; (got > 0) != (want > 0) {
			t.Errorf("%s: told of %d writes, want %d", name, got, want)
		}
		clear(wrote)
	}
	n.must(ten, "POST", "/v2/inputs", `{"inputs":[{"id":"a","data":{"image":{"url":"http://pictures.test/red.png"},"concepts":[{"id":"warm"}]}}]}`, `"code":30001`)
	clear(wrote)
	since("a download", 1)
	n.must(ten, "GET", "/v2/inputs/a", "", `"code":30000`)
	since("nothing", 0)
	n.must(ten, "POST", "/v2/models", `{"model":{"id":"m","output_info":{"data":{"concepts":[{"id":"warm"}]}}}}`, `"code":21102`)
	n.must(ten, "POST", "/v2/models/m/versions", "", `"code":21103`)
	clear(wrote)
	since("a training", 1)
	n.must(ten, "GET", "/v2/models/m", "", `"code":21100`)
}
