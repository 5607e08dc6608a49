package cluster

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/origin/server/cluster/channel"
	"github.com/sightline-dev/sightline/origin/server/cluster/identity"
	"github.com/sightline-dev/sightline/origin/server/httpd"
	"github.com/sightline-dev/sightline/origin/server/system"
)

// Times of forwarding.
const (
	patience   = 10 * time.Second       // for which a call waits for a primary
	soon       = 20 * time.Millisecond  // for which a call waits without an eye on its client
	again      = 50 * time.Millisecond  // until a call is sent to the same node again
	farewell   = 250 * time.Millisecond // for which a node that no longer leads can answer its last calls
	dialTime   = 2 * time.Second        // to connect to another node
	idleTime   = 30 * time.Second       // for which an unused connection stays open
	expectTime = time.Second            // for which a large body waits until the other node wants it
	noPrimary  = "no node of the cluster can answer at present: try again"
	mayHave    = "the node that answered has ended, or another one has taken over: the write may have happened"
	notSent    = "the node that answers could not be reached, and the call was not sent: try again"
)

// place is the node that answers a call.
type place struct {
	here  bool
	node  identity.Node
	claim int64
}

// find returns where a call is answered. It waits for a primary until ctx ends. but is a claim whose node has refused the call or could not be
// reached, which is tried again only after a while.
func (c *Cluster) find(ctx context.Context, but int64) (place, error) {
	for {
		p, changed := c.place(ctx)
		if p.here || p.claim != 0 && p.claim != but {
			return p, nil
		}
		wait, stop := context.WithTimeout(ctx, again)
		select {
		case <-changed:
		case <-wait.Done():
		}
		stop()
		if err := ctx.Err(); err != nil {
			return place{}, err
		}
		but = 0
	}
}

// place returns where calls are answered now; the zero place: nowhere. changed is closed when that may change.
func (c *Cluster) place(ctx context.Context) (p place, changed <-chan struct{}) {
	d := c.driving()
	if d == nil {
		return c.primaryOfRecords(), nil
	}
	term, newest, changed := d.Serving()
	if term != 0 && c.confirm(ctx) == nil {
		return place{here: true}, changed
	}
	if newest.Revision == 0 || newest.Self == c.self {
		return place{}, changed
	}
	node, ok := c.known.node(nodeOf(newest))
	if !ok {
		return place{}, changed
	}
	return place{node: node, claim: newest.Revision}, changed
}

// primaryOfRecords returns the place that the records of the nodes name, for a node that is not open.
func (c *Cluster) primaryOfRecords() place {
	for _, k := range c.known.list() {
		if k.State == leading && k.ID != c.file.Node.ID {
			return place{node: identity.Node{ID: k.ID, Address: k.Address}, claim: k.revision}
		}
	}
	return place{}
}

// Forward implements [server.Cluster].
func (c *Cluster) Forward(ctx context.Context, r *api.Request) (httpd.Forwarder, error) {
	at := place{}
	short, stop := context.WithTimeout(ctx, soon)
	p, _ := c.place(short)
	stop()
	if at = p; !at.here && at.claim == 0 {
		watched, unwatch := r.Watch(ctx)
		defer unwatch()
		long, stop := context.WithTimeout(watched, patience)
		defer stop()
		var err error
		if at, err = c.find(long, 0); err != nil {
			return nil, httpd.Unavailable(noPrimary)
		}
	}
	if at.here {
		return nil, nil
	}
	reads := api.Reads(r.Method, r.Path)
	return func(x *http.Request) (*http.Response, error) { return c.forward(x, at, reads) }, nil
}

// Leads implements [server.Cluster].
func (c *Cluster) Leads(ctx context.Context, r *api.Request) error {
	if c.confirm(ctx) == nil {
		return nil
	}
	if d := c.driving(); d != nil {
		if _, newest, _ := d.Serving(); newest.Self == c.self { // this node begins to lead
			watched, unwatch := r.Watch(ctx)
			defer unwatch()
			long, stop := context.WithTimeout(watched, patience)
			defer stop()
			if p, err := c.find(long, newest.Revision); err == nil && p.here {
				return nil
			}
		}
	}
	return httpd.Unavailable(noPrimary)
}

// forward sends a call to another node. If that node ends, or no longer leads, forward sends a call that has changed nothing to the next one.
func (c *Cluster) forward(r *http.Request, at place, reads bool) (*http.Response, error) {
	ctx, stop := context.WithTimeout(r.Context(), patience)
	defer stop()
	for {
		res, sent, err := c.send(r, at)
		repeats := r.Body == nil || r.Body == http.NoBody || r.GetBody != nil
		switch {
		case err == nil && (res.StatusCode != http.StatusServiceUnavailable || res.Header.Get(api.HeaderApplied) != "0" || !repeats):
			return res, nil
		case err == nil:
			_ = res.Body.Close()
		case r.Context().Err() != nil:
			return nil, err
		case sent && !reads:
			return nil, httpd.Unavailable(mayHave)
		case !repeats:
			return nil, httpd.Unavailable(notSent)
		}
		if r.GetBody != nil {
			if r.Body, err = r.GetBody(); err != nil {
				return nil, err
			}
		}
		if at, err = c.find(ctx, at.claim); err != nil {
			return nil, httpd.Unavailable(noPrimary)
		}
		if at.here {
			at.node = c.file.Node
		}
	}
}

// send sends a call to a node. When another node claims, send ends the call, also one that hangs. sent reports whether the node may have got it.
func (c *Cluster) send(r *http.Request, at place) (res *http.Response, sent bool, err error) {
	ctx, cancel := context.WithCancel(r.Context())
	ended := make(chan struct{})
	go func() {
		c.awaitClaim(ctx, at.claim)
		system.Pause(ctx, farewell)
		cancel()
		close(ended)
	}()
	x := r.Clone(ctx)
	x.URL.Scheme, x.URL.Host = "http", at.node.Address.String()
	for _, h := range []string{"Idempotency-Key", "X-Idempotency-Key"} { // with them net/http would send a write twice
		x.Header.Del(h)
	}
	res, err = c.calls.RoundTrip(x)
	if err != nil {
		cancel()
		<-ended
		var dial *dialError
		return nil, !errors.As(err, &dial), err
	}
	if rw, ok := res.Body.(io.ReadWriteCloser); ok {
		res.Body = &tunnel{rw, cancel}
	} else {
		res.Body = &answer{res.Body, cancel}
	}
	return res, true, nil
}

// awaitClaim returns when another claim than the given one is the newest, or ctx ends.
func (c *Cluster) awaitClaim(ctx context.Context, claim int64) {
	for ctx.Err() == nil {
		d := c.driving()
		if d == nil {
			system.Pause(ctx, time.Second)
			continue
		}
		_, newest, changed := d.Serving()
		if newest.Revision > claim && claim != 0 {
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
		}
	}
}

// answer is a body whose end ends the call.
type answer struct {
	io.ReadCloser
	cancel context.CancelFunc
}

func (a *answer) Close() error {
	defer a.cancel()
	return a.ReadCloser.Close()
}

// tunnel is the body of an answer that switches protocols.
type tunnel struct {
	io.ReadWriteCloser
	cancel context.CancelFunc
}

func (t *tunnel) Close() error {
	defer t.cancel()
	return t.ReadWriteCloser.Close()
}

// dialError is the failure to connect to another node, which got nothing.
type dialError struct{ error }

func (d *dialError) Unwrap() error { return d.error }

// transport returns the transport to the node ports of other nodes, for a protocol of the port.
func (c *Cluster) transport(protocol string) *http.Transport {
	return &http.Transport{
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := c.dial(ctx, address, protocol)
			if err != nil {
				return nil, &dialError{err}
			}
			return conn, nil
		},
		DisableCompression: true, MaxIdleConnsPerHost: 64, IdleConnTimeout: idleTime, ExpectContinueTimeout: expectTime,
	}
}

// dial connects to the node port of another node.
func (c *Cluster) dial(ctx context.Context, address, protocol string) (net.Conn, error) {
	ctx, stop := context.WithTimeout(ctx, dialTime)
	defer stop()
	at, err := identity.ParseAddress(address)
	if err != nil {
		return nil, err
	}
	return dialTLS(ctx, at, c.credentials.ClientTLS(identity.Node{Address: at}, protocol))
}

func dialTLS(ctx context.Context, at identity.Address, o *tls.Config) (net.Conn, error) {
	raw, err := system.Dial(ctx, "tcp", at.String(), nil)
	if err != nil {
		return nil, err
	}
	conn := tls.Client(raw, o)
	if err := conn.HandshakeContext(ctx); err != nil {
		return nil, errors.Join(err, raw.Close())
	}
	return conn, nil
}

// newest returns the newest claim that this node knows.
func (c *Cluster) newest() channel.Claim {
	if d := c.driving(); d != nil {
		_, newest, _ := d.Serving()
		return newest
	}
	return channel.Claim{}
}
