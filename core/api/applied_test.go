package api_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/sightline-dev/sightline/core"
	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/api/apitest"
	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/kv/kvtest"
	"github.com/sightline-dev/sightline/core/kv/memkv"
	"github.com/sightline-dev/sightline/core/register"
)

// field returns the values of a header in an answer.
func field(r api.Response, name string) (values []string) {
	for _, f := range r.Header {
		if f.Name == name {
			values = append(values, f.Value)
		}
	}
	return values
}

// deposed is the store of a machine that stops writing during a wait.
type deposed struct {
	*kvtest.Late
	channel *kvtest.Channel
	during  bool
}

func (s *deposed) Commit(b *kv.Batch) (func() error, error) {
	wait, err := s.Late.Commit(b)
	if err != nil || !s.during {
		return wait, err
	}
	return func() error {
		s.channel.Depose()
		return wait()
	}, nil
}

func newDeposed(t *testing.T, seed uint64) *deposed {
	s := &deposed{channel: kvtest.NewChannel(seed)}
	s.Late = s.channel.Machine(memkv.New(), t.Errorf)
	s.Lead()
	return s
}

// TestMarkOfCallWithoutEffect calls a server whose store begins to follow. An answer to a call that wrote nothing has the mark, and clients
// may try again. Other answers do not have it.
func TestMarkOfCallWithoutEffect(t *testing.T) {
	store := newDeposed(t, 1)
	w := apitest.NewWorld(t, store, apitest.Tiny(t), nil, map[string]string{"owner": "anna"})
	session, _, err := w.Accounts.Login(t.Context(), "anna@example.com", "anna's password", "")
	if err != nil {
		t.Fatal(err)
	}
	do := func(method, path, body string) api.Response {
		r := api.Request{Method: method, Path: "/v2" + path, Body: []byte(body)}
		if path == "/users/me/apps" || path == "/users/me/keys" {
			r.Session = session
		}
		return w.Serve(t, r)
	}
	do("POST", "/inputs", `{"inputs":[{"id":"r","data":{"image":{"url":"http://pictures.test/red.png"},"concepts":[{"id":"warm"}]}}]}`)
	do("POST", "/models", `{"model":{"id":"heat","output_info":{"data":{"concepts":[{"id":"warm"}]}}}}`)
	do("POST", "/workflows", `{"workflows":[{"id":"flow","nodes":[{"model":{"id":"heat"}}]}]}`)
	w.Step(t, 0)
	store.channel.Depose()
	for _, r := range [][3]string{
		{"POST", "/inputs", `{"inputs":[{"id":"b","data":{"image":{"url":"http://pictures.test/blue.png"}}}]}`},
		{"PATCH", "/inputs", `{"action":"merge","inputs":[{"id":"r","data":{"concepts":[{"id":"cold"}]}}]}`},
		{"PATCH", "/inputs/r/outputs", `{"action":"merge","outputs":[{"data":{"concepts":[{"id":"cold"}]}}]}`},
		{"DELETE", "/inputs/r", ""},
		{"DELETE", "/inputs", `{"delete_all":true}`},
		{"POST", "/concepts", `{"concepts":[{"id":"new","name":"new"}]}`},
		{"POST", "/models", `{"model":{"id":"other","output_info":{"data":{"concepts":[{"id":"warm"}]}}}}`},
		{"POST", "/models/heat/versions", ""},
		{"DELETE", "/models/heat", ""},
		{"DELETE", "/workflows/flow", ""},
		{"POST", "/searches/feedback", `{"input":{"id":"r","feedback_info":{"event_type":"search_click","search_id":"s"}}}`},
		{"POST", "/users/me/apps", `{"apps":[{"name":"garden"}]}`},
		{"POST", "/users/me/keys", `{"keys":[{"scopes":["All"],"apps":[{"id":"` + w.App + `","user_id":"me"}]}]}`},
	} {
		got := do(r[0], r[1], r[2])
		if got.Status != 503 || fmt.Sprint(field(got, api.HeaderApplied), field(got, "Retry-After")) != "[0] [1]" || got.Did != (api.AuditEvent{}) {
			t.Errorf("%s %s = %d %s %v", r[0], r[1], got.Status, got.Body, got.Header)
		}
	}
	for _, r := range [][3]string{
		{"GET", "/inputs", ""},
		{"POST", "/searches", "{}"},
		{"POST", "/inputs", `{"inputs":[{}]}`},
	} {
		if got := do(r[0], r[1], r[2]); got.Status >= 500 || field(got, api.HeaderApplied) != nil {
			t.Errorf("%s %s = %d %v", r[0], r[1], got.Status, got.Header)
		}
	}
	// The host may refuse a call that has written, for example without an audit record.
	got := w.Engine.Refuse(&api.Request{Method: "DELETE", Path: "/v2/inputs"}, kv.ErrFollows)
	if got.Status != 503 || field(got, api.HeaderApplied) != nil || field(got, "Retry-After") == nil {
		t.Errorf("Refuse = %d %v", got.Status, got.Header)
	}
}

// TestMarkAfterTermEndsDuringCall ends the term of a server while its call waits. The answer has the mark if and only if the call had no
// effect.
func TestMarkAfterTermEndsDuringCall(t *testing.T) {
	marks := 0
	for seed := range uint64(20) {
		store := newDeposed(t, seed)
		w := apitest.NewWorld(t, store, apitest.Tiny(t), nil, map[string]string{})
		add := func(id string) api.Response {
			return w.Serve(t, api.Request{Method: "POST", Path: "/v2/concepts", Body: []byte(`{"concepts":[{"id":"` + id + `","name":"` + id + `"}]}`)})
		}
		add("first") // also opens the application, which writes
		store.during = true
		got := add("new")
		marks += len(field(got, api.HeaderApplied))
		read := w.Serve(t, api.Request{Method: "GET", Path: "/v2/concepts/new"})
		if exists := read.Status == 200; exists != (got.Status == 200) || exists == (field(got, api.HeaderApplied) != nil) {
			t.Errorf("seed %d: %d %v, and the concept exists: %v", seed, got.Status, got.Header, exists)
		}
	}
	if marks == 0 || marks == 20 {
		t.Errorf("%d calls of 20 had no effect", marks)
	}
}

// TestNoMarkWithoutAuditRecord creates an application and a key at a server that stops writing before their audit records. The answers have
// no mark.
func TestNoMarkWithoutAuditRecord(t *testing.T) {
	random := apitest.NewCounter(0)
	hosted, err := blob.OpenHosted(blob.HostedOptions{Blobs: blob.NewMemory(blob.Options{}), Random: random})
	if err != nil {
		t.Fatal(err)
	}
	people, audited := &apitest.Accounts{Calls: map[string]int64{}}, error(nil)
	e, err := core.Open(core.Options{
		Store: memkv.New(), Models: apitest.Tiny(t), Hosted: hosted, Clock: time.Now, Rand: random, Accounts: people,
		Audit: func(register.Caller, register.Action, string) error { return audited },
	})
	if err != nil {
		t.Fatal(err)
	}
	session, account, err := people.Login(t.Context(), "anna@example.com", "anna's password", "")
	if err != nil {
		t.Fatal(err)
	}
	app, _, err := e.Register.CreateApp(t.Context(), register.Caller{Account: account}, register.NewApp{Name: "a", Language: "en", Owner: account})
	if err != nil {
		t.Fatal(err)
	}
	audited = kv.ErrFollows
	for path, body := range map[string]string{
		"/v2/users/me/apps": `{"apps":[{"name":"garden"}]}`,
		"/v2/users/me/keys": `{"keys":[{"scopes":["All"],"apps":[{"id":"` + app.ID + `","user_id":"me"}]}]}`,
	} {
		got := e.Begin(context.Background(), &api.Request{Method: "POST", Path: path, Session: session, Body: []byte(body)}).Response()
		if got.Status != 503 || field(got, api.HeaderApplied) != nil || field(got, "Retry-After") == nil {
			t.Errorf("%s = %d %s %v", path, got.Status, got.Body, got.Header)
		}
	}
	if apps, err := e.Register.Apps(); len(apps) != 2 || err != nil {
		t.Errorf("%d applications, %v", len(apps), err)
	}
}
