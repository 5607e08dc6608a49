package core_test

import (
	"strings"
	"testing"
	"time"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/api/apitest"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/partition"
)

// TestUnreadInputsAreRetriedAfterUpdate updates the program of an origin with inputs in formats that the earlier version could not read.
// The origin downloads them once more, and they can be predicted. An input that still cannot be read, or whose URL no longer works, keeps
// its status at the origin and at its replica. An input that a replica has not sent yet keeps its status, too.
func TestUnreadInputsAreRetriedAfterUpdate(t *testing.T) {
	c := apitest.NewReplica(t, apitest.Tiny(t), nil)
	origin, err := c.Origin.Engine.Partition(c.Origin.App)
	if err != nil {
		t.Fatal(err)
	}
	// fail adds an input whose download has ended as in the earlier version.
	fail := func(p *partition.Partition, id, file string, code int) {
		t.Helper()
		create := &log.InputCreate{ID: id, URL: "http://pictures.test/" + file, Labels: []log.Label{{Concept: "warm", Value: log.True}}}
		verdicts, err := p.Submit(t.Context(), "", []log.Body{create}, nil)
		if err == nil {
			_, err = p.Submit(t.Context(), "", []log.Body{&log.InputFetched{Input: verdicts[0].Dot, Code: code, Detail: "HEIC: cannot be read"}}, nil)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	fail(origin, "format", "red.png", 30101)
	fail(origin, "size", "blue.png", 30105)
	fail(origin, "decoder", "half.png", 30300)
	fail(origin, "damaged", "torn.png", 30300)
	fail(origin, "gone", "missing.png", 30101)
	fail(origin, "down", "down.png", 30101)
	fail(origin, "unreachable", "red.png?", 30002)
	c.Pull(t)
	fail(c.Partition(t).Partition, "unsent", "red.png?unsent", 30101)
	status := func(w *apitest.World, id string) string {
		t.Helper()
		got := string(w.Serve(t, api.Request{Method: "GET", Path: "/v2/inputs/" + id}).Body)
		_, got, _ = strings.Cut(got, `"input":`)
		_, got, _ = strings.Cut(got, `"status":{"code":`)
		return got[:5]
	}

	for _, w := range []*apitest.World{c.Origin, c.World} {
		var b kv.Batch
		id, err := catalog.ParseAppID(w.App)
		if err != nil {
			t.Fatal(err)
		}
		b.Delete(id.LocalKey("unread"))
		if err := w.Store.Apply(&b); err != nil {
			t.Fatal(err)
		}
		w.Open(t, w.Store)
		for range 10 { // failures of servers are tried four times
			w.Step(t, 30*time.Second)
		}
	}
	issued, confirmed := c.Partition(t).Outbox()
	if issued-confirmed != 2 {
		t.Errorf("the update of a replica issued %d operations", issued-confirmed-2)
	}
	c.Sync(t)
	want := map[string]string{
		"format": "30000", "size": "30000", "decoder": "30000", "damaged": "30300", "gone": "30101", "down": "30101", "unreachable": "30002", "unsent": "30101",
	}
	for id, code := range want {
		for host, w := range map[string]*apitest.World{"origin": c.Origin, "replica": c.World} {
			if got := status(w, id); got != code {
				t.Errorf("%s: %s is at %s, want %s", host, id, got, code)
			}
		}
	}
	outputs := func(w *apitest.World) string {
		t.Helper()
		return string(w.Serve(t, api.Request{Method: "GET", Path: "/v2/inputs/format/outputs"}).Body)
	}
	if a, b := outputs(c.Origin), outputs(c.World); !strings.Contains(a, `"value":`) || a != b {
		t.Errorf("the outputs of an input that is read: %.300s and %.300s", a, b)
	}

	c.Origin.Open(t, c.Origin.Store)
	for range 2 {
		if tasks, err := c.Origin.Engine.Take(c.Origin.Now, 99); err != nil || len(tasks) > 0 {
			t.Errorf("after another start: %d tasks, %v", len(tasks), err)
		}
		if _, err := c.Origin.Engine.Step(t.Context(), c.Origin.Now); err != nil {
			t.Fatal(err)
		}
	}
}
