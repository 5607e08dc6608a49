package jobs

import (
	"context"
	"slices"
	"time"

	"github.com/sightline-dev/sightline/core/api"
)

// Service is the part of an engine that the handler needs.
type Service interface {
	Begin(ctx context.Context, r *api.Request) *api.Exchange
	// Caller returns the account or the application that makes a request, from the request's head.
	Caller(ctx context.Context, r *api.Request) (string, error)
	// Refuse returns the answer to a request that the server rejects with err.
	Refuse(r *api.Request, err error) api.Response
}

// Handler answers requests with a service, and runs the jobs of their calls on a pool.
type Handler struct {
	Service
	Pool    *Pool
	Timeout time.Duration // limit of a call without long jobs, see isLong; 0, or a call with such a job: only the context limits it

	// Audit records a call's action before the answer. If it fails, the answer is its error. nil: no recording.
	Audit func(r *api.Request, did api.AuditEvent) error
}

// Serve answers r. Requests with a body may cause work, so the pool limits their number, and callers share the limit. A request beyond it waits
// for its turn.
func (h *Handler) Serve(ctx context.Context, r *api.Request) api.Response {
	short, end := withLimit(ctx, h.Timeout)
	defer end()
	var t *turn // nil: the call needs none
	if len(r.Body) > 0 {
		var err error
		if t, err = h.Pool.enter(short, r.Caller, r.Watch); err != nil {
			return h.Refuse(r, err)
		}
		defer t.leave()
	}
	call := h.Begin(ctx, r)
	first := false
	for !call.Done() {
		todo := call.Jobs()
		if t != nil && len(todo) > 0 && !isPause(todo) {
			if err := t.toPictures(short, r.Watch); err != nil {
				call.GiveUp(err)
				return h.Refuse(r, err)
			}
		}
		if !first && h.Pool.hasPriority(todo) {
			first = true
			h.Pool.gate.move(1, 0)
			defer h.Pool.gate.move(-1, 0)
		}
		results, err := h.work(ctx, short, r, todo, t)
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

// work runs jobs. A call with a video, or with a picture that takes seconds to decode, may take longer, and ends when the client disconnects.
// For a downloaded or stored picture, the pool calls removeLimit once it has the bytes and the picture takes long.
func (h *Handler) work(ctx, short context.Context, r *api.Request, todo []api.Job, t *turn) ([]api.Result, error) {
	caller := r.Caller
	if slices.ContainsFunc(todo, isLong) {
		short = ctx
	} else if caller == "" && isPause(todo) { // the request has no body, so nobody has asked yet
		var err error
		if caller, err = h.Caller(ctx, r); err != nil {
			return nil, err
		}
	}
	if r.Watch != nil && !isPause(todo) && slices.ContainsFunc(todo, func(j api.Job) bool { return isLong(j) || j.Data == nil }) {
		watched, stop := r.Watch(short)
		defer stop()
		short = watched
	}
	return h.Pool.run(short, caller, todo, t)
}

type limitKey struct{}

// withLimit returns a context that ends after a time, unless removeLimit is called before. Zero is no limit.
func withLimit(ctx context.Context, after time.Duration) (context.Context, context.CancelFunc) {
	if after == 0 {
		return ctx, func() {}
	}
	timer, stop := context.WithTimeout(context.WithoutCancel(ctx), after)
	ctx, cancel := context.WithCancelCause(ctx)
	keep := context.AfterFunc(timer, func() { cancel(timer.Err()) })
	return context.WithValue(ctx, limitKey{}, keep), func() {
		keep()
		stop()
		cancel(nil)
	}
}

// removeLimit removes the limit of withLimit from ctx.
func removeLimit(ctx context.Context) {
	if keep, ok := ctx.Value(limitKey{}).(func() bool); ok {
		keep()
	}
}
