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
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/sightline-dev/sightline/core/api"
)

// answering is a handler that answers with its serve function.
type answering struct {
	echo
	serve func(ctx context.Context, r *api.Request) api.Response
}

func (a *answering) Serve(ctx context.Context, r *api.Request) api.Response { return a.serve(ctx, r) }

func streaming(body func(ctx context.Context, w io.Writer) error) *answering {
	return &answering{serve: func(ctx context.Context, _ *api.Request) api.Response {
		return api.Response{Status: 200, ContentType: "application/zip", Stream: func(w io.Writer) error { return body(ctx, w) }}
	}}
}

func TestStream(t *testing.T) {
	part := strings.Repeat("stream", 1000)
	const parts = 100
	var log strings.Builder
	o := options(streaming(func(ctx context.Context, w io.Writer) error {
		for range parts {
			if _, err := io.WriteString(w, part); err != nil {
				return err
			}
		}
		return ctx.Err() // the context must not end before the stream
	}))
	o.Log = slog.New(slog.NewTextHandler(&log, nil))
	s, addr := start(t, o)
	answers, rest := exchange(t, addr, get+"HEAD /v2/x HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")
	head, err := askRaw(addr, "HEAD /v2/x HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")
	if end := strings.Index(head, "\r\n\r\n"); err != nil || end != len(head)-len("\r\n\r\n") {
		t.Errorf("HEAD answers %q, %v, want a head alone", head, err)
	}
	if statusesOf(answers) != "200 200" || text(t, answers[0]) != strings.Repeat(part, parts) || answers[0].Header.Get("Content-Type") != "application/zip" || text(t, answers[1]) != "" {
		t.Errorf("%s, then %.80q", statusesOf(answers), rest)
	}
	if answers, _ := exchange(t, addr, "GET /v2/x HTTP/1.0\r\n\r\n"); statusesOf(answers) != "505" {
		t.Errorf("a stream over HTTP/1.0: %s, want 505", statusesOf(answers))
	}
	drainServer(t, s)
	for want, times := range map[string]int{"status=200": 3, "status=505": 1, "level=ERROR": 0} {
		if got := strings.Count(log.String(), want); got != times {
			t.Errorf("the log has %s %d times, want %d:\n%s", want, got, times, log.String())
		}
	}
	if n := metricOf(t, o.Metrics, "sightline_http_in_flight"); n != 0 {
		t.Errorf("%v requests are in flight after all", n)
	}
}

// askRaw sends raw bytes and returns all bytes of the answers.
func askRaw(address, raw string) (string, error) {
	c, err := net.Dial("tcp", address)
	if err != nil {
		return "", err
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(20 * time.Second))
	if _, err := io.WriteString(c, raw); err != nil {
		return "", err
	}
	all, err := io.ReadAll(c)
	return string(all), err
}

// drainServer stops a server, so that its log is complete. The later Drain of the cleanup has no effect.
func drainServer(t *testing.T, s *Server) {
	t.Helper()
	if err := s.Drain(t.Context()); err != nil {
		t.Errorf("Drain: %v", err)
	}
}

func metricOf(t *testing.T, g prometheus.Gatherer, name string) (sum float64) {
	t.Helper()
	families, err := g.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if f.GetName() == name {
				sum += m.GetGauge().GetValue() + m.GetCounter().GetValue()
			}
		}
	}
	return sum
}

// TestBrokenStreamsAreCut makes a stream fail or panic after a part. The client must notice that the answer is incomplete.
func TestBrokenStreamsAreCut(t *testing.T) {
	for name, end := range map[string]func() error{
		"error": func() error { return errors.New("the disk is gone") },
		"panic": func() error { panic("at the disk") },
	} {
		t.Run(name, func(t *testing.T) {
			var log strings.Builder
			o := options(streaming(func(_ context.Context, w io.Writer) error {
				_, _ = io.WriteString(w, strings.Repeat("x", 100_000))
				return end()
			}))
			o.Log = slog.New(slog.NewTextHandler(&log, nil))
			s, addr := start(t, o)
			res, err := http.Get("http://" + addr + "/v2/x")
			if err != nil {
				t.Fatal(err)
			}
			b, err := io.ReadAll(res.Body)
			_ = res.Body.Close()
			if !errors.Is(err, io.ErrUnexpectedEOF) || len(b) > 100_000 {
				t.Errorf("%d bytes, %v; want them cut off", len(b), err)
			}
			drainServer(t, s)
			if !strings.Contains(log.String(), "level=ERROR") || (name == "panic") != (strings.Count(log.String(), "msg=panic") == 1) {
				t.Errorf("the log:\n%s", log.String())
			}
		})
	}
}

// TestStreamsHaveADeadlineForEachChunk has a client that reads slowly but steadily for longer than writeTimeout, and a client that stops
// reading. Only the first one gets the complete answer.
func TestStreamsHaveADeadlineForEachChunk(t *testing.T) {
	const size = 64 * chunkBytes
	for _, tt := range []struct {
		name     string
		stops    bool
		complete bool
	}{{"slow", false, true}, {"stops", true, false}} {
		t.Run(tt.name, func(t *testing.T) {
			var got error
			o := options(streaming(func(_ context.Context, w io.Writer) error {
				for range size / 1024 {
					if _, err := w.Write(make([]byte, 1024)); err != nil {
						got = err
						return err
					}
				}
				return nil
			}))
			inBubble(t, o, func(t *testing.T, _ *Server, l *pipeListener) {
				c := l.dial("192.0.2.1")
				start := time.Now()
				fmt.Fprint(c, "GET /v2/x HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")
				if tt.stops {
					_, _ = io.ReadFull(c, make([]byte, 2*chunkBytes))
					time.Sleep(2 * writeTimeout) // virtual
				}
				res, err := http.ReadResponse(bufio.NewReaderSize(slowly{c}, chunkBytes/2), nil)
				var n int64
				if err == nil {
					n, err = io.Copy(io.Discard, res.Body)
				}
				if tt.complete != (err == nil && n == size) || tt.complete != (got == nil) {
					t.Errorf("%d bytes, %v; the stream sees %v", n, err, got)
				}
				if d := time.Since(start); tt.complete && d < 2*writeTimeout {
					t.Errorf("the slow client took %v, which proves nothing", d)
				}
				_ = c.Close()
			})
		})
	}
}

// slowly takes 1.5 virtual seconds to read half a chunk.
type slowly struct{ io.Reader }

func (s slowly) Read(p []byte) (int, error) {
	time.Sleep(1500 * time.Millisecond)
	return io.ReadFull(s.Reader, p[:min(len(p), chunkBytes/2)])
}

// TestDrainWaitsForStreams drains a server while it writes an answer.
func TestDrainWaitsForStreams(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inside := make(chan bool)
		s, err := New(options(streaming(func(_ context.Context, w io.Writer) error {
			_, _ = io.WriteString(w, "first ")
			inside <- true
			time.Sleep(3 * time.Second) // virtual
			_, err := io.WriteString(w, "last")
			return err
		})))
		if err != nil {
			t.Fatal(err)
		}
		l := newPipes()
		done := make(chan error)
		go func() { done <- s.Serve(l) }()
		c := l.dial("192.0.2.1")
		fmt.Fprint(c, get)
		<-inside
		body := make(chan string)
		go func() {
			res, err := http.ReadResponse(bufio.NewReader(c), nil)
			if err != nil {
				t.Error(err)
				close(body)
				return
			}
			b, _ := io.ReadAll(res.Body)
			body <- string(b)
		}()
		if err := s.Drain(t.Context()); err != nil {
			t.Errorf("Drain: %v", err)
		}
		if got := <-body; got != "first last" {
			t.Errorf("the answer is %q", got)
		}
		<-done
		settle()
	})
}

func TestRequestsAsHandlersSeeThem(t *testing.T) {
	for _, tt := range []struct {
		name, from   string
		proxy        bool
		lines        string
		remote, line string // what the handler gets: address, and header X-A
	}{
		{"IPv4", "192.0.2.1", false, "X-A:  1 \r\nX-A: 2\r\n", "192.0.2.1", "1"},
		{"IPv6", "2001:db8::17", false, "", "2001:db8::/64", ""},
		{"IPv4 in IPv6", "::ffff:192.0.2.1", false, "", "192.0.2.1", ""},
		{"no proxy is believed", "127.0.0.1", false, "X-Forwarded-For: 203.0.113.7\r\n", "127.0.0.1", ""},
		{"proxy", "127.0.0.1", true, "X-Forwarded-For: 198.51.100.1, 203.0.113.7\r\n", "203.0.113.7", ""},
		{"proxy, the last line", "10.0.0.1", true, "X-Forwarded-For: 198.51.100.1\r\nx-forwarded-for:2001:db8::1\r\n", "2001:db8::/64", ""},
		{"public peer", "192.0.2.1", true, "X-Forwarded-For: 203.0.113.7\r\n", "192.0.2.1", ""},
		{"nobody named", "127.0.0.1", true, "", "127.0.0.1", ""},
		{"nonsense", "127.0.0.1", true, "X-Forwarded-For: 203.0.113.7, unknown\r\n", "127.0.0.1", ""},
		{"a port", "127.0.0.1", true, "X-Forwarded-For: 203.0.113.7:80\r\n", "127.0.0.1", ""},
		{"a zone", "127.0.0.1", true, "X-Forwarded-For: fe80::1%eth0\r\n", "127.0.0.1", ""},
		{"unspecified", "127.0.0.1", true, "X-Forwarded-For: 0.0.0.0\r\n", "127.0.0.1", ""},
		{"a comma at the end", "127.0.0.1", true, "X-Forwarded-For: 203.0.113.7,\r\n", "127.0.0.1", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var got api.Request
			var line, missing string
			o := options(&answering{serve: func(_ context.Context, r *api.Request) api.Response {
				got, line, missing = *r, r.Header("x-a"), r.Header("X-B")
				return api.Response{Status: 204}
			}})
			o.BehindProxy = tt.proxy
			inBubble(t, o, func(t *testing.T, _ *Server, l *pipeListener) {
				c := l.dial(tt.from)
				fmt.Fprintf(c, "GET /v2/x HTTP/1.1\r\nHost: h\r\nX-Clarifai-Session-Token: s\r\nConnection: close\r\n%s\r\n", tt.lines)
				_, _ = io.Copy(io.Discard, c)
				_ = c.Close()
			})
			if got.Remote != tt.remote || got.Session != "s" || line != tt.line || missing != "" {
				t.Errorf("Remote %q, Session %q, X-A %q, X-B %q; want %q, s, %q and nothing", got.Remote, got.Session, line, missing, tt.remote, tt.line)
			}
		})
	}
}

// TestHeadersOfAnswers checks the protective headers of every kind of answer. It also checks that only our pages can read answers of a
// mount with SameOrigin.
func TestHeadersOfAnswers(t *testing.T) {
	own := &answering{serve: func(context.Context, *api.Request) api.Response {
		return api.Response{Status: 200, ContentType: "text/html", Body: []byte("<p>"), Header: []api.Field{
			{Name: "Content-Security-Policy", Value: "default-src 'self'"},
			{Name: "Set-Cookie", Value: "a=1; HttpOnly"},
			{Name: "Set-Cookie", Value: "b=2; HttpOnly"},
		}}
	}}
	o := options(&echo{do: func(_ context.Context, r *api.Request) {
		if r.Path == "/v2/panic" {
			panic("of a test")
		}
	}})
	o.Mounts = append([]Mount{{Prefix: "/own", Handler: own, SameOrigin: true}}, o.Mounts...)
	o.HSTS = true
	_, addr := start(t, o)
	for path, status := range map[string]int{"/v2/x": 200, "/v2/panic": 500, "/own": 200, "/healthz": 200} {
		res, err := http.Get("http://" + addr + path)
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		want := map[string]string{
			"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "Strict-Transport-Security": strict,
			"Access-Control-Allow-Origin": "*", "Access-Control-Expose-Headers": "X-Request-Id, Retry-After, X-Sightline-Calls-Left, X-Sightline-Durability, X-Sightline-Operations, X-Sightline-Notice",
			"Cross-Origin-Resource-Policy": "cross-origin", "Content-Security-Policy": apiPolicy, "Cache-Control": "no-store",
		}
		if path == "/own" {
			want["Access-Control-Allow-Origin"], want["Access-Control-Expose-Headers"] = "", ""
			want["Cross-Origin-Resource-Policy"], want["Content-Security-Policy"] = "same-origin", "default-src 'self'"
			if cookies := res.Header.Values("Set-Cookie"); len(cookies) != 2 {
				t.Errorf("cookies %q, want two", cookies)
			}
		}
		for name, value := range want {
			if got := res.Header.Get(name); got != value {
				t.Errorf("%s: %s %q, want %q", path, name, got, value)
			}
		}
		if res.StatusCode != status {
			t.Errorf("%s: %d, want %d", path, res.StatusCode, status)
		}
	}
}

func TestRedactedPath(t *testing.T) {
	const key = "0123456789abcdef0123456789abcdef"
	for path, want := range map[string]string{
		"/v2/models":                         "/v2/models",
		"/hosted/" + key:                     "/hosted/01234567…",
		"/hosted/" + key + "/thumbnail":      "/hosted/01234567…/thumbnail",
		"//v2/keys/" + strings.ToUpper(key):  "//v2/keys/01234567…",
		"/v2/inputs/" + key[:31]:             "/v2/inputs/" + key[:31],
		"/v2/x/" + key + key:                 "/v2/x/01234567…",
		"/v2/eyJhbGciOiJFZERTQSJ9.eyJ.x":     "/v2/eyJhbGci…",
		strings.Repeat("/abcd", 40):          strings.Repeat("/abcd", 40),
		strings.Repeat("/abcd", 40) + "/abc": strings.Repeat("/abcd", 40) + "/…",
		strings.Repeat("/abcd", 39) + key:    strings.Repeat("/abcd", 39) + key[:5] + "/…",
	} {
		if got := redactedPath(path); got != want {
			t.Errorf("redactedPath(%q) = %q, want %q", path, got, want)
		}
	}
}
