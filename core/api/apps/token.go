package apps

import (
	"errors"
	"time"

	"github.com/sightline-dev/sightline/core/api/call"
	"github.com/sightline-dev/sightline/core/api/show"
	"github.com/sightline-dev/sightline/core/auth"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/jsonio"
)

// tokenScope is the scope in the answer for every access token.
const tokenScope = "api_access_write api_access api_access_read"

// IssueToken issues an access token to an application's client. Only Basic authentication identifies the client; the body is ignored.
//
// An unknown client costs the same as a wrong secret: a hash of the secret, one read of the store, one comparison. A caller that
// exceeds a rate is refused, whether its secret is correct or not. Wrong secrets never count against the rate of the correct one.
func IssueToken(x *call.Call) error {
	id, secret, ok := auth.Basic(x.Authorization)
	if !ok {
		return call.Refusef(auth.ErrNoCredentials, "Send your client ID and secret in the header Authorization: Basic BASE64(ID:SECRET).")
	}
	l := &x.Host.Limiters
	if x.Remote != "" {
		if err := l.Remote.Take(auth.HashKey(x.Remote), x.Now); err != nil {
			return err
		}
	}
	client, err := x.Host.Apps.Client(id)
	if err != nil && !errors.Is(err, catalog.ErrNotFound) {
		return err
	}
	name := auth.HashKey(id)
	if same := auth.Same(client.Secret, secret); !same || err != nil || x.Host.Tokens == nil {
		if err := l.Guess.Take(name, x.Now); err != nil {
			return err
		}
		return auth.ErrClient
	}
	if err := l.Client.Take(name, x.Now); err != nil {
		return err
	}
	if x.App, err = x.Host.Apps.Open(client.App); err != nil {
		return call.ReplaceNotFound(err, auth.ErrClient)
	}
	if !x.At.Matches(x.App) {
		return call.NoPath
	}
	token, life, err := x.Host.Tokens.Issue(auth.Claims{App: client.App, Client: client.ID, Generation: client.Generation})
	if err != nil {
		return err
	}
	return x.NoStore(x.OK(func(w *jsonio.Writer) {
		w.Text("access_token", token)
		show.WriteInt(w, "expires_in", life/time.Second)
		w.Text("scope", tokenScope)
	}))
}
