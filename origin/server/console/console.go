// Package console answers the account and application pages, over JSON and a session cookie.
//
//	page ──▶ host, origin ─▶ cookie ─▶ csrf ─▶ route ─▶ account.Registry   accounts, sessions, usage
//	          rebinding,                          └───▶ register.Register  applications, keys, clients
//	          other sites                               every change and sign-in is in the audit log
//
// The console shares the envelope and the codes of /v2, but not its credentials. A key or a token gives no access here, and a cookie gives
// no access there. A page with a replica of an application gets its access token here. The answers about an object of another account and
// about a missing object are equal byte for byte.
//
// A cookie is 256 random bits. Before a sign-in it belongs to no account and only carries the page's CSRF token, which is a hash of it.
// Signing in and changing a password replace it.
package console

import (
	"context"
	"errors"
	"io"
	"net/url"
	"strings"
	"time"

	"github.com/sightline-dev/sightline/core"
	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/auth"
	"github.com/sightline-dev/sightline/core/register"
	"github.com/sightline-dev/sightline/origin/server/account"
)

// Model is a public model that a user can choose as an application's first default model.
type Model struct {
	ID   string `json:"id"`
	Name string `json:"name"`
}

// Tokens is the part of [api.Tokens] that the console uses.
type Tokens interface {
	Issue(c auth.Claims) (token string, life time.Duration, err error)
}

// Options are the settings of a [Handler]. Register, Refuse, Now and PublicURL are required. If Edge is nil, Accounts is required, too.
type Options struct {
	Accounts  *account.Registry
	Register  *register.Register
	Refuse    func(r *api.Request, err error) api.Response // answers in the API's form; see [api.Service.Refuse]
	Now       func() time.Time
	PublicURL string   // URL of the server for users; https makes the cookie Secure
	Origins   []string // further origins of the server, such as http://localhost:8080
	Version   string
	Models    []Model
	Demo      bool                                            // automatic sign-in to the demo's account; the caller must listen on loopback only
	Tokens    Tokens                                          // issues tokens for replicas in pages; nil: pages have none
	Stored    func(account string) (core.StorageUsage, error) // returns the storage use of an account; nil: the pages show no storage use
	Edge      *Edge                                           // nil: this is an origin

	// Export writes all data of an application as a zip file. It returns soon after ctx ends. nil: no export.
	Export       func(ctx context.Context, app string, w io.Writer) error
	ExportMemory int64 // bytes that Export holds at a time
}

// Prefix is the path at which the handler is mounted.
const Prefix = "/console"

// Handler answers requests below [Prefix]. It is safe for concurrent use.
type Handler struct {
	o      Options
	own    map[string]bool // the server's origins
	hosts  map[string]bool
	secure bool
	cookie string // name of the cookie
	routes []route

	changes *auth.Limiter // by account
	exports exports
}

// changeRate is the rate of an account's changes and exports. The audit log keeps each for good.
var changeRate = auth.Rate{PerSecond: 1, Burst: 120}

// maxLimited is the number of accounts that the limiter of changes remembers.
const maxLimited = 10_000

// New returns a handler, or an error if the options are invalid.
func New(o Options) (*Handler, error) {
	if o.Accounts == nil && o.Edge == nil || o.Register == nil || o.Refuse == nil || o.Now == nil {
		return nil, errors.New("console: Accounts or Edge, Register, Refuse and Now are required")
	}
	h := &Handler{o: o, own: map[string]bool{}, hosts: map[string]bool{}, cookie: "sightline", routes: routes, changes: auth.NewLimiter(changeRate, maxLimited)}
	if o.Edge != nil {
		h.routes = edgeRoutes
	}
	for i, origin := range append([]string{o.PublicURL}, o.Origins...) {
		u, err := url.Parse(origin)
		if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			return nil, errors.New("console: " + origin + " is not the URL of a server")
		}
		if i == 0 && u.Scheme == "https" {
			h.secure, h.cookie = true, "__Host-sightline"
		}
		host := strings.ToLower(u.Host)
		h.own[u.Scheme+"://"+host], h.hosts[host] = true, true
	}
	return h, nil
}

// call is one request in progress.
type call struct {
	*Handler
	ctx     context.Context
	r       *api.Request
	token   string // token of the sent or the new cookie
	set     bool   // the answer sets the cookie
	account account.Account
	id      string // id in the path
	key     string // second id in the path
	allow   string // allowed methods of the path, if the request's method is not among them
}

// Serve answers a request.
func (h *Handler) Serve(ctx context.Context, r *api.Request) api.Response {
	c := &call{Handler: h, ctx: ctx, r: r}
	return c.answer(c.serve())
}

func (c *call) serve() (any, error) {
	route, err := c.find()
	if err != nil {
		return nil, err
	}
	changes := route.method != "GET"
	if err := c.checkOrigin(changes); err != nil {
		return nil, err
	}
	if c.o.Edge == nil {
		if err := c.enter(); err != nil {
			return nil, err
		}
	}
	if changes {
		if err := c.checkChange(); err != nil {
			return nil, err
		}
	}
	if route.caller != anybody && c.account.ID == "" {
		return nil, errSignIn
	}
	if changes && route.caller == signedIn && !isReissued(route) {
		if err := c.countChange(); err != nil {
			return nil, err
		}
	}
	return route.serve(c)
}

// isReissued reports whether a route returns another token to a page. Pages ask for one often, and the audit log has none of these calls.
func isReissued(r *route) bool { return r.path == "/apps/{id}/page-token" }

// countChange counts a call of the account against the rate of changes. The operator's account has no rate.
func (c *call) countChange() error {
	if c.account.Operator {
		return nil
	}
	return c.changes.Take(auth.HashKey(c.account.ID), c.o.Now())
}

// Caller returns the id of the account that the request's cookie identifies, or "" if it identifies none, or at an edge. Its error is
// always nil: if the cookie is invalid, Serve answers with the error.
func (h *Handler) Caller(ctx context.Context, r *api.Request) (string, error) {
	c := &call{Handler: h, ctx: ctx, r: r}
	if h.o.Edge != nil || c.enter() != nil {
		return "", nil
	}
	return c.account.ID, nil
}

// Refuse returns the answer to a request that the server rejects with err.
func (h *Handler) Refuse(r *api.Request, err error) api.Response {
	c := &call{Handler: h, r: r}
	return c.answer(nil, err)
}
