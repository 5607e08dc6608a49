package main_test

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	stdlog "log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/sync/wire"
)

// link is a network connection from a replica to its origin, which a test can cut.
type link struct {
	base string

	mu    sync.Mutex
	cut   bool
	conns map[net.Conn]bool
}

// newLink returns a link to the server at address to.
func newLink(t testing.TB, to string) *link {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	x := &link{base: "http://" + l.Addr().String(), conns: map[net.Conn]bool{}}
	var all sync.WaitGroup
	all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() { x.carry(c, to) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		x.set(true)
		all.Wait()
	})
	return x
}

// carry copies the bytes between both connections until either closes.
func (x *link) carry(conn net.Conn, to string) {
	defer conn.Close()
	origin, err := net.Dial("tcp", to)
	if err != nil {
		return
	}
	defer origin.Close()
	if !x.hold(conn, origin) {
		return
	}
	done := make(chan struct{}, 2)
	for _, way := range [][2]net.Conn{{conn, origin}, {origin, conn}} {
		go func() {
			_, _ = io.Copy(way[0], way[1])
			done <- struct{}{}
		}()
	}
	<-done
	_, _ = conn.Close(), origin.Close()
	<-done
	x.drop(conn, origin)
}

// hold registers connections, so that set can close them, and reports whether the link is usable. If it returns false, the link is cut.
func (x *link) hold(conns ...net.Conn) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, c := range conns {
		x.conns[c] = true
	}
	return !x.cut
}

// set cuts the link, or repairs it.
func (x *link) set(cut bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.cut = cut; !cut {
		return
	}
	for c := range x.conns {
		_ = c.Close()
	}
}

// cuts reports whether the link is cut.
func (x *link) cuts() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.cut
}

// newGate returns a link that proxies to a server. Only requests below /v2 and /hosted can be cut, so that a page that opens without them
// still has the runtime.
func newGate(t testing.TB, to string) *link {
	t.Helper()
	x := &link{conns: map[net.Conn]bool{}}
	on := &httputil.ReverseProxy{
		FlushInterval: -1, ErrorLog: stdlog.New(io.Discard, "", 0),
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(&url.URL{Scheme: "http", Host: to})
			r.Out.Host, r.Out.URL.RawQuery = r.In.Host, r.In.URL.RawQuery
		},
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasPrefix(r.URL.Path, "/v2/") && !strings.HasPrefix(r.URL.Path, "/hosted/") {
			on.ServeHTTP(w, r)
			return
		}
		ctx, cancel := context.WithCancel(r.Context())
		defer cancel()
		end := &cancelConn{cancel: cancel}
		if !x.hold(end) {
			panic(http.ErrAbortHandler)
		}
		defer x.drop(end)
		on.ServeHTTP(w, r.WithContext(ctx))
	}))
	s.Config.ErrorLog = stdlog.New(io.Discard, "", 0)
	t.Cleanup(func() {
		x.set(true)
		s.CloseClientConnections()
		s.Close()
	})
	x.base = s.URL
	return x
}

// cancelConn wraps a request as a connection: Close cancels the request.
type cancelConn struct {
	net.Conn
	cancel context.CancelFunc
}

func (e *cancelConn) Close() error {
	e.cancel()
	return nil
}

// drop removes closed connections from the link.
func (x *link) drop(conns ...net.Conn) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, c := range conns {
		delete(x.conns, c)
	}
}

// screen is the display of a replica. It shows the confirmed operations.
type screen struct {
	name string
	link *link
	ask  func(method, path string, body any) (int, http.Header, object, error)

	issued []log.Dot // its operations that answers have named
}

// must sends a request, requires status 200, and records the operations that the request created.
func (x *screen) must(t testing.TB, method, path string, body any) object {
	t.Helper()
	status, h, out, err := x.ask(method, path, body)
	if err != nil || status != 200 {
		t.Fatalf("%s: %s %s = %d, %v, %.600v", x.name, method, path, status, err, out)
	}
	x.note(t, h)
	return out
}

// note records the operations that an answer lists in its header.
func (x *screen) note(t testing.TB, h http.Header) {
	t.Helper()
	durability, ops := h.Get("X-Sightline-Durability"), h.Get("X-Sightline-Operations")
	if durability == "" {
		return
	}
	if x.link == nil {
		if durability != "origin" || ops != "" {
			t.Errorf("the origin says that a write is durable at %q, operations %q", durability, ops)
		}
		return
	}
	writer, span, _ := strings.Cut(ops, ":")
	w, ok := log.ParseWriter(writer)
	var first, last uint64
	if _, err := fmt.Sscanf(span, "%d-%d", &first, &last); err != nil || !ok || durability != "local" || last < first || slices.Contains(x.issued, log.Dot{Writer: w, Seq: first}) {
		t.Errorf("%s says that a write is durable at %q, operations %q after %v", x.name, durability, ops, x.issued)
	}
	for seq := first; seq <= last; seq++ {
		x.issued = append(x.issued, log.Dot{Writer: w, Seq: seq})
	}
}

// claim is the sync status that a screen shows at one moment.
type claim struct {
	name      string
	confirmed []log.Dot // operations that had been created, and are not in the outbox
	outbox    []log.Dot // operations in the outbox
	pending   uint64    // displayed number of pending operations
}

// look reads a replica's outbox and sync status. It returns false if the replica does not answer.
func (x *screen) look() (c claim, ok bool) {
	c = claim{name: x.name}
	status, _, out, err := x.ask("GET", "/v2/sync/outbox?per_page=1000", nil)
	if err != nil || status != 200 {
		return c, false
	}
	var box struct {
		Operations []struct {
			Writer string
			Seq    uint64
			State  string
		}
	}
	if !convert(out, &box) {
		return c, false
	}
	for _, op := range box.Operations {
		w, ok := log.ParseWriter(op.Writer)
		if !ok || op.State != "queued" && op.State != "sent" {
			return c, false
		}
		c.outbox = append(c.outbox, log.Dot{Writer: w, Seq: op.Seq})
	}
	for _, dot := range x.issued {
		if !slices.Contains(c.outbox, dot) {
			c.confirmed = append(c.confirmed, dot)
		}
	}
	status, _, out, err = x.ask("GET", "/v2/sync/status", nil)
	var syncStatus struct{ Copy struct{ Queued, Sent uint64 } }
	if err != nil || status != 200 || !convert(out, &syncStatus) {
		return c, false
	}
	c.pending = syncStatus.Copy.Queued + syncStatus.Copy.Sent
	return c, true
}

// convert decodes an answer into to, and reports whether that succeeded.
func convert(from object, to any) bool {
	text, err := json.Marshal(from)
	return err == nil && json.Unmarshal(text, to) == nil
}

// witness compares what the screens show with the origin's log.
type witness struct {
	t       testing.TB
	app     string
	key     string
	origin  func() string // returns the origin's URL
	screens []*screen

	claims           []claim // claims not yet compared with the log, because the origin was offline
	checked, waiting int
}

// look reads the sync status of every screen, and then compares it with the log. An operation that the log lacks now was not in it earlier.
func (w *witness) look() {
	w.t.Helper()
	for _, x := range w.screens {
		if c, ok := x.look(); ok {
			w.claims = append(w.claims, c)
		}
	}
	w.settle()
}

// settle compares the claims with the origin's log, and reports whether the origin answered.
func (w *witness) settle() bool {
	w.t.Helper()
	has, ok := w.log()
	if !ok {
		return false
	}
	for _, c := range w.claims {
		missing := uint64(0)
		for _, dot := range c.confirmed {
			if !has[dot] {
				w.t.Fatalf("%s said that operation %v was confirmed (%+v), and the origin does not have it", c.name, dot, c)
			}
		}
		for _, dot := range c.outbox {
			if !has[dot] {
				missing++
			}
		}
		if c.pending < missing {
			w.t.Fatalf("%s said that %d operations wait (%+v), and the origin lacks %d", c.name, c.pending, c, missing)
		}
		if w.checked++; missing > 0 {
			w.waiting++
		}
	}
	w.claims = w.claims[:0]
	return true
}

// log returns the operations of the origin's log. It returns false if the origin does not answer.
func (w *witness) log() (map[log.Dot]bool, bool) {
	w.t.Helper()
	body, ok := w.get("/v2/sync/changes?since=0&live=0&app=" + w.app)
	if !ok {
		return nil, false
	}
	var in wire.Reader
	_, _ = in.Write(body)
	has := map[log.Dot]bool{}
	for {
		f, more, err := in.Next()
		if err != nil {
			w.t.Fatal(err)
		}
		if !more {
			return has, true
		}
		if f.Type != wire.TypeEntries {
			continue
		}
		m, err := wire.DecodeEntriesFrame(f.Body)
		if err != nil {
			w.t.Fatal(err)
		}
		entries, err := log.DecodeRows(m.Rows, m.From)
		if err != nil {
			w.t.Fatal(err)
		}
		for i := range entries {
			has[entries[i].Op.Dot] = true
		}
	}
}

// digest returns the last entry of the origin's log, and the digest of the state in hexadecimal digits.
func (w *witness) digest() (seq uint64, digest string) {
	w.t.Helper()
	var body []byte
	until(w.t, "the origin answers with a digest", func() (ok bool) { // it refuses more than two states a minute after the first 120
		body, ok = w.get("/v2/sync/digest?app=" + w.app)
		return ok
	})
	m, err := wire.DecodeDigest(body)
	if err != nil {
		w.t.Fatal(err)
	}
	return m.Seq, hex.EncodeToString(m.Digest[:])
}

// get sends a GET request of the sync protocol to the origin.
func (w *witness) get(path string) ([]byte, bool) {
	w.t.Helper()
	req, err := http.NewRequestWithContext(w.t.Context(), "GET", w.origin()+path, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Key "+w.key)
	req.Header.Set("Accept", wire.ContentType)
	req.Header.Set("Sync-Protocol", "2")
	res, err := asking.Do(req)
	if err != nil {
		return nil, false
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	return body, err == nil && res.StatusCode == 200
}

// holds returns the inputs that this screen's application lists, in its order, without their pictures' URLs.
func (x *screen) holds() string {
	status, _, out, err := x.ask("GET", "/v2/inputs?per_page=100", nil)
	if err != nil || status != 200 {
		return fmt.Sprintf("%s: %d, %v", x.name, status, err)
	}
	list, _ := out["inputs"].([]any)
	var b strings.Builder
	for _, in := range list {
		if data, ok := in.(object)["data"].(object); ok {
			delete(data, "image")
		}
		text, err := json.Marshal(in)
		if err != nil {
			return err.Error()
		}
		b.Write(text)
		b.WriteByte('\n')
	}
	return b.String()
}
