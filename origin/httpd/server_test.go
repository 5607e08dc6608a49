package httpd

import (
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
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/blob"
)

// TestMain starts the library's one goroutine that never ends, the date of answers, so that
// it belongs to no test and to no bubble, and checks that nothing else is left at the end.
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
	o.Mounts = []Mount{{"/v2", v2}, {"/v3", rest}}
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
	var recovered []any
	h := &echo{do: func(_ context.Context, r *api.Request) {
		if strings.Contains(r.Path, "panic") {
			panic("a bug")
		}
	}}
	o := options(h)
	o.Panics = func(p any, stack []byte) { recovered = append(recovered, p) }
	_, address := start(t, o)
	answers, _ := exchange(t, address, "POST /v2/panic HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\n{}"+get)
	if got := statusesOf(answers); got != "500" || !strings.Contains(text(t, answers[0]), `"code":99009`) {
		t.Errorf("a panic answers %s", got)
	}
	if len(recovered) != 1 || recovered[0] != "a bug" {
		t.Errorf("recovered %v", recovered)
	}
	if answers, _ := exchange(t, address, get); statusesOf(answers) != "200" {
		t.Error("the server does not answer after a panic")
	}
}

func TestBudgetIsSharedAndGivenBack(t *testing.T) {
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
	if left := s.budget.left.Load(); left != o.BodyBudget {
		t.Errorf("the budget has %d bytes after all, want %d", left, o.BodyBudget)
	}
}

func TestBodiesArriveWhole(t *testing.T) {
	_, address := start(t, options(&echo{}))
	for _, n := range []int{1, 8191, 8192, 8193, firstBytes, firstBytes + 1, trusted - 1, trusted, trusted + 1, 5<<20 + 3} {
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

func TestFullRefusesBeforeTheBody(t *testing.T) {
	var full atomic.Bool
	o := options(&echo{})
	o.Full = func() error {
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
	registry := prometheus.NewRegistry()
	o := options(&echo{})
	o.Metrics, o.Gather, o.Version = registry, registry, "v1.2.3"
	var notReady atomic.Bool
	o.Ready = func() error {
		if notReady.Load() {
			return errors.New("disk is full")
		}
		return nil
	}
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
		holds        string
	}{
		{"GET", "/healthz", 200, "ok"},
		{"GET", "/readyz", 200, "ready"},
		{"GET", "/version", 200, `"version":"v1.2.3"`},
		{"GET", "/v2/models", 200, ""},
		{"GET", "/metrics", 200, `sightline_http_requests_total{method="GET",status="200"}`},
		{"GET", "/metrics", 200, "sightline_http_connections 1"},
		{"POST", "/healthz", 405, `"code":11103`},
	} {
		if status, body := ask(tt.method, tt.path); status != tt.status || !strings.Contains(body, tt.holds) {
			t.Errorf("%s %s = %d %.300q, want %d with %s", tt.method, tt.path, status, body, tt.status, tt.holds)
		}
	}
	notReady.Store(true)
	if status, body := ask("GET", "/readyz"); status != 503 || !strings.Contains(body, "disk is full") {
		t.Errorf("/readyz = %d %q, want 503", status, body)
	}
}

func TestAccessLogHasNoQuery(t *testing.T) {
	var log strings.Builder
	o := options(&echo{})
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
	for _, want := range []string{"id=0101010101", "method=GET", "path=/v2/models", "status=200", "took=", "remote=127.0.0.1", "status=400"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log lacks %s:\n%s", want, log.String())
		}
	}
	if strings.Contains(log.String(), "secret") {
		t.Errorf("the log holds a secret:\n%s", log.String())
	}
}

// pictures is a Hosted of one picture.
type pictures struct {
	p   Picture
	err error
	b   string
}

func (p pictures) Open(_ context.Context, name string) (Picture, error) {
	if name != "0123456789abcdef0123456789abcdef" {
		return Picture{}, fmt.Errorf("name: %w", blob.ErrNotFound)
	}
	out := p.p
	out.Size = int64(len(p.b))
	out.Body = io.NopCloser(&failing{strings.NewReader(p.b), p.err})
	return out, nil
}

// failing gives err in place of io.EOF, when it is not nil.
type failing struct {
	io.Reader
	err error
}

func (f *failing) Read(p []byte) (int, error) {
	n, err := f.Reader.Read(p)
	if errors.Is(err, io.EOF) && f.err != nil {
		err = f.err
	}
	return n, err
}

func TestHostedPicture(t *testing.T) {
	now := time.Date(2026, 11, 21, 18, 0, 0, 0, time.UTC)
	big := strings.Repeat("picture", 100_000)
	tests := []struct {
		name    string
		hosted  pictures
		headers map[string]string
	}{
		{"jpeg", pictures{p: Picture{ContentType: "image/jpeg"}, b: big}, map[string]string{
			"Content-Type": "image/jpeg", "Cache-Control": "public, max-age=3600, immutable", "Content-Security-Policy": hostedPolicy,
			"X-Content-Type-Options": "nosniff", "Content-Disposition": "", "Access-Control-Allow-Origin": "*",
		}},
		{"soon gone", pictures{p: Picture{ContentType: "image/png", Expires: now.Add(90 * time.Second)}, b: "x"}, map[string]string{
			"Content-Type": "image/png", "Cache-Control": "public, max-age=90, immutable",
		}},
		{"no raster picture", pictures{p: Picture{ContentType: "image/svg+xml"}, b: "<svg/>"}, map[string]string{
			"Content-Type": "application/octet-stream", "Content-Disposition": "attachment",
		}},
		{"empty", pictures{p: Picture{ContentType: "image/gif"}, b: ""}, map[string]string{"Content-Type": "image/gif"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			o := options(&echo{})
			o.Hosted = tt.hosted
			o.Now = func() time.Time { return now }
			_, address := start(t, o)
			const path = "/hosted/0123456789abcdef0123456789abcdef"
			res, err := http.Get("http://" + address + path)
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			if b := text(t, res); res.StatusCode != 200 || b != tt.hosted.b {
				t.Errorf("GET = %d, %d bytes; want %d", res.StatusCode, len(b), len(tt.hosted.b))
			}
			for name, want := range tt.headers {
				if got := res.Header.Get(name); got != want {
					t.Errorf("%s: %q, want %q", name, got, want)
				}
			}
			answers, _ := exchange(t, address, "GET /hosted/../etc HTTP/1.1\r\nHost: h\r\n\r\nGET /hosted/ HTTP/1.1\r\nHost: h\r\n\r\n"+
				"DELETE "+path+" HTTP/1.1\r\nHost: h\r\n\r\n")
			if statusesOf(answers) != "404 404 405" {
				t.Errorf("other names: %s, want 404 404 405", statusesOf(answers))
			}
		})
	}
}

func TestDamagedPictureArrivesShort(t *testing.T) {
	for _, n := range []int{1, 5, 100_000} {
		o := options(&echo{})
		o.Hosted = pictures{p: Picture{ContentType: "image/jpeg"}, b: strings.Repeat("p", n), err: blob.ErrCorrupt}
		_, address := start(t, o)
		res, err := http.Get("http://" + address + "/hosted/0123456789abcdef0123456789abcdef")
		if err != nil {
			continue // not even a header: as good
		}
		b, err := io.ReadAll(res.Body)
		_ = res.Body.Close()
		if err == nil || len(b) >= n {
			t.Errorf("a damaged picture of %d bytes arrives with %d, %v", n, len(b), err)
		}
	}
}

func TestWholeReadsEveryWay(t *testing.T) {
	for _, size := range []int{1, 2, 3, 7, 100} {
		for _, n := range []int{0, 1, 2, 3, 50} {
			want := strings.Repeat("abc", n)[:n]
			w := whole{from: io.NopCloser(strings.NewReader(want))}
			var got []byte
			p := make([]byte, size)
			for {
				n, err := w.Read(p)
				got = append(got, p[:n]...)
				if err != nil {
					if !errors.Is(err, io.EOF) {
						t.Fatal(err)
					}
					break
				}
			}
			if string(got) != want {
				t.Errorf("buffers of %d: %q, want %q", size, got, want)
			}
		}
	}
}

// pipeListener is a listener of in-memory connections, for virtual time.
type pipeListener struct {
	conns  chan net.Conn
	closed chan struct{}
}

func newPipes() *pipeListener {
	return &pipeListener{make(chan net.Conn), make(chan struct{})}
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}
func (l *pipeListener) Close() error   { close(l.closed); return nil }
func (l *pipeListener) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)} }

// from is a connection that seems to come from an address.
type from struct {
	net.Conn
	remote net.Addr
}

func (f from) RemoteAddr() net.Addr { return f.remote }

func (l *pipeListener) dial(ip string) net.Conn {
	here, there := net.Pipe()
	l.conns <- from{there, &net.TCPAddr{IP: net.ParseIP(ip), Port: 1}}
	return here
}

// inBubble serves in virtual time.
func inBubble(t *testing.T, o Options, test func(t *testing.T, s *Server, l *pipeListener)) {
	synctest.Test(t, func(t *testing.T) {
		s, err := New(o)
		if err != nil {
			t.Fatal(err)
		}
		l := newPipes()
		done := make(chan error)
		go func() { done <- s.Serve(l) }()
		test(t, s, l)
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		if err := s.Drain(ctx); err != nil {
			t.Errorf("Drain: %v", err)
		}
		if err := <-done; err != nil {
			t.Errorf("Serve: %v", err)
		}
		settle()
	})
}

// settle lets the library's worker pool notice, in virtual time, that it has stopped.
func settle() { time.Sleep(2 * time.Second) }

// drip sends raw, then one byte every interval, and returns what came back and when the
// server hung up.
func drip(l *pipeListener, raw string, interval time.Duration) (answer string, after time.Duration) {
	c := l.dial("192.0.2.1")
	start := time.Now()
	got := make(chan string)
	go func() {
		b, _ := io.ReadAll(c)
		got <- string(b)
	}()
	stop := make(chan struct{})
	go func() {
		_, err := io.WriteString(c, raw)
		for err == nil {
			select {
			case <-stop:
				return
			case <-time.After(interval):
				_, err = io.WriteString(c, "x")
			}
		}
	}()
	answer = <-got
	after = time.Since(start)
	close(stop)
	_ = c.Close()
	return answer, after
}

func TestSlowClientsAreCut(t *testing.T) {
	tests := []struct {
		name, raw, want string
		most            time.Duration
	}{
		{"silent", "", "HTTP/1.1 408", 10 * time.Second},
		{"dripping header", "GET / HTTP/1.1\r\nHost: h\r\nX: ", "HTTP/1.1 408", 10 * time.Second},
		{"small body never comes", "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 100\r\n\r\n", "HTTP/1.1 408", 5 * time.Second},
		{"big body never comes", "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 90000000\r\n\r\n" + strings.Repeat("x", 9000), "HTTP/1.1 408", 6 * time.Second},
		{"dripping body", "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 90000000\r\n\r\n" + strings.Repeat("x", 90_000), "HTTP/1.1 408", 11 * time.Second},
		{"dripping chunks", "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n5;", "HTTP/1.1 408", 6 * time.Second},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, options(&echo{}), func(t *testing.T, _ *Server, l *pipeListener) {
				answer, after := drip(l, tt.raw, time.Second)
				if !strings.HasPrefix(answer, tt.want) || after > tt.most {
					t.Errorf("cut after %v with %.60q, want %s within %v", after, answer, tt.want, tt.most)
				}
			})
		})
	}
}

// TestPacedBody sends a body at a good rate for longer than the body may take, and at a
// rate that is just enough.
func TestPacedBody(t *testing.T) {
	for _, tt := range []struct {
		name   string
		rate   int // bytes a second
		length int
		want   string
	}{
		{"just enough", 20 << 10, 1 << 20, "HTTP/1.1 200"},
		{"for ever", 20 << 10, 10 << 20, "HTTP/1.1 408"},
		{"too slow", 8 << 10, 1 << 20, "HTTP/1.1 408"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, options(&echo{}), func(t *testing.T, _ *Server, l *pipeListener) {
				c := l.dial("192.0.2.1")
				start := time.Now()
				got := make(chan string)
				go func() {
					b := make([]byte, 20)
					n, _ := io.ReadFull(c, b)
					got <- string(b[:n])
					_, _ = io.Copy(io.Discard, c)
				}()
				go func() {
					_, err := fmt.Fprintf(c, "POST / HTTP/1.1\r\nHost: h\r\nConnection: close\r\nContent-Length: %d\r\n\r\n", tt.length)
					for sent := 0; sent < tt.length && err == nil; sent += tt.rate {
						time.Sleep(time.Second) // virtual
						_, err = c.Write(make([]byte, min(tt.rate, tt.length-sent)))
					}
				}()
				if answer := <-got; !strings.HasPrefix(answer, tt.want) || time.Since(start) > 61*time.Second {
					t.Errorf("%q after %v, want %s", answer, time.Since(start), tt.want)
				}
				_ = c.Close()
			})
		})
	}
}

// TestFloodEvictsTheLongestWaiting opens more connections than there may be: new clients
// get in, the first silent ones lose their place, and a request being worked on does not.
func TestFloodEvictsTheLongestWaiting(t *testing.T) {
	h := &echo{}
	o := options(h)
	o.MaxConns = 10
	inBubble(t, o, func(t *testing.T, s *Server, l *pipeListener) {
		inside, leave := make(chan bool), make(chan bool) // of this bubble
		h.do = func(_ context.Context, r *api.Request) {
			if r.Path == "/v2/hold" {
				inside <- true
				<-leave
			}
		}
		held := l.dial("192.0.2.1")
		fmt.Fprint(held, "GET /v2/hold HTTP/1.1\r\nHost: h\r\n\r\n")
		<-inside
		var flood []net.Conn
		for i := range 50 {
			flood = append(flood, l.dial(fmt.Sprintf("198.51.100.%d", i)))
		}
		synctest.Wait()
		if n := s.openConnections(); n != 10 {
			t.Errorf("%d connections are open, want 10", n)
		}
		innocent := l.dial("192.0.2.2")
		fmt.Fprint(innocent, get)
		if b := make([]byte, 12); !readFull(innocent, b) || string(b) != "HTTP/1.1 200" {
			t.Errorf("the innocent gets %q", b)
		}
		_ = innocent.Close()
		if n, err := flood[0].Read(make([]byte, 1)); err == nil {
			t.Errorf("the first of the flood still reads %d bytes", n)
		}
		leave <- true
		if b := make([]byte, 12); !readFull(held, b) || string(b) != "HTTP/1.1 200" {
			t.Errorf("the request that was worked on gets %q", b)
		}
		_ = held.Close()
		for _, c := range flood {
			_ = c.Close()
		}
	})
}

func readFull(c net.Conn, b []byte) bool {
	_, err := io.ReadFull(c, b)
	return err == nil
}

func TestConnectionsPerClient(t *testing.T) {
	o := options(&echo{})
	o.MaxConnsPerIP = 2
	inBubble(t, o, func(t *testing.T, _ *Server, l *pipeListener) {
		a, b := l.dial("2001:db8::1"), l.dial("2001:db8::2") // one /64 is one client
		third := l.dial("2001:db8::ffff")
		answer, _ := io.ReadAll(third)
		if !strings.HasPrefix(string(answer), "HTTP/1.1 429") || !strings.Contains(string(answer), `"code":11005`) {
			t.Errorf("the third connection reads %q, want 429", answer)
		}
		other := l.dial("2001:db8:0:1::1")
		fmt.Fprint(other, get)
		if b := make([]byte, 12); !readFull(other, b) || string(b) != "HTTP/1.1 200" {
			t.Errorf("another client gets %q", b)
		}
		for _, c := range []net.Conn{a, b, third, other} {
			_ = c.Close()
		}
		synctest.Wait()
		again := l.dial("2001:db8::3")
		fmt.Fprint(again, get)
		if b := make([]byte, 12); !readFull(again, b) || string(b) != "HTTP/1.1 200" {
			t.Errorf("the client that has closed gets %q", b)
		}
		_ = again.Close()
	})
}

// TestDrain has a call under way, an idle connection, a silent one and one in the middle of
// its body: all but the silent and idle ones are answered, with Connection: close.
func TestDrain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inside := make(chan bool)
		h := &echo{do: func(ctx context.Context, r *api.Request) {
			if r.Path == "/v2/hold" {
				inside <- true
				time.Sleep(3 * time.Second) // virtual work
			}
		}}
		s, err := New(options(h))
		if err != nil {
			t.Fatal(err)
		}
		l := newPipes()
		done := make(chan error)
		go func() { done <- s.Serve(l) }()
		working, idle, quiet, arriving := l.dial("192.0.2.1"), l.dial("192.0.2.2"), l.dial("192.0.2.3"), l.dial("192.0.2.4")
		fmt.Fprint(idle, get)
		if b := make([]byte, 12); !readFull(idle, b) {
			t.Fatal("no answer before draining")
		}
		go func() { _, _ = io.Copy(io.Discard, idle) }()
		fmt.Fprint(working, "GET /v2/hold HTTP/1.1\r\nHost: h\r\n\r\n")
		<-inside
		fmt.Fprint(arriving, "POST /v2/late HTTP/1.1\r\nHost: h\r\nContent-Length: 10000\r\n\r\n", strings.Repeat("x", 5000))
		synctest.Wait()

		drained := make(chan error)
		start := time.Now()
		go func() { drained <- s.Drain(t.Context()) }()
		read := func(c net.Conn) chan string {
			out := make(chan string, 1)
			go func() {
				b, _ := io.ReadAll(c)
				out <- string(b)
			}()
			return out
		}
		gotWorking, gotQuiet, gotArriving := read(working), read(quiet), read(arriving)
		time.Sleep(time.Second) // virtual
		fmt.Fprint(arriving, strings.Repeat("x", 5000))
		if err := <-drained; err != nil {
			t.Errorf("Drain: %v", err)
		}
		for name, got := range map[string]string{"working": <-gotWorking, "arriving": <-gotArriving} {
			if !strings.HasPrefix(got, "HTTP/1.1 200") || !strings.Contains(got, "Connection: close") {
				t.Errorf("%s: %.200q, want 200 and a close", name, got)
			}
		}
		if got := <-gotQuiet; got != "" {
			t.Errorf("the silent connection reads %q", got)
		}
		if d := time.Since(start); d > 4*time.Second {
			t.Errorf("drained in %v, want the 3 s of the work and a little", d)
		}
		if err := <-done; err != nil {
			t.Errorf("Serve: %v", err)
		}
		_ = idle.Close()
		settle()
	})
}

// TestDrainGivesUp cancels work that does not end, and lets it answer.
func TestDrainGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inside := make(chan bool)
		h := &echo{do: func(ctx context.Context, _ *api.Request) {
			inside <- true
			<-ctx.Done()
		}}
		s, err := New(options(h))
		if err != nil {
			t.Fatal(err)
		}
		l := newPipes()
		done := make(chan error)
		go func() { done <- s.Serve(l) }()
		c := l.dial("192.0.2.1")
		fmt.Fprint(c, get)
		<-inside
		got := make(chan string)
		go func() {
			b, _ := io.ReadAll(c)
			got <- string(b)
		}()
		ctx, cancel := context.WithTimeout(t.Context(), 8*time.Second)
		defer cancel()
		start := time.Now()
		if err := s.Drain(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Drain = %v, want DeadlineExceeded", err)
		}
		if d := time.Since(start); d > 9*time.Second {
			t.Errorf("Drain took %v", d)
		}
		if answer := <-got; !strings.HasPrefix(answer, "HTTP/1.1 200") {
			t.Errorf("the cancelled call answers %q", answer)
		}
		<-done
		settle()
	})
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
	registry := prometheus.NewRegistry()
	o = options(&echo{})
	o.Metrics = registry
	if _, err := New(o); err != nil {
		t.Fatal(err)
	}
	if _, err := New(o); err == nil {
		t.Error("two servers registered the same metrics")
	}
}
