package httpd

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/jsonio"
)

// echo is a handler that answers with the request's data and records each call.
type echo struct {
	mu    sync.Mutex
	calls []string
	do    func(ctx context.Context, r *api.Request) // before the answer; may be nil
	err   error                                     // error of the answer
}

func (e *echo) Serve(ctx context.Context, r *api.Request) api.Response {
	e.mu.Lock()
	e.calls = append(e.calls, r.Method+" "+r.Path)
	e.mu.Unlock()
	if e.do != nil {
		e.do(ctx, r)
	}
	body, _ := json.Marshal(map[string]any{
		"method": r.Method, "path": r.Path, "query": r.Query, "body": len(r.Body), "authorization": r.Authorization,
	})
	return api.Response{Status: 200, ContentType: "application/json; charset=UTF-8", Body: body, Err: e.err}
}

// Refuse writes an envelope with a code for each kind of error, as the API does.
func (e *echo) Refuse(r *api.Request, err error) api.Response {
	code := 99009
	for kind, c := range map[error]int{
		jsonio.ErrSyntax: 11100, jsonio.ErrTooLong: 40033, api.ErrBusy: 40030, api.ErrTimeout: 40032,
		api.ErrMethod: 11103, api.ErrPath: 11101,
	} {
		if errors.Is(err, kind) {
			code = c
		}
	}
	res := api.Response{Status: 400, ContentType: "application/json; charset=UTF-8"}
	res.Body = fmt.Appendf(nil, `{"status":{"code":%d,"details":%q}}`, code, err.Error())
	if code == 40030 {
		res.Header = []api.Field{{Name: "Retry-After", Value: "1"}}
	}
	return res
}

// anyone returns the credential as the caller, or "someone" if there is none.
func anyone(_ context.Context, r *api.Request) (string, error) {
	return cmp.Or(r.Authorization, "someone"), nil
}

// counter is a random source that gives each request a different ID.
type counter struct{ n byte }

func (c *counter) Read(p []byte) (int, error) {
	c.n++
	for i := range p {
		p[i] = c.n
	}
	return len(p), nil
}

func options(h Handler) Options {
	return Options{
		Mounts:  []Mount{{Prefix: "/v2", Handler: h, Caller: anyone}, {Prefix: "", Handler: h, Caller: anyone}},
		MaxBody: 96 << 20, BodyBudget: 512 << 20, AnswerBudget: 128 << 20, MaxConns: 2048,
		Full: func(string) error { return nil }, Ready: func() error { return nil }, Metrics: prometheus.NewRegistry(),
		Now: time.Now, Random: &counter{}, Log: slog.New(slog.DiscardHandler),
		Pause: func(ctx context.Context, d time.Duration) {
			select {
			case <-ctx.Done():
			case <-time.After(d):
			}
		},
	}
}

// start runs a server on loopback until the test ends, and returns it with its address.
func start(t testing.TB, o Options) (*Server, string) {
	t.Helper()
	s, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- s.Serve(l) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		if err := s.Drain(ctx); err != nil {
			t.Errorf("Drain: %v", err)
		}
		if err := <-done; err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
	return s, l.Addr().String()
}

// exchange sends raw bytes and returns all answers. It ends when the server closes the connection or sends nothing more.
func exchange(t testing.TB, address, raw string) (answers []*http.Response, rest string) {
	t.Helper()
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(20 * time.Second))
	go func() {
		_, _ = io.WriteString(c, raw) // the server may have closed
		_ = c.(*net.TCPConn).CloseWrite()
	}()
	all, err := io.ReadAll(c)
	if err != nil && len(all) == 0 {
		t.Fatalf("no answer to %.80q: %v", raw, err)
	}
	r := bufio.NewReader(bytes.NewReader(all))
	for {
		if _, err := r.Peek(1); err != nil {
			return answers, ""
		}
		res, err := http.ReadResponse(r, nil)
		if err != nil {
			left, _ := io.ReadAll(r)
			return answers, fmt.Sprintf("%v: %q", err, left)
		}
		b, _ := io.ReadAll(res.Body)
		res.Body = io.NopCloser(bytes.NewReader(b))
		if res.StatusCode >= 200 {
			answers = append(answers, res)
		}
	}
}

func statusesOf(answers []*http.Response) string {
	var b strings.Builder
	for _, a := range answers {
		fmt.Fprintf(&b, "%d ", a.StatusCode)
	}
	return strings.TrimSpace(b.String())
}

func text(t testing.TB, res *http.Response) string {
	t.Helper()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
