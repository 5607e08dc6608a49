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
	"github.com/sightline-dev/sightline/core/register"
	"github.com/sightline-dev/sightline/origin/server/system"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fake is a folder that records the operations called on it.
type fake struct {
	err   error
	calls []string
}

func (f *fake) note(format string, args ...any) error {
	f.calls = append(f.calls, fmt.Sprintf(format, args...))
	return f.err
}

// operations are the operations of a fake folder.
var operations = Table[*fake]{}

func init() {
	Add(operations, CreateApp, func(_ context.Context, f *fake, a register.NewApp) (CreatedApp, error) {
		return CreatedApp{App{ID: strings.Repeat("a", 32), DefaultModel: a.DefaultModel}, register.Client{ID: "c", Secret: "s"}}, f.note("app %q %s %s", a.Name, a.Language, a.DefaultModel)
	})
	Add(operations, ChangeApp, func(_ context.Context, f *fake, c ChangedApp) (App, error) {
		return App{ID: c.ID, Name: *c.Change.Name}, f.note("change %s to %q, model %v", c.ID, *c.Change.Name, c.Change.DefaultModel)
	})
	Add(operations, DeleteApp, func(_ context.Context, f *fake, app ID) (Nothing, error) {
		return Nothing{}, f.note("delete %s", app.ID)
	})
	Add(operations, Edges, func(_ context.Context, f *fake, _ Nothing) ([]Edge, error) {
		return []Edge{{ID: "e", Site: 3, Enrolled: time.Unix(7, 0).UTC()}}, f.note("edges")
	})
	Add(operations, ShowStatus, func(_ context.Context, f *fake, _ Nothing) (Status, error) {
		return Status{Version: "v1", Since: time.Unix(7, 0).UTC(), Module: &Module{SHA256: "ab", Bytes: 9}}, f.note("status")
	})
}

func (f *fake) Do(ctx context.Context, name string, in, out any) error {
	return operations.Do(ctx, f, name, in, out)
}

func (f *fake) Call(_ context.Context, app string, r *api.Request) (api.Response, error) {
	err := f.note("%s %s %s?%s %s", app, r.Method, r.Path, r.Query, r.Body)
	return api.Response{Status: 404, ContentType: "application/json", Body: []byte(`{"x":1}`), Header: []api.Field{{Name: "Retry-After", Value: "1"}}}, err
}

func (f *fake) Backup(_ context.Context, to string, progress func(done, total BackupStats)) (BackupStats, error) {
	progress(BackupStats{1, 10}, BackupStats{2, 30})
	return BackupStats{2, 30}, f.note("backup %s", to)
}

func (f *fake) Picture(_ context.Context, name string) ([]byte, string, error) {
	return []byte("picture"), "image/png", f.note("picture %s", name)
}

// pair serves f on a socket in a folder and returns a caller of it.
func pair(t *testing.T, f Folder) (c *Caller, dir string) {
	t.Helper()
	dir = t.TempDir()
	l, err := system.ListenUnix(t.Context(), dir, Socket)
	if err != nil {
		t.Fatal(err)
	}
	srv := NewServer(f, operations.New, nil)
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

// TestSocketEqualsFolder calls the same operations on a folder in this process and on one behind a socket.
func TestSocketEqualsFolder(t *testing.T) {
	f := &fake{}
	c, dir := pair(t, f)
	ctx := t.Context()
	for _, folder := range []Folder{f, c} {
		f.calls = nil
		created, err := CreateApp.Do(ctx, folder, register.NewApp{Name: "birds \u00fc\n", Language: "de", DefaultModel: "m"})
		if created.App.ID != strings.Repeat("a", 32) || created.App.DefaultModel != "m" || created.Client != (register.Client{ID: "c", Secret: "s"}) || err != nil {
			t.Errorf("CreateApp = %+v, %v", created, err)
		}
		name := "bees"
		if app, err := ChangeApp.Do(ctx, folder, ChangedApp{"1", register.AppChange{Name: &name}}); app.ID != "1" || app.Name != "bees" || err != nil {
			t.Errorf("ChangeApp = %+v, %v", app, err)
		}
		if _, err := DeleteApp.Do(ctx, folder, ID{"a&b"}); err != nil {
			t.Error(err)
		}
		if edges, err := Edges.Do(ctx, folder, Nothing{}); err != nil || len(edges) != 1 || edges[0].Site != 3 || !edges[0].Enrolled.Equal(time.Unix(7, 0)) || !edges[0].Revoked.IsZero() {
			t.Errorf("Edges = %+v, %v", edges, err)
		}
		if s, err := ShowStatus.Do(ctx, folder, Nothing{}); err != nil || s.Version != "v1" || !s.Since.Equal(time.Unix(7, 0)) || *s.Module != (Module{SHA256: "ab", Bytes: 9}) {
			t.Errorf("Status = %+v, %v", s, err)
		}
	}
	if err := c.Do(ctx, "none", Nothing{}, &Nothing{}); err == nil {
		t.Error("an operation that does not exist was done")
	}
	if data, contentType, err := c.Picture(ctx, "a/b"); string(data) != "picture" || contentType != "image/png" || err != nil {
		t.Errorf("Picture = %q, %q, %v", data, contentType, err)
	}
	var steps []BackupStats
	if n, err := c.Backup(ctx, "/y", func(done, total BackupStats) { steps = append(steps, done, total) }); err != nil || n != (BackupStats{2, 30}) {
		t.Errorf("Backup = %v, %v", n, err)
	}
	if want := []BackupStats{{1, 10}, {2, 30}}; !slices.Equal(steps, want) {
		t.Errorf("progress %v, want %v", steps, want)
	}
	res, err := c.Call(ctx, "1", &api.Request{Method: "PATCH", Path: "//v2/models/the%2Fmodel/", Query: "page=1&x=%20", Body: []byte(`{"a":1}`)})
	if err != nil || res.Status != 404 || res.ContentType != "application/json" || string(res.Body) != `{"x":1}` ||
		!slices.Equal(res.Header, []api.Field{{Name: "Retry-After", Value: "1"}}) {
		t.Errorf("Call = %+v, %v", res, err)
	}
	want := []string{
		`app "birds ü\n" de m`, `change 1 to "bees", model <nil>`, "delete a&b", "edges", "status", "picture a/b", "backup /y",
		`1 PATCH //v2/models/the%2Fmodel/?page=1&x=%20 {"a":1}`,
	}
	if !slices.Equal(f.calls, want) {
		t.Errorf("the folder was asked\n%q, want\n%q", f.calls, want)
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
	for _, kind := range []error{register.ErrApplication, register.ErrNoKey, register.ErrNoEdge, ErrArgument, blob.ErrNotFound, kv.ErrFull, kv.ErrFailed} {
		f.err = fmt.Errorf("application 7: %w", kind)
		_, e1 := DeleteApp.Do(ctx, c, ID{"7"})
		_, e2 := c.Call(ctx, "7", &api.Request{Method: "GET", Path: "/v2/models"})
		_, e3 := c.Backup(ctx, "/z", func(BackupStats, BackupStats) {})
		_, _, e4 := c.Picture(ctx, "x")
		for _, err := range []error{e1, e2, e3, e4} {
			if !errors.Is(err, kind) || err.Error() != f.err.Error() {
				t.Errorf("got %v, want %v", err, f.err)
			}
		}
	}
	f.err = errors.New("something else")
	if _, err := DeleteApp.Do(ctx, c, ID{"7"}); err == nil || err.Error() != "something else" || errors.Is(err, ErrArgument) {
		t.Errorf("DeleteApp = %v", err)
	}
}

func TestStaleSocketIsReplaced(t *testing.T) {
	dir := t.TempDir()
	l, err := system.ListenUnix(t.Context(), dir, Socket)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	// The process was killed and started again: the socket file exists, and its lock is free.
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
	if _, err := system.DialUnix(t.Context(), dir, Socket); !system.IsNotListening(err) {
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
