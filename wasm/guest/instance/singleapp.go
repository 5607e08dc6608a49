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

// singleApp gives every caller the rights of the owner of the only application. It is for a page that stores its own data: the page may use
// any credential or none. The engine refuses malformed credentials.
type singleApp struct {
	instance *Instance
	app      catalog.App     // zero until application has found or created it
	client   register.Client // client of app; its secret is created with app or for the first request of a token, and is only in memory
}

// localName is the name of the application that singleApp creates in an empty store.
const localName = "local"

// application returns the application of the settings. If they name none, it returns the first application in the store. If the store is
// empty, it creates one.
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

// admit gives a request the owner's rights if its credential is well formed. It ignores requests for which the host has set App.
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

// wellFormed reports whether a request has no credential, or a token or key in a valid form.
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

// introduce replaces the client in a request for a token with the application's client, so that any client gets a token. The first call may
// replace the client's secret. A replica cannot do that, and introduce then leaves the request as it is.
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

// noTokens issues random tokens without claims, and reads none. Access to a single application needs no token.
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
