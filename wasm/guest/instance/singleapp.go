package instance

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"io"
	"strings"
	"time"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/auth"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/lang"
	"github.com/sightline-dev/sightline/core/register"
)

// singleApp lets every caller into the one application. It has a page's own data, which the page can
// reach with any credential. Malformed credentials are refused in the engine's words.
type singleApp struct {
	instance *Instance
	app      catalog.App     // the zero value: not looked for yet
	client   register.Client // its secret is drawn when a token is first asked for, and kept nowhere
}

// Where the one application is made without being asked for.
const localName = "local"

// application returns the one application: the settings' own, or else the store's first. It creates one in an empty store.
func (d *singleApp) application() (catalog.App, error) {
	if d.app.ID != "" {
		return d.app, nil
	}
	e := d.instance.engine
	if id := d.instance.settings.App; id != "" {
		app, err := e.Register.App(id)
		if err == nil {
			d.app = app
		}
		return app, err
	}
	apps, err := e.Register.Apps()
	if err != nil {
		return catalog.App{}, err
	}
	if len(apps) > 0 {
		d.app = apps[0]
		return d.app, nil
	}
	app, client, err := e.Register.CreateApp(context.Background(), register.Caller{}, register.NewApp{Name: localName, Language: lang.English})
	if err == nil {
		d.app, d.client = app, client
	}
	return app, err
}

// admit gives a request the rights of the owner, if its credential is well formed.
func (d *singleApp) admit(r *api.Request) {
	if r.App != "" {
		return
	}
	app, err := d.application()
	if err != nil {
		d.instance.log(levelError, "application: %v", err)
		return
	}
	if id, _, ok := auth.Basic(r.Authorization); ok {
		if id != "" {
			d.introduce(r)
		}
		return
	}
	if wellFormed(r) {
		r.App = app.ID
	}
}

// wellFormed reports whether what a request shows may be a credential.
func wellFormed(r *api.Request) bool {
	if strings.TrimSpace(r.Authorization) == "" {
		return true
	}
	if token, ok := auth.Bearer(r.Authorization); ok {
		return token != ""
	}
	_, err := auth.Key(r.Authorization)
	return err == nil
}

// introduce has a client, whichever, ask for a token as the application's own.
func (d *singleApp) introduce(r *api.Request) {
	if d.client.Secret == "" {
		var err error
		d.client, err = d.instance.engine.Register.ReplaceSecret(context.Background(), register.Caller{}, d.app.ID)
		if errors.Is(err, register.ErrNotOrigin) {
			return
		}
		if err != nil {
			d.instance.log(levelError, "client: %v", err)
			return
		}
	}
	r.Authorization = "Basic " + base64.StdEncoding.EncodeToString([]byte(d.client.ID+":"+d.client.Secret))
}

// noTokens gives empty tokens: access to a single application needs none.
type noTokens struct{ random io.Reader }

var _ api.Tokens = noTokens{}

const tokenLife = 15 * time.Minute

// Issue implements [api.Tokens].
func (v noTokens) Issue(auth.Claims) (token string, life time.Duration, err error) {
	var b [16]byte
	if _, err := io.ReadFull(v.random, b[:]); err != nil {
		return "", 0, err
	}
	return hex.EncodeToString(b[:]), tokenLife, nil
}

// Read implements [api.Tokens].
func (noTokens) Read(string) (auth.Claims, error) { return auth.Claims{}, auth.ErrToken }
