package console

import (
	"context"
	"time"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/auth"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/lang"
)

// Edge holds the settings of a [Handler] at an edge, where users have no accounts and the handler sets no cookie. A page shows the key or
// the token that a user has pasted, and gets the application that it gives access to.
//
//	page ──▶ host, origin ─▶ route ─┬─▶ session: name of the edge and URL of its origin
//	                                ├─▶ apps: the application of a credential
//	                                ├─▶ keys-age: age of an application's keys, and its limits
//	                                └─▶ page-token: only in a demo
//
// As at an origin, pages of other sites get no answer. At a demo's edge other programs on this machine do, as they do at a demo's origin.
type Edge struct {
	// Identity returns the name of the edge and the URL of its origin, if known. Without an origin both are empty.
	Identity func() (name, origin string)

	// AppOf returns the application that the request's credential gives access to, or "" if it gives none.
	AppOf func(ctx context.Context, r *api.Request) (app string)

	// KeysAge returns the age of an application's keys at the edge. ok is false if the application has no origin and exists only at the
	// edge.
	KeysAge func(app string) (KeysAge, bool)

	Open bool // in a demo, on loopback only: every visitor has access to all applications
}

// KeysAge is the age of an application's keys at an edge, with its limits.
type KeysAge struct {
	Known  time.Time     // when the origin last confirmed that the edge has all keys; zero: never
	Writes time.Duration // time after Known for which the edge accepts writes
	Reads  time.Duration // time after Known for which the edge answers at all
}

// edgeRoutes are all routes at an edge.
var edgeRoutes = []route{
	{"GET", "/session", anybody, (*call).edgeSession},
	{"GET", "/apps", anybody, (*call).edgeApps},
	{"GET", "/apps/{id}/keys-age", anybody, (*call).edgeKeys},
	{"POST", "/apps/{id}/page-token", anybody, (*call).edgeToken},
}

// edgeSession returns the facts about the session for a page at an edge.
func (c *call) edgeSession() (any, error) {
	type edge struct {
		Name   string `json:"name"`
		Origin string `json:"origin"`
		Open   bool   `json:"open"`
	}
	name, origin := c.o.Edge.Identity()
	return map[string]any{"session": struct {
		session
		Edge edge `json:"edge"`
	}{
		session{SignUp: "closed", Mail: "log", Version: c.o.Version, PublicURL: c.o.PublicURL, Languages: lang.Codes()},
		edge{name, origin, c.o.Edge.Open},
	}}, nil
}

// edgeApps lists the application that the credential gives access to. At a demo's edge without a credential it lists all applications.
func (c *call) edgeApps() (any, error) {
	if c.r.Authorization == "" {
		if !c.o.Edge.Open {
			return nil, errSignIn
		}
		return c.listApps(c.ownedApps())
	}
	id := c.o.Edge.AppOf(c.ctx, c.r)
	if id == "" {
		return nil, auth.ErrKeyUnknown
	}
	a, err := c.o.Register.App(id)
	if err != nil {
		return nil, err
	}
	return c.listApps([]catalog.App{a}, nil)
}

// edgeKeys returns the age of an application's keys at the edge. The caller needs a credential of the application, except at a demo's edge.
func (c *call) edgeKeys() (any, error) {
	if !c.o.Edge.Open || c.r.Authorization != "" {
		if c.r.Authorization == "" {
			return nil, errSignIn
		}
		if c.o.Edge.AppOf(c.ctx, c.r) != c.id {
			return nil, errMissing
		}
	}
	age, known := c.o.Edge.KeysAge(c.id)
	if !known {
		return nil, errMissing
	}
	return map[string]any{"keys": struct {
		Known  time.Time `json:"known,omitzero"`
		Writes int64     `json:"writes_seconds"`
		Reads  int64     `json:"reads_seconds"`
	}{age.Known, int64(age.Writes / time.Second), int64(age.Reads / time.Second)}}, nil
}

// edgeToken issues an access token of an application to a page of a demo's edge, like pageToken at an origin.
func (c *call) edgeToken() (any, error) {
	if !c.o.Edge.Open {
		return nil, errMissing
	}
	return empty(ofApp((*call).pageToken))(c)
}
