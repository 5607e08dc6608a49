package console

import (
	"net/url"
	"slices"
	"strings"

	"github.com/sightline-dev/sightline/core/catalog"
)

// caller defines who may call a route.
type caller int

const (
	anybody  caller = iota // with or without an account
	signedIn               // only with an account
)

// route is one row of the table.
type route struct {
	method string
	path   string // path below Prefix; {id} and {key} match any segment
	caller caller
	serve  handler
}

// handler returns the answer of a call: an object, or an error.
type handler = func(c *call) (any, error)

// routes lists all routes at an origin.
var routes = []route{
	{"GET", "/session", anybody, (*call).getSession},
	{"POST", "/session", anybody, body((*call).signIn)},
	{"DELETE", "/session", anybody, empty((*call).signOut)},
	{"POST", "/accounts", anybody, body((*call).signUp)},
	{"PATCH", "/account", signedIn, body((*call).changeAccount)},
	{"DELETE", "/account", signedIn, body((*call).leave)},
	{"POST", "/verification", signedIn, body((*call).verify)},
	{"POST", "/verification/mail", signedIn, empty((*call).sendCode)},
	{"POST", "/password/mail", anybody, body((*call).mailReset)},
	{"POST", "/password", anybody, body((*call).reset)},
	{"GET", "/mail", anybody, (*call).mails},
	{"GET", "/sessions", signedIn, (*call).sessions},
	{"DELETE", "/sessions/{id}", signedIn, empty((*call).endSession)},
	{"GET", "/audit", signedIn, (*call).audit},

	{"GET", "/apps", signedIn, (*call).apps},
	{"POST", "/apps", signedIn, body((*call).createApp)},
	{"GET", "/apps/{id}", signedIn, ofApp((*call).app)},
	{"PATCH", "/apps/{id}", signedIn, bodyOfApp((*call).changeApp)},
	{"DELETE", "/apps/{id}", signedIn, bodyOfApp((*call).deleteApp)},
	{"GET", "/apps/{id}/export", signedIn, ofApp((*call).export)},
	{"GET", "/apps/{id}/export-status", signedIn, ofApp((*call).exportStatus)},
	{"GET", "/apps/{id}/usage", signedIn, ofApp((*call).usage)},
	{"GET", "/apps/{id}/edges", signedIn, ofApp((*call).edges)},
	{"GET", "/models", signedIn, (*call).models},

	{"GET", "/apps/{id}/keys", signedIn, ofApp((*call).keys)},
	{"POST", "/apps/{id}/keys", signedIn, bodyOfApp((*call).createKey)},
	{"DELETE", "/apps/{id}/keys/{key}", signedIn, empty(ofApp((*call).deleteKey))},
	{"POST", "/apps/{id}/keys/{key}/replacement", signedIn, empty(ofApp((*call).replaceKey))},
	{"POST", "/apps/{id}/client", signedIn, empty(ofApp((*call).replaceSecret))},
	{"DELETE", "/apps/{id}/tokens", signedIn, empty(ofApp((*call).revokeTokens))},
	{"POST", "/apps/{id}/page-token", signedIn, empty(ofApp((*call).pageToken))},
	{"GET", "/scopes", signedIn, (*call).scopes},
}

// body returns a handler that decodes the request's body into an In. The body must not have other members.
func body[In any](serve func(c *call, in In) (any, error)) handler {
	return func(c *call) (any, error) {
		var in In
		if err := c.read(&in); err != nil {
			return nil, err
		}
		return serve(c, in)
	}
}

// empty returns a handler of requests with an empty body.
func empty(serve handler) handler {
	return body(func(c *call, _ struct{}) (any, error) { return serve(c) })
}

// ofApp returns a handler of requests about the application in the path.
func ofApp(serve func(c *call, a *catalog.App) (any, error)) handler {
	return func(c *call) (any, error) {
		a, err := c.ownApp()
		if err != nil {
			return nil, err
		}
		return serve(c, &a)
	}
}

// bodyOfApp combines [body] and [ofApp].
func bodyOfApp[In any](serve func(c *call, a *catalog.App, in In) (any, error)) handler {
	return body(func(c *call, in In) (any, error) {
		return ofApp(func(c *call, a *catalog.App) (any, error) { return serve(c, a, in) })(c)
	})
}

// find returns the route of a request, and sets the call's id and key from the path.
func (c *call) find() (*route, error) {
	path := strings.TrimPrefix("/"+strings.TrimLeft(c.r.Path, "/"), Prefix)
	segments := strings.Split(strings.Trim(path, "/"), "/")
	for i := range segments {
		s, err := url.PathUnescape(segments[i])
		if err != nil || s == "" {
			return nil, errMissing
		}
		segments[i] = s
	}
	var methods []string
	for i := range c.routes {
		if !c.fits(&c.routes[i], segments) {
			continue
		}
		if c.routes[i].method == c.r.Method {
			return &c.routes[i], nil
		}
		methods = append(methods, c.routes[i].method)
	}
	if methods == nil {
		return nil, errMissing
	}
	c.allow = strings.Join(methods, ", ")
	return nil, errMethod
}

// fits reports whether a path matches a route, and sets the call's id and key from it.
func (c *call) fits(r *route, segments []string) bool {
	pattern := strings.Split(r.path[1:], "/")
	return slices.EqualFunc(pattern, segments, func(p, segment string) bool {
		switch p {
		case "{id}":
			c.id = segment
		case "{key}":
			c.key = segment
		default:
			return p == segment
		}
		return true
	})
}
