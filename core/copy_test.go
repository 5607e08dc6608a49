package core_test

import (
	"context"
	"strings"
	"testing"

	"github.com/sightline-dev/sightline/core"
	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/fold"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/partition"
)

// opened is an application's partition, which must be there.
func opened(t testing.TB, e *core.Engine, app string) *partition.Partition {
	t.Helper()
	p, err := e.Partition(app)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// pull folds what an origin's log has beyond a copy's cursor.
func pull(t testing.TB, from, to *partition.Partition) {
	t.Helper()
	run := partition.Run{Epoch: from.Log().Epoch(), From: to.Cursor().Seq}
	err := from.Log().Read(run.From+1, func(e log.Entry) bool {
		run.Entries = append(run.Entries, e)
		return true
	})
	run.To = run.From + uint64(len(run.Entries))
	if err == nil {
		run.Chain, err = from.Log().Chain(run.To)
	}
	if err == nil {
		_, err = to.Pull(t.Context(), run)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestEngineServesACopy opens an engine over what an origin said of an application: it is a copy of
// the origin's, which nothing is written into that its log does not bring, or that is not its own to say.
func TestEngineServesACopy(t *testing.T) {
	origin, edge := newFixture(t), newFixture(t)
	theirs := origin.open(t)
	app := newApp(t, theirs)
	_, record, err := theirs.CreateEdge(t.Context(), "", "edge", []string{app})
	if err != nil {
		t.Fatal(err)
	}
	data, seq, err := theirs.Register(app, record.ID)
	if err == nil {
		err = core.TakeRegister(t.Context(), edge.o.Store, app, seq, data)
	}
	if err != nil {
		t.Fatal(err)
	}
	edge.o.App = app
	ours, err := core.Open(edge.o)
	if err != nil {
		t.Fatal(err)
	}
	call := func(e *core.Engine, method, path, body string) (int, string) {
		c := e.Begin(context.Background(), &api.Request{Method: method, Path: path, App: app, Body: []byte(body)})
		r := c.Response()
		return r.Status, string(r.Body)
	}
	from, to := opened(t, theirs, app), opened(t, ours, app)
	if issued, _ := to.Outbox(); issued != 0 {
		t.Errorf("opening a copy wrote %d operations", issued)
	}
	const make1 = `{"concepts":[{"id":"hut","name":"hut"}]}`
	if status, body := call(ours, "POST", "/v2/concepts", make1); status != 503 {
		t.Errorf("a write before a site was leased: %d %s, want 503", status, body)
	}
	if status, body := call(theirs, "POST", "/v2/concepts", `{"concepts":[{"id":"barn","name":"barn"}]}`); status != 200 {
		t.Fatalf("the origin answers %d %s", status, body)
	}
	pull(t, from, to)
	if err := to.Lease(record.Site + 2); err != nil {
		t.Fatal(err)
	}
	if status, body := call(ours, "POST", "/v2/concepts", make1); status != 200 {
		t.Fatalf("a write at the copy: %d %s", status, body)
	}
	for _, id := range []string{"barn", "hut"} {
		if status, body := call(ours, "GET", "/v2/concepts/"+id, ""); status != 200 {
			t.Errorf("concept %s at the copy: %d %s", id, status, body)
		}
	}
	var ops []log.Op
	if err := to.Pending(0, func(o log.Op) bool { ops = append(ops, o); return true }); err != nil {
		t.Fatal(err)
	}
	verdicts, _, err := from.Accept(t.Context(), ops, nil)
	if err != nil || len(verdicts) != len(ops) || verdicts[0].Code != fold.OK {
		t.Fatalf("the origin accepts %d of %d: %v, %v", len(verdicts), len(ops), verdicts, err)
	}
	if status, body := call(theirs, "GET", "/v2/concepts/hut", ""); status != 200 || !strings.Contains(body, `"hut"`) {
		t.Errorf("the copy's concept at the origin: %d %s", status, body)
	}
	pull(t, from, to)
	if issued, confirmed := to.Outbox(); issued != confirmed || issued == 0 {
		t.Errorf("%d of %d own operations are confirmed", confirmed, issued)
	}
	if err := ours.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := core.Open(edge.o)
	if err != nil {
		t.Fatal(err)
	}
	if got := opened(t, again, app).Site(); got != record.Site+2 {
		t.Errorf("opened again the copy is site %d, want %d", got, record.Site+2)
	}
}
