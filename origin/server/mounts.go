package server

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/origin/server/httpd"
	"github.com/sightline-dev/sightline/origin/server/token"
	"github.com/sightline-dev/sightline/wasm"
	"github.com/sightline-dev/sightline/wasm/abi"
	"github.com/sightline-dev/sightline/web/openapi"
	"github.com/sightline-dev/sightline/web/runtime/served"
)

// mounts returns the server's mounts, longest prefix first.
func (srv *Server) mounts() ([]httpd.Mount, error) {
	var mounts []httpd.Mount
	if own := srv.Settings.Options.Mounts; own != nil {
		var err error
		if mounts, err = own(srv); err != nil {
			return nil, err
		}
	}
	mounts = append(mounts,
		httpd.Mount{Prefix: "/v2", Handler: srv.Handler, Caller: srv.Handler.Caller, CallTimeout: max(callTime, srv.Settings.VideoCallTime)},
		httpd.Mount{Prefix: token.Path, Handler: token.JWKSHandler{Tokens: srv.Tokens, Refuser: srv.Handler}, Static: true},
		httpd.Mount{Prefix: openapi.Path, Handler: openAPIHandler{srv.Handler}, Static: true},
		srv.runtime(),
	)
	slices.SortStableFunc(mounts, func(a, b httpd.Mount) int { return cmp.Compare(len(b.Prefix), len(a.Prefix)) })
	return mounts, nil
}

// runtime returns the mount of the files with which pages compute. It loads them at the first request, since they take memory: the peak of
// a thousand predictions is 89 MiB without them and 210 MiB with them.
func (srv *Server) runtime() httpd.Mount {
	files := sync.OnceValues(func() (*served.Files, error) {
		modules := map[string][]byte{}
		for _, f := range []wasm.File{wasm.Guest, wasm.Kernels, wasm.RelaxedKernels} {
			packed, err := f.Packed()
			if err != nil {
				return nil, err
			}
			modules[string(f)] = packed
		}
		return served.New(served.Parts{
			Modules: modules, Bundles: srv.Settings.Bundles,
			Decoders: map[string]func() ([]byte, error){abi.FFmpegModule: srv.decoder.Module, abi.JPEGXLModule: srv.decoder.JXLModule},
		})
	})
	return httpd.Mount{Prefix: strings.TrimSuffix(served.Path, "/"), Handler: computing{srv.Handler, files, srv.Log}, SameOrigin: true, Static: true}
}

// computing answers with the runtime's files. In a program built without them it refuses the request.
type computing struct {
	httpd.Handler
	files func() (*served.Files, error)
	log   *slog.Logger
}

// Serve implements [httpd.Handler].
func (c computing) Serve(ctx context.Context, r *api.Request) api.Response {
	files, err := c.files()
	switch {
	case errors.Is(err, wasm.ErrNotBuilt), errors.Is(err, served.ErrNotBuilt), err == nil && !files.Has(r.Path):
		return c.Refuse(r, api.ErrPath)
	case err != nil:
		c.log.Error("cannot serve the browser runtime", "error", err)
		return c.Refuse(r, api.ErrInternal)
	}
	return files.Serve(ctx, r)
}

// openAPIHandler answers with the API's description.
type openAPIHandler struct{ httpd.Handler }

// Serve implements [httpd.Handler].
func (openAPIHandler) Serve(_ context.Context, r *api.Request) api.Response { return openapi.Serve(r) }
