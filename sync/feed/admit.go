package feed

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/auth"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/jsonio"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/partition"
	"github.com/sightline-dev/sightline/core/register"
	"github.com/sightline-dev/sightline/sync/wire"
)

var errTooLong = jsonio.ErrTooLong

// client is an authenticated caller, and the application that it asked for.
type client struct {
	app       string         // that is asked about, once it is known to be its own
	edge      *catalog.Edge  // nil: a key or a token asks
	principal auth.Principal // of a key or a token
	until     time.Time      // end of the token; zero: it has none
}

// holder returns the caller in the form in which sites are leased.
func (w *client) holder() string {
	if w.edge != nil {
		return w.edge.Holder()
	}
	return w.principal.By
}

// user returns the caller in the form of the quotas. It contains the application, so a caller's use of one application does not count for
// another.
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

// identify finds out who asks. named are the applications that it asks about: where one of them was
// deleted, and nothing else is known any more, that is the answer.
func (c *call) identify(named ...string) error {
	err := c.credential()
	if err == nil {
		return nil
	}
	for _, app := range named {
		if gone := c.refuseDeleted(app); gone != nil {
			return gone
		}
	}
	return err
}

// credential reads what the request shows.
func (c *call) credential() error {
	if id, ok := edgeOf(c.r.Authorization); ok {
		e, err := c.f.o.Register.Edge(id)
		if err != nil && !errors.Is(err, register.ErrNoEdge) {
			return err
		}
		if err != nil || !isSignedBy(e.Key, c.r, c.now) {
			return fmt.Errorf("%w: unknown edge, or signature not within five minutes of %s (check the clock)", auth.ErrToken, c.now.UTC().Format(time.RFC3339))
		}
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

// Caller returns for whom a request speaks, from its head: a host keeps shares of memory by it. An edge is known by its id and the
// time that its signature names, since the signature covers the body, too. It is empty for an edge that enrols, and for OPTIONS.
func (f *Feed) Caller(ctx context.Context, r *api.Request) (string, error) {
	c := &call{f: f, ctx: ctx, r: r, now: f.o.Clock()}
	if r.Method == "OPTIONS" || strings.TrimRight(r.Path, "/") == Prefix+"/enrol" {
		return "", nil
	}
	if id, ok := edgeOf(r.Authorization); ok {
		e, err := f.o.Register.Edge(id)
		if err == nil && signedAt(r, c.now) {
			c.client = client{edge: &e}
			return c.caller(), nil
		}
		return "", nil // Serve refuses the call in the form that edges read
	}
	if err := c.credential(); err != nil {
		return "", nil
	}
	return c.caller(), nil
}

// caller returns whom a request is for, as hosts share their places by it: the account of an edge or an application, or the edge or
// the application itself where the operator owns it.
func (w *client) caller() string {
	if w.edge != nil {
		return cmp.Or(w.edge.Owner, w.holder())
	}
	return w.principal.Caller
}

// refuseDeleted is the refusal for an application that was deleted; nil: it was not.
func (c *call) refuseDeleted(app string) error {
	if _, err := catalog.ParseAppID(app); err != nil {
		return nil
	}
	if gone, err := c.f.o.Register.AppDeleted(app); err != nil || !gone {
		return err
	}
	return &wire.Refusal{Code: wire.RefusedGone, Detail: "the application was deleted"}
}

// errScope is the answer for an application of another caller, whether or not it exists.
var errScope = &wire.Refusal{Code: wire.RefusedScope, Detail: "the credential has no access to the application"}

// may reports whether who asks may hold an application.
func (w *client) may(app string) bool {
	if w.edge != nil {
		return w.edge.Holds(app)
	}
	return app == w.principal.App
}

// open admits the request to one application and opens it.
func (c *call) open(app string) (*partition.Partition, error) {
	if err := c.identify(app); err != nil {
		return nil, err
	}
	return c.reach(app)
}

// errLocalOnly is the refusal of an application that its owner keeps at the origin.
var errLocalOnly = &wire.Refusal{Code: wire.RefusedScope, Detail: "the application is local only: it is not sent to replicas"}

// refuseLocalOnly returns errLocalOnly for a call that would send what a local-only application holds.
func (c *call) refuseLocalOnly(app string) error {
	if c.does == takes {
		return nil
	}
	a, err := c.f.o.Register.App(app)
	switch {
	case errors.Is(err, register.ErrApplication):
		return nil // deleted a moment ago: nothing more is written to it
	case err == nil && a.LocalOnly:
		return errLocalOnly
	}
	return err
}

// reach opens an application for who asks, unless it is local only and the call would send it.
func (c *call) reach(app string) (*partition.Partition, error) {
	p, err := c.enter(app)
	if err == nil {
		err = c.refuseLocalOnly(app)
	}
	if err != nil {
		return nil, err
	}
	return p, nil
}

// enter opens an application for who asks.
func (c *call) enter(app string) (*partition.Partition, error) {
	if c.edge != nil && slices.Contains(c.edge.Apps, app) {
		if gone := c.refuseDeleted(app); gone != nil {
			return nil, gone
		}
	}
	if !c.may(app) {
		return nil, errScope
	}
	p, err := c.f.o.Engine.Partition(app)
	if err != nil {
		if gone := c.refuseDeleted(app); gone != nil {
			return nil, gone
		}
		return nil, err
	}
	c.app = app
	return p, nil
}

// siteHeader contains "number secret" of a site that does not belong to an edge.
const siteHeader = "Sync-Site"

// writes holds the request to a site: an edge's own, or one whose secret it shows.
func (c *call) writes(site log.Site) error {
	refused := &wire.Refusal{Code: wire.RefusedSite, Detail: fmt.Sprintf("site %d is not assigned to this replica", site)}
	if c.edge != nil {
		owns, err := c.owns(c.app, site)
		if err == nil && !owns {
			err = refused
		}
		return err
	}
	number, secret, _ := strings.Cut(strings.TrimSpace(c.header(siteHeader)), " ")
	if n, err := strconv.ParseUint(number, 10, 32); err != nil || log.Site(n) != site {
		return refused
	}
	s, err := c.checkSiteSecret(site, secret)
	if err != nil {
		return err
	}
	return c.f.o.Register.ProlongSite(c.ctx, s)
}

// checkSiteSecret checks a site's secret.
func (c *call) checkSiteSecret(site log.Site, secret string) (catalog.Site, error) {
	s, err := c.f.o.Register.CheckSite(site, secret)
	if errors.Is(err, register.ErrNoSite) || err == nil && s.App != c.app {
		return catalog.Site{}, &wire.Refusal{Code: wire.RefusedSite, Detail: fmt.Sprintf("site %d is not assigned to this replica", site)}
	}
	return s, err
}

// query is a request's parameters; the first of each name counts.
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

// malformedError returns the refusal of an invalid message.
func malformedError(format string, args ...any) error {
	return &wire.Refusal{Code: wire.RefusedFormat, Detail: fmt.Sprintf(format, args...)}
}

// unknown returns the refusal for something that does not exist or belongs to another application.
func unknown(what string) error { return &wire.Refusal{Code: wire.RefusedUnknown, Detail: what} }

// partOf refuses every partition but the one that an application has.
func partOf(n uint64) error {
	if n != 0 {
		return unknown("an application has only partition 0")
	}
	return nil
}

// target opens the application that the query names.
func (c *call) target() (*partition.Partition, error) {
	n, err := c.query.number("p")
	if err != nil {
		return nil, err
	}
	p, err := c.open(c.query.Get("app"))
	if err != nil {
		return nil, err
	}
	return p, partOf(n)
}

// body is the request's, up to a limit.
func (c *call) body(limit uint64, name string) ([]byte, error) {
	if uint64(len(c.r.Body)) > limit {
		return nil, &wire.Refusal{Code: wire.RefusedLimit, Detail: fmt.Sprintf("at most %d bytes are allowed", limit), Limit: name, Value: limit}
	}
	return c.r.Body, nil
}
