package console

import (
	"net/url"
	"slices"
	"strings"

	"github.com/sightline-dev/sightline/core/catalog"
)

// who may ask.
type who int

const (
	anybody  who = iota // signed in or not
	signedIn            // with an account
)

// route is one row of the table.
type route struct {
	method string
	path   string // below Prefix; {id} and {key} stand for a segment
	who    who
	serve  func(c *call) (any, error)
}

// routes are all there are at an origin.
var routes = []route{
	{"GET", "/session", anybody, (*call).getSession},
	{"POST", "/session", anybody, (*call).signIn},
	{"DELETE", "/session", anybody, empty((*call).signOut)},
	{"POST", "/accounts", anybody, (*call).signUp},
	{"PATCH", "/account", signedIn, (*call).changeAccount},
	{"DELETE", "/account", signedIn, (*call).leave},
	{"POST", "/verification", signedIn, (*call).verify},
	{"POST", "/verification/mail", signedIn, empty((*call).sendCode)},
	{"POST", "/password/mail", anybody, (*call).mailReset},
	{"POST", "/password", anybody, (*call).reset},
	{"GET", "/mail", anybody, (*call).mails},
	{"GET", "/sessions", signedIn, (*call).sessions},
	{"DELETE", "/sessions/{id}", signedIn, empty((*call).endSession)},
	{"GET", "/audit", signedIn, (*call).audit},

	{"GET", "/apps", signedIn, (*call).apps},
	{"POST", "/apps", signedIn, (*call).createApp},
	{"GET", "/apps/{id}", signedIn, ofApp((*call).app)},
	{"PATCH", "/apps/{id}", signedIn, (*call).changeApp},
	{"DELETE", "/apps/{id}", signedIn, (*call).deleteApp},
	{"GET", "/apps/{id}/export", signedIn, ofApp((*call).export)},
	{"GET", "/apps/{id}/usage", signedIn, ofApp((*call).usage)},
	{"GET", "/apps/{id}/edges", signedIn, ofApp((*call).edges)},
	{"GET", "/models", signedIn, (*call).models},

	{"GET", "/apps/{id}/keys", signedIn, ofApp((*call).keys)},
	{"POST", "/apps/{id}/keys", signedIn, (*call).createKey},
	{"DELETE", "/apps/{id}/keys/{key}", signedIn, empty(ofApp((*call).deleteKey))},
	{"POST", "/apps/{id}/keys/{key}/replacement", signedIn, empty(ofApp((*call).replaceKey))},
	{"POST", "/apps/{id}/client", signedIn, empty(ofApp((*call).replaceSecret))},
	{"DELETE", "/apps/{id}/tokens", signedIn, empty(ofApp((*call).revokeTokens))},
	{"POST", "/apps/{id}/page-token", signedIn, empty(ofApp((*call).pageToken))},
	{"GET", "/scopes", signedIn, (*call).scopes},
}

// empty returns a handler of requests whose body has no members.
func empty(serve func(c *call) (any, error)) func(c *call) (any, error) {
	return func(c *call) (any, error) {
		if err := c.read(&struct{}{}); err != nil {
			return nil, err
		}
		return serve(c)
	}
}

// ofApp returns a handler of requests about the application that the path names.
func ofApp(serve func(c *call, a *catalog.App) (any, error)) func(c *call) (any, error) {
	return func(c *call) (any, error) {
		a, err := c.mine()
		if err != nil {
			return nil, err
		}
		return serve(c, &a)
	}
}

// find finds the route of a request, and what its path names.
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
	known := false
	for i := range c.routes {
		named, ok := c.routes[i].fits(segments)
		if !ok {
			continue
		}
		if known = true; c.routes[i].method == c.r.Method {
			c.id, c.key = named["{id}"], named["{key}"]
			return &c.routes[i], nil
		}
	}
	if known {
		return nil, errMethod
	}
	return nil, errMissing
}

// fits reports whether a path is the route's.
func (r *route) fits(segments []string) (named map[string]string, ok bool) {
	pattern := strings.Split(r.path[1:], "/")
	if len(pattern) != len(segments) {
		return nil, false
	}
	for i, p := range pattern {
		switch {
		case p[0] == '{':
			if named == nil {
				named = map[string]string{}
			}
			named[p] = segments[i]
		case p != segments[i]:
			return nil, false
		}
	}
	return named, true
}

// allowed are the methods of a path, for the header Allow.
func allowed(routes []route, path string) string {
	segments := strings.Split(strings.Trim(strings.TrimPrefix("/"+strings.TrimLeft(path, "/"), Prefix), "/"), "/")
	var methods []string
	for i := range routes {
		if _, ok := routes[i].fits(segments); ok && !slices.Contains(methods, routes[i].method) {
			methods = append(methods, routes[i].method)
		}
	}
	return strings.Join(methods, ", ")
}
