package node

import (
	"cmp"
	"context"
	"time"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/register"
	"github.com/sightline-dev/sightline/origin/server"
	"github.com/sightline-dev/sightline/origin/server/console"
	"github.com/sightline-dev/sightline/origin/server/httpd"
	"github.com/sightline-dev/sightline/web"
)

// mounts returns the pages, which are the same as an origin's, and the interface that reports to them that accounts are at the origin.
func (n *Node) mounts(s *server.Server) ([]httpd.Mount, error) {
	own, err := s.Console(console.Options{Edge: &console.Edge{Identity: n.nameAndOrigin, AppOf: n.appOf, KeysAge: n.keysAge, Open: n.demo}})
	if err != nil {
		return nil, err
	}
	pages, err := web.NewPages(s.Handler.Refuse)
	if err != nil {
		return nil, err
	}
	return []httpd.Mount{
		{Prefix: console.Prefix, Handler: own, SameOrigin: true},
		{Prefix: "", Handler: pages, SameOrigin: true, Static: true},
	}, nil
}

// headerPage is the header of all requests of the pages that an edge serves.
const headerPage = "X-Sightline-Page"

// markPageRequest marks a request that a page sent. A page at an edge sends a key, as programs do, and the header. Its reads then
// do not count as calls of the key, as at an origin. A program that sends the header only gets the pages' rate of reads, which the
// owner of the key gets with a page, too.
func markPageRequest(r *api.Request) *api.Request {
	if r.Header == nil || r.Header(headerPage) == "" {
		return r
	}
	own := *r
	own.Page = true
	return &own
}

// nameAndOrigin returns the name of the edge and the URL of its origin. Both are empty if it has none.
func (n *Node) nameAndOrigin() (name, origin string) {
	c := n.replicas()
	if c == nil {
		return "", ""
	}
	id := c.identity
	id.mu.Lock()
	defer id.mu.Unlock()
	return id.Name, id.Origin
}

// keysAge returns the age of an application's keys, or false if the application has no origin.
func (n *Node) keysAge(app string) (console.KeysAge, bool) {
	if c := n.replicas(); c != nil {
		return c.keysAge(app)
	}
	return console.KeysAge{}, false
}

func (c *replicaSet) keysAge(app string) (console.KeysAge, bool) {
	one := c.of(app)
	if one == nil {
		return console.KeysAge{}, false
	}
	age := console.KeysAge{Writes: cmp.Or(one.maxStale(), register.DefaultMaxStale), Reads: register.RefuseStale}
	if old := one.keyAge(c); old < never {
		age.Known = c.now().Add(-old).UTC().Truncate(time.Second)
	}
	return age, true
}

// appOf returns the ID of the application that a request's credential permits, or "" if there is none.
func (n *Node) appOf(ctx context.Context, r *api.Request) string {
	e := n.engine.Load()
	if e == nil {
		return ""
	}
	f, err := e.fleet()
	if err != nil {
		e.log.Error("cannot start the module", "error", err)
		return ""
	}
	return f.AppOf(ctx, r)
}
