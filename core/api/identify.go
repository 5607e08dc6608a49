package api

import (
	"cmp"
	"context"
	"time"

	"github.com/sightline-dev/sightline/core/api/call"
	"github.com/sightline-dev/sightline/core/auth"
	"github.com/sightline-dev/sightline/core/catalog"
)

// Identify returns the caller of a request, by the same rules as every call, and the expiry of its credential; zero: none. Handlers that a
// host mounts next to /v2 use it. It does not count the call or limit its rate. The principal always
// has an application. It returns errors of credentials, [call.ErrWhichApp] and errors of the store.
func (s *Service) Identify(ctx context.Context, r *call.Request) (auth.Principal, time.Time, error) {
	if r.App != "" {
		app, err := s.host.Apps.Open(r.App)
		if err != nil {
			return auth.Principal{}, time.Time{}, err
		}
		return auth.Principal{App: r.App, By: auth.BySession, Scopes: auth.All, Bucket: auth.HashKey(r.App), Caller: app.Caller()}, time.Time{}, nil
	}
	x := call.NewCall(ctx, s.host, r)
	x.Route = &call.Route{}
	if err := identify(x, r); err != nil {
		return auth.Principal{}, time.Time{}, err
	}
	if x.Principal.App == "" || x.App == nil {
		return auth.Principal{}, time.Time{}, call.ErrWhichApp
	}
	x.Principal.Caller = x.App.Caller()
	return x.Principal, x.Until, nil
}

// Caller returns the account or application of a call, like [Application.Caller], from the head of the request alone. So a host can
// reject a stranger before it reads the body. It is empty for calls without a credential or with a client's. Caller neither counts the
// call nor limits its rate. It returns errors of paths, methods and credentials.
func (s *Service) Caller(ctx context.Context, r *call.Request) (string, error) {
	if r.Method == "OPTIONS" {
		return "", nil
	}
	x := call.NewCall(ctx, s.host, r)
	if _, err := setRoute(x, r.Method, r.Path); err != nil {
		return "", err
	}
	switch credential := x.Route.Need.Credential; {
	case credential == auth.OfNobody, credential == auth.OfClient:
		return "", nil
	case r.App != "":
		return r.App, nil
	}
	if err := identify(x, r); err != nil {
		return "", err
	}
	if x.App != nil {
		return x.App.Caller(), nil
	}
	return cmp.Or(x.Principal.Account, x.Principal.App), nil
}

// ServingBase returns the base of the network that serves the application in r.
func (s *Service) ServingBase(r catalog.Reader) ([32]byte, error) {
	n, err := s.host.NetworkOf(r)
	if err != nil {
		return [32]byte{}, err
	}
	return n.Base, nil
}
