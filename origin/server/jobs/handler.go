package jobs

import (
	"context"
	"slices"
	"time"

	"github.com/sightline-dev/sightline/core/api"
)

// Service is the engine as the pool drives it.
type Service interface {
	Begin(ctx context.Context, r *api.Request) *api.Exchange
	// Caller returns the account or the application that a request speaks for, from its head.
	Caller(ctx context.Context, r *api.Request) (string, error)
	// Refuse answers a request that is not let through.
	Refuse(r *api.Request, err error) api.Response
}

// Handler answers requests with a service and runs what its calls wait for on a pool.
type Handler struct {
	Service
	Pool    *Pool
	Timeout time.Duration // of a call without a video; 0, or a call with one: as long as its context

	// Audit notes what a call did, before it is answered. An error is the answer. nil: nothing is noted.
	Audit func(r *api.Request, did api.AuditEvent) error
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
	short := ctx
	if h.Timeout > 0 {
		var cancel context.CancelFunc
		short, cancel = context.WithTimeout(ctx, h.Timeout)
		defer cancel()
	}
	call := h.Begin(ctx, r)
	first := false
	for !call.Done() {
		todo := call.Jobs()
		if !first && h.Pool.goesFirst(todo) {
			first = true
			h.Pool.gate.move(1, 0)
			defer h.Pool.gate.move(-1, 0)
		}
		results, err := h.work(ctx, short, r, todo, entered)
		if err != nil {
			call.GiveUp(err)
			return h.Refuse(r, err)
		}
		call.Resume(results)
	}
	res := call.Response()
	if h.Audit != nil && res.Did != (api.AuditEvent{}) {
		if err := h.Audit(r, res.Did); err != nil {
			return h.Refuse(r, err)
		}
	}
	return res
}

// work runs jobs. Those with a video may take longer, and end when the client has gone.
func (h *Handler) work(ctx, short context.Context, r *api.Request, todo []api.Job, entered bool) ([]api.Result, error) {
	if !slices.ContainsFunc(todo, func(j api.Job) bool { return j.Video.SampleMS > 0 }) {
		return h.Pool.run(short, r.Caller, todo, entered)
	}
	if r.Watch != nil {
		watched, stop := r.Watch(ctx)
		defer stop()
		ctx = watched
	}
	return h.Pool.run(ctx, r.Caller, todo, entered)
}
