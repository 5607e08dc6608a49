package command

import (
	"context"
	"time"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/origin/httpd"
	"github.com/sightline-dev/sightline/origin/token"
	"github.com/sightline-dev/sightline/web/openapi"
)

// exportTime bounds an export that a page asks for: each piece of it has a deadline of its own,
// and a large application takes longer than any other call.
const exportTime = 6 * time.Hour

// mounts are what the server answers, by the beginnings of paths: the interface, what describes it and its tokens,
// and the program's own.
func (srv *Server) mounts() ([]httpd.Mount, error) {
	own, err := srv.settings.program.Mounts(srv)
	if err != nil {
		return nil, err
	}
	return append([]httpd.Mount{
		{Prefix: "/v2", Handler: recorded{srv.handler, srv.node}},
		{Prefix: token.Path, Handler: token.Published{Tokens: srv.tokens, Refuser: srv.handler}},
		{Prefix: openapi.Path, Handler: described{srv.handler}},
	}, own...), nil
}

// described answers with the interface's description.
type described struct{ httpd.Handler }

// Serve implements [httpd.Handler].
func (described) Serve(_ context.Context, r *api.Request) api.Response { return openapi.Serve(r) }
