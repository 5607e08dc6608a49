package httpd

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/sightline-dev/sightline/core/api"
)

// TestForwardErrors makes a decision and a Forwarder fail. Clients get the envelope with 503 and Retry-After, and a connection that they can
// use again.
func TestForwardErrors(t *testing.T) {
	failing := func(err error) func(context.Context, *api.Request) (Forwarder, error) {
		return func(context.Context, *api.Request) (Forwarder, error) {
			return func(*http.Request) (*http.Response, error) { return nil, err }, nil
		}
	}
	deciding := func(err error) func(context.Context, *api.Request) (Forwarder, error) {
		return func(context.Context, *api.Request) (Forwarder, error) { return nil, err }
	}
	for _, tt := range []struct {
		name    string
		forward func(context.Context, *api.Request) (Forwarder, error)
		sent    bool // the Forwarder fails
		details string
	}{
		{"no primary", deciding(Unavailable("no primary within 10 s; try again")), false, "no primary within 10 s; try again"},
		{"another error of the decision", deciding(io.EOF), false, "No server can answer this call at present: try again."},
		{"primary ended", failing(fmt.Errorf("node 2: %w", Unavailable("the primary ended"))), true, "node 2: the primary ended"},
		{"broken connection", failing(io.ErrUnexpectedEOF), true, errForward.text},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := options(&echo{})
			o.Forward = tt.forward
			s, address := start(t, o)
			small := "POST /v2/x HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhello"
			medium := "POST /v2/x HTTP/1.1\r\nHost: h\r\nContent-Length: 50000\r\n\r\n" + strings.Repeat("x", 50_000)
			c, err := net.Dial("tcp", address)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			r := bufio.NewReader(c)
			requests := []string{get, small, small, get}
			if tt.sent {
				requests = []string{get, small, medium, get} // an error of the decision does not wait for this body, and closes the connection
			}
			for _, raw := range requests {
				fmt.Fprint(c, raw)
				res, err := http.ReadResponse(r, nil)
				if err != nil {
					t.Fatal(err)
				}
				if got := text(t, res); res.StatusCode != 503 || res.Header.Get("Retry-After") == "" || res.Header.Get(headerApplied) != "" ||
					!strings.Contains(got, `"code":40030`) || !strings.Contains(got, tt.details) {
					t.Errorf("%.20s: %d %v %s", raw, res.StatusCode, res.Header, got)
				}
			}
			if s.bodies.Free() != s.o.BodyBudget {
				t.Error("the bodies keep their memory")
			}
		})
	}
}

// TestFollowerRefusesNodes forwards to a server that does not lead. It refuses every request as not applied, and forwards none.
func TestFollowerRefusesNodes(t *testing.T) {
	h := &echo{}
	o := options(h)
	o.Leads = func(_ context.Context, r *api.Request) error {
		return Unavailable("this node follows: " + r.Header("X-A"))
	}
	o.Forward = func(context.Context, *api.Request) (Forwarder, error) { panic("forwards again") }
	_, heard := startNode(t, o)
	for _, raw := range []string{
		"GET /v2/x HTTP/1.1\r\nHost: h\r\nX-A: a\r\n\r\n",
		"POST /v2/x HTTP/1.1\r\nHost: h\r\nX-A: a\r\nContent-Length: 2\r\n\r\n{}",
		"POST /v2/x HTTP/1.1\r\nHost: h\r\nX-A: a\r\nContent-Length: 2000000\r\nExpect: 100-continue\r\n\r\n",
	} {
		res, body, err := ask(t, heard.Addr().String(), raw)
		if err != nil || res.StatusCode != 503 || res.Header.Get(headerApplied) != "0" || !strings.Contains(body, "this node follows: a") {
			t.Errorf("%.20q: %v %s, %v", raw, res, body, err)
		}
	}
	if res, _, _ := ask(t, heard.Addr().String(), "GET /healthz HTTP/1.1\r\nHost: h\r\n\r\n"); res.StatusCode != 200 {
		t.Errorf("/healthz of a follower: %d", res.StatusCode)
	}
	if len(h.calls) != 0 {
		t.Errorf("the handler got %q", h.calls)
	}
}

// TestDecisionEnds blocks a decision until its client disconnects, and until the server drains.
func TestDecisionEnds(t *testing.T) {
	began, ended := make(chan bool), make(chan error)
	o := options(&echo{})
	o.Forward = func(ctx context.Context, r *api.Request) (Forwarder, error) {
		ctx, stop := r.Watch(ctx)
		defer stop()
		began <- true
		<-ctx.Done()
		ended <- ctx.Err()
		return nil, Unavailable("no primary")
	}
	s, address := start(t, o)
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprint(c, get)
	<-began
	_ = c.Close()
	<-ended
	answer := make(chan int)
	go func() {
		res, _, err := ask(t, address, get)
		if err != nil {
			t.Error(err)
			close(answer)
			return
		}
		answer <- res.StatusCode
	}()
	<-began
	drained := make(chan error)
	go func() { drained <- s.Drain(t.Context()) }()
	<-ended
	if got := <-answer; got != 503 {
		t.Errorf("a call of a draining server gets %d, want 503", got)
	}
	if err := <-drained; err != nil {
		t.Error(err)
	}
}

// TestNodesOverTLS forwards over mutual TLS. The answering node notices that the client of the first node has disconnected.
func TestNodesOverTLS(t *testing.T) {
	h := &watcher{began: make(chan struct{}), canceled: make(chan struct{}), end: make(chan struct{})}
	b, _ := start(t, options(h))
	secure, client := newTLSConfigs(t)
	secure.NextProtos, client.NextProtos = nil, nil
	l, err := tls.Listen("tcp", "127.0.0.1:0", secure)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	go func() { done <- b.ServeNodes(l) }()
	transport := &http.Transport{TLSClientConfig: client}
	o := options(&echo{})
	o.Forward = func(context.Context, *api.Request) (Forwarder, error) {
		return func(r *http.Request) (*http.Response, error) {
			r.URL.Scheme, r.URL.Host = "https", l.Addr().String()
			return transport.RoundTrip(r)
		}, nil
	}
	_, address := start(t, o)
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprint(c, get)
	<-h.began
	_ = c.Close()
	<-h.canceled
	close(h.end)
	go func() { <-h.began }()
	if res, _, err := ask(t, address, get); err != nil || res.StatusCode != 200 {
		t.Errorf("%v, %v", res, err)
	}
	transport.CloseIdleConnections()
	drainServer(t, b)
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// deposed answers the first calls as a node whose calls write nothing any more, and later ones as echo does.
type deposed struct {
	echo
	left int
}

func (d *deposed) Serve(ctx context.Context, r *api.Request) api.Response {
	res := d.echo.Serve(ctx, r)
	if d.left--; d.left >= 0 {
		res = d.Refuse(r, api.ErrBusy)
		res.Header = append(res.Header, api.Field{Name: headerApplied, Value: "0"})
	}
	return res
}

// TestCallThatWroteNothing: a server that leads answers a call as not applied, because another node has taken over. The client gets the other
// node's answer, or this server's if it leads again. Without another node the client gets the refusal.
func TestCallThatWroteNothing(t *testing.T) {
	_, heard := startNode(t, live(&echo{}))
	other := to(t, heard.Addr().String())
	for _, tt := range []struct {
		name     string
		refusals int // calls that this server answers as not applied
		after    int // decisions after which the other node answers; 0: it never does
		status   int
	}{
		{"another node leads", 1, 1, 200},
		{"this one leads again", 1, 0, 200},
		{"this one leads again, and then another one", 2, 2, 200},
		{"none leads", 100, 0, 400}, // the status of echo,
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := &deposed{left: tt.refusals}
			o := options(h)
			decided := 0
			o.Forward = func(ctx context.Context, r *api.Request) (Forwarder, error) {
				if decided++; tt.after > 0 && decided > tt.after {
					return other(ctx, r)
				}
				return nil, nil
			}
			s, address := start(t, o)
			for _, raw := range []string{
				"POST /v2/x HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhello",
				"POST /v2/x HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
			} {
				h.left, decided = tt.refusals, 0
				res, body, err := ask(t, address, raw)
				if err != nil || res.StatusCode != tt.status || res.Header.Get(headerApplied) != "" || tt.status == 200 && !strings.Contains(body, `"body":5`) {
					t.Errorf("%.40q: %v %v %s, want %d", raw, err, res, body, tt.status)
				}
			}
			if s.bodies.Free() != s.o.BodyBudget {
				t.Error("the bodies keep their memory")
			}
			releases(t, s)
		})
	}
}
