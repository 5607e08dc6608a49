package program

import (
	"context"
	"crypto/ed25519"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/origin/server"
	"github.com/sightline-dev/sightline/origin/server/httpd"
	"github.com/sightline-dev/sightline/origin/server/system"
	"github.com/sightline-dev/sightline/origin/server/token"
	"github.com/sightline-dev/sightline/sync/feed"
)

// liveTime is the maximum time of a call of the sync protocol. A stream ends earlier by itself.
const liveTime = 65 * time.Minute

var _ token.PeerKeys = native{}

// Signer implements [token.PeerKeys]: edges have keys that sign tokens. Tokens of a revoked edge are invalid.
func (n native) Signer(kid string) (token.Signer, bool) {
	edge, err := n.Register.Edge(kid)
	if err != nil || edge.Key == [32]byte{} {
		return token.Signer{}, false
	}
	return token.Signer{Public: ed25519.PublicKey(edge.Key[:]), Issuer: token.EdgeIssuer(kid), MayIssue: edge.Replicates}, true
}

// clusterKeys are the keys of the other nodes of the cluster, in addition to those of edges.
type clusterKeys struct{ native }

// Signer implements [token.PeerKeys]. The control log lists the keys of all nodes.
func (n clusterKeys) Signer(kid string) (token.Signer, bool) {
	if s, ok := n.native.Signer(kid); ok {
		return s, true
	}
	t, err := n.Register.Reader().Trust()
	if err != nil {
		return token.Signer{}, false
	}
	for i := range t.Keys {
		if k := &t.Keys[i]; k.ID == kid {
			return token.Signer{Public: k.Key[:], Issuer: t.Issuer, MayIssue: func(string) bool { return true }}, true
		}
	}
	return token.Signer{}, false
}

// Delegate implements [token.PeerKeys]. An origin has no delegated keys.
func (native) Delegate(string) (token.Delegate, bool) { return token.Delegate{}, false }

// feedHost is the part of a server that the change feed uses.
type feedHost struct {
	srv    *server.Server
	engine native
	others func(own []log.PublicKey) []log.PublicKey // publishes own keys of access tokens and returns those of other nodes; nil: there are none
}

// countCalls adds the calls that an edge answered to those of the account that owns the application. Applications of the operator have no
// limit. See [feed.Options].
func (h *feedHost) countCalls(app, edge string, count uint64) (over time.Time, err error) {
	a, err := h.engine.Register.App(app)
	if err != nil || a.Owner == "" {
		return over, err
	}
	return h.srv.Accounts.CountEdgeCalls(a.Owner, app, edge, count)
}

// pushRoute is the route under which usage counts the calls of pushes, in the form of the route table.
const pushRoute = "POST /sync/push"

// spend counts calls of the account that owns the application. See [feed.Options].
func (h *feedHost) spend(app, by string, n int64) (spent int64, err error) {
	a, err := h.engine.Register.App(app)
	if err != nil {
		return 0, err
	}
	return h.srv.Accounts.SpendSome(api.CountedCall{Account: a.Owner, App: app, By: by, Route: pushRoute}, n)
}

// storage returns the limit in bytes of the account that owns an application. See [feed.Options].
func (h *feedHost) storage(app string) (bytes int64, err error) {
	a, err := h.engine.Register.App(app)
	if err != nil {
		return 0, err
	}
	limits, err := h.srv.Accounts.StorageLimits(a.Owner)
	return limits.Bytes, err
}

// stable returns the last entry of an application's log that replicas need not keep for a restore. See [feed.Options].
func (h *feedHost) stable(app string, head uint64) uint64 {
	p, err := h.engine.Origin(app)
	if err != nil {
		return 0
	}
	seq, err := p.Stable(system.Now())
	if err != nil {
		return 0 // replicas keep more than they need
	}
	return min(seq, head)
}

// contact remembers the contact of a device. See [feed.Options].
func (h *feedHost) contact(app string, d api.Device) {
	if err := h.srv.Accounts.NoteContact(app, d); err != nil {
		h.srv.Log.Warn("cannot remember the contact of a device", "app", app, "error", err)
	}
}

// devices returns the edges of an application, by name, and then its pages and folders, the last contact first.
func devices(n *server.Node, app string) ([]api.Device, error) {
	known, err := n.Accounts.Devices(app)
	if err != nil {
		return nil, err
	}
	edges, err := n.Register.Edges()
	if err != nil {
		return nil, err
	}
	var all []api.Device
	for i := range edges {
		if e := &edges[i]; e.Replicates(app) {
			d := api.Device{ID: e.ID, Kind: "edge"}
			if at := slices.IndexFunc(known, func(d api.Device) bool { return d.ID == e.ID }); at >= 0 {
				d = known[at]
			}
			d.Name = e.Name
			all = append(all, d)
		}
	}
	slices.SortStableFunc(all, func(a, b api.Device) int { return strings.Compare(a.Name, b.Name) })
	return append(all, slices.DeleteFunc(known, func(d api.Device) bool { return d.Kind == "edge" })...), nil
}

// publishKeys stores the public keys of this server's access tokens in the control log, from which edges get them.
func (h *feedHost) publishKeys(ctx context.Context) error {
	keys, err := h.srv.Tokens.Public()
	if err != nil {
		return err
	}
	if h.others != nil {
		keys = append(keys, h.others(keys)...)
	}
	return h.engine.Register.PutTokenKeys(ctx, h.srv.Tokens.Issuer(), keys)
}

// feedInterval is the time between two steps of the feed, which release unused resources and notify replicas of new token keys.
const feedInterval = 5 * time.Second

// feeds returns the mounts of the sync protocol. Unlike those of the API, they count no calls and have no rate limit.
func feeds(srv *server.Server, others func(own []log.PublicKey) []log.PublicKey) ([]httpd.Mount, error) {
	engine := srv.Engine.(native) // as open returned it
	h := &feedHost{srv, engine, others}
	f, err := feed.New(feed.Options{
		Engine: engine, Register: engine.Register, Blobs: srv.Folder.Blobs, Pinner: srv.Hosted, Part: srv.Files.Part, Run: srv.Pool.Run,
		Clock: system.Now, Wait: system.Await, Log: srv.Log, Calls: h.countCalls, Spend: h.spend, Storage: h.storage, Stable: h.stable, Contact: h.contact,
	})
	if err != nil {
		return nil, err
	}
	srv.CloseWith(f)
	tend := func(ctx context.Context) {
		if engine.Register.Follows() {
			return // the node that leads does it
		}
		if err := errors.Join(f.Step(ctx), h.publishKeys(ctx)); err != nil && ctx.Err() == nil {
			srv.Log.Error("cannot maintain the change feed", "error", err)
		}
	}
	tend(context.Background()) // before the first token, which edges verify by the published key
	srv.OnLead(tend)           // before the first token of a new term
	srv.Begin(func(ctx context.Context) { system.Every(ctx, feedInterval, tend) })
	return append(copyCalls(srv), httpd.Mount{Prefix: feed.Prefix, Handler: f, Caller: f.Caller, Live: true, CallTimeout: liveTime}), nil
}

// copyCalls returns the mounts of the calls about replicas. They belong to the API although their paths are below the protocol's prefix.
// If an application is not a replica, the answers about its status and outbox state that.
func copyCalls(srv *server.Server) (mounts []httpd.Mount) {
	for _, call := range []string{"/status", "/outbox", "/devices", "/history", "/conflicts"} {
		mounts = append(mounts, httpd.Mount{Prefix: feed.Prefix + call, Handler: srv.Handler, Caller: srv.Handler.Caller})
	}
	return mounts
}
