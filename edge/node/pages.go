package node

import (
	"context"
	"path"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/origin/command"
	"github.com/sightline-dev/sightline/origin/httpd"
	"github.com/sightline-dev/sightline/web"
)

// lookPath is the page that computes for itself and asks no account.
const lookPath = "/look"

// pages are the files of the pages and the one page that needs no account: accounts, and what they see
// of their applications, are the origin's.
type pages struct{ *web.Pages }

// Mounts implements [command.Program].
func (n *Node) Mounts(s *command.Server) ([]httpd.Mount, error) {
	all, err := web.NewPages(s.Refuse)
	if err != nil {
		return nil, err
	}
	return []httpd.Mount{{Prefix: "", Handler: pages{all}, Own: true}}, nil
}

// Serve implements [httpd.Handler].
func (p pages) Serve(ctx context.Context, r *api.Request) api.Response {
	switch {
	case r.Path == "/":
		return api.Response{Status: 302, Header: []api.Field{{Name: "Location", Value: lookPath}}}
	case r.Path == lookPath, path.Ext(r.Path) != "":
		return p.Pages.Serve(ctx, r)
	}
	return p.Refuse(r, api.ErrPath)
}
