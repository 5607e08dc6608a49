package api

import (
	"cmp"
	"context"
	"time"

	"github.com/sightline-dev/sightline/core/api/call"
	"github.com/sightline-dev/sightline/core/auth"
	"github.com/sightline-dev/sightline/core/catalog"
)

// Identify returns the caller of a request, by the rules of every call, and the end of its credential; zero: never. It neither counts the
// call nor limits its rate, which concern only calls of the interface: it is for handlers that a host mounts next to it. The principal
// has an application. Errors: those of credentials, [ErrWhichApp] and the store's.
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

// Caller returns whom a call is for, as [Application.Caller], or the account that asks, from the head of the request alone: a host can
// refuse a stranger before it reads the body. It is empty for calls that need no credential, or a client's. It neither counts the call nor
// holds it to a rate. Errors: those of paths, methods and credentials.
func (s *Service) Caller(ctx context.Context, r *call.Request) (string, error) {
	if r.Method == "OPTIONS" {
		return "", nil
	}
	x := call.NewCall(ctx, s.host, r)
	if _, err := setRoute(x, r.Method, r.Path); err != nil {
		return "", err
	}
	switch asks := x.Route.Need.Asks; {
	case asks == auth.OfNobody, asks == auth.OfClient:
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

// Serving is the base of the network that serves an application as r shows it.
func (s *Service) Serving(r catalog.Reader) ([32]byte, error) {
	n, err := s.host.NetworkOf(r)
	if err != nil {
		return [32]byte{}, err
	}
	return n.Base, nil
}
