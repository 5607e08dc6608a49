package command

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/origin/httpd"
	"github.com/sightline-dev/sightline/origin/token"
	"github.com/sightline-dev/sightline/wasm"
	"github.com/sightline-dev/sightline/web/openapi"
	"github.com/sightline-dev/sightline/web/runtime/served"
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
	local, err := srv.runtime()
	if err != nil {
		return nil, err
	}
	return append([]httpd.Mount{
		{Prefix: "/v2", Handler: recorded{srv.handler, srv.node}},
		{Prefix: token.Path, Handler: token.Published{Tokens: srv.tokens, Refuser: srv.handler}},
		{Prefix: openapi.Path, Handler: described{srv.handler}},
	}, append(local, own...)...), nil
}

// runtime is what pages compute with for themselves; a program that was built without it has none.
func (srv *Server) runtime() ([]httpd.Mount, error) {
	guest, err := wasm.Guest()
	if err != nil {
		return nil, ignore(err, wasm.ErrNotBuilt)
	}
	kernels, err := wasm.Kernels()
	if err != nil {
		return nil, ignore(err, wasm.ErrNotBuilt)
	}
	files, err := served.New(served.Parts{Guest: guest, Kernels: kernels, Bundles: srv.settings.bundles})
	if err != nil {
		return nil, ignore(err, served.ErrNotBuilt)
	}
	return []httpd.Mount{{Prefix: strings.TrimSuffix(served.Path, "/"), Handler: computing{files, srv.handler}, Own: true}}, nil
}

// ignore is err, unless it is that one.
func ignore(err, that error) error {
	if errors.Is(err, that) {
		return nil
	}
	return err
}

// computing answers with the runtime's files.
type computing struct {
	*served.Files
	httpd.Handler
}

// Serve implements [httpd.Handler].
func (c computing) Serve(ctx context.Context, r *api.Request) api.Response {
	if !c.Has(r.Path) {
		return c.Refuse(r, api.ErrPath)
	}
	return c.Files.Serve(ctx, r)
}

// described answers with the interface's description.
type described struct{ httpd.Handler }

// Serve implements [httpd.Handler].
func (described) Serve(_ context.Context, r *api.Request) api.Response { return openapi.Serve(r) }
