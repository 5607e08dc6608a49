package console

import (
	"context"
	"time"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/auth"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/lang"
)

// Edge has a [Handler] answer at an edge, where nobody has an account and no cookie is set: pages show the key, or the
// token, that a person has pasted, and hear which application it opens.
//
//	page ──▶ host, origin ─▶ route ─┬─▶ session: whose edge this is
//	                                ├─▶ apps: those that a credential opens
//	                                ├─▶ keys-age: how old what is known of one's keys is, and may be
//	                                └─▶ page-token: of a demonstration alone
//
// Another site gets no answer here, as at an origin; what another program on this machine may ask, it may ask at
// the origin of a demonstration too.
type Edge struct {
	// The name of the edge and the URL of its origin, if known. Without an origin both are empty.
	Who func() (name, origin string)

	// Of returns the application that the credential of a request is good for; empty: it is good for none.
	Of func(ctx context.Context, r *api.Request) (app string)

	// Keys returns the age of the keys of an application that has an origin; false: the application exists only at the edge.
	Keys func(app string) (KeysAge, bool)

	Open bool // a demonstration's: every visitor has its applications; on loopback only
}

// KeysAge is the age of an edge's knowledge of an application's keys, and its limit.
type KeysAge struct {
	Known  time.Time     // when the origin last said that there is nothing else to be known; zero: never
	Writes time.Duration // for so long after it writes are taken
	Reads  time.Duration // and for so long anything is answered
}

// edgeRoutes are all there are at an edge.
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
	name, origin := c.o.Edge.Who()
	return map[string]any{"session": struct {
		session
		Edge edge `json:"edge"`
	}{
		session{SignUp: "closed", Mail: "log", Version: c.o.Version, PublicURL: c.o.PublicURL, Languages: lang.Codes()},
		edge{name, origin, c.o.Edge.Open},
	}}, nil
}

// edgeApps lists the application that a credential opens; without one, at a demonstration's edge, all there are.
func (c *call) edgeApps() (any, error) {
	if c.r.Authorization == "" {
		if !c.o.Edge.Open {
			return nil, errSignIn
		}
		return c.listApps(c.ownedApps())
	}
	id := c.o.Edge.Of(c.ctx, c.r)
	if id == "" {
		return nil, auth.ErrKeyUnknown
	}
	a, err := c.o.Register.App(id)
	if err != nil {
		return nil, err
	}
	return c.listApps([]catalog.App{a}, nil)
}

// edgeKeys returns how old the edge's copy of an application's keys is. The caller needs a credential of the
// application, except at a demonstration's edge.
func (c *call) edgeKeys() (any, error) {
	if !c.o.Edge.Open || c.r.Authorization != "" {
		if c.r.Authorization == "" {
			return nil, errSignIn
		}
		if c.o.Edge.Of(c.ctx, c.r) != c.id {
			return nil, errMissing
		}
	}
	age, known := c.o.Edge.Keys(c.id)
	if !known {
		return nil, errMissing
	}
	return map[string]any{"keys": struct {
		Known  time.Time `json:"known,omitzero"`
		Writes int64     `json:"writes_seconds"`
		Reads  int64     `json:"reads_seconds"`
	}{age.Known, int64(age.Writes / time.Second), int64(age.Reads / time.Second)}}, nil
}

// edgeToken gives a page of a demonstration's edge an access token of an application, as pages get theirs at an origin.
func (c *call) edgeToken() (any, error) {
	if !c.o.Edge.Open {
		return nil, errMissing
	}
	return empty(ofApp((*call).pageToken))(c)
}
