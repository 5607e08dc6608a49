package control

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/origin/server/system"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fake is a service that remembers what it was asked.
type fake struct {
	err   error
	asked []string
}

func (f *fake) note(format string, args ...any) error {
	f.asked = append(f.asked, fmt.Sprintf(format, args...))
	return f.err
}

func (f *fake) CreateApp(_ context.Context, a NewApp) (App, Client, error) {
	return App{ID: strings.Repeat("a", 32), DefaultModel: a.DefaultModel}, Client{"c", "s"}, f.note("app %q %s %s", a.Name, a.Language, a.DefaultModel)
}

func (f *fake) ChangeApp(_ context.Context, id string, c AppChange) (App, error) {
	return App{ID: id, Name: *c.Name}, f.note("change %s to %q, model %v", id, *c.Name, c.DefaultModel)
}

func (f *fake) Contents(_ context.Context, id string) (Contents, error) {
	return Contents{1, 2, 3, 4, 5, 6}, f.note("contents %s", id)
}

func (f *fake) DeleteApp(_ context.Context, id string) error { return f.note("delete %s", id) }

func (f *fake) ReplaceSecret(_ context.Context, id string) (Client, error) {
	return Client{"c", "t"}, f.note("secret %s", id)
}

func (f *fake) RevokeTokens(_ context.Context, id string) error { return f.note("revoke %s", id) }

func (f *fake) Apps(context.Context) ([]App, error) {
	return []App{{ID: "1", Name: "one", Language: "de", Created: time.Unix(7, 0).UTC()}}, f.note("apps")
}

func (f *fake) CreateKey(_ context.Context, k NewKey) (string, Key, error) {
	return strings.Repeat("b", 32), Key{ID: "b"}, f.note("key %s %v %q", k.App, k.Scopes, k.Description)
}

func (f *fake) DeleteKey(_ context.Context, id string) error { return f.note("delete key %s", id) }

func (f *fake) ReplaceKey(_ context.Context, id string) (string, Key, error) {
	return "another", Key{ID: "d"}, f.note("replace key %s", id)
}

func (f *fake) Keys(_ context.Context, app string) ([]Key, error) {
	return []Key{{App: app, Scopes: []string{"All"}}}, f.note("keys %s", app)
}

func (f *fake) CreateEdge(_ context.Context, e NewEdge) (string, Edge, error) {
	return "token", Edge{ID: "e", Name: e.Name, Apps: e.Apps}, f.note("edge %q %v", e.Name, e.Apps)
}

func (f *fake) Edges(context.Context) ([]Edge, error) {
	return []Edge{{ID: "e", Site: 3, Enrolled: time.Unix(7, 0).UTC()}}, f.note("edges")
}

func (f *fake) RevokeEdge(_ context.Context, id string) (Edge, error) {
	return Edge{ID: id, Revoked: time.Unix(8, 0).UTC()}, f.note("revoke edge %s", id)
}

func (f *fake) Call(_ context.Context, app string, r *api.Request) (api.Response, error) {
	err := f.note("%s %s %s?%s %s", app, r.Method, r.Path, r.Query, r.Body)
	return api.Response{Status: 404, ContentType: "application/json", Body: []byte(`{"x":1}`), Header: []api.Field{{Name: "Retry-After", Value: "1"}}}, err
}

func (f *fake) Backup(_ context.Context, to string, progress func(done, total Copied)) (Copied, error) {
	progress(Copied{1, 10}, Copied{2, 30})
	return Copied{2, 30}, f.note("backup %s", to)
}

func (f *fake) Picture(_ context.Context, name string) ([]byte, string, error) {
	return []byte("picture"), "image/png", f.note("picture %s", name)
}

func (f *fake) Status(context.Context) (Status, error) {
	return Status{Version: "v1", Since: time.Unix(7, 0).UTC(), Module: &Module{SHA256: "ab", Bytes: 9}}, f.note("status")
}

func (f *fake) Checkpoint(_ context.Context, to string) error { return f.note("checkpoint %s", to) }

// pair serves s on a socket in a folder and returns a client of it.
func pair(t *testing.T, s Service) (c *Caller, dir string) {
	t.Helper()
	dir = t.TempDir()
	l, err := system.ListenUnix(t.Context(), dir, Socket)
	if err != nil {
		t.Fatal(err)
	}
	srv := NewServer(s)
	served := make(chan error, 1)
	go func() { served <- srv.Serve(l) }()
	c = NewCaller(func(ctx context.Context) (net.Conn, error) { return system.DialUnix(ctx, dir, Socket) })
	t.Cleanup(func() {
		_ = c.Close()
		if err := srv.Close(context.Background()); err != nil {
			t.Error(err)
		}
		if err := <-served; err != nil {
			t.Error(err)
		}
		if _, err := os.Lstat(filepath.Join(dir, Socket)); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the socket is left behind: %v", err)
		}
	})
	return c, dir
}

func TestClientIsTheService(t *testing.T) {
	f := &fake{}
	c, dir := pair(t, f)
	ctx := t.Context()
	if app, client, err := c.CreateApp(ctx, NewApp{Name: "birds \u00fc\n", Language: "de", DefaultModel: "m"}); app.ID != strings.Repeat("a", 32) || app.DefaultModel != "m" || client != (Client{"c", "s"}) || err != nil {
		t.Errorf("CreateApp = %+v, %+v, %v", app, client, err)
	}
	name := "bees"
	if app, err := c.ChangeApp(ctx, "1", AppChange{Name: &name}); app.ID != "1" || app.Name != "bees" || err != nil {
		t.Errorf("ChangeApp = %+v, %v", app, err)
	}
	if n, err := c.Contents(ctx, "1"); n != (Contents{1, 2, 3, 4, 5, 6}) || err != nil {
		t.Errorf("Contents = %+v, %v", n, err)
	}
	if client, err := c.ReplaceSecret(ctx, "1"); client != (Client{"c", "t"}) || err != nil {
		t.Errorf("ReplaceSecret = %+v, %v", client, err)
	}
	if err := errors.Join(c.RevokeTokens(ctx, "1"), c.DeleteApp(ctx, "1"), c.DeleteKey(ctx, "k")); err != nil {
		t.Error(err)
	}
	if key, record, err := c.ReplaceKey(ctx, "k"); key != "another" || record.ID != "d" || err != nil {
		t.Errorf("ReplaceKey = %q, %+v, %v", key, record, err)
	}
	if apps, err := c.Apps(ctx); err != nil || len(apps) != 1 || apps[0] != (App{ID: "1", Name: "one", Language: "de", Created: time.Unix(7, 0).UTC()}) {
		t.Errorf("Apps = %v, %v", apps, err)
	}
	if key, record, err := c.CreateKey(ctx, NewKey{"1", []string{"Predict", "Search"}, "for tests"}); key != strings.Repeat("b", 32) || record.ID != "b" || err != nil {
		t.Errorf("CreateKey = %q, %+v, %v", key, record, err)
	}
	if keys, err := c.Keys(ctx, "a&b"); err != nil || len(keys) != 1 || keys[0].App != "a&b" {
		t.Errorf("Keys = %v, %v", keys, err)
	}
	if token, e, err := c.CreateEdge(ctx, NewEdge{"attic", []string{"1", "2"}}); token != "token" || e.ID != "e" || e.Name != "attic" || len(e.Apps) != 2 || err != nil {
		t.Errorf("CreateEdge = %q, %+v, %v", token, e, err)
	}
	if edges, err := c.Edges(ctx); err != nil || len(edges) != 1 || edges[0].Site != 3 || !edges[0].Enrolled.Equal(time.Unix(7, 0)) || !edges[0].Revoked.IsZero() {
		t.Errorf("Edges = %+v, %v", edges, err)
	}
	if e, err := c.RevokeEdge(ctx, "e"); err != nil || e.ID != "e" || !e.Revoked.Equal(time.Unix(8, 0)) {
		t.Errorf("RevokeEdge = %+v, %v", e, err)
	}
	if err := c.Checkpoint(ctx, "/x"); err != nil {
		t.Errorf("Checkpoint: %v", err)
	}
	if s, err := c.Status(ctx); err != nil || s.Version != "v1" || !s.Since.Equal(time.Unix(7, 0)) || *s.Module != (Module{SHA256: "ab", Bytes: 9}) {
		t.Errorf("Status = %+v, %v", s, err)
	}
	if data, contentType, err := c.Picture(ctx, "a/b"); string(data) != "picture" || contentType != "image/png" || err != nil {
		t.Errorf("Picture = %q, %q, %v", data, contentType, err)
	}
	var steps []Copied
	if n, err := c.Backup(ctx, "/y", func(done, total Copied) { steps = append(steps, done, total) }); err != nil || n != (Copied{2, 30}) {
		t.Errorf("Backup = %v, %v", n, err)
	}
	if want := []Copied{{1, 10}, {2, 30}}; !slices.Equal(steps, want) {
		t.Errorf("progress %v, want %v", steps, want)
	}
	res, err := c.Call(ctx, "1", &api.Request{Method: "PATCH", Path: "//v2/models/the%2Fmodel/", Query: "page=1&x=%20", Body: []byte(`{"a":1}`)})
	if err != nil || res.Status != 404 || res.ContentType != "application/json" || string(res.Body) != `{"x":1}` {
		t.Errorf("Call = %+v, %v", res, err)
	}
	want := []string{
		`app "birds ü\n" de m`, `change 1 to "bees", model <nil>`, "contents 1", "secret 1", "revoke 1", "delete 1", "delete key k", "replace key k", "apps", `key 1 [Predict Search] "for tests"`, "keys a&b", `edge "attic" [1 2]`, "edges", "revoke edge e", "checkpoint /x", "status", "picture a/b", "backup /y",
		`1 PATCH //v2/models/the%2Fmodel/?page=1&x=%20 {"a":1}`,
	}
	if !slices.Equal(f.asked, want) {
		t.Errorf("the service was asked\n%q, want\n%q", f.asked, want)
	}
	info, err := os.Stat(filepath.Join(dir, Socket))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the socket has mode %v, %v; want 0600", info.Mode(), err)
	}
}

func TestErrorsCrossTheSocket(t *testing.T) {
	f := &fake{}
	c, _ := pair(t, f)
	ctx := t.Context()
	for _, kind := range []error{ErrUnknownApp, ErrUnknownKey, ErrUnknownEdge, ErrArgument, blob.ErrNotFound, kv.ErrFull, kv.ErrFailed} {
		f.err = fmt.Errorf("application 7: %w", kind)
		_, _, e1 := c.CreateKey(ctx, NewKey{App: "7"})
		_, e2 := c.Call(ctx, "7", &api.Request{Method: "GET", Path: "/v2/models"})
		_, e3 := c.Backup(ctx, "/z", func(Copied, Copied) {})
		_, _, e4 := c.Picture(ctx, "x")
		for _, err := range []error{e1, e2, e3, e4} {
			if !errors.Is(err, kind) || err.Error() != f.err.Error() {
				t.Errorf("got %v, want %v", err, f.err)
			}
		}
	}
	f.err = errors.New("something else")
	if err := c.Checkpoint(ctx, "/x"); err == nil || err.Error() != "something else" || errors.Is(err, ErrArgument) {
		t.Errorf("Checkpoint = %v", err)
	}
}

func TestStaleSocketIsReplaced(t *testing.T) {
	dir := t.TempDir()
	l, err := system.ListenUnix(t.Context(), dir, Socket)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	// A second life after a kill: the file is there, and its lock was free.
	l2, err := system.ListenUnix(t.Context(), dir, Socket)
	if err != nil {
		t.Fatalf("beside a stale socket: %v", err)
	}
	conn, err := system.DialUnix(t.Context(), dir, Socket)
	if err != nil {
		t.Fatal(err)
	}
	_ = conn.Close()
	if err := l2.Close(); err != nil {
		t.Error(err)
	}
	if _, err := system.DialUnix(t.Context(), dir, Socket); !system.IsGone(err) {
		t.Errorf("dial where nobody listens = %v, want that it is gone", err)
	}
}

func TestSocketInADeepFolder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), strings.Repeat("deep", 40))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	l, err := system.ListenUnix(t.Context(), dir, Socket)
	if err != nil {
		t.Skipf("no sockets below long paths on this system: %v", err)
	}
	conn, err := system.DialUnix(t.Context(), dir, Socket)
	if err != nil {
		t.Fatal(err)
	}
	_ = conn.Close()
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(filepath.Join(dir, Socket)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the socket is left behind: %v", err)
	}
}
