package console

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/auth"
	"github.com/sightline-dev/sightline/origin/server/account"
	"github.com/sightline-dev/sightline/origin/server/httpd"
	"github.com/sightline-dev/sightline/origin/server/system"
)

func TestExportStreams(t *testing.T) {
	s := newSite(t, func(o *Options, _ *account.Options) {
		o.Export = func(_ context.Context, app string, w io.Writer) error {
			_, err := io.WriteString(w, "PK of "+app)
			return err
		}
	})
	b := s.operator()
	app := b.application(`Fugler i "fjæra"`)
	res := b.get("/apps/" + app + "/export")
	var body bytes.Buffer
	if res.Stream == nil || res.ContentType != "application/zip" || res.Stream(&body) != nil || body.String() != "PK of "+app {
		t.Fatalf("export = %+v, %s", res, &body)
	}
	name := ""
	for _, f := range res.Header {
		if f.Name == "Content-Disposition" {
			name = f.Value
		}
	}
	if name != `attachment; filename="Fugler-i--fj-ra.zip"` {
		t.Errorf("the file is called %q", name)
	}
	if got := fileName("愛"); got != "application.zip" {
		t.Errorf("fileName = %q", got)
	}
}

// newExportSite returns a site with an export.
func newExportSite(t *testing.T, export func(ctx context.Context, app string, w io.Writer) error) *site {
	return newSite(t, func(o *Options, _ *account.Options) { o.Export, o.ExportMemory = export, 20e6 })
}

// begin requests an export with a context and returns the answer.
func (b *browser) begin(ctx context.Context, app string, change func(*api.Request)) api.Response {
	r, _ := b.request("GET", "/apps/"+app+"/export", "")
	if change != nil {
		change(r)
	}
	return b.Serve(ctx, r)
}

// awaitPlace waits until the browser's account can start an export.
func (b *browser) awaitPlace(app string) {
	for b.get("/apps/"+app+"/export-status").Status != 200 {
		runtime.Gosched()
	}
}

// checkRetryAfter checks that an answer has the time after which the client may try again.
func checkRetryAfter(t *testing.T, res *api.Response) {
	t.Helper()
	if !slices.Contains(res.Header, api.Field{Name: "Retry-After", Value: "10"}) {
		t.Errorf("the answer has the headers %v, want Retry-After: 10", res.Header)
	}
}

// TestExportsAtOnceAreLimited checks that an account has one export at a time, and the server four. The operator's account has the same
// limit.
func TestExportsAtOnceAreLimited(t *testing.T) {
	s := newExportSite(t, func(context.Context, string, io.Writer) error { return nil })
	type member struct {
		*browser
		app, other string
	}
	var members []member
	for i := range 6 {
		b := s.operator
		if i > 0 {
			b = func() *browser { return s.person(fmt.Sprintf("m%d", i)) }
		}
		one := b()
		members = append(members, member{one, one.application("A"), one.application("B")})
	}
	var running []api.Response
	for i, m := range members[:maxExports] {
		res := m.get("/apps/" + m.app + "/export")
		if res.Stream == nil {
			t.Fatalf("export %d = %d %s", i, res.Status, res.Body)
		}
		running = append(running, res)
		for _, app := range []string{m.app, m.other} {
			for _, path := range []string{"/export", "/export-status"} {
				res := m.checkRefusal("GET", "/apps/"+app+path, "", 429, 11005, "export")
				checkRetryAfter(t, &res)
			}
		}
	}
	for _, m := range members[maxExports:] {
		for _, path := range []string{"/export", "/export-status"} {
			res := m.checkRefusal("GET", "/apps/"+m.app+path, "", 429, 11005, "rate")
			checkRetryAfter(t, &res)
		}
	}
	members[4].checkRefusal("GET", "/apps/"+members[0].app+"/export-status", "", 404, 11101, "missing")
	if err := running[2].Stream(io.Discard); err != nil {
		t.Fatal(err)
	}
	members[4].ok("GET", "/apps/"+members[4].app+"/export-status", "", nil)
	if res := members[4].get("/apps/" + members[4].app + "/export"); res.Stream == nil {
		t.Errorf("an export after another one has ended = %d %s", res.Status, res.Body)
	}
	members[2].checkRefusal("GET", "/apps/"+members[2].app+"/export", "", 429, 11005, "rate")
}

// room is memory for an answer. It grants limit bytes.
type room struct{ limit, reserved int64 }

func (r *room) Reserve(n int64) bool {
	if n > r.limit {
		return false
	}
	r.reserved = n
	return true
}

func (r *room) Room() int64 { return r.limit }

func (r *room) Settle(n int64) { r.reserved = min(r.reserved, n) }

// TestExportEnds checks that the place of an export is free after every end of it.
func TestExportEnds(t *testing.T) {
	var export func(ctx context.Context) error
	s := newExportSite(t, func(ctx context.Context, _ string, _ io.Writer) error { return export(ctx) })
	s.operator()
	b := s.person("ada")
	app := b.application("A")

	t.Run("complete", func(t *testing.T) {
		export = func(context.Context) error { return nil }
		memory := &room{limit: 20e6}
		res := b.begin(t.Context(), app, func(r *api.Request) { r.Memory = memory })
		if res.Stream == nil || res.Stream(io.Discard) != nil || memory.reserved != 20e6 {
			t.Errorf("an export = %d %s, with %d bytes of memory", res.Status, res.Body, memory.reserved)
		}
		b.awaitPlace(app)
	})
	t.Run("no memory", func(t *testing.T) {
		res := b.begin(t.Context(), app, func(r *api.Request) { r.Memory = &room{limit: 20e6 - 1} })
		if res.Status != 503 || !slices.ContainsFunc(res.Header, func(f api.Field) bool { return f.Name == "Retry-After" }) {
			t.Errorf("an export without memory = %d %s, %v", res.Status, res.Body, res.Header)
		}
		b.awaitPlace(app)
	})
	t.Run("session ended", func(t *testing.T) {
		elsewhere := s.person("eve")
		app, sent := elsewhere.application("E"), 0
		s.Handler.o.Export = func(_ context.Context, _ string, w io.Writer) error {
			for {
				n, err := w.Write(make([]byte, 64<<10))
				if err != nil {
					return err
				}
				if sent += n; sent == 128<<10 {
					elsewhere.ok("DELETE", "/session", "{}", nil)
				}
			}
		}
		res := elsewhere.begin(t.Context(), app, nil)
		if err := res.Stream(io.Discard); !errors.Is(err, auth.ErrSession) || sent != checkedBytes {
			t.Errorf("the stream returns %v after %d bytes, want %v after %d", err, sent, auth.ErrSession, checkedBytes)
		}
		s.Handler.o.Export = func(ctx context.Context, _ string, _ io.Writer) error { return export(ctx) }
	})
	t.Run("failure", func(t *testing.T) {
		failure := errors.New("no disk")
		export = func(context.Context) error { return failure }
		res := b.begin(t.Context(), app, nil)
		if err := res.Stream(io.Discard); !errors.Is(err, failure) {
			t.Errorf("the stream returns %v", err)
		}
		b.awaitPlace(app)
	})
	t.Run("panic", func(t *testing.T) {
		export = func(context.Context) error { panic("a bug") }
		res := b.begin(t.Context(), app, nil)
		func() {
			defer func() { _ = recover() }()
			_ = res.Stream(io.Discard)
		}()
		b.awaitPlace(app)
	})
	t.Run("never sent", func(t *testing.T) {
		export = func(context.Context) error { t.Error("an export began without its place"); return nil }
		ctx, cancel := context.WithCancel(t.Context())
		res := b.begin(ctx, app, nil)
		cancel()
		if err := res.Stream(io.Discard); !errors.Is(err, context.Canceled) {
			t.Errorf("a stream after the end of its call returns %v", err)
		}
		b.awaitPlace(app)
	})
	t.Run("disconnected", func(t *testing.T) {
		export = func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
		watched, hangUp := context.WithCancel(t.Context())
		stopped := false
		res := b.begin(t.Context(), app, func(r *api.Request) {
			r.Watch = func(context.Context) (context.Context, func()) { return watched, func() { stopped = true } }
		})
		ended := make(chan error)
		go func() { ended <- res.Stream(io.Discard) }()
		b.checkRefusal("GET", "/apps/"+app+"/export", "", 429, 11005, "export")
		hangUp()
		if err := <-ended; !errors.Is(err, context.Canceled) || !stopped {
			t.Errorf("the export of a client that disconnects returns %v; the watch ended: %v", err, stopped)
		}
		b.awaitPlace(app)
	})
}

// TestExportOverHTTP requests exports from a real server: with HEAD, with HTTP/1.0, and by a client that disconnects while the export waits.
// None of them keeps its place.
func TestExportOverHTTP(t *testing.T) {
	began := make(chan struct{}, 1)
	s := newExportSite(t, func(ctx context.Context, _ string, w io.Writer) error {
		began <- struct{}{}
		if _, err := io.WriteString(w, "PK"); err != nil {
			return err
		}
		<-ctx.Done()
		return ctx.Err()
	})
	server, err := httpd.New(httpd.Options{
		Mounts:  []httpd.Mount{{Prefix: Prefix, Handler: s.Handler, Caller: s.Caller, SameOrigin: true}},
		MaxBody: 1 << 20, BodyBudget: 16 << 20, AnswerBudget: 128 << 20, MaxConns: 64,
		Full: func(string) error { return nil }, Ready: func() error { return nil }, Metrics: prometheus.NewRegistry(),
		Now: time.Now, Random: rand.Reader, Log: slog.New(slog.DiscardHandler), Pause: system.Pause,
	})
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	defer func() {
		if err := errors.Join(server.Drain(context.Background()), <-served); err != nil {
			t.Error(err)
		}
	}()
	s.operator()
	b := s.person("ada")
	app := b.application("A")
	_, header := b.request("GET", "/", "")
	send := func(method, version string) net.Conn {
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(c, "%s /console/apps/%s/export HTTP/%s\r\nHost: %s\r\nCookie: %s\r\nConnection: close\r\n\r\n", method, app, version, header["Host"], b.cookie)
		return c
	}
	for _, tt := range []struct{ method, version, want string }{{"HEAD", "1.1", "HTTP/1.1 200"}, {"GET", "1.0", "HTTP/1.1 505"}} {
		c := send(tt.method, tt.version)
		answer, err := io.ReadAll(c)
		if !bytes.HasPrefix(answer, []byte(tt.want)) || err != nil {
			t.Errorf("%s with HTTP/%s = %.40q, %v, want %s", tt.method, tt.version, answer, err, tt.want)
		}
		_ = c.Close()
		b.awaitPlace(app)
	}
	first := send("GET", "1.1")
	<-began
	second := send("GET", "1.1")
	if answer, err := io.ReadAll(second); !bytes.HasPrefix(answer, []byte("HTTP/1.1 429")) || err != nil {
		t.Errorf("a second export = %.40q, %v", answer, err)
	}
	_, _ = second.Close(), first.Close()
	b.awaitPlace(app)
}
