package api

import (
	"context"
	"time"

	"github.com/sightline-dev/sightline/core/auth"
	"github.com/sightline-dev/sightline/core/catalog"
)

// Identify says for whom a request speaks, as every call finds it out, and when what it was
// asked with ends; zero: it does not. It neither counts the call nor holds it to a rate: that is
// for calls of the interface, and this is for what a host mounts beside it. The principal has an
// application. Errors: those of credentials, [ErrWhichApp] and the store's.
func (s *Service) Identify(ctx context.Context, r *Request) (auth.Principal, time.Time, error) {
	if r.App != "" {
		_, err := s.o.Apps.Open(r.App)
		return auth.Principal{App: r.App, By: auth.BySession, Scopes: auth.All, Bucket: auth.HashKey(r.App)}, time.Time{}, err
	}
	x := exchange{s: s, ctx: ctx, route: &route{}, now: s.o.Clock()}
	if err := x.identify(r); err != nil {
		return auth.Principal{}, time.Time{}, err
	}
	if x.who.App == "" || x.app == nil {
		return auth.Principal{}, time.Time{}, ErrWhichApp
	}
	return x.who, x.until, nil
}

// Serving is the base of the network that serves an application as r shows it.
func (s *Service) Serving(r catalog.Reader) ([32]byte, error) {
	n, err := s.networkOf(r)
	if err != nil {
		return [32]byte{}, err
	}
	return n.base, nil
}
