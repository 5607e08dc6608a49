package cluster

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/origin/server/cluster/identity"
	"github.com/sightline-dev/sightline/origin/server/system"
)

// Protocols of the node port, which a client names in the handshake.
const (
	callProtocol  = "sightline-call"  // forwarded calls, for the server of the API
	orderProtocol = "sightline-order" // the paths of this package
)

// port is the node port.
type port struct {
	listener net.Listener
	calls    atomic.Pointer[handed]
	orders   *handed
	http     http.Server
	loops    sync.WaitGroup
	end      context.CancelFunc // ends the handshakes
}

// handed is a listener of connections that another listener has accepted.
type handed struct {
	address net.Addr
	conns   chan net.Conn
	closed  chan struct{}
	once    sync.Once
}

func newHanded(at net.Addr) *handed {
	return &handed{address: at, conns: make(chan net.Conn), closed: make(chan struct{})}
}

func (h *handed) Accept() (net.Conn, error) {
	select {
	case c := <-h.conns:
		return c, nil
	case <-h.closed:
		return nil, net.ErrClosed
	}
}

func (h *handed) Close() error {
	h.once.Do(func() { close(h.closed) })
	return nil
}

func (h *handed) Addr() net.Addr { return h.address }

// hand gives a connection to the listener's server.
func (h *handed) hand(c net.Conn) {
	select {
	case h.conns <- c:
	case <-h.closed:
		_ = c.Close()
	}
}

// handshakeTime is the time limit of a handshake.
const handshakeTime = 10 * time.Second

// listen opens the node port.
func (c *Cluster) listen(ctx context.Context) (*port, error) {
	l, err := system.Listen(ctx, c.file.Node.Address.String())
	if err != nil {
		return nil, fmt.Errorf("port for other nodes (--address): %w", err)
	}
	handshakes, end := context.WithCancel(context.WithoutCancel(ctx))
	p := &port{listener: l, orders: newHanded(l.Addr()), end: end}
	p.http = http.Server{
		Handler: c.orderHandler(), ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			return context.WithValue(ctx, nodeKey{}, c.(ordering).node)
		},
		ReadHeaderTimeout: handshakeTime, IdleTimeout: 2 * idleTime, ErrorLog: slog.NewLogLogger(c.o.Log.Handler(), slog.LevelDebug),
	}
	secure, orders := c.credentials.ServerTLS(callProtocol, orderProtocol), c.credentials.ServerTLS(orderProtocol)
	secure.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
		if p.calls.Load() == nil { // no server takes calls yet. The other node learns it from the handshake, before it sends one
			return orders, nil
		}
		return nil, nil
	}
	p.loops.Go(func() {
		for {
			raw, err := l.Accept()
			if err != nil {
				return
			}
			p.loops.Go(func() { p.admit(handshakes, tls.Server(raw, secure)) })
		}
	})
	p.loops.Go(func() { _ = p.http.Serve(p.orders) })
	return p, nil
}

// ordering is a connection for orders. net/http serves no *tls.Conn with a protocol that it does not know.
type ordering struct {
	net.Conn
	node string // ID of the other node; "": it has no certificate
}

// nodeKey is the key of the other node's ID in the context of an order.
type nodeKey struct{}

// admit gives a connection to the server of its protocol.
func (p *port) admit(ctx context.Context, c *tls.Conn) {
	ctx, stop := context.WithTimeout(ctx, handshakeTime)
	defer stop()
	if err := c.HandshakeContext(ctx); err != nil {
		_ = c.Close()
		return
	}
	state := c.ConnectionState()
	node, err := identity.PeerNode(&state)
	switch {
	case state.NegotiatedProtocol == orderProtocol:
		p.orders.hand(ordering{c, node}) // a node that joins has no certificate, so its ID is empty
	case state.NegotiatedProtocol == callProtocol && err == nil:
		if calls := p.calls.Load(); calls != nil {
			calls.hand(c)
			return
		}
		_ = c.Close()
	default:
		_ = c.Close()
	}
}

// newCalls returns a new listener of calls, and closes the one before.
func (p *port) newCalls() net.Listener {
	calls := newHanded(p.listener.Addr())
	if before := p.calls.Swap(calls); before != nil {
		_ = before.Close() // its server has ended
	}
	return calls
}

func (p *port) close() error {
	p.end()
	err := errors.Join(p.listener.Close(), p.orders.Close(), p.http.Close())
	if calls := p.calls.Swap(nil); calls != nil {
		err = errors.Join(err, calls.Close())
	}
	p.loops.Wait()
	return err
}

// Paths of orders.
const (
	pathJoin       = "/join"
	pathHello      = "/hello"
	pathCheckpoint = "/checkpoint"
	pathControl    = "/control"
)

// orderHandler returns the handler of orders: of other nodes, and of a machine that joins.
func (c *Cluster) orderHandler() http.Handler {
	nodes := http.NewServeMux()
	nodes.HandleFunc("POST "+pathHello, c.hello)
	nodes.HandleFunc("POST "+pathCheckpoint, c.makeCheckpoint)
	nodes.HandleFunc("GET "+pathCheckpoint+"/{id}/{name}", c.sendCheckpoint)
	nodes.HandleFunc("DELETE "+pathCheckpoint+"/{id}", c.dropCheckpoint)
	nodes.Handle(pathControl+"/", http.StripPrefix(pathControl, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if local := c.local.Load(); local != nil && c.confirm(r.Context()) == nil {
			(*local).ServeHTTP(w, r)
			return
		}
		w.Header().Set(api.HeaderApplied, "0")
		refuse(w, http.StatusServiceUnavailable, errors.New(noPrimary))
	})))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost && r.URL.Path == pathJoin {
			c.admitNode(w, r)
			return
		}
		if r.Context().Value(nodeKey{}) == "" {
			refuse(w, http.StatusForbidden, identity.ErrRole)
			return
		}
		nodes.ServeHTTP(w, r)
	})
}

// refuse answers with an error.
func refuse(w http.ResponseWriter, status int, err error) {
	w.WriteHeader(status)
	_, _ = io.WriteString(w, err.Error())
}

// reply answers with JSON.
func reply(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v) // a client that has gone reads no error either
}

// maxOrder is the maximum number of bytes of an order's body and of an answer in JSON.
const maxOrder = 1 << 20

// order sends an order to another node, and reads its answer.
func (c *Cluster) order(ctx context.Context, n identity.Node, method, path string, in, out any) error {
	res, err := c.ask(ctx, n, method, path, in)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if out == nil {
		return nil
	}
	return json.NewDecoder(io.LimitReader(res.Body, 16*maxOrder)).Decode(out)
}

// ask sends an order to another node. The caller closes the body of the answer.
func (c *Cluster) ask(ctx context.Context, n identity.Node, method, path string, in any) (*http.Response, error) {
	return ask(ctx, &http.Client{Transport: c.orders}, "http://"+n.Address.String()+path, method, in)
}

func ask(ctx context.Context, client *http.Client, url, method string, in any) (*http.Response, error) {
	body, write := io.Pipe()
	go func() { _ = write.CloseWithError(json.NewEncoder(write).Encode(in)) }()
	r, err := http.NewRequestWithContext(ctx, method, url, body)
	if err != nil {
		return nil, err
	}
	res, err := client.Do(r)
	if err != nil {
		return nil, err
	}
	if res.StatusCode != http.StatusOK {
		text, err := io.ReadAll(io.LimitReader(res.Body, maxOrder))
		return nil, errors.Join(&refusal{res.StatusCode, string(text)}, err, res.Body.Close())
	}
	return res, nil
}

// refusal is the answer of a node that refuses an order.
type refusal struct {
	status int
	text   string
}

func (r *refusal) Error() string { return r.text }
