package httpd

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sightline-dev/sightline/core/api"
)

// overhearing is a listener that records the bytes that it accepts.
type overhearing struct {
	net.Listener
	mu    sync.Mutex
	bytes bytes.Buffer
}

type overheardConn struct {
	net.Conn
	l *overhearing
}

func (l *overhearing) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return overheardConn{c, l}, nil
}

func (c overheardConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.l.mu.Lock()
	c.l.bytes.Write(p[:n])
	c.l.mu.Unlock()
	return n, err
}

// NetConn returns the socket, as a TLS connection does.
func (c overheardConn) NetConn() net.Conn { return c.Conn }

// heads returns the heads of the requests since the last call. The requests have no bodies.
func (l *overhearing) heads() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	heads := strings.Split(l.bytes.String(), "\r\n\r\n")
	l.bytes.Reset()
	return heads[:len(heads)-1]
}

// to returns a Forward that sends every request to a node.
func to(t testing.TB, node string) func(context.Context, *api.Request) (Forwarder, error) {
	transport := &http.Transport{DisableCompression: true, ExpectContinueTimeout: 10 * time.Second, MaxIdleConnsPerHost: 100}
	t.Cleanup(transport.CloseIdleConnections)
	return func(context.Context, *api.Request) (Forwarder, error) {
		return func(r *http.Request) (*http.Response, error) {
			r.URL.Scheme, r.URL.Host = "http", node
			return transport.RoundTrip(r)
		}, nil
	}
}

// startNode runs a server for other nodes on loopback, and returns it with its address.
func startNode(t testing.TB, o Options) (*Server, *overhearing) {
	t.Helper()
	s, _ := start(t, o)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	heard := &overhearing{Listener: l}
	done := make(chan error, 1)
	go func() { done <- s.ServeNodes(heard) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		if err := s.Drain(ctx); err != nil {
			t.Errorf("Drain: %v", err)
		}
		if err := <-done; err != nil {
			t.Errorf("ServeNodes: %v", err)
		}
	})
	return s, heard
}

// startPair runs a server that forwards every request to a second one. It returns both and the address of the first.
func startPair(t testing.TB, second Options) (a, b *Server, address string, heard *overhearing) {
	t.Helper()
	b, heard = startNode(t, second)
	o := live(&echo{})
	o.Forward = to(t, heard.Addr().String())
	a, address = start(t, o)
	return a, b, address, heard
}

// ask sends raw bytes and returns one answer with its body. The client does not stop sending.
func ask(t testing.TB, address, raw string) (*http.Response, string, error) {
	t.Helper()
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(20 * time.Second))
	go func() { _, _ = io.WriteString(c, raw) }() // the server may have closed
	method, _, _ := strings.Cut(raw, " ")
	r := bufio.NewReader(c)
	for {
		res, err := http.ReadResponse(r, &http.Request{Method: method})
		if err != nil {
			return nil, "", err
		}
		if res.StatusCode >= 200 {
			b, err := io.ReadAll(res.Body)
			return res, string(b), err
		}
	}
}

// TestForwardedHeads forwards requests with unusual targets and headers. The other node gets the bytes of the target and all end-to-end
// headers.
func TestForwardedHeads(t *testing.T) {
	var got api.Request
	_, _, address, heard := startPair(t, options(&answering{serve: func(_ context.Context, r *api.Request) api.Response {
		got = *r
		return api.Response{Status: 200}
	}}))
	for _, tt := range []struct{ target, path, query, sent string }{
		{target: "/v2/models", path: "/v2/models"},
		{target: "/v2/models?", path: "/v2/models"},
		{target: "/v2/a%2Fb/%e4%C3%A4/%zz/%?q=%2B+;x&&=%00", path: "/v2/a%2Fb/%e4%C3%A4/%zz/%", query: "q=%2B+;x&&=%00"},
		{target: "/v2/../a/./;b=|\"<>^`{}'", path: "/v2/../a/./;b=|\"<>^`{}'"},
		{target: "//v2//models?a=1", path: "//v2//models", query: "a=1", sent: "http://node//v2//models?a=1"},
		{target: "///v2/%2e", path: "///v2/%2e", sent: "http://node///v2/%2e"},
		{target: "//h@b:x/v2|", path: "//h@b:x/v2|", sent: "http://node//h@b:x/v2|"},
		{target: "http://other/v2/x?y", path: "/v2/x", query: "y"},
		{target: "/v2/x??a?b", path: "/v2/x", query: "?a?b"},
	} {
		got = api.Request{}
		res, _, err := ask(t, address, "GET "+tt.target+" HTTP/1.1\r\nHost: h\r\n\r\n")
		if err != nil || res.StatusCode != 200 {
			t.Fatalf("%s: %v, %v", tt.target, res, err)
		}
		if tt.sent == "" {
			tt.sent = tt.target
		}
		line, _, _ := strings.Cut(heard.heads()[0], "\r\n")
		if line != "GET "+tt.sent+" HTTP/1.1" || got.Path != tt.path || got.Query != tt.query {
			t.Errorf("%s is sent as %q; the handler sees %q, %q", tt.target, line, got.Path, got.Query)
		}
	}
	_, _, _ = ask(t, address, "OPTIONS /v2/x HTTP/1.1\r\nHOST: Some.Host:8000\r\nuser-agent: u\r\nX-A: 1\r\nx-a:2 \r\nX-Empty:\r\nX-Bytes: \xe4\"\r\n"+
		"Connection: close, X-Named, keep-alive\r\nX-Named: 1\r\nKeep-Alive: 1\r\nTE: trailers\r\nTrailer: X-T\r\nUpgrade: h2c\r\n"+
		"Proxy-Authorization: p\r\nX-Forwarded-For: 192.0.2.1\r\nX-Sightline-Applied: 0\r\nX-Sightline-CSRF: c\r\nAccept-Encoding: br\r\n"+
		"Expect: 100-continue\r\nContent-Length: 0\r\n\r\n")
	lines := strings.Split(heard.heads()[0], "\r\n")
	slices.Sort(lines[1:])
	want := []string{
		"OPTIONS /v2/x HTTP/1.1", "Accept-Encoding: br", "Host: Some.Host:8000", "User-Agent: u", "X-A: 1", "X-A: 2", "X-Bytes: \xe4\"",
		"X-Empty: ", "X-Forwarded-For: 127.0.0.1", "X-Sightline-Csrf: c",
	}
	if !slices.Equal(lines, want) {
		t.Errorf("the other node gets\n%q, want\n%q", lines, want)
	}
	_, _, _ = ask(t, address, "GET /v2/x HTTP/1.0\r\n\r\n")
	if head := heard.heads()[0]; strings.Contains(head, "User-Agent") || strings.Contains(head, "Accept-Encoding") {
		t.Errorf("the other node gets additional headers: %q", head)
	}
}

// TestForwardedClients compares the client's address in the handler of another node with the client's connection.
func TestForwardedClients(t *testing.T) {
	for _, tt := range []struct {
		name, peer string
		proxy      bool
		lines      string
		want       string
	}{
		{"named", "192.0.2.1", false, "X-Forwarded-For: 203.0.113.7\r\n", "203.0.113.7"},
		{"the last one", "192.0.2.1", false, "X-Forwarded-For: 198.51.100.1, 203.0.113.7\r\n", "203.0.113.7"},
		{"IPv6", "192.0.2.1", true, "X-Forwarded-For: 2001:db8::1\r\n", "2001:db8::/64"},
		{"not named", "192.0.2.1", true, "", "192.0.2.1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var remote string
			h := &answering{serve: func(_ context.Context, r *api.Request) api.Response {
				remote = r.Remote
				return api.Response{Status: 204}
			}}
			o := options(h)
			o.BehindProxy, o.MaxConnsPerIP, o.MaxConns = tt.proxy, 1, 2
			onNodes(t, o, func(t *testing.T, _ *Server, l *pipeListener) {
				var conns []net.Conn
				for range 5 { // no limit for each address
					conns = append(conns, l.dial(tt.peer))
				}
				c := conns[0]
				fmt.Fprintf(c, "GET /v2/x HTTP/1.1\r\nHost: h\r\n%s\r\n", tt.lines)
				res, err := http.ReadResponse(bufio.NewReader(c), nil)
				if err != nil || res.StatusCode != 204 || remote != tt.want {
					t.Errorf("%v, %v: the client is %q, want %q", res, err, remote, tt.want)
				}
				fmt.Fprint(conns[1], "GET /metrics HTTP/1.1\r\nHost: h\r\nX-Forwarded-For: 127.0.0.1\r\n\r\n")
				if res, err := http.ReadResponse(bufio.NewReader(conns[1]), nil); err != nil || res.StatusCode != 404 {
					t.Errorf("metrics for a client of another node: %v, %v", res, err)
				}
				for _, c := range conns {
					_ = c.Close()
				}
			})
		})
	}
}

// onNodes runs a server for other nodes and a test in virtual time.
func onNodes(t *testing.T, o Options, test func(t *testing.T, s *Server, l *pipeListener)) {
	synctest.Test(t, func(t *testing.T) {
		s, err := New(o)
		if err != nil {
			t.Fatal(err)
		}
		l := newPipes()
		done := make(chan error)
		go func() { done <- s.ServeNodes(l) }()
		test(t, s, l)
		drainServer(t, s)
		if err := <-done; err != nil {
			t.Errorf("ServeNodes: %v", err)
		}
		settle()
	})
}

// TestForwardedAnswers compares answers through another node with the answers of that node. Headers that only nodes exchange and the headers
// of one connection do not reach the client.
func TestForwardedAnswers(t *testing.T) {
	big := strings.Repeat("0123456789abcdef", 20<<16) // 20 MB
	stream := func(w io.Writer) error { _, err := io.WriteString(w, big); return err }
	answers := map[string]api.Response{
		"small":   {Status: 201, ContentType: "text/plain", Body: []byte("small")},
		"empty":   {Status: 200},
		"nothing": {Status: 204, Header: []api.Field{{Name: "X-Sightline-Applied", Value: "1"}, {Name: "ETag", Value: `"e"`}}},
		"cached":  {Status: 304, Header: []api.Field{{Name: "ETag", Value: `"e"`}}},
		"big":     {Status: 200, ContentType: "text/plain", Body: []byte(big)},
		"stream":  {Status: 200, ContentType: "text/plain", Stream: stream},
		"file":    {Status: 200, ContentType: "text/plain", Stream: stream, Length: int64(len(big))},
		"own":     {Status: 200, Header: []api.Field{{Name: "Set-Cookie", Value: "a=1"}, {Name: "Set-Cookie", Value: "b=2"}, {Name: "Vary", Value: "A"}}},
		"refused": {Status: 503, ContentType: "application/json", Body: []byte("{}"), Header: []api.Field{{Name: "Retry-After", Value: "7"}}},
	}
	o := options(&answering{serve: func(_ context.Context, r *api.Request) api.Response { return answers[r.Path[len("/v2/"):]] }})
	o.HSTS = true
	_, b, address, heard := startPair(t, o)
	direct := heard.Addr().String()
	for name := range answers {
		for _, method := range []string{"GET", "HEAD"} {
			raw := method + " /v2/" + name + " HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n"
			want, wantBody, err1 := ask(t, direct, raw)
			got, gotBody, err2 := ask(t, address, raw)
			if err1 != nil || err2 != nil {
				t.Fatalf("%s: %v, %v", raw, err1, err2)
			}
			if applied := want.Header.Get(headerApplied); (name == "nothing") != (applied == "1") || got.Header.Get(headerApplied) != "" {
				t.Errorf("%s: another node gets %s: %q, a client %q", raw, headerApplied, applied, got.Header.Get(headerApplied))
			}
			for _, h := range []http.Header{got.Header, want.Header} {
				h.Del("Date")
				h.Del(headerApplied)
				if len(h.Get(headerRequestID)) != 32 || len(h.Values(headerRequestID)) != 1 {
					t.Errorf("%s: ids %q", raw, h.Values(headerRequestID))
				}
				h.Del(headerRequestID)
			}
			same := got.StatusCode == want.StatusCode && got.ContentLength == want.ContentLength && gotBody == wantBody &&
				fmt.Sprint(got.Header) == fmt.Sprint(want.Header)
			if !same {
				t.Errorf("%s: %d %d %v with %d bytes, want %d %d %v with %d bytes", raw, got.StatusCode, got.ContentLength, got.Header, len(gotBody),
					want.StatusCode, want.ContentLength, want.Header, len(wantBody))
			}
		}
	}
	if res, _, _ := ask(t, address, "GET /v2/stream HTTP/1.0\r\n\r\n"); res.StatusCode != 505 {
		t.Errorf("a forwarded stream over HTTP/1.0: %d, want 505", res.StatusCode)
	}
	releases(t, b)
}

// releases waits until the server has released the memory of its answers, which it does after the client has read them.
func releases(t testing.TB, s *Server) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); s.answers.Free() != s.o.AnswerBudget; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Errorf("%d bytes of the budget of answers are free, want %d", s.answers.Free(), s.o.AnswerBudget)
			return
		}
	}
}

// TestOperationsAreNotForwarded asks a node for the operator's paths.
func TestOperationsAreNotForwarded(t *testing.T) {
	o := options(&echo{})
	o.Forward = func(context.Context, *api.Request) (Forwarder, error) { return nil, errors.New("asked") }
	_, address := start(t, o)
	for _, path := range []string{"/healthz", "/readyz", "/metrics", "/version"} {
		if res, _, err := ask(t, address, "GET "+path+" HTTP/1.1\r\nHost: h\r\n\r\n"); err != nil || res.StatusCode != 200 {
			t.Errorf("%s: %v, %v", path, res, err)
		}
	}
	o = options(&echo{})
	o.Forward = func(context.Context, *api.Request) (Forwarder, error) { return nil, nil }
	_, address = start(t, o)
	res, body, err := ask(t, address, "POST /v2/x HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\n{}")
	if err != nil || res.StatusCode != 200 || !strings.Contains(body, `"body":2`) {
		t.Errorf("the primary answers %v, %v", res, err)
	}
}
