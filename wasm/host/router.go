package host

import (
	"cmp"
	"context"
	"errors"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/auth"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/register"
)

// router finds the application of a request. It answers a request without an application itself. For that it has the same service as the
// instances, but without applications, so the service rejects every credential. So the answers do not reveal whether a key, a token or a
// client is known, and the fleet opens no instance for a stranger.
type router struct {
	f       *Fleet
	service *api.Service
}

func newRouter(f *Fleet) (*router, error) {
	o := &f.o
	service, err := api.New(api.Options{
		Models: o.Models, Hosted: o.Services.Hosted, Apps: anonymousApps{f.o.records()}, Tokens: o.Services.Tokens,
		Clock: o.Services.Clock, Rand: o.Services.Rand, PublicURL: o.Settings.PublicURL, PublicAppID: o.Settings.PublicAppID,
		PredictedTTL: o.Settings.KeepPredicted, Rate: o.Rate, OperatorRate: o.OperatorRate,
	})
	return &router{f, service}, err
}

// records returns a reader of the records of applications, keys and clients.
func (o *FleetOptions) records() catalog.Reader {
	return catalog.Read(o.Services.Store, catalog.Control)
}

// application returns the ID of the application of r: r.App if it is set, or else the application that the credential belongs to. It
// returns "" if there is none or the lookup fails. The service then reports the error. unknown reports whether newer records could have the
// credential: its form is valid, and it has not expired.
func (x *router) application(r *api.Request) (app string, unknown bool) {
	records := x.f.o.records()
	if r.App != "" {
		return r.App, false
	}
	if token, ok := auth.Bearer(r.Authorization); ok {
		if x.f.o.Services.Tokens == nil {
			return "", false
		}
		claims, err := x.f.o.Services.Tokens.Read(token)
		if err != nil {
			return "", errors.Is(err, auth.ErrToken)
		}
		if client, err := records.Client(claims.Client); err == nil && client.App == claims.App && client.Generation == claims.Generation {
			return client.App, false
		}
		return "", true
	}
	if id, secret, ok := auth.Basic(r.Authorization); ok {
		client, err := records.Client(id)
		if same := auth.Same(client.Secret, secret); same && err == nil {
			return client.App, false
		}
		return "", id != ""
	}
	hash, err := auth.Key(r.Authorization)
	if err != nil {
		return "", false
	}
	key, err := records.Key(hash)
	if err != nil {
		return "", errors.Is(err, catalog.ErrNotFound)
	}
	return key.App, false
}

// application is [router.application]. If no record has the credential, it looks again after UnknownCredential.
func (f *Fleet) application(ctx context.Context, r *api.Request) string {
	app, unknown := f.router.application(r)
	if unknown && f.o.UnknownCredential != nil {
		f.o.UnknownCredential(ctx, r)
		app, _ = f.router.application(r)
	}
	return app
}

// Caller returns the ID of the account that owns the application of r, or the application's ID if no account owns it. See
// [api.Service.Caller].
func (f *Fleet) Caller(ctx context.Context, r *api.Request) (string, error) {
	if app, _ := f.router.application(r); app != "" {
		record, err := f.o.records().App(app)
		return cmp.Or(record.Owner, app), err
	}
	return f.router.service.Caller(ctx, r)
}

// AppOf returns the ID of the application of r: r.App, or the application that the credential belongs to. It returns "" if there is none.
func (f *Fleet) AppOf(ctx context.Context, r *api.Request) string { return f.application(ctx, r) }

// anonymousApps is the router's view of the applications. It reads all records, and opens no application.
type anonymousApps struct{ catalog.Reader }

var _ api.Applications = anonymousApps{}

// Open implements [api.Applications]. It always returns [catalog.ErrNotFound].
func (anonymousApps) Open(string) (*api.Application, error) { return nil, catalog.ErrNotFound }

// AppsOf implements [api.Applications]. It returns no applications, because the router has no accounts.
func (anonymousApps) AppsOf(string) ([]catalog.App, error) { return nil, nil }

// Keys implements [api.Applications].
func (s anonymousApps) Keys(app string) (keys []catalog.Key, err error) {
	err = s.KeysOf(app, func(k catalog.Key) bool {
		keys = append(keys, k)
		return true
	})
	return keys, err
}

// CreateApp implements [api.Applications]. It returns an error, because only the origin creates applications.
func (anonymousApps) CreateApp(context.Context, string, string, api.NewApp) (catalog.App, error) {
	return catalog.App{}, register.ErrNotOrigin
}

// CreateKey implements [api.Applications]. It returns an error, because only the origin creates keys.
func (anonymousApps) CreateKey(context.Context, string, string, api.NewKey) (string, catalog.Key, error) {
	return "", catalog.Key{}, register.ErrNotOrigin
}
