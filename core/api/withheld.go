package api

import "github.com/sightline-dev/sightline/core/api/call"

// Withheld is res, the answer to a call that has written, without the body that a host has no memory for.
func Withheld(r *call.Request, res call.Response) call.Response {
	x := &call.Call{}
	_, _ = setRoute(x, r.Method, r.Path)
	return x.Withheld(res)
}
