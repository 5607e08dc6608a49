package core_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/auth"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/register"
	"github.com/sightline-dev/sightline/core/testkit"
)

// TestDeletedKeysAreRejected deletes keys singly, by replacing them, or with their application, while callers read and write with them.
// Once a deletion is acknowledged, requests that begin later are rejected.
func TestDeletedKeysAreRejected(t *testing.T) {
	const callers = 4
	for seed := range testkit.Seeds(t, 60, 10_000) {
		r := rand.New(rand.NewPCG(seed, 19))
		l := newFixture(t)
		e := l.open(t)
		ctx := context.Background()
		app, _, err := e.Register.CreateApp(ctx, register.Caller{}, register.NewApp{Name: "x", Language: "en"})
		if err != nil {
			t.Fatal(err)
		}
		key, record, err := e.Register.CreateKey(ctx, register.Caller{}, register.NewKey{App: app.ID, Scopes: []string{"All"}})
		if err != nil {
			t.Fatal(err)
		}
		var (
			dead    atomic.Bool
			stopped atomic.Bool
			served  atomic.Int64
			wg      sync.WaitGroup
		)
		for i := range callers {
			wg.Go(func() {
				for n := 0; !stopped.Load(); n++ {
					runtime.Gosched() // WebAssembly guests have one thread
					request := &api.Request{Method: "GET", Path: "/v2/inputs", Authorization: "Key " + key}
					if i%2 == 0 {
						request = &api.Request{Method: "POST", Path: "/v2/inputs", Authorization: "Key " + key, Body: []byte(`{"inputs":[{"data":{"image":{"url":"http://pictures.test/red.png"}}}]}`)}
					}
					late := dead.Load()
					got := work(t, l, e.Begin(ctx, request))
					switch {
					case late && got.Status != 401:
						t.Errorf("after the deletion was acknowledged: %d %s", got.Status, got.Body)
						return
					case got.Status >= 500:
						t.Errorf("during the deletion: %d %s", got.Status, got.Body)
						return
					case got.Status == 200:
						served.Add(1)
					case late && n > 20:
						return
					}
				}
			})
		}
		for want := int64(r.IntN(50)); served.Load() < want && !t.Failed(); {
			runtime.Gosched()
			if _, err := e.Step(ctx, l.clock()); err != nil {
				t.Error(err)
			}
		}
		switch r.IntN(3) {
		case 0:
			err = e.Register.DeleteKey(ctx, register.Caller{}, app.ID, record.Hash)
		case 1:
			_, _, err = e.Register.ReplaceKey(ctx, register.Caller{}, app.ID, record.Hash)
		default:
			err = e.Register.DeleteApp(ctx, register.Caller{}, app.ID)
		}
		dead.Store(true)
		for range 20 {
			if _, e := e.Step(ctx, l.clock()); e != nil {
				t.Error(e)
			}
		}
		stopped.Store(true)
		wg.Wait()
		if err != nil {
			t.Fatal(err)
		}
		if got, body := status(e, "Key "+key); got != 401 {
			t.Errorf("in the end: %d %s", got, body)
		}
	}
}

// TestReplaceKey creates a key with the scopes of the old one, which is deleted in the same step.
func TestReplaceKey(t *testing.T) {
	l := newFixture(t)
	e := l.open(t)
	ctx := context.Background()
	apps, err := e.Register.Apps()
	if err != nil || len(apps) != 1 {
		t.Fatal(apps, err)
	}
	app := apps[0].ID
	old, before, err := e.Register.CreateKey(ctx, register.Caller{Account: "account"}, register.NewKey{App: app, Scopes: []string{"Inputs:Get", "Predict"}, Description: " for the kiosk "})
	if err != nil {
		t.Fatal(err)
	}
	key, after, err := e.Register.ReplaceKey(ctx, register.Caller{Account: "another"}, app, before.Hash)
	if err != nil || key == old {
		t.Fatalf("ReplaceKey = %q, %v", key, err)
	}
	want := catalog.Key{Hash: auth.HashKey(key), App: app, Scopes: []string{"Inputs_Get", "Predict"}, Description: "for the kiosk", By: "another", Created: after.Created}
	if diff := cmp.Diff(want, after); diff != "" {
		t.Errorf("the new key, -want +got:\n%s", diff)
	}
	keys, err := e.Register.Keys(app)
	if err != nil || len(keys) != 2 { // the fixture's key and the new one
		t.Errorf("Keys = %v, %v", keys, err)
	}
	other, _, err := e.Register.CreateApp(ctx, register.Caller{}, register.NewApp{Name: "other", Language: "de"})
	if err != nil {
		t.Fatal(err)
	}
	for name, err := range map[string]error{
		"a key that is gone": failure3(e.Register.ReplaceKey(ctx, register.Caller{}, app, before.Hash)),
		"another's key":      failure3(e.Register.ReplaceKey(ctx, register.Caller{}, other.ID, after.Hash)),
		"deleting gone":      e.Register.DeleteKey(ctx, register.Caller{}, "", before.Hash),
		"deleting another's": e.Register.DeleteKey(ctx, register.Caller{}, other.ID, after.Hash),
	} {
		if !errors.Is(err, register.ErrNoKey) {
			t.Errorf("%s: %v, want ErrNoKey", name, err)
		}
	}
	if err := e.Register.DeleteKey(ctx, register.Caller{}, app, after.Hash); err != nil {
		t.Error(err)
	}
}

func failure3[A, B any](_ A, _ B, err error) error { return err }

// TestClients gives an application's client new secrets and revokes its tokens.
func TestClients(t *testing.T) {
	l := newFixture(t)
	e := l.open(t)
	ctx := context.Background()
	app, client, err := e.Register.CreateApp(ctx, register.Caller{Account: "account"}, register.NewApp{Name: "a", Language: "en", Owner: "account"})
	if err != nil {
		t.Fatal(err)
	}
	if app.Owner != "account" || len(client.ID) != 32 || len(client.Secret) != 64 || strings.Trim(client.ID+client.Secret, "0123456789abcdef") != "" {
		t.Errorf("CreateApp = %+v, %+v", app, client)
	}
	first, err := e.Register.Client(app.ID)
	if err != nil || first.ID != client.ID || first.App != app.ID || first.Secret != auth.HashKey(client.Secret) || first.Generation == 0 {
		t.Errorf("Client = %+v, %v", first, err)
	}
	if err := e.Register.RevokeTokens(ctx, register.Caller{}, app.ID); err != nil {
		t.Fatal(err)
	}
	second, err := e.Register.Client(app.ID)
	if err != nil || second.Generation <= first.Generation || second.Secret != first.Secret || second.ID != first.ID {
		t.Errorf("after revoking: %+v, %v; before %+v", second, err, first)
	}
	replacement, err := e.Register.ReplaceSecret(ctx, register.Caller{}, app.ID)
	if err != nil || replacement.ID != client.ID || replacement.Secret == client.Secret {
		t.Fatalf("ReplaceSecret = %+v, %v", replacement, err)
	}
	third, err := e.Register.Client(app.ID)
	if err != nil || third.Generation <= second.Generation || third.Secret != auth.HashKey(replacement.Secret) {
		t.Errorf("after another secret: %+v, %v", third, err)
	}
	if err := e.Register.DeleteApp(ctx, register.Caller{}, app.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := catalog.Read(l.o.Store, catalog.Control).Client(client.ID); !errors.Is(err, catalog.ErrNotFound) {
		t.Errorf("the client of a deleted application: %v", err)
	}
	for name, err := range map[string]error{
		"revoking":     e.Register.RevokeTokens(ctx, register.Caller{}, app.ID),
		"a new secret": failure(e.Register.ReplaceSecret(ctx, register.Caller{}, app.ID)),
		"its client":   failure(e.Register.Client(app.ID)),
	} {
		if !errors.Is(err, register.ErrApplication) {
			t.Errorf("%s of a deleted application: %v, want ErrApplication", name, err)
		}
	}
}

func failure[A any](_ A, err error) error { return err }
