package core_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/api/apitest"
	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/fold"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/kv/kvtest"
	"github.com/sightline-dev/sightline/core/kv/memkv"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/register"
	"github.com/sightline-dev/sightline/core/testkit"
)

// marker is a word in all data of a doomed application.
const marker = "zebrafinch"

// appToDelete is an application that a test deletes, in a world with another one that stays.
type appToDelete struct {
	*apitest.World
	app      catalog.App
	key      string
	pictures []string // public names
}

// doom creates an application whose data contain the marker: inputs with bytes and URLs, a predicted picture, metadata, concepts, a trained model, a workflow,
// feedback and a key. some chooses how many steps of background work are done.
func doom(t testing.TB, w *apitest.World, some func(n int) int) *appToDelete {
	t.Helper()
	d := &appToDelete{World: w}
	var err error
	if d.app, _, err = w.Engine.Register.CreateApp(t.Context(), register.Caller{Account: "account"}, register.NewApp{Name: "A " + marker, Language: "en", Owner: marker}); err != nil {
		t.Fatal(err)
	}
	name := "Another " + marker
	if _, err := w.Engine.Register.ChangeApp(t.Context(), register.Caller{Account: "account"}, d.app.ID, register.AppChange{Name: &name}); err != nil {
		t.Fatal(err)
	}
	if d.key, _, err = w.Engine.Register.CreateKey(t.Context(), register.Caller{}, register.NewKey{App: d.app.ID, Scopes: []string{"All"}, Description: "of the " + marker}); err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		d.call(t, "POST", "/v2/inputs", `{"inputs":[`+
			fmt.Sprintf(`{"id":"%[1]s-%[2]d","data":{"image":{"base64":%[3]q},"concepts":[{"id":"%[1]s"}],"metadata":{"%[1]s":"%[1]s"}}},`,
				marker, i, base64.StdEncoding.EncodeToString(pictureOf(i)))+
			fmt.Sprintf(`{"data":{"image":{"url":"http://pictures.test/red.png?%[1]s%[2]d"},"concepts":[{"id":"not-%[1]s"}]}}]}`, marker, i))
	}
	d.call(t, "POST", "/v2/models", strings.ReplaceAll(`{"model":{"id":"M","name":"M","output_info":{"data":{"concepts":[{"id":"M"}]}}}}`, "M", marker))
	d.call(t, "POST", "/v2/models/"+marker+"/versions", "")
	d.call(t, "POST", "/v2/workflows", strings.ReplaceAll(`{"workflows":[{"id":"M","nodes":[{"id":"M","model":{"id":"aaa03c23b3724a16a56b629203edc62c"}}]}]}`, "M", marker))
	for range some(40) {
		w.Round(t)
	}
	got := d.serve("GET", "/v2/inputs", "")
	var list struct {
		Inputs []struct {
			Data struct{ Image struct{ URL string } }
		}
	}
	if err := json.Unmarshal(got.Body, &list); err != nil || len(list.Inputs) != 6 {
		t.Fatalf("%d inputs, %v: %s", len(list.Inputs), err, got.Body)
	}
	for _, in := range list.Inputs {
		if _, hosted, ok := strings.Cut(in.Data.Image.URL, api.HostedPath); ok {
			d.pictures = append(d.pictures, hosted)
		}
	}
	if len(d.pictures) != 3 {
		t.Fatalf("%d hosted pictures, want 3", len(d.pictures))
	}
	got = d.serve("POST", "/v2/models/aaa03c23b3724a16a56b629203edc62c/outputs", fmt.Sprintf(`{"inputs":[{"data":{"image":{"base64":%q}}}]}`,
		base64.StdEncoding.EncodeToString(append(pictureOf(0), "predicted"...))))
	_, predicted, ok := strings.Cut(string(got.Body), api.HostedPath)
	if got.Status != 200 || !ok {
		t.Fatalf("predict: %d %s", got.Status, got.Body)
	}
	d.pictures = append(d.pictures, predicted[:32])
	return d
}

// pictureOf returns a picture that no other application has.
func pictureOf(i int) []byte {
	return append(bytes.Clone(apitest.Picture([]string{"red.png", "white.png", "black.png"}[i])), marker...)
}

func (d *appToDelete) serve(method, path, body string) api.Response {
	call := d.Engine.Begin(context.Background(), &api.Request{Method: method, Path: path, Body: []byte(body), Authorization: "Key " + d.key})
	for !call.Done() {
		var results []api.Result
		for _, job := range call.Jobs() {
			results = append(results, d.RunJob(job))
		}
		call.Resume(results)
	}
	return call.Response()
}

func (d *appToDelete) call(t testing.TB, method, path, body string) {
	t.Helper()
	if got := d.serve(method, path, body); got.Status != 200 {
		t.Fatalf("%s %s = %d %s", method, path, got.Status, got.Body)
	}
}

// dead checks that the service rejects the application's key and finds neither its record nor its pictures.
func (d *appToDelete) dead(t testing.TB) {
	t.Helper()
	for _, path := range []string{"/v2/inputs", "/v2/models", "/v2/concepts"} {
		if got := d.serve("GET", path, ""); got.Status != 401 {
			t.Errorf("GET %s of a deleted application = %d %s", path, got.Status, got.Body)
		}
	}
	for _, name := range d.pictures {
		if p, err := d.Engine.Register.HostedPicture(name); !errors.Is(err, blob.ErrNotFound) {
			t.Errorf("picture %s of a deleted application: %+v, %v", name, p, err)
		}
		if _, err := d.Engine.Register.Thumbnail(name); !errors.Is(err, blob.ErrNotFound) {
			t.Errorf("thumbnail %s of a deleted application: %v", name, err)
		}
	}
	if _, err := d.Engine.Register.App(d.app.ID); !errors.Is(err, register.ErrApplication) {
		t.Errorf("App = %v, want ErrApplication", err)
	}
	if keys, err := d.Engine.Register.Keys(d.app.ID); len(keys) != 0 || err != nil {
		t.Errorf("Keys = %v, %v", keys, err)
	}
}

// checkPurged checks that no data of the application is left once all steps are done.
func (d *appToDelete) checkPurged(t testing.TB) {
	t.Helper()
	id, err := catalog.ParseAppID(d.app.ID)
	if err != nil {
		t.Fatal(err)
	}
	err = d.Store.Scan(nil, nil, func(key, value []byte) bool {
		if bytes.Contains(key, id[:]) || bytes.Contains(value, id[:]) {
			t.Errorf("key %q is left of the application", key)
		}
		if bytes.Contains(key, []byte(marker)) || bytes.Contains(value, []byte(marker)) {
			t.Errorf("%q → %q is left of the application", key, value)
		}
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
	err = d.Blobs.Each(t.Context(), blob.Hash{}, func(h blob.Hash) error {
		picture, err := d.Blobs.Get(t.Context(), h)
		if bytes.Contains(picture, []byte(marker)) {
			t.Errorf("picture %v is left of the application", h)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if purges, err := catalog.Read(d.Store, catalog.Control).Purges(); len(purges) != 0 || err != nil {
		t.Errorf("%v is owed, %v", purges, err)
	}
	refolds(t, d.Store)
}

// refolds checks that folding the control log again, without the removed texts of deleted applications, returns the same state.
func refolds(t testing.TB, store kv.Store) {
	t.Helper()
	l, err := log.Open(store, log.Options{Prefix: catalog.Control.LogPrefix()})
	if err != nil {
		t.Fatal(err)
	}
	scratch := kvtest.OrLate(t, memkv.New())
	f, tx := fold.New(catalog.Control), kv.NewOverlay(scratch)
	if err := f.Begin(tx); err != nil {
		t.Fatal(err)
	}
	err = l.Read(1, func(e log.Entry) bool {
		_, failed := f.Apply(&e)
		if failed != nil {
			t.Fatal(failed)
		}
		return true
	})
	f.End()
	if err == nil {
		err = scratch.Apply(tx.Batch())
	}
	if err != nil {
		t.Fatal(err)
	}
	want, err1 := fold.Digest(store, catalog.Control)
	got, err2 := fold.Digest(scratch, catalog.Control)
	if err := errors.Join(err1, err2); err != nil || got != want {
		t.Errorf("the control log gives the state %x, %v, want %x", got[:8], err, want[:8])
	}
}

// TestDeletedApplicationLeavesNothing deletes an application at any moment of its work and scans the store and the blobs for its data. The
// other application stays unchanged.
func TestDeletedApplicationLeavesNothing(t *testing.T) {
	set := apitest.Tiny(t)
	for seed := range testkit.Seeds(t, 12, 2000) {
		r := rand.New(rand.NewPCG(seed, 9))
		w := apitest.NewWorld(t, kvtest.OrLate(t, memkv.New()), set, nil, nil)
		own := &appToDelete{World: w, key: w.Key}
		own.call(t, "POST", "/v2/inputs", fmt.Sprintf(`{"inputs":[{"id":"mine","data":{"image":{"base64":%q},"concepts":[{"id":"x"}]}}]}`,
			base64.StdEncoding.EncodeToString(apitest.Picture("half.png"))))
		w.Step(t, time.Second)
		before := own.serve("GET", "/v2/inputs", "")

		d := doom(t, w, r.IntN)
		if err := w.Engine.Register.DeleteApp(t.Context(), register.Caller{}, d.app.ID); err != nil {
			t.Fatal(err)
		}
		d.dead(t)
		if err := w.Engine.Register.DeleteApp(t.Context(), register.Caller{}, d.app.ID); !errors.Is(err, register.ErrApplication) {
			t.Errorf("deleted again: %v, want ErrApplication", err)
		}
		w.Step(t, 2*time.Minute)
		d.dead(t)
		d.checkPurged(t)
		if after := own.serve("GET", "/v2/inputs", ""); after.Status != 200 || !bytes.Equal(after.Body, before.Body) {
			t.Errorf("the other application answers %s, before %s", after.Body, before.Body)
		}
		blobs := 0
		if err := w.Blobs.Each(t.Context(), blob.Hash{}, func(blob.Hash) error { blobs++; return nil }); err != nil || blobs != 1 {
			t.Errorf("%d blobs are kept, %v, want 1", blobs, err)
		}
	}
}

// TestKillDeletions deletes an application and kills the program at any moment, with a state that a crash may leave. The application stays
// deleted, and all its data is removed in the end.
func TestKillDeletions(t *testing.T) {
	set := apitest.Tiny(t)
	for seed := range testkit.Seeds(t, 40, 10_000) {
		r := rand.New(rand.NewPCG(seed, 10))
		store := &tape{Store: kvtest.OrLate(t, memkv.New())}
		w := apitest.NewWorld(t, store, set, nil, nil)
		d := doom(t, w, r.IntN)
		if err := w.Engine.Register.DeleteApp(t.Context(), register.Caller{}, d.app.ID); err != nil {
			t.Fatal(err)
		}
		for range 3 {
			for range r.IntN(12) {
				w.Round(t)
			}
			store = store.crash(t, r)
			w.Open(t, store)
			d.dead(t)
		}
		w.Step(t, 2*time.Minute)
		d.dead(t)
		d.checkPurged(t)
	}
}

// TestDeletionEndsCalls deletes an application while calls and tasks are in progress. They end and write nothing.
func TestDeletionEndsCalls(t *testing.T) {
	set := apitest.Tiny(t)
	for seed := range testkit.Seeds(t, 12, 2000) {
		r := rand.New(rand.NewPCG(seed, 11))
		w := apitest.NewWorld(t, kvtest.OrLate(t, memkv.New()), set, nil, nil)
		d := doom(t, w, r.IntN)
		tasks, err := w.Engine.Take(w.Now, 8)
		if err != nil {
			t.Fatal(err)
		}
		added := w.Engine.Begin(t.Context(), &api.Request{
			Method: "POST", Path: "/v2/inputs", Authorization: "Key " + d.key,
			Body: fmt.Appendf(nil, `{"inputs":[{"id":"late-%s","data":{"image":{"base64":%q}}}]}`, marker, base64.StdEncoding.EncodeToString(pictureOf(1))),
		})
		searched := w.Engine.Begin(t.Context(), &api.Request{
			Method: "POST", Path: "/v2/searches", Authorization: "Key " + d.key,
			Body: fmt.Appendf(nil, `{"query":{"ands":[{"output":{"input":{"data":{"image":{"base64":%q}}}}}]}}`, base64.StdEncoding.EncodeToString(pictureOf(2))),
		})
		if added.Done() || searched.Done() {
			t.Fatalf("calls that need a picture analysed are done: %s %s", added.Response().Body, searched.Response().Body)
		}
		if err := w.Engine.Register.DeleteApp(t.Context(), register.Caller{}, d.app.ID); err != nil {
			t.Fatal(err)
		}
		if r.IntN(2) == 0 {
			w.Step(t, time.Second) // the purge ends before the calls and tasks
		}
		for _, task := range tasks {
			if err := w.Engine.Done(t.Context(), task, w.RunTask(task)); err != nil {
				t.Errorf("a task of a deleted application ends with %v", err)
			}
		}
		for call, want := range map[*api.Exchange][]int{added: {401}, searched: {200, 401}} {
			for !call.Done() {
				var results []api.Result
				for _, job := range call.Jobs() {
					results = append(results, w.RunJob(job))
				}
				call.Resume(results)
			}
			if got := call.Response(); got.Status != want[0] && got.Status != want[len(want)-1] {
				t.Errorf("a call of a deleted application ends with %d %s, want %v", got.Status, got.Body, want)
			}
		}
		w.Step(t, 2*time.Minute)
		d.checkPurged(t)
	}
}

// TestDeletedWhileStoreIsFull deletes an application while the store is full.
func TestDeletedWhileStoreIsFull(t *testing.T) {
	store := &fullStore{Store: kvtest.OrLate(t, memkv.New())}
	w := apitest.NewWorld(t, store, apitest.Tiny(t), nil, nil)
	d := doom(t, w, func(n int) int { return n })
	_, edge, err := w.Engine.Register.CreateEdge(t.Context(), register.Caller{}, "attic", []string{d.app.ID})
	if err != nil {
		t.Fatal(err)
	}
	store.full = true
	if err := w.Engine.Register.RevokeEdge(t.Context(), register.Caller{}, edge.ID); err != nil {
		t.Errorf("RevokeEdge = %v", err)
	}
	if _, _, err := w.Engine.Register.CreateKey(t.Context(), register.Caller{}, register.NewKey{App: d.app.ID, Scopes: []string{"All"}}); !errors.Is(err, kv.ErrFull) {
		t.Errorf("CreateKey = %v, want ErrFull", err)
	}
	if err := w.Engine.Register.RevokeTokens(t.Context(), register.Caller{}, d.app.ID); err != nil {
		t.Errorf("RevokeTokens = %v", err)
	}
	if err := w.Engine.Register.DeleteApp(t.Context(), register.Caller{}, d.app.ID); err != nil {
		t.Fatal(err)
	}
	d.dead(t)
	w.Step(t, time.Second)
	d.checkPurged(t)
}

// TestNoTasksWhileFull checks that the engine hands out no tasks while the store is full, because it could not write their results. The
// tasks are due once there is space.
func TestNoTasksWhileFull(t *testing.T) {
	store := &fullStore{Store: kvtest.OrLate(t, memkv.New())}
	w := apitest.NewWorld(t, store, apitest.Tiny(t), nil, nil)
	body := `{"inputs":[{"id":"a","data":{"image":{"url":"http://pictures.test/red.png"}}}]}`
	if r := w.Serve(t, api.Request{Method: "POST", Path: "/v2/inputs", Body: []byte(body)}); r.Status != 200 {
		t.Fatalf("%d %s", r.Status, r.Body)
	}
	for _, full := range []bool{true, false} {
		store.full = full
		tasks, err := w.Engine.Take(apitest.Start, 4)
		if err != nil || (len(tasks) == 0) != full {
			t.Errorf("full %v: %d tasks, %v", full, len(tasks), err)
		}
	}
}

// fullStore is a store whose Room returns ErrFull while full is set.
type fullStore struct {
	kv.Store
	full bool
}

func (s *fullStore) Room() error {
	if s.full {
		return kv.ErrFull
	}
	return s.Store.Room()
}
