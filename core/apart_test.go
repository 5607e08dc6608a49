package core_test

import (
	"bytes"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/sightline-dev/sightline/core"
	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/api/apitest"
	"github.com/sightline-dev/sightline/core/auth"
	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/kv/kvtest"
	"github.com/sightline-dev/sightline/core/kv/memkv"
	"github.com/sightline-dev/sightline/core/register"
)

// recordingStore records the keys that are written through it.
type recordingStore struct {
	kv.Store
	keys [][]byte
}

func (w *recordingStore) note(b *kv.Batch) {
	for op := range b.Each {
		w.keys = append(w.keys, bytes.Clone(op.Key))
		if op.Kind == kv.KindDeleteRange {
			w.keys = append(w.keys, bytes.Clone(op.Value))
		}
	}
}

func (w *recordingStore) Apply(b *kv.Batch) error {
	w.note(b)
	return w.Store.Apply(b)
}

func (w *recordingStore) Commit(b *kv.Batch) (func() error, error) {
	w.note(b)
	return w.Store.Commit(b)
}

// apart is an application with its own engine, and the register of all applications.
type apart struct {
	*appToDelete
	control *register.Register
	writes  *recordingStore
	ended   []string // applications that Detach was called with
}

// newApart fills an application in an engine of all applications, and then opens it in its own engine.
func newApart(t testing.TB) *apart {
	t.Helper()
	w := apitest.NewWorld(t, kvtest.OrLate(t, memkv.New()), apitest.Tiny(t), nil, nil)
	a := &apart{appToDelete: doom(t, w, func(int) int { return 3 }), writes: &recordingStore{Store: w.Store}}
	models := w.Engine.Models([32]byte{})
	if err := w.Engine.Close(); err != nil {
		t.Fatal(err)
	}
	var err error
	a.control, err = register.Open(register.Options{
		Store: w.Store, Models: models, Hosted: w.Hosted, Clock: func() time.Time { return w.Now }, Rand: &w.IDs,
		Detach: func(app string) { a.ended = append(a.ended, app) },
	})
	if err != nil {
		t.Fatal(err)
	}
	w.Engine, err = core.Open(core.Options{
		Store: a.writes, App: a.app.ID, Models: models, Hosted: w.Hosted, Clock: func() time.Time { return w.Now }, Rand: &w.IDs,
		Rate: auth.Rate{PerSecond: -1},
	})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// tidy runs the register's steps until no work is left.
func (a *apart) tidy(t testing.TB) {
	t.Helper()
	for more := true; more; {
		var err error
		if more, err = a.control.Step(t.Context(), a.Now); err != nil {
			t.Fatal(err)
		}
	}
}

// TestOneApplication compares the answers of an engine of one application with those of an engine of all applications. It also checks that
// the former writes no data of other applications.
func TestOneApplication(t *testing.T) {
	reference := doom(t, apitest.NewWorld(t, kvtest.OrLate(t, memkv.New()), apitest.Tiny(t), nil, nil), func(int) int { return 3 })
	a := newApart(t)
	reference.Step(t, time.Second)
	a.Step(t, time.Second)
	search := `{"query":{"ands":[{"output":{"input":{"data":{"image":{"url":"http://pictures.test/red.png"}}}}}]}}`
	for _, r := range [][3]string{
		{"GET", "/v2/inputs", ""},
		{"GET", "/v2/models", ""},
		{"GET", "/v2/models/" + marker + "/versions", ""},
		{"GET", "/v2/workflows", ""},
		{"POST", "/v2/searches", search},
		{"DELETE", "/v2/inputs/" + marker + "-1", ""},
	} {
		want, got := reference.serve(r[0], r[1], r[2]), a.serve(r[0], r[1], r[2])
		if got.Status != want.Status || len(got.Body) != len(want.Body) {
			t.Errorf("%s %s = %d %s, want %d %s", r[0], r[1], got.Status, got.Body, want.Status, want.Body)
		}
	}
	for _, key := range []string{a.Key, "nobody"} {
		call := a.Engine.Begin(t.Context(), &api.Request{Method: "GET", Path: "/v2/inputs", Authorization: "Key " + key})
		if got := call.Response(); got.Status != 401 {
			t.Errorf("another application's key = %d %s", got.Status, got.Body)
		}
	}
	a.call(t, "DELETE", "/v2/inputs", `{"delete_all":true}`)
	a.Step(t, time.Second)
	if !a.Engine.Orphans() || a.Engine.Orphans() {
		t.Error("pictures of all inputs were not told of, once")
	}
	id, err := catalog.ParseAppID(a.app.ID)
	if err != nil {
		t.Fatal(err)
	}
	lo, hi := id.Range()
	nameLo, nameHi := catalog.HostedRange()
	within := func(key, lo, hi []byte) bool { return bytes.Compare(key, lo) >= 0 && bytes.Compare(key, hi) <= 0 }
	for _, key := range a.writes.keys {
		if !within(key, lo, hi) && !within(key, nameLo, nameHi) {
			t.Fatalf("key %q was written", key)
		}
	}
	if len(a.writes.keys) < 50 {
		t.Errorf("only %d keys were written", len(a.writes.keys))
	}
	a.control.ScheduleCollect()
	a.tidy(t)
	if stored, err := a.Blobs.Has(t.Context(), pictureHash(0)); stored || err != nil {
		t.Errorf("a deleted input's picture is held: %v, %v", stored, err)
	}
}

// TestOneApplicationOnlyReadsRegister: the engine of one application reads changes of the register, and cannot write to it.
func TestOneApplicationOnlyReadsRegister(t *testing.T) {
	a := newApart(t)
	ctx := t.Context()
	name, hash := "other", auth.HashKey(a.key)
	for method, err := range map[string]error{
		"CreateApp":     second(a.Engine.Register.CreateApp(ctx, register.Caller{}, register.NewApp{Name: "x", Language: "en"})),
		"ChangeApp":     last(a.Engine.Register.ChangeApp(ctx, register.Caller{}, a.app.ID, register.AppChange{Name: &name})),
		"DeleteApp":     a.Engine.Register.DeleteApp(ctx, register.Caller{}, a.app.ID),
		"CreateKey":     second(a.Engine.Register.CreateKey(ctx, register.Caller{}, register.NewKey{App: a.app.ID, Scopes: []string{"All"}})),
		"DeleteKey":     a.Engine.Register.DeleteKey(ctx, register.Caller{}, a.app.ID, hash),
		"ReplaceKey":    second(a.Engine.Register.ReplaceKey(ctx, register.Caller{}, a.app.ID, hash)),
		"ReplaceSecret": last(a.Engine.Register.ReplaceSecret(ctx, register.Caller{}, a.app.ID)),
		"RevokeTokens":  a.Engine.Register.RevokeTokens(ctx, register.Caller{}, a.app.ID),
		"Purge":         a.Engine.Register.Purge(ctx, a.Now),
		"Reopen":        a.Engine.Reopen(),
	} {
		if !errors.Is(err, register.ErrNotOrigin) {
			t.Errorf("%s = %v, want %v", method, err, register.ErrNotOrigin)
		}
	}
	a.call(t, "GET", "/v2/inputs", "")

	key, _, err := a.control.CreateKey(ctx, register.Caller{}, register.NewKey{App: a.app.ID, Scopes: []string{"All"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := a.control.DeleteKey(ctx, register.Caller{}, a.app.ID, hash); err != nil {
		t.Fatal(err)
	}
	if got := a.serve("GET", "/v2/inputs", ""); got.Status != 401 {
		t.Errorf("a deleted key = %d %s", got.Status, got.Body)
	}
	a.key = key
	a.call(t, "GET", "/v2/inputs", "")

	model := "bd367be194cf45149e75f01d59f77ba7"
	if app, err := a.control.ChangeApp(ctx, register.Caller{}, a.app.ID, register.AppChange{DefaultModel: &model}); err != nil || app.DefaultModel != model {
		t.Errorf("ChangeApp = %+v, %v", app, err)
	}
	if app, err := a.Engine.Register.App(a.app.ID); err != nil || app.DefaultModel != model {
		t.Errorf("App of the engine = %+v, %v", app, err)
	}
	if n, err := a.control.Contents(a.app.ID); err != nil || n != (register.Contents{Inputs: 6, Concepts: n.Concepts, Models: 1, Versions: 2, Workflows: 1, Keys: 1}) {
		t.Errorf("Contents = %+v, %v", n, err)
	}
	for _, name := range a.pictures {
		if p, err := a.control.HostedPicture(name); err != nil || p.ContentType != "image/png" {
			t.Errorf("Hosted = %+v, %v", p, err)
		}
	}
}

// TestDeletedWithOwnEngine deletes an application that has its own engine.
func TestDeletedWithOwnEngine(t *testing.T) {
	a := newApart(t)
	a.Round(t)
	if err := a.control.DeleteApp(t.Context(), register.Caller{}, a.app.ID); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(a.ended, []string{a.app.ID}) {
		t.Errorf("Detach was told of %q", a.ended)
	}
	a.dead(t)
	writes := len(a.writes.keys)
	if tasks, err := a.Engine.Take(a.Now, 4); len(tasks) != 0 || err != nil {
		t.Errorf("Take = %v, %v", tasks, err)
	}
	if more, err := a.Engine.Step(t.Context(), a.Now); more || err != nil {
		t.Errorf("Step = %v, %v", more, err)
	}
	if len(a.writes.keys) != writes {
		t.Error("the engine of a deleted application writes")
	}
	if err := a.Engine.Close(); err != nil {
		t.Fatal(err)
	}
	a.Now = a.Now.Add(25 * time.Hour)
	a.tidy(t)
	a.checkPurged(t)
	if err := a.control.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := a.control.Step(t.Context(), a.Now); !errors.Is(err, register.ErrClosed) {
		t.Errorf("Step after Close = %v, want %v", err, register.ErrClosed)
	}
}

// TestOpenOneRefusesMissingApplication: an engine of an application that does not exist cannot be opened.
func TestOpenOneRefusesMissingApplication(t *testing.T) {
	for _, id := range []string{"none", "0123456789abcdef0123456789abcdef"} {
		o := newFixture(t).o
		o.App = id
		if _, err := core.Open(o); !errors.Is(err, register.ErrApplication) {
			t.Errorf("Open of application %q = %v, want %v", id, err, register.ErrApplication)
		}
	}
	if _, err := register.Open(register.Options{}); !errors.Is(err, api.ErrOptions) {
		t.Errorf("OpenControl of nothing = %v, want %v", err, api.ErrOptions)
	}
}

func second[A, B any](_ A, _ B, err error) error { return err }

func last[A any](_ A, err error) error { return err }

// pictureHash returns the hash of one of a doomed application's pictures.
func pictureHash(i int) blob.Hash { return blob.Sum(pictureOf(i)) }
