package host

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/sightline-dev/sightline/core"
	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/api/apitest"
	"github.com/sightline-dev/sightline/core/auth"
	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/predict/raster"
)

// TestPeople has a fleet answer those who come with a session as an engine of all applications does: about the account
// it answers itself, about an application's data the application's instance does, and nobody sees another's.
func TestPeople(t *testing.T) {
	n := newNode(t, anotherRuntime(t), func(o *FleetOptions) { o.Lent.Accounts = people{} })
	engine, err := core.Open(core.Options{
		Store: n.store, Models: apitest.Tiny(t), Hosted: n.hosted, Clock: func() time.Time { return apitest.Start }, Rand: newSeeded(),
		Tokens: mint{}, Accounts: people{}, Rate: auth.Rate{PerSecond: -1},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer engine.Close()
	app := func(owner string) string {
		t.Helper()
		a, _, err := n.control.CreateApp(t.Context(), "", core.NewApp{Name: "of " + owner, Language: "en", Owner: owner})
		if err != nil {
			t.Fatal(err)
		}
		return a.ID
	}
	berts := app("bert")
	both := func(session, path string, want int) {
		t.Helper()
		r := &api.Request{Method: "GET", Path: path, Session: session}
		got, natively := n.serve(r), engine.Begin(context.Background(), r).Response()
		if got.Status != natively.Status || !bytes.Equal(got.Body, natively.Body) || got.Status != want {
			t.Errorf("GET %s with %q = %d %s, natively %d %s, want %d", path, session, got.Status, got.Body, natively.Status, natively.Body, want)
		}
	}
	both("session", "/v2/inputs", 400) // no application yet
	annas := app("anna")
	users := "/v2/users/anna/apps"
	for path, want := range map[string]int{
		"/v2/inputs":                         200, // of the only application
		users:                                200,
		users + "/" + annas + "/inputs":      200,
		"/v2/users/anna/keys":                200,
		"/v2/users/me/apps/" + annas:         200,
		users + "/" + berts + "/inputs":      404,
		"/v2/users/anna/nothing":             404,
		"/v2/users/bert/apps/" + berts + "/": 404,
	} {
		both("session", path, want)
		if strings.HasSuffix(path, "/nothing") { // no such route, whoever asks
			both("another", path, want)
		} else {
			both("another", path, 401)
		}
	}
	app("anna")
	both("session", "/v2/inputs", 400) // which of the two?
	created := n.serve(&api.Request{Method: "POST", Path: users, Session: "session", Body: []byte(`{"apps":[{"name":"more"}]}`)})
	if created.Status == 200 {
		t.Errorf("a fleet makes an application: %s", created.Body)
	}
}

// TestAdmit has a host refuse calls of one application that write: nobody else's, none that read, and none for
// which it vouches itself.
func TestAdmit(t *testing.T) {
	held := ""
	n := newNode(t, anotherRuntime(t), func(o *FleetOptions) {
		o.Admit = func(_ context.Context, app string, r *api.Request) error {
			if app == held && api.Writes(r.Method, r.Path) {
				return auth.ErrAged
			}
			return nil
		}
	})
	a, b := n.tenant(), n.tenant()
	held = a.app
	body := []byte(`{"concepts":[{"id":"c"}]}`)
	for _, tt := range []struct {
		r    api.Request
		want int
	}{
		{api.Request{Method: "POST", Path: "/v2/concepts", Authorization: "Key " + a.key, Body: body}, 507},
		{api.Request{Method: "GET", Path: "/v2/concepts", Authorization: "Key " + a.key}, 200},
		{api.Request{Method: "POST", Path: "/v2/concepts", Authorization: "Key " + b.key, Body: body}, 200},
		{api.Request{Method: "POST", Path: "/v2/concepts", App: a.app, Body: body}, 200},
	} {
		res := n.serve(&tt.r)
		if res.Status != tt.want || tt.want == 507 && !bytes.Contains(res.Body, []byte(`"code":39998`)) {
			t.Errorf("%s %s = %d %s, want %d", tt.r.Method, tt.r.Path, res.Status, res.Body, tt.want)
		}
	}
}

// TestHosted finds pictures of all applications by their names.
func TestHosted(t *testing.T) {
	n := newNode(t, anotherRuntime(t), nil)
	name, hash, err := n.hosted.Add(t.Context(), apitest.Picture("red.png"), "image/png", time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	if p, err := n.fleet.Hosted(name); err != nil || p.Hash != hash || p.ContentType != "image/png" {
		t.Errorf("Hosted = %+v, %v, want %v", p, err, hash)
	}
	if _, err := n.fleet.Hosted("nobody's"); !errors.Is(err, blob.ErrNotFound) {
		t.Errorf("Hosted of no name = %v, want %v", err, blob.ErrNotFound)
	}
	if _, err := n.fleet.Thumbnail(name); !errors.Is(err, blob.ErrNotFound) {
		t.Errorf("Thumbnail of no input's = %v, want %v", err, blob.ErrNotFound)
	}
}

// TestNoTimeLeft gives up a picture whose caller has no time for it, and keeps the instance.
func TestNoTimeLeft(t *testing.T) {
	n := newNode(t, anotherRuntime(t), nil)
	picture := apitest.Picture("red.png")
	late := n.fleet.NewAnalyser([32]byte{}, raster.Limits{Expired: func() bool { return true }})
	if a, err := late.Analyse(picture, raster.Crop{}, apitest.Tiny(t).General().Want()); err == nil {
		t.Errorf("Analyse = %+v of a picture that there is no time for", a)
	}
	if got := n.fleet.Instances(); got != 1 || n.fleet.Deaths() != 0 {
		t.Errorf("%d instances, %d deaths, want 1 and none", got, n.fleet.Deaths())
	}
}
