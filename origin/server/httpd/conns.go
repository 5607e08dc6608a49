package httpd

import (
	"container/list"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/sightline-dev/sightline/origin/server/system"
)

// gate is the listener of a server. It limits the number of connections, for each client and in total. If there are too many in total, it
// closes the connection that has kept the server waiting longest. So a flood of silent or slow connections only loses its own connections,
// and a client that sends a request gets through.
//
//	accept ──▶ silent ──▶ arriving ──▶ serving ──▶ writing ──▶ silent …
//	           └──── in waiting ────┘              └─── in waiting ──┘
//	                                                  too many: oldest closed
type gate struct {
	net.Listener
	maxOpen, maxPerIP int         // maximum number of open connections, in total and per client; maxPerIP 0: no limit
	secure            *tls.Config // nil: plain HTTP
	nodes             bool        // the clients are other nodes of the cluster
	now               func() time.Time
	metrics           *metrics
	log               *slog.Logger

	mu      sync.Mutex
	open    int
	perIP   map[string]int // number of open connections by network
	waiting *list.List     // of *conn; the longest waiting connection is first
}

// newGate returns a gate without a listener, which Serve sets.
func newGate(o *Options, m *metrics) *gate {
	g := &gate{
		maxOpen: o.MaxConns, maxPerIP: o.MaxConnsPerIP, now: o.Now, metrics: m, log: o.Log,
		perIP: map[string]int{}, waiting: list.New(),
	}
	if o.TLS != nil {
		g.secure = hardenTLS(o.TLS, o.Now)
	}
	return g
}

// newNodeGate returns a gate for the connections of other nodes, likewise without a listener. The requests of all their clients share these
// connections.
func newNodeGate(o *Options, m *metrics) *gate {
	g := newGate(o, m)
	g.nodes, g.secure, g.maxPerIP, g.maxOpen = true, nil, 0, nodeConns*o.MaxConns
	return g
}

// nodeConns is the maximum number of open connections of other nodes, for each connection that one node accepts from clients.
const nodeConns = 4

// conn is one connection of a gate.
type conn struct {
	net.Conn           // raw, or TLS over it
	raw       net.Conn // the socket
	gate      *gate
	client    string       // the client's network, for perIP
	drain     bool         // keep reading after the last answer, so that the client receives it
	phase     atomic.Int32 // silent, arriving, serving or writing
	unserved  func()       // ends a call whose WebSocket has not begun; nil: none
	unapplied bool         // the current answer is that of a call that wrote nothing, because another node writes
	answer    *share       // memory of the current answer; nil: none
	ended     bool         // the client has stopped sending; used by the reading goroutine

	// Deadlines of the current answer; see Write.
	each   time.Duration // time for the client to take one chunk; 0: the library's deadlines apply
	grace  time.Duration // waiting time until the minimum rate applies; 0: it never does
	waited time.Duration // time that the server has waited for the client to take the answer
	sent   int64

	// Guarded by gate.mu.
	place  *list.Element // place in gate.waiting; nil while a request is served
	closed bool
}

// maxUnsent is the maximum number of bytes that the kernel holds for a client that does not read.
const maxUnsent = pieceBytes

// Phases of a connection.
const (
	silent   = iota // no byte of the next request has arrived
	arriving        // the request is arriving
	serving         // the handler is working
	writing         // the answer is being sent
)

// Accept waits for a connection within the limits, and closes connections beyond them.
func (g *gate) Accept() (net.Conn, error) {
	for {
		raw, err := g.Listener.Accept()
		if err != nil {
			return nil, err
		}
		c := &conn{Conn: raw, raw: raw, gate: g, client: network(address(raw.RemoteAddr().String()))}
		if secure, ok := raw.(interface{ NetConn() net.Conn }); ok {
			c.raw = secure.NetConn()
		}
		if g.secure != nil {
			c.Conn = &handshaking{Conn: tls.Server(raw, g.secure), raw: raw, gate: g}
		}
		if refused := g.admit(c); refused != nil {
			if g.secure == nil && c.raw == raw { // a TLS handshake would be the work that is refused
				_ = raw.SetWriteDeadline(g.now().Add(100 * time.Millisecond))
				_, _ = raw.Write(refused) // best effort: the connection is closed anyway
			}
			_ = raw.Close()
			continue
		}
		system.LimitUnsent(c.raw, maxUnsent)
		return c, nil
	}
}

// admit counts c. If the limits do not allow c, admit returns the answer that refuses it.
func (g *gate) admit(c *conn) (refused []byte) {
	g.mu.Lock()
	if g.maxPerIP > 0 && g.perIP[c.client] >= g.maxPerIP {
		g.mu.Unlock()
		g.metrics.refused.WithLabelValues("client").Inc()
		return overflowPerIP
	}
	var evicted *conn
	if g.open >= g.maxOpen {
		front := g.waiting.Front()
		if front == nil {
			g.mu.Unlock()
			g.metrics.refused.WithLabelValues("connections").Inc()
			return overflowTotal
		}
		evicted = front.Value.(*conn)
		g.forget(evicted)
	}
	g.open++
	g.perIP[c.client]++
	c.place = g.waiting.PushBack(c)
	g.mu.Unlock()
	if evicted != nil {
		g.metrics.evicted.Inc()
		_ = evicted.raw.Close() // a TLS close would first write an alert and wait for a client that does not read it
	}
	return nil
}

// forget removes c from all counts. The caller holds mu.
func (g *gate) forget(c *conn) {
	if c.closed {
		return
	}
	c.closed = true
	if c.place != nil {
		g.waiting.Remove(c.place)
		c.place = nil
	}
	g.open--
	if g.perIP[c.client]--; g.perIP[c.client] <= 0 {
		delete(g.perIP, c.client)
	}
}

// connections returns the number of open connections.
func (g *gate) connections() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.open
}

// closeSilent closes every connection on which no request has begun.
func (g *gate) closeSilent() {
	g.mu.Lock()
	var all []*conn
	for e := g.waiting.Front(); e != nil; {
		c := e.Value.(*conn)
		e = e.Next()
		if c.phase.Load() == silent {
			g.forget(c)
			all = append(all, c)
		}
	}
	g.mu.Unlock()
	for _, c := range all {
		_ = c.raw.Close()
	}
}

// enter moves c to a phase. While its request is served, the gate never closes c in favour of others. In the other phases c waits for its
// client and moves towards the front of the waiting list.
func (c *conn) enter(phase int32) {
	c.phase.Store(phase)
	c.gate.mu.Lock()
	defer c.gate.mu.Unlock()
	if c.place != nil {
		c.gate.waiting.Remove(c.place)
		c.place = nil
	}
	if phase != serving && !c.closed {
		c.place = c.gate.waiting.PushBack(c)
	}
}

// Read moves the connection to the phase arriving at the first byte of a request.
func (c *conn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n > 0 {
		c.phase.CompareAndSwap(silent, arriving)
	}
	if errors.Is(err, io.EOF) {
		if n > 0 {
			return n, nil // TLS returns both at once; the next Read returns the end
		}
		c.ended = true
	}
	return n, err
}

// pieceBytes is the number of bytes of an answer that share a deadline.
const pieceBytes = 64 << 10

// pace sets the time limits of an answer. late is the stream that writes the answer, or nil. Another node gets more time, because it waits
// for its client with the usual limits.
func (c *conn) pace(late *stream) {
	c.each, c.grace, c.waited, c.sent = stallTimeout, writeTimeout, 0, 0
	if c.gate.nodes {
		c.each, c.grace = 2*c.each, 2*c.grace
	}
	if late != nil && late.live {
		c.grace = 0 // most of the time there is nothing to send
	}
}

// Write writes an answer in chunks. The client must take each chunk within c.each and, after c.grace, all of them at the minimum rate. A
// rate alone is not enough: the network's buffers take megabytes, so it would take minutes to notice that a client reads nothing. Only the
// time in which the server waits for the client counts, so a client never pays for a slow disk or a long computation.
func (c *conn) Write(p []byte) (n int, err error) {
	for {
		piece := p[n:min(n+pieceBytes, len(p))]
		began := c.gate.now()
		if err := c.schedule(began); err != nil {
			return n, err
		}
		m, err := c.Conn.Write(piece)
		n += m
		c.sent += int64(m)
		c.waited += c.gate.now().Sub(began)
		if err != nil || n == len(p) {
			return n, err
		}
		c.enter(writing) // move to the back of the waiting list, since the client reads
	}
}

// schedule sets the deadline of the next chunk, which begins now.
func (c *conn) schedule(now time.Time) error {
	if c.each == 0 {
		return nil
	}
	allowed := c.each
	if c.grace > 0 {
		allowed = min(allowed, c.grace+time.Duration(float64(c.sent)/minRate*float64(time.Second))-c.waited)
	}
	return c.Conn.SetWriteDeadline(now.Add(allowed))
}

// onState handles a state change from the library. It releases the memory of an answer that has been written.
func onState(c net.Conn, state fasthttp.ConnState) {
	wrapper := c.(*conn)
	if wrapper.answer != nil && (state == fasthttp.StateIdle || state == fasthttp.StateClosed) {
		wrapper.answer.Settle(0)
		wrapper.answer = nil
	}
	switch {
	case state == fasthttp.StateIdle:
		wrapper.enter(silent)
	case state == fasthttp.StateClosed && wrapper.unserved != nil:
		wrapper.unserved()
	}
}

const (
	lingerBytes = 1 << 20
	lingerTime  = time.Second
)

// Close closes the connection. After refusing a request before its body has arrived, it first sends the answer and reads for a while.
func (c *conn) Close() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok && c.drain && half.CloseWrite() == nil {
		linger(c.Conn, c.gate.now())
	}
	c.gate.mu.Lock()
	c.gate.forget(c)
	c.gate.mu.Unlock()
	return c.Conn.Close()
}

// connOf returns the gate's connection of a request.
func connOf(ctx *fasthttp.RequestCtx) *conn { return ctx.Conn().(*conn) }

// linger closes the connection after the answer, and keeps reading for a while.
func (s *Server) linger(ctx *fasthttp.RequestCtx) {
	ctx.SetConnectionClose()
	connOf(ctx).drain = true
}
