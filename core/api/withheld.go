package api

import "github.com/sightline-dev/sightline/core/api/call"

// WithoutBody returns res without the body that the host has no memory for. res is the response to r, a call that has written. The new body
// has a status and no elements.
func WithoutBody(r *call.Request, res call.Response) call.Response {
	x := &call.Call{}
	_, _ = setRoute(x, r.Method, r.Path)
	return x.WithoutBody(res)
}
