package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/kv/memkv"
	"github.com/sightline-dev/sightline/origin/server/cluster/channel"
	"github.com/sightline-dev/sightline/origin/server/cluster/clustertest"
	"github.com/sightline-dev/sightline/origin/server/cluster/identity"
	"github.com/sightline-dev/sightline/origin/server/cluster/member"
)

// routing is a node with the only member of an etcd, and nodes that answer as a test wants. The test claims for them.
type routing struct {
	*Cluster
	t     *testing.T
	claim bool // whether node a claims for itself
	mu    sync.Mutex
}

// idle is a machine that does nothing.
type idle struct{}

func (idle) Advance(context.Context, *kv.Batch) error { return nil }
func (idle) Lead(context.Context) error               { return nil }
func (idle) Follow(context.Context) error             { return nil }

func newRouting(t *testing.T) *routing {
	t.Helper()
	c, _ := fakeCluster(t, http.NotFoundHandler())
	x := &routing{Cluster: c, t: t}
	address := clustertest.Addresses(t, 1)[0]
	m, err := member.Start(member.Options{
		Data: t.TempDir(), Name: "m", Address: address, Peers: map[string]identity.Address{"m": address}, Cluster: "c", Election: identity.MinElection, Log: c.o.Log,
	})
	if err != nil {
		t.Fatal(err)
	}
	c.member = m
	c.check.get = c.claimed
	local := memkv.New()
	id := uint64(m.Server.Cluster().ID())
	if err := channel.Begin(local, id, 1); err != nil {
		t.Fatal(err)
	}
	c.driver, err = channel.OpenDriver(
		channel.Options{Store: local, Cluster: id, Self: c.self}, channel.DriverOptions{Client: c.client, Log: c.o.Log, Leads: x.mayClaim},
	)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- c.driver.Run(ctx, idle{}) }()
	t.Cleanup(func() {
		stop()
		if err := errors.Join(<-ended, m.Close()); err != nil {
			t.Error(err)
		}
	})
	return x
}

func (x *routing) mayClaim() (bool, <-chan struct{}) {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.claim, nil
}

// claims makes a node the primary, and waits until node a knows it.
func (x *routing) claims(n identity.Node) {
	x.t.Helper()
	x.known.take(record{ID: n.ID, Address: n.Address}, 1)
	res, err := x.member.Client.Put(x.t.Context(), string(channel.Primary), n.ID+"/1")
	if err != nil {
		x.t.Fatal(err)
	}
	clustertest.Until(x.t, "the claim", func() bool { return x.newest().Revision == res.Header.Revision })
}

// peer is a node that answers calls.
type peer struct {
	identity.Node
	mu     sync.Mutex
	bodies []string
}

// peer returns a node that answers its nth call, starting at 1, with answer.
func (x *routing) peer(id string, answer func(n int, w http.ResponseWriter, r *http.Request)) *peer {
	x.t.Helper()
	p := &peer{}
	p.Node = serveFake(x.t, id, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		p.mu.Lock()
		p.bodies = append(p.bodies, string(body))
		n := len(p.bodies)
		p.mu.Unlock()
		answer(n, w, r)
	}))
	return p
}

func (p *peer) got() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.bodies
}

// hangUp ends a call without an answer, as a process that is killed.
func hangUp(w http.ResponseWriter) {
	conn, _, err := w.(http.Hijacker).Hijack()
	if err == nil {
		_ = conn.Close()
	}
}

// call forwards a call as Forward does, and returns the answer's status and body.
func (x *routing) call(method, body string) (status int, text string, err error) {
	r, err := http.NewRequestWithContext(x.t.Context(), method, "http://client/v2/inputs", strings.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	if body == "" {
		r.Body, r.GetBody = http.NoBody, nil
	}
	return x.do(r)
}

func (x *routing) do(r *http.Request) (status int, text string, err error) {
	at, err := x.find(r.Context(), 0)
	if err != nil {
		return 0, "", err
	}
	return read(x.forward(r, at, api.Reads(r.Method, r.URL.Path)))
}

// read reads an answer.
func read(res *http.Response, err error) (status int, text string, _ error) {
	if err != nil {
		return 0, "", err
	}
	b, err := io.ReadAll(res.Body)
	return res.StatusCode, string(b), errors.Join(err, res.Body.Close())
}

// waiting is a call whose client waits.
func waiting() *api.Request {
	return &api.Request{Method: "POST", Path: "/v2/inputs", Watch: func(ctx context.Context) (context.Context, func()) { return ctx, func() {} }}
}

// TestForward forwards calls to nodes that answer, refuse, end and hang.
func TestForward(t *testing.T) {
	t.Parallel()
	x := newRouting(t)

	t.Run("waits for a primary", func(t *testing.T) {
		ctx, stop := context.WithTimeout(t.Context(), 2*soon)
		f, err := x.Forward(ctx, waiting())
		stop()
		if f != nil || err == nil || !strings.Contains(err.Error(), noPrimary) {
			t.Errorf("Forward without a primary = %v, %v", f != nil, err)
		}
		answered := make(chan string)
		go func() {
			f, err := x.Forward(t.Context(), waiting())
			if err != nil {
				answered <- err.Error()
				return
			}
			r, err := http.NewRequestWithContext(t.Context(), "POST", "http://client/v2/inputs", strings.NewReader("body"))
			if err != nil {
				answered <- err.Error()
				return
			}
			_, text, err := read(f(r))
			answered <- fmt.Sprint(text, err)
		}()
		b := x.peer("b", func(_ int, w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "from b ") })
		x.claims(b.Node)
		if text := <-answered; text != "from b <nil>" {
			t.Errorf("the call that waited got %q", text)
		}
	})
	t.Run("sends a command to the primary", func(t *testing.T) {
		b := x.peer("b0", func(_ int, w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.URL.Path) })
		x.claims(b.Node)
		local := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, "here "+r.URL.Path) })
		for path, want := range map[string]string{"/app.create": pathControl + "/app.create", "/backup": "here /backup", "/status": "here /status"} {
			w := httptest.NewRecorder()
			x.Control(local).ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "POST", path, strings.NewReader("{}")))
			if got := w.Body.String(); w.Code != http.StatusOK || got != want {
				t.Errorf("command %s: %d %q, want %q", path, w.Code, got, want)
			}
		}
		if got := b.got(); !slices.Equal(got, []string{"{}"}) {
			t.Errorf("the primary got %q", got)
		}
	})

	refuses := func(w http.ResponseWriter, header string) {
		if header != "" {
			w.Header().Set(api.HeaderApplied, header)
		}
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	t.Run("repeats a call that wrote nothing", func(t *testing.T) {
		b := x.peer("b1", func(n int, w http.ResponseWriter, _ *http.Request) {
			if n < 3 {
				refuses(w, "0")
				return
			}
			_, _ = io.WriteString(w, "ok")
		})
		x.claims(b.Node)
		if status, text, err := x.call("POST", "body"); status != http.StatusOK || text != "ok" || err != nil {
			t.Errorf("POST = %d %s, %v", status, text, err)
		}
		if got := b.got(); len(got) != 3 || got[0] != "body" || got[2] != "body" {
			t.Errorf("the node got %q", got)
		}
	})
	t.Run("does not repeat an answer that may have written", func(t *testing.T) {
		b := x.peer("b2", func(_ int, w http.ResponseWriter, _ *http.Request) { refuses(w, "") })
		x.claims(b.Node)
		if status, _, err := x.call("POST", "body"); status != http.StatusServiceUnavailable || err != nil || len(b.got()) != 1 {
			t.Errorf("POST = %d, %v, sent %d times", status, err, len(b.got()))
		}
	})
	t.Run("does not repeat a call with a body that it does not have any more", func(t *testing.T) {
		b := x.peer("b3", func(_ int, w http.ResponseWriter, _ *http.Request) { refuses(w, "0") })
		x.claims(b.Node)
		r, err := http.NewRequestWithContext(t.Context(), "POST", "http://client/v2/inputs", io.MultiReader(strings.NewReader("body")))
		if err != nil {
			t.Fatal(err)
		}
		if status, _, err := x.do(r); status != http.StatusServiceUnavailable || err != nil || len(b.got()) != 1 {
			t.Errorf("POST = %d, %v, sent %d times", status, err, len(b.got()))
		}
	})
	t.Run("does not repeat a write without an answer", func(t *testing.T) {
		for _, key := range []string{"", "Idempotency-Key", "X-Idempotency-Key"} {
			b := x.peer("b4"+key, func(n int, w http.ResponseWriter, _ *http.Request) {
				if n > 1 {
					hangUp(w)
				}
			})
			x.claims(b.Node)
			if status, _, err := x.call("POST", "first"); status != http.StatusOK || err != nil {
				t.Fatal(status, err)
			}
			for _, body := range []string{"second", ""} { // by the open connection, and by a new one
				before := len(b.got())
				r, err := http.NewRequestWithContext(t.Context(), "POST", "http://client/v2/inputs", bytes.NewReader([]byte(body)))
				if err != nil {
					t.Fatal(err)
				}
				if key != "" {
					r.Header.Set(key, "1")
				}
				status, _, err := x.do(r)
				if err == nil || !strings.Contains(err.Error(), mayHave) || len(b.got()) != before+1 {
					t.Errorf("POST with %q = %d, %v, sent %d times", key, status, err, len(b.got())-before)
				}
			}
		}
	})
	t.Run("repeats a read without an answer", func(t *testing.T) {
		b := x.peer("b5", func(n int, w http.ResponseWriter, _ *http.Request) {
			if n < 3 {
				hangUp(w)
			}
		})
		x.claims(b.Node)
		if status, _, err := x.call("GET", ""); status != http.StatusOK || err != nil || len(b.got()) != 3 {
			t.Errorf("GET = %d, %v, sent %d times", status, err, len(b.got()))
		}
	})

	// newCall forwards a call in the background.
	type result struct {
		status int
		text   string
		err    error
	}
	newCall := func(method, body string) <-chan result {
		done := make(chan result, 1)
		go func() {
			status, text, err := x.call(method, body)
			done <- result{status, text, err}
		}()
		return done
	}
	t.Run("sends a call to the next primary if it cannot reach this one", func(t *testing.T) {
		x.claims(identity.Node{ID: "dead", Address: clustertest.Addresses(t, 1)[0]})
		done := newCall("POST", "body")
		c := x.peer("c1", func(_ int, w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "c") })
		x.claims(c.Node)
		if r := <-done; r.text != "c" || r.err != nil || len(c.got()) != 1 {
			t.Errorf("POST = %+v, %q", r, c.got())
		}
	})
	t.Run("ends calls to a primary that hangs", func(t *testing.T) {
		hangs := x.peer("hangs", func(_ int, _ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
		x.claims(hangs.Node)
		write, read := newCall("POST", "body"), newCall("GET", "")
		clustertest.Until(t, "both calls at the node", func() bool { return len(hangs.got()) == 2 })
		c := x.peer("c2", func(_ int, w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.Method) })
		x.claims(c.Node)
		if r := <-write; r.err == nil || !strings.Contains(r.err.Error(), mayHave) {
			t.Errorf("POST = %+v", r)
		}
		if r := <-read; r.text != "GET" || r.err != nil || len(c.got()) != 1 {
			t.Errorf("GET = %+v, %q", r, c.got())
		}
	})
	t.Run("answers here if this node leads", func(t *testing.T) {
		x.mu.Lock()
		x.claim = true
		x.mu.Unlock()
		clustertest.Until(t, "this node leads", func() bool { return x.confirm(t.Context()) == nil })
		if f, err := x.Forward(t.Context(), &api.Request{Method: "POST", Path: "/v2/inputs"}); f != nil || err != nil {
			t.Errorf("Forward = %v, %v", f != nil, err)
		}
		if err := x.Leads(t.Context(), &api.Request{Method: "POST", Path: "/v2/inputs"}); err != nil {
			t.Errorf("Leads = %v", err)
		}
		x.mu.Lock()
		x.claim = false
		x.mu.Unlock()
		b := x.peer("b6", func(int, http.ResponseWriter, *http.Request) {})
		x.claims(b.Node)
		if f, err := x.Forward(t.Context(), &api.Request{Method: "POST", Path: "/v2/inputs"}); f == nil || err != nil {
			t.Errorf("Forward = %v, %v", f != nil, err)
		}
		if err := x.Leads(t.Context(), &api.Request{Method: "POST", Path: "/v2/inputs"}); err == nil {
			t.Error("a node that follows answers a forwarded call")
		}
	})
}

// TestCallsGoToRecordedLeader: a node that is not open sends calls to the node that leads by its record.
func TestCallsGoToRecordedLeader(t *testing.T) {
	c, b := fakeCluster(t, http.NotFoundHandler())
	if p, _ := c.place(t.Context()); p != (place{}) {
		t.Errorf("place = %+v", p)
	}
	c.known.take(record{ID: "a", Address: c.file.Node.Address, State: leading}, 1)
	c.known.take(record{ID: b.ID, Address: b.Address, State: leading}, 2)
	if p, _ := c.place(t.Context()); p != (place{node: b, claim: 2}) {
		t.Errorf("place = %+v", p)
	}
}
