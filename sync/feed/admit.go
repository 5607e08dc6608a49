package feed

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/auth"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/partition"
	"github.com/sightline-dev/sightline/core/register"
	"github.com/sightline-dev/sightline/sync/wire"
)

// client is an authenticated caller and the application of its request.
type client struct {
	app       string         // application of the request, once the access was checked
	account   string         // account that owns the application, or the application itself if the operator owns it
	localOnly bool           // the application was local only when the access was checked
	edge      *catalog.Edge  // nil: the caller has a key or a token
	principal auth.Principal // principal of the key or the token
	until     time.Time      // end of the token; zero: no end
}

// holder names the credential of the caller.
func (w *client) holder() string {
	if w.edge != nil {
		return w.edge.Holder()
	}
	return w.principal.By
}

// user returns the caller in the form of the quota of new writers. It contains the application, so a caller's writers in one application do
// not count in another.
func (w *client) user() string {
	if w.edge != nil {
		return w.holder()
	}
	return w.principal.App + " " + w.holder()
}

// edgeID returns the edge's id; empty: the caller is not an edge.
func (w *client) edgeID() string {
	if w.edge != nil {
		return w.edge.ID
	}
	return ""
}

// endsUnnoticed reports whether the credential can end without a change of the register: a token or a session can.
func (w *client) endsUnnoticed() bool { return !w.until.IsZero() || w.principal.By == auth.BySession }

// identify authenticates the caller. apps are the applications in the request. If the authentication fails and one of them was deleted,
// identify returns that refusal, because the credentials of a deleted application no longer work. Replicas always send an Authorization
// header, so identify does not inform callers without one.
func (c *call) identify(apps ...string) error {
	err := c.credential()
	if err == nil || strings.TrimSpace(c.r.Authorization) == "" {
		return err
	}
	for _, app := range apps {
		if refusal := c.refuseDeleted(app); refusal != nil {
			return refusal
		}
	}
	return err
}

// credential checks the signature, key or token of the request and sets c.client.
func (c *call) credential() error {
	if id, ok := edgeOf(c.r.Authorization); ok {
		e, err := c.f.o.Register.Edge(id)
		if err != nil && !errors.Is(err, register.ErrNoEdge) {
			return err
		}
		if err != nil || !isSignedBy(e.Key, c.r, c.now) {
			return fmt.Errorf("%w: unknown edge, or signature not within five minutes of %s (check the clock)", auth.ErrToken, c.now.UTC().Format(time.RFC3339))
		}
		c.f.proofs.add(id, c.r.Remote, c.now)
		c.client = client{edge: &e}
		return nil
	}
	p, until, err := c.f.o.Engine.Identify(c.ctx, c.r)
	if err != nil {
		return err
	}
	if !p.Scopes.Has(auth.All) {
		return fmt.Errorf("%w: syncing needs a key with scope All", auth.ErrInsufficient)
	}
	c.client = client{principal: p, until: until}
	return nil
}

// Caller returns the caller of a request from its head only. A host shares memory by caller. The signature of an edge's request covers the
// body, so Caller checks the signature of the head; see [call.isFrom]. Caller returns "" for an enrolling edge and for OPTIONS.
func (f *Feed) Caller(ctx context.Context, r *api.Request) (string, error) {
	c := &call{f: f, ctx: ctx, r: r, now: f.o.Clock()}
	if r.Method == "OPTIONS" || strings.TrimRight(r.Path, "/") == Prefix+"/enrol" {
		return "", nil
	}
	if id, ok := edgeOf(r.Authorization); ok {
		e, err := f.o.Register.Edge(id)
		if err == nil && c.isFrom(&e) {
			c.client = client{edge: &e}
			return c.caller(), nil
		}
		return "", nil // Serve refuses the request in the form that edges read
	}
	if err := c.credential(); err != nil {
		return "", nil
	}
	return c.caller(), nil
}

// caller returns the account of the edge or application, by which hosts share their capacity. If the operator owns it, caller returns the
// edge or the application itself.
func (w *client) caller() string {
	if w.edge != nil {
		return cmp.Or(w.edge.Owner, w.holder())
	}
	return w.principal.Caller
}

// refuseDeleted returns the refusal for a deleted application; nil: it was not deleted.
func (c *call) refuseDeleted(app string) error {
	if _, err := catalog.ParseAppID(app); err != nil {
		return nil
	}
	if deleted, err := c.f.o.Register.AppDeleted(app); err != nil || !deleted {
		return err
	}
	return &wire.Refusal{Code: wire.RefusedGone, Detail: "the application was deleted"}
}

// errScope refuses an application of another caller, whether or not it exists.
var errScope = &wire.Refusal{Code: wire.RefusedScope, Detail: "the credential has no access to the application"}

// open admits the request to one application and opens it.
func (c *call) open(app string) (*partition.Origin, error) {
	if err := c.identify(app); err != nil {
		return nil, err
	}
	return c.reach(app)
}

// errLocalOnly refuses an application whose owner does not let it leave the origin.
var errLocalOnly = &wire.Refusal{Code: wire.RefusedScope, Detail: "the application is local only: it is not sent to replicas"}

// refuseLocalOnly returns errLocalOnly for a call that would send data of a local-only application.
func (c *call) refuseLocalOnly(app string) error {
	if c.does == receives {
		return nil
	}
	a, err := c.f.o.Register.App(app)
	switch {
	case errors.Is(err, register.ErrApplication):
		return nil // just deleted: it accepts no more writes
	case err == nil && a.LocalOnly:
		return errLocalOnly
	}
	return err
}

// reach opens an application for the caller, unless it is local only and the call would send its data.
func (c *call) reach(app string) (*partition.Origin, error) {
	p, err := c.enter(app)
	if err == nil && c.localOnly && c.does != receives {
		err = errLocalOnly
	}
	if err != nil {
		return nil, err
	}
	return p, nil
}

// enter opens an application for the caller.
func (c *call) enter(app string) (*partition.Origin, error) {
	if c.edge != nil && slices.Contains(c.edge.Apps, app) {
		if refusal := c.refuseDeleted(app); refusal != nil {
			return nil, refusal
		}
	}
	if c.edge != nil && !c.edge.Replicates(app) || c.edge == nil && app != c.principal.App {
		return nil, errScope
	}
	p, err := c.f.o.Engine.Origin(app)
	if err != nil {
		if refusal := c.refuseDeleted(app); refusal != nil {
			return nil, refusal
		}
		return nil, err
	}
	a, err := c.f.o.Register.App(app)
	if err != nil && !errors.Is(err, register.ErrApplication) { // one that was just deleted accepts no more writes
		return nil, err
	}
	c.app, c.account, c.localOnly = app, cmp.Or(a.Owner, app), a.LocalOnly
	return p, nil
}

// writes checks that the caller may write as the writer of a push: it has the writer's secret. Those of version 0.1.0 are sites: an edge
// writes as its own without a secret.
//
// An origin that was restored from a backup of before the lease does not know the site, and accepts it. No lease gives
// its number again, but an edge that enrols later may get it. The site is then refused: see EdgeSite.
func (c *call) writes(m *wire.Push) error {
	refused := &wire.Refusal{Code: wire.RefusedWriter, Detail: fmt.Sprintf("the secret is not that of the writer %v", m.Writer)}
	if !m.Writer.IsSite() {
		if !c.f.secrets.fits(c.app, m.Writer, m.Secret) {
			return refused
		}
		return nil
	}
	if c.edge != nil && (m.Writer == c.edge.Site || m.Writer == c.edge.SiteIn(c.app)) {
		return nil
	}
	s, err := c.f.o.Register.Site(m.Writer)
	switch {
	case errors.Is(err, register.ErrNoSite) && !m.Writer.IsOrigin():
		return nil
	case errors.Is(err, register.ErrNoSite):
		return refused
	case err != nil:
		return err
	case s.App != c.app, c.edge != nil && s.Holder != c.edge.Holder():
		return refused
	case c.edge == nil:
		_, err = c.f.o.Register.CheckSite(m.Writer, string(m.Secret))
	}
	if errors.Is(err, register.ErrNoSite) {
		return refused
	}
	return err
}

// query contains the parameters of a request. Only the first value of each name counts.
type query struct{ url.Values }

func parseQuery(text string) (query, error) {
	if len(text) > 4096 {
		return query{}, malformedError("the query is too long: %d bytes", len(text))
	}
	values, err := url.ParseQuery(text)
	if err != nil {
		return query{}, malformedError("query")
	}
	return query{values}, nil
}

// number reads a numeric parameter; 0 if it is absent.
func (q query) number(name string) (uint64, error) {
	text := q.Get(name)
	if text == "" {
		return 0, nil
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0, malformedError("%s is not a number", name)
	}
	return n, nil
}

// name reads a parameter of hexadecimal digits into id, which keeps its value if it is absent.
func (q query) name(name string, id []byte) error {
	text := q.Get(name)
	if text == "" {
		return nil
	}
	b, err := hex.DecodeString(text)
	if err != nil || len(b) != len(id) {
		return malformedError("%s must be %d hexadecimal digits", name, 2*len(id))
	}
	copy(id, b)
	return nil
}

// malformedError returns the refusal of an invalid message.
func malformedError(format string, args ...any) error {
	return &wire.Refusal{Code: wire.RefusedFormat, Detail: fmt.Sprintf(format, args...)}
}

// unknown returns the refusal for something that does not exist or belongs to another application.
func unknown(detail string) error { return &wire.Refusal{Code: wire.RefusedUnknown, Detail: detail} }

// target opens the application that the query names.
func (c *call) target() (*partition.Origin, error) {
	return c.open(c.query.Get("app"))
}

// body returns the body of the request, or a refusal if it is longer than limit.
func (c *call) body(limit uint64, name string) ([]byte, error) {
	if uint64(len(c.r.Body)) > limit {
		return nil, &wire.Refusal{Code: wire.RefusedLimit, Detail: fmt.Sprintf("at most %d bytes are allowed", limit), Limit: name, Value: limit}
	}
	return c.r.Body, nil
}

// read decodes the body of a request, which has at most limit bytes. name is that of the limit.
func read[M any](c *call, limit uint64, name string, decode func([]byte) (M, error)) (m M, err error) {
	body, err := c.body(limit, name)
	if err != nil {
		return m, err
	}
	if m, err = decode(body); err != nil {
		err = malformedError("%s: %v", path.Base(c.r.Path), err)
	}
	return m, err
}
