package api

import (
	"errors"
	"strconv"

	"github.com/sightline-dev/sightline/core/auth"
	"github.com/sightline-dev/sightline/core/catalog"
)

// ErrWhichApp is returned for a session token of an account that has not one application but
// none, or several, on a path that names none.
var ErrWhichApp = errors.New("application missing: use a path that starts with /v2/users/me/apps/{app_id}")

// admit finds out who asks and refuses who may not. What is refused for its rate is not counted;
// what fails after that is.
//
//	credential ─▶ rate ─▶ quota ─▶ application or account of the path ─▶ scopes
func admit(x *Call, r *Request) error {
	asks := x.route.need.Asks
	switch {
	case (asks == auth.OfAccount || asks == auth.OfNobody) && x.at.long:
		return errPath
	case asks == auth.OfNobody || asks == auth.OfClient:
		return nil // their handlers look at what they are shown
	case r.App != "":
		return vouch(x, r.App)
	}
	if err := identify(x, r); err != nil {
		return err
	}
	x.who.Page = x.who.Page || r.Page
	limiter := x.s.limiters.account
	switch {
	case x.who.Free:
		limiter = x.s.limiters.operator
	case pageReads(x):
		limiter = x.s.limiters.page
	}
	if err := limiter.Take(x.who.Bucket, x.now); err != nil {
		return err
	}
	if !pageReads(x) {
		if err := spend(x); err != nil {
			return err
		}
	}
	if err := arrive(x); err != nil {
		return err
	}
	return x.route.need.Check(x.who.Scopes)
}

// pageReads reports whether one of our own pages reads what it shows: a screen of pictures is many requests, and none
// of them is a call that somebody makes.
func pageReads(x *Call) bool {
	need := x.route.need
	standing := x.route.method == "GET" && need == auth.NeedAll // of a copy: a page asks for it again and again
	return x.who.Page && (standing || !need.Writes() && need.Refuse&auth.Predict == 0)
}

// arrive holds the path to what the credential is of. What is another's is answered like what is
// not there.
func arrive(x *Call) error {
	if x.route.need.Asks == auth.OfAccount {
		switch user := x.ids["user_id"]; {
		case x.who.Account == "":
			return refusef(auth.ErrInsufficient, "Use a session token from POST /v2/login to manage applications and keys; API keys and access tokens cannot.")
		case user != me && user != x.who.Account:
			return errPath
		}
		return nil
	}
	switch {
	case !x.at.names(x.app):
		return errPath
	case x.app == nil:
		return ErrWhichApp
	}
	return nil
}

// vouch admits a request for whose application's owner the host speaks.
func vouch(x *Call, app string) error {
	if x.route.need.Asks == auth.OfAccount {
		return auth.ErrSession
	}
	open, err := x.s.o.Apps.Open(app)
	if err != nil {
		return err
	}
	x.app, x.who = open, auth.Principal{App: app, Scopes: auth.All}
	if !x.at.names(open) {
		return errPath
	}
	return nil
}

// identify reads the credential of a request. Authorization is stronger than a session token.
func identify(x *Call, r *Request) error {
	if r.Authorization == "" && r.Session != "" {
		return bySession(x, r.Session)
	}
	if token, ok := auth.Bearer(r.Authorization); ok {
		return byToken(x, token)
	}
	return byKey(x, r.Authorization)
}

// byKey reads the store, so a key that was deleted is unknown to the next request.
func byKey(x *Call, authorization string) error {
	hash, err := auth.Key(authorization)
	if err != nil {
		return err
	}
	key, err := x.s.o.Apps.Key(hash)
	if err == nil {
		x.app, err = x.s.o.Apps.Open(key.App)
	}
	if err != nil {
		return unless(err, auth.ErrKeyUnknown)
	}
	x.who = auth.Principal{App: key.App, By: auth.By(hash), Scopes: auth.SetOf(key.Scopes), Bucket: hash, Maker: key.By, Free: key.By == ""}
	return nil
}

// byToken lets in whom the host's token names, while the client that it was issued to is of the
// same generation.
func byToken(x *Call, token string) error {
	if x.s.o.Tokens == nil || token == "" {
		return auth.ErrToken
	}
	claims, err := x.s.o.Tokens.Read(token)
	if err != nil {
		return err
	}
	client, err := x.s.o.Apps.Client(claims.Client)
	if err == nil && (client.App != claims.App || client.Generation != claims.Generation) {
		return auth.ErrToken
	}
	if err == nil {
		x.app, err = x.s.o.Apps.Open(client.App)
	}
	if err != nil {
		return unless(err, auth.ErrToken)
	}
	x.until = claims.Expires
	x.who = auth.Principal{
		App: client.App, By: auth.ByToken, Client: client.ID, Generation: client.Generation, Scopes: auth.All, Bucket: auth.HashKey(client.ID),
		Page: claims.Page, Maker: x.app.Owner, Free: x.app.Owner == "",
	}
	return nil
}

// bySession lets an account into its own applications: the one that the path names, else its
// only one. Where there is none, app stays nil: the call is counted before it is refused. Calls
// about the account need none.
func bySession(x *Call, session string) error {
	if x.s.o.Accounts == nil {
		return auth.ErrSession
	}
	account, err := x.s.o.Accounts.Session(x.ctx, session)
	if err != nil {
		return err
	}
	x.who = auth.Principal{Account: account, Maker: account, By: auth.BySession, Scopes: auth.All, Bucket: auth.HashKey(account)}
	if x.route.need.Asks == auth.OfAccount {
		return nil
	}
	if x.at.long {
		app, err := x.s.o.Apps.App(x.at.app)
		if err != nil || app.Owner != account {
			return unless(err, nil)
		}
		x.who.App = app.ID
	} else {
		owned, err := x.s.o.Apps.Owned(account)
		if err != nil || len(owned) != 1 {
			return err
		}
		x.who.App = owned[0].ID
	}
	x.app, err = x.s.o.Apps.Open(x.who.App)
	return unless(err, nil)
}

// unless is err, or what to say for a record that is not there.
func unless(err, gone error) error {
	if errors.Is(err, catalog.ErrNotFound) {
		return gone
	}
	return err
}

// headerCallsLeft tells an account with a limit how many calls it has left.
const headerCallsLeft = "X-Sightline-Calls-Left"

// spend counts the call.
func spend(x *Call) error {
	if x.s.o.Calls == nil {
		return nil
	}
	c := Spent{Account: x.who.Account, By: x.who.By, Route: x.route.method + " " + x.route.path}
	if x.app != nil {
		c.App, c.Account = x.app.ID, x.app.Owner
	}
	left, err := x.s.o.Calls.Spend(x.ctx, c)
	if errors.Is(err, auth.ErrQuota) {
		left = 0
	}
	if left >= 0 && (err == nil || errors.Is(err, auth.ErrQuota)) {
		x.header = append(x.header, Field{headerCallsLeft, strconv.FormatInt(left, 10)})
	}
	return err
}
