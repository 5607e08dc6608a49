package api

import (
	"errors"
	"time"

	"github.com/sightline-dev/sightline/core/auth"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/jsonio"
)

// tokenScope is what every access token shows as its scope.
const tokenScope = "api_access_write api_access api_access_read"

// noStore keeps secrets out of the caches between us and who asked for them.
var noStore = Field{"Cache-Control", "no-store"}

// issueToken gives an application's client an access token. Basic authentication alone says who
// asks; clients send any body.
//
// A client that is not known costs what one with another secret costs: a hash of the secret, one
// look into the store, one comparison. Who asks too often is told so whether right or wrong, and
// wrong secrets never count against the right one.
func issueToken(x *Call) error {
	id, secret, ok := auth.Basic(x.authorization)
	if !ok {
		return refusef(auth.ErrNoCredentials, "Send your client ID and secret in the header Authorization: Basic BASE64(ID:SECRET).")
	}
	l := &x.s.limiters
	if x.remote != "" {
		if err := l.remote.Take(auth.HashKey(x.remote), x.now); err != nil {
			return err
		}
	}
	client, err := x.s.o.Apps.Client(id)
	if err != nil && !errors.Is(err, catalog.ErrNotFound) {
		return err
	}
	name := auth.HashKey(id)
	if same := auth.Same(client.Secret, secret); !same || err != nil || x.s.o.Tokens == nil {
		if err := l.guess.Take(name, x.now); err != nil {
			return err
		}
		return auth.ErrClient
	}
	if err := l.client.Take(name, x.now); err != nil {
		return err
	}
	if x.app, err = x.s.o.Apps.Open(client.App); err != nil {
		return unless(err, auth.ErrClient)
	}
	if !x.at.names(x.app) {
		return errPath
	}
	token, life, err := x.s.o.Tokens.Issue(auth.Claims{App: client.App, Client: client.ID, Generation: client.Generation})
	if err != nil {
		return err
	}
	x.ok(func(w *jsonio.Writer) {
		w.Name("access_token")
		w.String(token)
		w.Name("expires_in")
		w.Int(int64(life / time.Second))
		w.Name("scope")
		w.String(tokenScope)
	})
	x.call.response.Header = append(x.call.response.Header, noStore)
	return nil
}
