package api

import (
	"errors"
	"strconv"

	"github.com/sightline-dev/sightline/core/api/call"
	"github.com/sightline-dev/sightline/core/auth"
)

// admit authenticates a request and rejects it if it lacks permission. A request that exceeds the rate limit does not count against the
// quota. A request that fails a later check does.
//
//	credential ─▶ rates of key and account ─▶ quota ─▶ application or account of the path ─▶ scopes
//
// has reports whether the caller's cache has the answer; see [route]. Such a request needs everything except the rates and the quota.
func admit(x *call.Call, r *call.Request, has func(*call.Call) bool) error {
	credential := x.Route.Need.Credential
	switch {
	case (credential == auth.OfAccount || credential == auth.OfNobody) && x.At.Long:
		return call.NoPath
	case credential == auth.OfNobody || credential == auth.OfClient:
		return nil // their handlers check the credentials
	case r.App != "":
		return admitVouched(x, r.App)
	}
	if err := identify(x, r); err != nil {
		return err
	}
	x.Principal.Page = x.Principal.Page || r.Page
	if has != nil && x.Known != "" && permit(x) == nil && has(x) {
		return nil
	}
	if err := limitRate(x); err != nil {
		return err
	}
	if !pageReads(x) {
		if err := spend(x); err != nil {
			return err
		}
	}
	return permit(x)
}

// permit checks whether an identified caller may use the route.
func permit(x *call.Call) error {
	if err := checkApplication(x); err != nil {
		return err
	}
	return x.Route.Need.Check(x.Principal.Scopes)
}

// limitRate counts the call for the rates of its credential and its account.
func limitRate(x *call.Call) error {
	l := &x.Host.Limiters
	ofBucket, ofAccount := l.Account, l.Owner
	switch {
	case x.Principal.Operator:
		ofBucket = l.Operator
	case pageReads(x):
		ofBucket, ofAccount = l.Page, l.PageOwner
	}
	if err := ofBucket.Take(x.Principal.Bucket, x.Now); err != nil {
		return err
	}
	if account := owner(x); account != "" && !x.Principal.Operator {
		return ofAccount.Take(auth.HashKey(account), x.Now)
	}
	return nil
}

// pageReads reports whether one of our pages reads data to display. A screen of pictures takes many requests, and none of them counts as a
// call.
func pageReads(x *call.Call) bool {
	need := x.Route.Need
	standing := x.Route.Method == "GET" && need == auth.NeedAll // sync status of a replica, which a page polls
	return x.Principal.Page && (standing || !need.Writes() && need.Refuse&auth.Predict == 0)
}

// checkApplication compares the path with the credential. For another application it returns the same error as for a missing one.
func checkApplication(x *call.Call) error {
	if x.Route.Need.Credential == auth.OfAccount {
		switch user := x.IDs["user_id"]; {
		case x.Principal.Account == "":
			return call.Refusef(auth.ErrInsufficient, "Use a session token from POST /v2/login to manage applications and keys; API keys and access tokens cannot.")
		case user != call.Me && user != x.Principal.Account:
			return call.NoPath
		}
		return nil
	}
	switch {
	case !x.At.Matches(x.App):
		return call.NoPath
	case x.App == nil:
		return call.ErrWhichApp
	}
	return nil
}

// admitVouched admits a request that the host has authenticated as a request of the application's owner.
func admitVouched(x *call.Call, app string) error {
	if x.Route.Need.Credential == auth.OfAccount {
		return auth.ErrSession
	}
	open, err := x.Host.Apps.Open(app)
	if err != nil {
		return err
	}
	x.App, x.Principal = open, auth.Principal{App: app, Scopes: auth.All}
	if !x.At.Matches(open) {
		return call.NoPath
	}
	return nil
}

// identify reads the credential of a request. It ignores a session token if Authorization is set.
func identify(x *call.Call, r *call.Request) error {
	if r.Authorization == "" && r.Session != "" {
		return bySession(x, r.Session)
	}
	if token, ok := auth.Bearer(r.Authorization); ok {
		return byToken(x, token)
	}
	return byKey(x, r.Authorization)
}

// byKey authenticates by key. It reads the store for each request, so a deleted key is unknown to the next request.
func byKey(x *call.Call, authorization string) error {
	hash, err := auth.Key(authorization)
	if err != nil {
		return err
	}
	key, err := x.Host.Apps.Key(hash)
	if err == nil {
		x.App, err = x.Host.Apps.Open(key.App)
	}
	if err != nil {
		return call.ReplaceNotFound(err, auth.ErrKeyUnknown)
	}
	x.Principal = auth.Principal{App: key.App, By: auth.ByKey(hash), Scopes: auth.SetOf(key.Scopes), Bucket: hash, Maker: key.By, Operator: key.By == ""}
	return nil
}

// byToken authenticates by access token. The token is valid while its client has the generation in the token. The token of a page is valid
// only while the page's session is open. So a host without accounts rejects it.
func byToken(x *call.Call, token string) error {
	if x.Host.Tokens == nil || token == "" {
		return auth.ErrToken
	}
	claims, err := x.Host.Tokens.Read(token)
	if err != nil {
		return err
	}
	client, err := x.Host.Apps.Client(claims.Client)
	if err == nil && (client.App != claims.App || client.Generation != claims.Generation) {
		return auth.ErrToken
	}
	if err == nil && claims.Session != "" {
		err = checkSession(x, claims.Session)
	}
	if err == nil {
		x.App, err = x.Host.Apps.Open(client.App)
	}
	if err != nil {
		return call.ReplaceNotFound(err, auth.ErrToken)
	}
	x.Until = claims.Expires
	x.Principal = auth.Principal{
		App: client.App, By: auth.ByToken, Client: client.ID, Generation: client.Generation, Scopes: auth.All, Bucket: auth.HashKey(client.ID),
		Page: claims.Page, Maker: x.App.Owner, Operator: x.App.Owner == "",
	}
	return nil
}

// checkSession returns auth.ErrToken unless the session of a page's token is open.
func checkSession(x *call.Call, id string) error {
	if x.Host.Accounts == nil {
		return auth.ErrToken
	}
	err := x.Host.Accounts.CheckSession(x.Ctx, id)
	if errors.Is(err, auth.ErrSession) {
		return auth.ErrToken
	}
	return err
}

// bySession authenticates by session token. An account may use its own applications: the one in the path, or else its
// only one. If there is none, x.App stays nil, so that the call is counted before it is refused. Calls
// about the account need no application.
func bySession(x *call.Call, session string) error {
	if x.Host.Accounts == nil {
		return auth.ErrSession
	}
	account, err := x.Host.Accounts.Session(x.Ctx, session)
	if err != nil {
		return err
	}
	x.Principal = auth.Principal{Account: account, Maker: account, By: auth.BySession, Scopes: auth.All, Bucket: auth.HashKey(account)}
	if x.Route.Need.Credential == auth.OfAccount {
		return nil
	}
	if x.At.Long {
		app, err := x.Host.Apps.App(x.At.App)
		if err != nil || app.Owner != account {
			return call.ReplaceNotFound(err, nil)
		}
		x.Principal.App = app.ID
	} else {
		owned, err := x.Host.Apps.AppsOf(account)
		if err != nil || len(owned) != 1 {
			return err
		}
		x.Principal.App = owned[0].ID
	}
	x.App, err = x.Host.Apps.Open(x.Principal.App)
	return call.ReplaceNotFound(err, nil)
}

// owner returns the account for which a call counts; empty: the operator's.
func owner(x *call.Call) string {
	if x.App != nil {
		return x.App.Owner
	}
	return x.Principal.Account
}

// spend counts the call against the quota.
func spend(x *call.Call) error {
	if x.Host.Calls == nil {
		return nil
	}
	c := call.CountedCall{Account: owner(x), By: x.Principal.By, Route: x.Route.Method + " " + x.Route.Path}
	if x.App != nil {
		c.App = x.App.ID
	}
	left, err := x.Host.Calls.Spend(x.Ctx, c)
	if errors.Is(err, auth.ErrQuota) {
		left = 0
	}
	if left >= 0 && (err == nil || errors.Is(err, auth.ErrQuota)) {
		x.Header = append(x.Header, call.Field{Name: call.HeaderCallsLeft, Value: strconv.FormatInt(left, 10)})
	}
	return err
}
