// Package console answers the account and application pages, over JSON and a session cookie.
//
//	page ──▶ host, origin ─▶ cookie ─▶ csrf ─▶ route ─▶ account.Registry   people, sessions, usage
//	          rebinding,                          └───▶ Engine             applications, keys, clients
//	          other sites                               every action of a person is in the audit log
//
// It shares the envelope and the codes of /v2, but not its credentials: a key or a token opens nothing here, and a cookie opens nothing
// there. A page with a copy of an application gets an access token to it here. For things of another account the answer is the same, byte
// for byte, as for missing ones.
//
// A cookie is 256 random bits. Before a sign-in it belongs to nobody and only carries the page's CSRF token, which is a hash of it;
// signing in and changing a password replace it.
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

// Model is a public model that an application may begin with.
type Model struct {
	ID   string `json:"id"`
	Name string `json:"name"`
}

// Tokens is the used part of [api.Tokens].
type Tokens interface {
	Issue(c auth.Claims) (token string, life time.Duration, err error)
}

// Options are the settings of a [Handler]. Accounts, but at an edge, Register, Refuse and PublicURL are required.
type Options struct {
	Accounts  *account.Registry
	Register  *register.Register
	Refuse    func(r *api.Request, err error) api.Response // answers in the interface's form; see [api.Service.Refuse]
	PublicURL string                                       // where people reach the server; https makes the cookie Secure
	Origins   []string                                     // other origins that are the server's own, such as http://localhost:8080
	Version   string
	Models    []Model
	Demo      bool                                            // sign the demo's account in by itself: on loopback only
	Tokens    Tokens                                          // for copies of applications in pages; nil: there are none
	Stored    func(account string) (core.StorageUsage, error) // what an account with limits stores; nil: accounts have none
	Edge      *Edge                                           // nil: this is an origin

	// Export writes everything that an application holds as a zip file; nil: it cannot be had.
	Export func(ctx context.Context, app string, w io.Writer) error
}

// Prefix is the path at which the handler is mounted.
const Prefix = "/console"

// Handler answers requests below [Prefix]. It is safe for concurrent use.
type Handler struct {
	o      Options
	own    map[string]bool // origins
	hosts  map[string]bool
	secure bool
	cookie string // its name
	routes []route
}

// New checks the options.
func New(o Options) (*Handler, error) {
	if o.Accounts == nil && o.Edge == nil || o.Register == nil || o.Refuse == nil {
		return nil, errors.New("console: Accounts and Engine are required")
	}
	h := &Handler{o: o, own: map[string]bool{}, hosts: map[string]bool{}, cookie: "sightline", routes: routes}
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

// call is one request on its way to its answer.
type call struct {
	*Handler
	ctx     context.Context
	r       *api.Request
	token   string // of the cookie: the sent one, or the new one
	set     bool   // the answer sets the cookie
	account account.Account
	id      string // what the path names
	key     string // likewise, after id
	allow   string // methods of the path, if the request has none of them
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
	return route.serve(c)
}

// Caller returns the account that a request's cookie is of, from the request's head; empty: none.
func (h *Handler) Caller(ctx context.Context, r *api.Request) (string, error) {
	c := &call{Handler: h, ctx: ctx, r: r}
	if h.o.Edge != nil || c.enter() != nil {
		return "", nil // Serve answers with the error
	}
	return c.account.ID, nil
}

// Refuse is the answer to a request that the server does not let through.
func (h *Handler) Refuse(r *api.Request, err error) api.Response {
	c := &call{Handler: h, r: r}
	return c.answer(nil, err)
}
