package httpd

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"

	"github.com/sightline-dev/sightline/core/api"
)

// TestMain starts the library's goroutine for the date of answers, which never ends, so that it belongs to no test and no bubble. At the
// end it checks that no other goroutine is left.
func TestMain(m *testing.M) {
	s, err := New(options(&echo{}))
	if err != nil {
		panic(err)
	}
	l := newPipes()
	go func() { _ = s.Serve(l) }()
	c := l.dial("192.0.2.1")
	fmt.Fprint(c, get)
	_, _ = io.ReadFull(c, make([]byte, 12))
	_ = c.Close()
	_ = s.Drain(context.Background())
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.updateServerDate.func1"),
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*workerPool).Start.func2")) // ends within a second
}

const get = "GET /v2/models HTTP/1.1\r\nHost: h\r\n\r\n"

func TestRequestReachesItsHandler(t *testing.T) {
	v2, rest := &echo{}, &echo{}
	o := options(v2)
	o.Mounts = []Mount{{Prefix: "/v2", Handler: v2, Caller: anyone}, {Prefix: "/v3", Handler: rest, Caller: anyone}}
	_, address := start(t, o)
	answers, _ := exchange(t, address, "POST //v2/models/a%2Fb/?page=2 HTTP/1.1\r\nHost: h\r\nAuthorization: Key k\r\nContent-Length: 2\r\n\r\n{}"+
		"GET /v3 HTTP/1.1\r\nHost: h\r\n\r\nGET /v22 HTTP/1.1\r\nHost: h\r\n\r\n")
	if got := statusesOf(answers); got != "200 200 404" {
		t.Fatalf("answers %s, want 200 200 404", got)
	}
	want := `{"authorization":"Key k","body":2,"method":"POST","path":"//v2/models/a%2Fb/","query":"page=2"}`
	if got := text(t, answers[0]); got != want {
		t.Errorf("handler saw %s, want %s", got, want)
	}
	if len(rest.calls) != 1 {
		t.Errorf("/v3 was called %d times, want 1", len(rest.calls))
	}
}

func TestHeadersOfEveryAnswer(t *testing.T) {
	o := options(&echo{})
	_, address := start(t, o)
	seen := map[string]bool{}
	for _, raw := range []string{get, "BREW / HTTP/1.1\r\nHost: h\r\n\r\n", "nonsense\r\n\r\n", "GET /healthz HTTP/1.1\r\nHost: h\r\n\r\n"} {
		answers, _ := exchange(t, address, raw)
		if len(answers) != 1 {
			t.Fatalf("%q: %d answers", raw, len(answers))
		}
		h := answers[0].Header
		for name, want := range map[string]string{
			"X-Content-Type-Options": "nosniff", "Access-Control-Allow-Origin": "*", "Referrer-Policy": "no-referrer",
			"Content-Security-Policy": apiPolicy, "Cache-Control": "no-store", "Server": "",
		} {
			if got := h.Get(name); got != want {
				t.Errorf("%q: %s: %q, want %q", raw, name, got, want)
			}
		}
		if _, err := http.ParseTime(h.Get("Date")); err != nil {
			t.Errorf("%q: Date: %v", raw, err)
		}
		id := h.Get("X-Request-Id")
		if len(id) != 32 || seen[id] {
			t.Errorf("%q: X-Request-Id %q is no new id", raw, id)
		}
		seen[id] = true
	}
}

func TestHeadHasNoBody(t *testing.T) {
	h := &echo{}
	_, address := start(t, options(h))
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	fmt.Fprint(c, "HEAD /v2/models HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")
	all, err := io.ReadAll(c)
	if err != nil {
		t.Fatal(err)
	}
	header, body, ok := strings.Cut(string(all), "\r\n\r\n")
	if !ok || body != "" || !strings.Contains(header, "Content-Length: ") {
		t.Errorf("HEAD answers %q", all)
	}
	if h.calls[0] != "GET /v2/models" {
		t.Errorf("the handler saw %s, want GET", h.calls[0])
	}
}

func TestPanicIsAnswered(t *testing.T) {
	var log strings.Builder
	h := &echo{do: func(_ context.Context, r *api.Request) {
		if strings.Contains(r.Path, "panic") {
			panic("a bug")
		}
	}}
	o := options(h)
	o.Log = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelError}))
	_, address := start(t, o)
	answers, _ := exchange(t, address, "POST /v2/panic HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\n{}"+get)
	if got := statusesOf(answers); got != "500" || !strings.Contains(text(t, answers[0]), `"code":99009`) {
		t.Errorf("a panic answers %s", got)
	}
	if output := log.String(); strings.Count(output, "msg=panic") != 1 || !strings.Contains(output, `panic="a bug"`) || !strings.Contains(output, "stack=") {
		t.Errorf("the log is %q", output)
	}
	if answers, _ := exchange(t, address, get); statusesOf(answers) != "200" {
		t.Error("the server does not answer after a panic")
	}
}

func TestBudgetIsSharedAndReturned(t *testing.T) {
	inside, leave := make(chan bool), make(chan bool)
	h := &echo{do: func(_ context.Context, r *api.Request) {
		if r.Path == "/v2/hold" {
			inside <- true
			<-leave
		}
	}}
	o := options(h)
	o.MaxBody, o.BodyBudget = 1<<20, 1<<20
	s, address := start(t, o)
	body := strings.Repeat("x", 700<<10)
	hold := fmt.Sprintf("POST /v2/hold HTTP/1.1\r\nHost: h\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
	done := make(chan string)
	go func() {
		answers, _ := exchange(t, address, hold)
		done <- statusesOf(answers)
	}()
	<-inside
	for name, raw := range map[string]string{
		"declared": fmt.Sprintf("POST /v2/x HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n\r\n%s", len(body), body),
		"chunked":  fmt.Sprintf("POST /v2/x HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n", len(body), body),
		"expected": fmt.Sprintf("POST /v2/x HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: %d\r\n\r\n", len(body)),
	} {
		answers, _ := exchange(t, address, raw)
		if statusesOf(answers) != "503" || answers[0].Header.Get("Retry-After") != "1" || !strings.Contains(text(t, answers[0]), `"code":40030`) {
			t.Errorf("%s: %s, want 503 with Retry-After", name, statusesOf(answers))
		}
	}
	small := "POST /v2/x HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhello"
	if answers, _ := exchange(t, address, small); statusesOf(answers) != "200" {
		t.Errorf("a small body: %s, want 200", statusesOf(answers))
	}
	leave <- true
	if got := <-done; got != "200" {
		t.Errorf("the holder: %s, want 200", got)
	}
	if left := s.bodies.Free(); left != o.BodyBudget {
		t.Errorf("the budget has %d bytes after all, want %d", left, o.BodyBudget)
	}
}

func TestBodiesArriveComplete(t *testing.T) {
	_, address := start(t, options(&echo{}))
	for _, n := range []int{1, 8191, 8192, 8193, firstBytes, firstBytes + 1, 1 << 20, 5<<20 + 3} {
		body := strings.Repeat("b", n)
		want := fmt.Sprintf(`"body":%d,`, n)
		declared := fmt.Sprintf("POST /v2/x HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n\r\n%s", n, body)
		half := n / 2
		chunked := "POST /v2/x HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
		if half > 0 {
			chunked += fmt.Sprintf("%x\r\n%s\r\n", half, body[:half])
		}
		chunked += fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", n-half, body[half:])
		for _, raw := range []string{declared, chunked} {
			answers, rest := exchange(t, address, raw+get)
			if statusesOf(answers) != "200 200" || !strings.Contains(text(t, answers[0]), want) {
				t.Errorf("body of %d: %s %s", n, statusesOf(answers), rest)
			}
		}
	}
}

// TestTruncatedBodies sends bodies that end with the connection instead of their last byte or chunk. No handler gets them.
func TestTruncatedBodies(t *testing.T) {
	h := &echo{}
	_, address := start(t, options(h))
	for name, raw := range map[string]string{
		"declared":         "Content-Length: 10\r\n\r\nhello",
		"declared, large":  "Content-Length: 20000\r\n\r\n" + strings.Repeat("x", 19_999),
		"no chunk":         "Transfer-Encoding: chunked\r\n\r\n",
		"a chunk":          "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
		"part of a chunk":  "Transfer-Encoding: chunked\r\n\r\n5\r\nhel",
		"size of a chunk":  "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n5",
		"part of the last": "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n",
	} {
		answers, _ := exchange(t, address, "POST /v2/x HTTP/1.1\r\nHost: h\r\n"+raw)
		if statusesOf(answers) != "400" {
			t.Errorf("%s: %s, want 400", name, statusesOf(answers))
		}
	}
	if len(h.calls) != 0 {
		t.Errorf("%d truncated bodies reached the handler", len(h.calls))
	}
}

func TestFullServerRefusesBeforeBody(t *testing.T) {
	var full atomic.Bool
	o := options(&echo{})
	o.Full = func(string) error {
		if full.Load() {
			return errors.New("the queue is full")
		}
		return nil
	}
	_, address := start(t, o)
	full.Store(true)
	answers, _ := exchange(t, address, "POST /v2/x HTTP/1.1\r\nHost: h\r\nContent-Length: 50000000\r\n\r\n"+strings.Repeat("x", 8192))
	if statusesOf(answers) != "503" {
		t.Errorf("a body while full: %s, want 503", statusesOf(answers))
	}
	small := "POST /v2/x HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhello"
	if answers, _ := exchange(t, address, small+small+get); statusesOf(answers) != "503 503 200" {
		t.Errorf("small bodies while full: %s, want 503 503 200 on one connection", statusesOf(answers))
	}
	answers, _ = exchange(t, address, get+"GET /readyz HTTP/1.1\r\nHost: h\r\n\r\nGET /healthz HTTP/1.1\r\nHost: h\r\n\r\n")
	if statusesOf(answers) != "200 503 200" {
		t.Errorf("reads while full: %s, want 200 503 200", statusesOf(answers))
	}
}

func TestOperations(t *testing.T) {
	o := options(&echo{})
	o.Version = "v1.2.3"
	o.Module = "ab12"
	var notReady atomic.Bool
	o.Ready = func() error {
		if notReady.Load() {
			return errors.New("disk is full")
		}
		return nil
	}
	o.Activity = func() string { return "compiling the decoder of videos" }
	_, address := start(t, o)
	ask := func(method, path string) (int, string) {
		answers, rest := exchange(t, address, method+" "+path+" HTTP/1.1\r\nHost: h\r\n\r\n")
		if len(answers) != 1 {
			t.Fatalf("%s %s: %d answers, %s", method, path, len(answers), rest)
		}
		return answers[0].StatusCode, text(t, answers[0])
	}
	for _, tt := range []struct {
		method, path string
		status       int
		substring    string
	}{
		{"GET", "/healthz", 200, "ok"},
		{"GET", "/readyz", 200, "ready\ncompiling the decoder of videos\n"},
		{"GET", "/version", 200, `"version":"v1.2.3"`},
		{"GET", "/version", 200, `"module":"ab12"`},
		{"GET", "/v2/models", 200, ""},
		{"GET", "/metrics", 200, `sightline_http_requests_total{method="GET",status="200"}`},
		{"GET", "/metrics", 200, "sightline_http_connections 1"},
		{"POST", "/healthz", 405, `"code":11103`},
	} {
		if status, body := ask(tt.method, tt.path); status != tt.status || !strings.Contains(body, tt.substring) {
			t.Errorf("%s %s = %d %.300q, want %d with %s", tt.method, tt.path, status, body, tt.status, tt.substring)
		}
	}
	notReady.Store(true)
	if status, body := ask("GET", "/readyz"); status != 503 || !strings.Contains(body, "disk is full") {
		t.Errorf("/readyz = %d %q, want 503", status, body)
	}
}

// TestPrivateOperations reads the metrics and the version from several places, with and without the token. /healthz and /readyz answer
// everywhere.
func TestPrivateOperations(t *testing.T) {
	const token, key = "0123456789abcdef0123456789abcdef", "Authorization: Bearer 0123456789abcdef0123456789abcdef\r\n"
	named := func(client string) string { return "X-Forwarded-For: " + client + "\r\n" }
	for _, tt := range []struct {
		name, from string
		proxy      bool
		open       bool
		lines      string
		status     int
	}{
		{"this machine", "127.0.0.1", false, false, "", 200},
		{"this machine, IPv6", "::1", false, false, "", 200},
		{"this machine, another address", "127.8.9.10", false, false, "", 200},
		{"another machine", "192.0.2.1", false, false, "", 404},
		{"a private network", "10.0.0.1", false, false, "", 404},
		{"another machine that names this one", "192.0.2.1", false, false, named("127.0.0.1"), 404},
		{"token", "192.0.2.1", false, false, key, 200},
		{"token in small letters", "192.0.2.1", false, false, "authorization: bearer " + token + "\r\n", 200},
		{"another token", "192.0.2.1", false, false, "Authorization: Bearer " + token[1:] + "0\r\n", 404},
		{"no token", "192.0.2.1", false, false, "Authorization: Bearer \r\n", 404},
		{"the token as a key", "192.0.2.1", false, false, "Authorization: Key " + token + "\r\n", 404},
		{"open", "192.0.2.1", false, true, "", 200},
		{"proxy that names nobody", "127.0.0.1", true, false, "", 404},
		{"proxy that names nonsense", "127.0.0.1", true, false, named("unknown"), 404},
		{"proxy that names another machine", "127.0.0.1", true, false, named("203.0.113.7"), 404},
		{"client that names this machine to its proxy", "127.0.0.1", true, false, named("127.0.0.1, 203.0.113.7"), 404},
		{"proxy that names this machine", "127.0.0.1", true, false, named("127.0.0.1"), 200},
		{"another machine instead of the proxy", "192.0.2.1", true, false, named("127.0.0.1"), 404},
		{"token behind a proxy", "127.0.0.1", true, false, key + named("203.0.113.7"), 200},
		{"open behind a proxy", "127.0.0.1", true, true, named("203.0.113.7"), 200},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := options(&echo{})
			o.Mounts = append(o.Mounts, Mount{Prefix: "", Handler: &echo{}}) // pages answer every other path
			o.BehindProxy, o.OpenMetrics, o.MetricsToken = tt.proxy, tt.open, func() string { return token }
			inBubble(t, o, func(t *testing.T, _ *Server, l *pipeListener) {
				for path, want := range map[string]int{"/metrics": tt.status, "/version": tt.status, "/healthz": 200, "/readyz": 200} {
					c := l.dial(tt.from)
					fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: h\r\nConnection: close\r\n%s\r\n", path, tt.lines)
					answer, err := http.ReadResponse(bufio.NewReader(c), nil)
					if err != nil {
						t.Fatal(err)
					}
					shared := answer.Header.Get("Access-Control-Allow-Origin") == "*"
					if private := want == 200 && !tt.open && path[1] != 'h' && path[1] != 'r'; answer.StatusCode != want || shared == private {
						t.Errorf("GET %s = %d, readable by all sites: %v; want %d, %v", path, answer.StatusCode, shared, want, !private)
					}
					_ = c.Close()
				}
			})
		})
	}
	o := options(&echo{})
	o.MetricsToken = func() string { return "" }
	inBubble(t, o, func(t *testing.T, _ *Server, l *pipeListener) {
		c := l.dial("192.0.2.1")
		fmt.Fprint(c, "GET /metrics HTTP/1.1\r\nHost: h\r\nConnection: close\r\nAuthorization: Bearer \r\n\r\n")
		answer, err := io.ReadAll(c)
		if !strings.HasPrefix(string(answer), "HTTP/1.1 404") || err != nil {
			t.Errorf("an empty token where none is set: %.20q, %v", answer, err)
		}
		_ = c.Close()
	})
}

func TestAccessLogHasNoQuery(t *testing.T) {
	var log strings.Builder
	o := options(&echo{err: errors.New("the disk is gone")})
	o.Log = slog.New(slog.NewTextHandler(&log, nil))
	s, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	go func() { done <- s.Serve(l) }()
	exchange(t, l.Addr().String(), "GET /v2/models?key=secret HTTP/1.1\r\nHost: h\r\nAuthorization: Key secret\r\n\r\n")
	exchange(t, l.Addr().String(), "secret nonsense\r\n\r\n")
	if err := s.Drain(t.Context()); err != nil {
		t.Error(err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
	for _, want := range []string{"id=0101010101", "method=GET", "path=/v2/models", "status=200", "took=", "remote=127.0.0.1", "status=400", `error="the disk is gone"`} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log lacks %s:\n%s", want, log.String())
		}
	}
	if strings.Contains(log.String(), "secret") {
		t.Errorf("the log holds a secret:\n%s", log.String())
	}
}

func TestNewChecksItsOptions(t *testing.T) {
	if _, err := New(Options{}); err == nil {
		t.Error("New without anything succeeded")
	}
	o := options(&echo{})
	o.MaxBody, o.BodyBudget = 2, 1
	if _, err := New(o); err == nil {
		t.Error("New with bodies larger than the budget succeeded")
	}
	o = options(&echo{})
	if _, err := New(o); err != nil {
		t.Fatal(err)
	}
	if _, err := New(o); err == nil {
		t.Error("two servers registered the same metrics")
	}
}
