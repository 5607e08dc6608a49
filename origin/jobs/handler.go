package jobs

import (
	"context"

	"github.com/sightline-dev/sightline/core/api"
)

// Service is the engine as the pool drives it.
type Service interface {
	Begin(ctx context.Context, r *api.Request) *api.Call
	Caller(ctx context.Context, r *api.Request) (string, error)
	Refuse(r *api.Request, err error) api.Response
}

// Handler answers requests with a service and runs what its calls wait for on a pool.
type Handler struct {
	Service Service
	Pool    *Pool
}

// Serve answers r. Requests with a body may mean work, so only so many are begun at once, which callers share.
func (h *Handler) Serve(ctx context.Context, r *api.Request) api.Response {
	entered := len(r.Body) > 0
	if entered {
		leave, err := h.Pool.Enter(r.Caller)
		if err != nil {
			return h.Refuse(r, err)
		}
		defer leave()
	}
	call := h.Service.Begin(ctx, r)
	for !call.Done() {
		results, err := h.Pool.run(ctx, r.Caller, call.Jobs(), entered)
		if err != nil {
			call.GiveUp(err)
			return h.Refuse(r, err)
		}
		call.Resume(results)
	}
	return call.Response()
}

// Caller returns for whom a request speaks, from its head.
func (h *Handler) Caller(ctx context.Context, r *api.Request) (string, error) {
	return h.Service.Caller(ctx, r)
}

// Refuse answers a request that is not let through.
func (h *Handler) Refuse(r *api.Request, err error) api.Response { return h.Service.Refuse(r, err) }
