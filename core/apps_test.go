package core_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sightline-dev/sightline/core"
	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/api/apitest"
	"github.com/sightline-dev/sightline/core/auth"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/kv/kvtest"
	"github.com/sightline-dev/sightline/core/kv/memkv"
	"github.com/sightline-dev/sightline/core/lang"
	"github.com/sightline-dev/sightline/core/register"
)

func status(e *core.Engine, authorization string) (int, string) {
	call := e.Begin(context.Background(), &api.Request{Method: "GET", Path: "/v2/models", Authorization: authorization})
	return call.Response().Status, string(call.Response().Body)
}

// TestKeys checks which keys are accepted, and the errors for the others.
func TestKeys(t *testing.T) {
	l := newFixture(t)
	e := l.open(t)
	tests := []struct {
		name, authorization string
		http                int
		want                string
	}{
		{"good", "Key " + l.key, 200, `"code":10000`},
		{"none", "", 401, `{"status":{"code":11102,"description":"Invalid request","details":"` + strings.ReplaceAll(auth.ErrNoCredentials.Error(), `"`, `\"`) + `"},"models":[]}`},
		{"unknown", "Key " + strings.Repeat("0", 32), 401, `{"status":{"code":11009,"description":"API key not found","details":"invalid key"},"models":[]}`},
		{"malformed", "Key 123", 401, `{"status":{"code":11009,"description":"API key not found","details":"invalid key"},"models":[]}`},
		{"token", "Bearer abcdefghij", 401, `"code":11001`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got, body := status(e, tt.authorization); got != tt.http || !strings.Contains(body, tt.want) {
				t.Errorf("%d %s, want %d %s", got, body, tt.http, tt.want)
			}
		})
	}
	call := e.Begin(context.Background(), &api.Request{Method: "OPTIONS", Path: "/v2/models"})
	if got := call.Response(); got.Status != 200 {
		t.Errorf("OPTIONS without a key = %d %s", got.Status, got.Body)
	}
}

func TestCreateRefuses(t *testing.T) {
	l := newFixture(t)
	e := l.open(t)
	ctx := context.Background()
	for _, name := range []string{"", " ", "a\nb", strings.Repeat("x", 257)} {
		if _, _, err := e.Register.CreateApp(ctx, register.Caller{}, register.NewApp{Name: name, Language: "en"}); !errors.Is(err, register.ErrName) {
			t.Errorf("CreateApp(%q) = %v, want %v", name, err, register.ErrName)
		}
	}
	if _, _, err := e.Register.CreateApp(ctx, register.Caller{}, register.NewApp{Name: "a", Language: "xx"}); !errors.Is(err, lang.ErrUnknown) {
		t.Errorf("CreateApp in xx = %v, want %v", err, lang.ErrUnknown)
	}
	apps, err := e.Register.Apps()
	if err != nil || len(apps) != 1 || apps[0].Name != "test" || apps[0].Language != "en" {
		t.Fatalf("Apps = %+v, %v", apps, err)
	}
	for _, id := range []string{"", "main", strings.Repeat("0", 32), " " + apps[0].ID, strings.Repeat("a", 32)} {
		if _, _, err := e.Register.CreateKey(ctx, register.Caller{}, register.NewKey{App: id, Scopes: []string{"All"}}); !errors.Is(err, register.ErrApplication) {
			t.Errorf("CreateKey(%q) = %v, want %v", id, err, register.ErrApplication)
		}
	}
	if _, _, err := e.Register.CreateKey(ctx, register.Caller{}, register.NewKey{App: apps[0].ID, Scopes: []string{"Everything"}}); !errors.Is(err, auth.ErrScope) {
		t.Errorf("CreateKey with a scope that is none = %v, want %v", err, auth.ErrScope)
	}
	if _, _, err := e.Register.CreateKey(ctx, register.Caller{}, register.NewKey{App: apps[0].ID, Scopes: []string{"All"}, Description: "a\x00"}); !errors.Is(err, register.ErrName) {
		t.Errorf("CreateKey with a control character = %v, want %v", err, register.ErrName)
	}
}

// TestEngineReopens checks that applications and keys remain after the engine is reopened, and that the store does not contain a key in
// plain text.
func TestEngineReopens(t *testing.T) {
	l := newFixture(t)
	e := l.open(t)
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	err := l.o.Store.Scan(nil, nil, func(key, value []byte) bool {
		if strings.Contains(string(key)+string(value), l.key) {
			t.Errorf("%x holds the key", key)
		}
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
	engine, err := core.Open(l.o)
	if err != nil {
		t.Fatal(err)
	}
	if got, body := status(engine, "Key "+l.key); got != 200 {
		t.Errorf("after opening again: %d %s", got, body)
	}
}

// TestDefaultModelChangesNoAnswer checks that the same requests get the same bytes with any default model.
func TestDefaultModelChangesNoAnswer(t *testing.T) {
	set := apitest.Tiny(t)
	const color = "eeed0b6733a644cea07cf4c60f87ebb7"
	var want []string
	for i, model := range []string{"", color, set.General().ID} {
		w := apitest.NewWorld(t, kvtest.OrLate(t, memkv.New()), set, nil, nil)
		app, err := w.Engine.Register.ChangeApp(t.Context(), register.Caller{}, w.App, register.AppChange{DefaultModel: &model})
		if err != nil || app.DefaultModel != model || app.Name != "test" {
			t.Fatalf("ChangeApp = %+v, %v", app, err)
		}
		for j, r := range []api.Request{
			{Method: "POST", Path: "/v2/inputs", Body: []byte(`{"inputs":[{"id":"r","data":{"image":{"url":"http://pictures.test/red.png"},"concepts":[{"id":"warm"}]}}]}`)},
			{Method: "STEP", Path: "1s"},
			{Method: "GET", Path: "/v2/inputs/r/outputs"},
			{Method: "POST", Path: "/v2/models", Body: []byte(`{"model":{"id":"m","output_info":{"data":{"concepts":[{"id":"warm"}]}}}}`)},
			{Method: "POST", Path: "/v2/models/m/versions"},
			{Method: "STEP", Path: "1s"},
			{Method: "GET", Path: "/v2/models"},
			{Method: "GET", Path: "/v2/models/m/output_info"},
			{Method: "POST", Path: "/v2/models/searches", Body: []byte(`{"model_query":{"name":"*"}}`)},
			{Method: "POST", Path: "/v2/models/m/outputs", Body: []byte(`{"inputs":[{"data":{"image":{"url":"http://pictures.test/blue.png"}}}]}`)},
			{Method: "POST", Path: "/v2/models/" + color + "/outputs", Body: []byte(`{"inputs":[{"data":{"image":{"url":"http://pictures.test/half.png"}}}]}`)},
			{Method: "POST", Path: "/v2/searches", Body: []byte(`{"query":{"ands":[{"output":{"data":{"concepts":[{"name":"black"}]}}}]}}`)},
			{Method: "POST", Path: "/v2/searches", Body: []byte(`{"query":{"ands":[{"output":{"input":{"data":{"image":{"url":"http://pictures.test/red.png"}}}}}]}}`)},
			{Method: "GET", Path: "/v2/concepts"},
			{Method: "POST", Path: "/v2/models//outputs", Body: []byte(`{"inputs":[{"data":{"image":{"url":"http://pictures.test/half.png"}}}]}`)},
			{Method: "GET", Path: "/v2/workflows"},
		} {
			got := string(w.Serve(t, r).Body)
			if i == 0 {
				want = append(want, got)
			} else if got != want[j] {
				t.Errorf("with the default model %q, %s %s = %s, want %s", model, r.Method, r.Path, got, want[j])
			}
		}
	}
}

// TestChangeApp changes the fields that a user may change. Later requests and a reopened engine use the new values.
func TestChangeApp(t *testing.T) {
	w := apitest.NewWorld(t, kvtest.OrLate(t, memkv.New()), apitest.Tiny(t), nil, nil)
	ctx := t.Context()
	for _, r := range []api.Request{
		{Method: "POST", Path: "/v2/inputs", Body: []byte(`{"inputs":[{"data":{"image":{"url":"http://pictures.test/red.png"},"concepts":[{"id":"warm"},{"id":"cold"}]}}]}`)},
		{Method: "POST", Path: "/v2/models", Body: []byte(`{"model":{"id":"own","output_info":{"data":{"concepts":[{"id":"warm"}]}}}}`)},
		{Method: "POST", Path: "/v2/models/own/versions"},
	} {
		if got := w.Serve(t, r); got.Status != 200 {
			t.Fatalf("%s %s = %d %s", r.Method, r.Path, got.Status, got.Body)
		}
	}
	name, own := " New ", "own"
	if _, err := w.Engine.Register.ChangeApp(ctx, register.Caller{}, w.App, register.AppChange{Name: &name, DefaultModel: &own}); err != nil {
		t.Fatal(err)
	}
	w.Open(t, w.Store)
	if got, err := w.Engine.Register.App(w.App); err != nil || got.Name != "New" || got.DefaultModel != "own" || got.Language != "en" {
		t.Errorf("App = %+v, %v", got, err)
	}
	if got, err := w.Engine.Register.Contents(w.App); err != nil || got != (register.Contents{Inputs: 1, Concepts: 2, Models: 1, Versions: 2, Keys: 1}) {
		t.Errorf("Contents = %+v, %v", got, err)
	}
	empty, absent := "", "absent"
	for _, tt := range []struct {
		app    string
		change register.AppChange
		want   error
	}{
		{w.App, register.AppChange{Name: &empty}, register.ErrName},
		{w.App, register.AppChange{DefaultModel: &absent}, register.ErrDefaultModel},
		{strings.Repeat("a", 32), register.AppChange{Name: &name}, register.ErrApplication},
		{"x", register.AppChange{}, register.ErrApplication},
	} {
		if _, err := w.Engine.Register.ChangeApp(ctx, register.Caller{}, tt.app, tt.change); !errors.Is(err, tt.want) {
			t.Errorf("ChangeApp(%q, %+v) = %v, want %v", tt.app, tt.change, err, tt.want)
		}
	}
	if _, err := w.Engine.Register.Contents("x"); !errors.Is(err, register.ErrApplication) {
		t.Errorf("Contents of none = %v, want ErrApplication", err)
	}
	if _, _, err := w.Engine.Register.CreateApp(ctx, register.Caller{}, register.NewApp{Name: "x", Language: "en", DefaultModel: "own"}); !errors.Is(err, register.ErrDefaultModel) {
		t.Errorf("CreateApp with another's model = %v, want ErrDefaultModel", err)
	}
}

// listing counts the scans that list the applications.
type listing struct {
	kv.Store
	n atomic.Int64
}

func (l *listing) Scan(lo, hi []byte, yield func(key, value []byte) bool) error {
	if from, _ := catalog.Control.Range(); bytes.Equal(lo, append(from, 'A')) {
		l.n.Add(1)
	}
	return l.Store.Scan(lo, hi, yield)
}

// TestIdleEngineListsNothing checks that the background work, which runs many times per second, lists the applications only after a change.
// It then works on new applications and no longer on deleted ones.
func TestIdleEngineListsNothing(t *testing.T) {
	store := &listing{Store: kvtest.OrLate(t, memkv.New())}
	w := apitest.NewWorld(t, store, apitest.Tiny(t), nil, nil)
	w.Step(t, time.Minute)
	before := store.n.Load()
	for range 10 {
		w.Round(t)
	}
	if n := store.n.Load() - before; n != 0 {
		t.Errorf("an idle engine has listed the applications %d times", n)
	}
	app, _, err := w.Engine.Register.CreateApp(t.Context(), register.Caller{}, register.NewApp{Name: "new", Language: "en"})
	if err != nil {
		t.Fatal(err)
	}
	if w.Key, _, err = w.Engine.Register.CreateKey(t.Context(), register.Caller{}, register.NewKey{App: app.ID, Scopes: []string{"All"}}); err != nil {
		t.Fatal(err)
	}
	add := api.Request{Method: "POST", Path: "/v2/inputs", Body: []byte(`{"inputs":[{"data":{"image":{"url":"http://pictures.test/red.png"}}}]}`)}
	if got := w.Serve(t, add); got.Status != 200 {
		t.Fatalf("%d %s", got.Status, got.Body)
	}
	tasks, err := w.Engine.Take(w.Now, 9)
	if err != nil || len(tasks) != 1 {
		t.Errorf("of a new application there are %d tasks, %v, want 1", len(tasks), err)
	}
	if err := w.Engine.Register.DeleteApp(t.Context(), register.Caller{}, app.ID); err != nil {
		t.Fatal(err)
	}
	if tasks, err := w.Engine.Take(w.Now, 9); err != nil || len(tasks) != 0 {
		t.Errorf("of a deleted application there are %d tasks, %v", len(tasks), err)
	}
	w.Step(t, time.Minute)
	w.Round(t) // the purge was a change
	before = store.n.Load()
	w.Round(t)
	if n := store.n.Load() - before; n != 0 {
		t.Errorf("after the purge the applications are listed %d times", n)
	}
}
