package api

import (
	"context"

	"github.com/sightline-dev/sightline/core/api/call"
)

// Service answers requests. It is immutable. It is safe for concurrent use if its
// options are.
type Service struct{ host *call.Host }

// New checks the options. It returns [ErrOptions] for missing and malformed options.
func New(o call.Options) (*Service, error) {
	host, err := call.NewHost(o)
	if err != nil {
		return nil, err
	}
	return &Service{host}, nil
}

// Begin starts a request. The returned exchange is done unless the call needs jobs, such as pictures to analyse.
// ctx bounds the reading and writing of blobs.
func (s *Service) Begin(ctx context.Context, r *call.Request) *call.Exchange {
	if r.Method == "OPTIONS" && segments(r.Path) != nil {
		return call.RespondWith(call.Preflight())
	}
	method := r.Method
	if method == "HEAD" {
		method = "GET" // the host omits the body
	}
	x := call.NewCall(ctx, s.host, r)
	defer x.Release()
	matched, err := setRoute(x, method, r.Path)
	if err == nil {
		err = admit(x, r, matched.has)
	}
	if err == nil {
		err = x.Prepare(r.Body)
	}
	if err == nil {
		err = matched.handle(x)
	}
	if err != nil {
		x.End(err)
	}
	return &x.Exchange
}

// Refuse returns the answer to a request that the host does not begin or does not complete, because of
// [ErrBusy], [ErrTimeout], jsonio's ErrTooLong, or any other error of core.
// The host may have begun the call, so the answer never has [HeaderApplied].
func (s *Service) Refuse(r *call.Request, err error) call.Response {
	x := &call.Call{Host: s.host}
	_, _ = setRoute(x, r.Method, r.Path)
	x.Fail(err)
	return x.Exchange.Response()
}
