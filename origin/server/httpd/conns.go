package httpd

import (
	"container/list"
	"crypto/tls"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"
)

// gate is the listener of a server. It bounds connections, for each client and in all, and
// when there are too many it closes the one that has kept us waiting longest: a flood of
// silent or dripping connections loses its own, and a client that sends a request gets in.
//
//	accept ──▶ silent ──▶ arriving ──▶ serving ──▶ writing ──▶ silent …
//	           └──── in waiting ────┘              └─── in waiting ──┘
//	                                                  too many: oldest closed
type gate struct {
	net.Listener
	most, mostPerIP int         // 0: no bound per client
	secure          *tls.Config // nil: plain HTTP
	now             func() time.Time
	metrics         *metrics
	log             *slog.Logger

	mu      sync.Mutex
	open    int
	perIP   map[string]int // by network
	waiting *list.List     // of *conn, the one that waits longest in front
}

// newGate makes a gate, which Serve gives its listener.
func newGate(o *Options, m *metrics) *gate {
	g := &gate{
		most: o.MaxConns, mostPerIP: o.MaxConnsPerIP, now: o.Now, metrics: m, log: o.Log,
		perIP: map[string]int{}, waiting: list.New(),
	}
	if o.TLS != nil {
		g.secure = hardenTLS(o.TLS, o.Now)
	}
	return g
}

// conn is one connection of a gate.
type conn struct {
	net.Conn // raw, or TLS on it
	raw      net.Conn
	gate     *gate
	client   string       // network that it counts for
	drain    bool         // read on after the last answer, so that the client gets it
	phase    atomic.Int32 // silent, arriving, serving or writing
	unserved func()       // ends a call whose WebSocket never began; nil: there is none
	answer   *share       // memory of the answer that is made or sent; nil: of none

	// Deadlines of the answer that is sent; see Write.
	each  time.Duration // for the client to take one piece; 0: the library's deadlines count
	grace time.Duration // until the client must have kept the least rate; 0: any rate
	began time.Time
	sent  int64

	// Guarded by gate.mu.
	place  *list.Element // in gate.waiting; nil while a request is served
	closed bool
}

// Phases of a connection.
const (
	silent   = iota // nothing of the next request has come
	arriving        // some of it has
	serving         // it is worked on
	writing         // its answer is on the way
)

// Accept waits for a connection that is within the bounds.
func (g *gate) Accept() (net.Conn, error) {
	for {
		raw, err := g.Listener.Accept()
		if err != nil {
			return nil, err
		}
		c := &conn{Conn: raw, raw: raw, gate: g, client: network(address(raw.RemoteAddr().String()))}
		if g.secure != nil {
			c.Conn = &handshaking{Conn: tls.Server(raw, g.secure), raw: raw, gate: g}
		}
		if refused := g.admit(c); refused != nil {
			if g.secure == nil { // a handshake would be the work that is refused
				_ = raw.SetWriteDeadline(g.now().Add(100 * time.Millisecond))
				_, _ = raw.Write(refused) // an error here reaches nobody
			}
			_ = raw.Close()
			continue
		}
		return c, nil
	}
}

// admit counts c in, and returns what to answer when it may not come in.
func (g *gate) admit(c *conn) (refused []byte) {
	g.mu.Lock()
	if g.mostPerIP > 0 && g.perIP[c.client] >= g.mostPerIP {
		g.mu.Unlock()
		g.metrics.refused.WithLabelValues("client").Inc()
		return overflowPerIP
	}
	var evicted *conn
	if g.open >= g.most {
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
		_ = evicted.raw.Close() // TLS would first write a farewell, and wait for who does not read it
	}
	return nil
}

// forget takes c out of all counts. The caller holds mu.
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

// closeSilent closes every connection that has nothing of a request under way.
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

// enter moves c to a phase. While its request is served it is never closed for others; in
// the other phases it waits for its client, the longer the more likely to be closed.
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

// Read notices the first byte of a request.
func (c *conn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n > 0 {
		c.phase.CompareAndSwap(silent, arriving)
	}
	return n, err
}

// pieceBytes is the number of bytes of an answer between two deadlines.
const pieceBytes = 64 << 10

// pace sets the deadlines of an answer. late writes it, if it is a stream.
func (c *conn) pace(late *stream) {
	c.each, c.grace, c.began, c.sent = stallTimeout, writeTimeout, c.gate.now(), 0
	if late != nil {
		c.each, c.grace = late.each, 0 // it takes the time that its handler takes
	}
}

// Write writes an answer in pieces. The client must take each in time and, after the grace, all of them at the least rate: the
// network's buffers take megabytes, so a rate alone would not notice for minutes that a client reads nothing.
func (c *conn) Write(p []byte) (n int, err error) {
	for {
		piece := p[n:min(n+pieceBytes, len(p))]
		if err := c.schedule(); err != nil {
			return n, err
		}
		m, err := c.Conn.Write(piece)
		n += m
		c.sent += int64(m)
		if err != nil || n == len(p) {
			return n, err
		}
		c.enter(writing) // a client that takes what it gets is not the one that waits longest
	}
}

// schedule sets the deadline of the next piece.
func (c *conn) schedule() error {
	if c.each == 0 {
		return nil
	}
	deadline := c.gate.now().Add(c.each)
	if c.grace > 0 {
		least := c.began.Add(c.grace + time.Duration(float64(c.sent)/minRate*float64(time.Second)))
		if least.Before(deadline) {
			deadline = least
		}
	}
	return c.Conn.SetWriteDeadline(deadline)
}

// onState hears from the library that an answer has been written.
func onState(c net.Conn, state fasthttp.ConnState) {
	mine := c.(*conn)
	if mine.answer != nil && (state == fasthttp.StateIdle || state == fasthttp.StateClosed) {
		mine.answer.settle(0)
		mine.answer = nil
	}
	switch {
	case state == fasthttp.StateIdle:
		mine.enter(silent)
	case state == fasthttp.StateClosed && mine.unserved != nil:
		mine.unserved()
	}
}

const (
	lingerBytes = 1 << 20
	lingerTime  = time.Second
)

// Close closes the connection. If a request was refused before its body had come, it first sends the answer and reads for a while.
func (c *conn) Close() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok && c.drain && half.CloseWrite() == nil {
		linger(c.Conn, c.gate.now())
	}
	c.gate.mu.Lock()
	c.gate.forget(c)
	c.gate.mu.Unlock()
	return c.Conn.Close()
}

// connOf is the gate's connection behind a request.
func connOf(ctx *fasthttp.RequestCtx) *conn { return ctx.Conn().(*conn) }

// linger closes the connection after the answer, reading on for a while.
func (s *Server) linger(ctx *fasthttp.RequestCtx) {
	ctx.SetConnectionClose()
	connOf(ctx).drain = true
}
