package host

import (
	"cmp"
	"context"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/auth"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/register"
)

// router finds the application of a request. It answers requests without one itself, with the service that the instances have, which
// refuses everybody. So the answers do not reveal whether a key, a token or a client is known, and no instance is opened for a stranger.
type router struct {
	f       *Fleet
	service *api.Service
}

func newRouter(f *Fleet) (*router, error) {
	o := &f.o
	service, err := api.New(api.Options{
		Models: o.Models, Hosted: o.Services.Hosted, Apps: anonymousApps{f.o.records()}, Tokens: o.Services.Tokens,
		Clock: o.Services.Clock, Rand: o.Services.Rand, PublicURL: o.Settings.PublicURL, PublicAppID: o.Settings.PublicAppID,
		KeepPredicted: o.Settings.KeepPredicted, Rate: o.Rate, OperatorRate: o.OperatorRate,
	})
	return &router{f, service}, err
}

// records are those of applications, keys and clients.
func (o *FleetOptions) records() catalog.Reader {
	return catalog.Read(o.Services.Store, catalog.Control)
}

// application returns the application of a request's credential; empty if there is none, or if it cannot be looked up: then the service
// reports the error.
func (x *router) application(r *api.Request) string {
	records := x.f.o.records()
	if r.App != "" {
		return r.App
	}
	if token, ok := auth.Bearer(r.Authorization); ok {
		if x.f.o.Services.Tokens == nil {
			return ""
		}
		claims, err := x.f.o.Services.Tokens.Read(token)
		if err != nil {
			return ""
		}
		if client, err := records.Client(claims.Client); err == nil && client.App == claims.App && client.Generation == claims.Generation {
			return client.App
		}
		return ""
	}
	if id, secret, ok := auth.Basic(r.Authorization); ok {
		client, err := records.Client(id)
		if same := auth.Same(client.Secret, secret); same && err == nil {
			return client.App
		}
		return ""
	}
	hash, err := auth.Key(r.Authorization)
	if err != nil {
		return ""
	}
	key, err := records.Key(hash)
	if err != nil {
		return ""
	}
	return key.App
}

// Caller returns for whom a request speaks; see api.Service.
func (f *Fleet) Caller(ctx context.Context, r *api.Request) (string, error) {
	if app := f.front.application(r); app != "" {
		record, err := f.o.records().App(app)
		return cmp.Or(record.Owner, app), err
	}
	return f.front.service.Caller(ctx, r)
}

// AppOf is the application that a request's credential is good for; empty: it is good for none.
func (f *Fleet) AppOf(r *api.Request) string { return f.front.application(r) }

// anonymousApps is the register as the front sees it: it reads all of it and opens nothing.
type anonymousApps struct{ catalog.Reader }

var _ api.Applications = anonymousApps{}

// Open implements [api.Applications]: none.
func (anonymousApps) Open(string) (*api.Application, error) { return nil, catalog.ErrNotFound }

// AppsOf implements [api.Applications]: none, since there are no accounts here.
func (anonymousApps) AppsOf(string) ([]catalog.App, error) { return nil, nil }

// Keys implements [api.Applications].
func (s anonymousApps) Keys(app string) (keys []catalog.Key, err error) {
	err = s.KeysOf(app, func(k catalog.Key) bool {
		keys = append(keys, k)
		return true
	})
	return keys, err
}

// CreateApp implements [api.Applications]: the host makes applications.
func (anonymousApps) CreateApp(context.Context, string, string, api.NewApp) (catalog.App, error) {
	return catalog.App{}, register.ErrNotOrigin
}

// CreateKey implements [api.Applications]: the host makes keys.
func (anonymousApps) CreateKey(context.Context, string, string, api.NewKey) (string, catalog.Key, error) {
	return "", catalog.Key{}, register.ErrNotOrigin
}
