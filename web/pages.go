package web

import (
	"context"
	"embed"
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strings"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/web/static"
)

//go:embed all:dist
var dist embed.FS

// routes holds the paths for which the application has a page. src/routing/routes.ts has the same paths. A name after a colon matches one
// part of a path.
var routes = []string{
	"/", "/look", "/sync", "/apps", "/apps/:app", "/account", "/docs",
	"/sign-in", "/sign-up", "/verify", "/forgot", "/reset",
	"/:app/inputs", "/:app/inputs/:input", "/:app/search", "/:app/next",
	"/:app/models", "/:app/models/:model", "/:app/models/:model/:version", "/:app/concepts",
}

// appID matches the ID of an application. If a route begins with a name, the name matches only such an ID.
var appID = regexp.MustCompile(`^[0-9a-f]{32}$`)

// policy is the content security policy. A page may load files only from this server, and runs no scripts except these files.
const policy = "default-src 'self'; script-src 'self' 'wasm-unsafe-eval'; style-src 'self'; " +
	"img-src 'self' blob: data:; media-src 'self' blob:; connect-src 'self'; object-src 'none'; " +
	"base-uri 'none'; form-action 'self'; frame-ancestors 'none'"

// near is the addition to the policy for a page that is opened at a loopback address. Such a page may compare its answers with the answers
// of another server on this machine, such as an edge.
const near = " http://127.0.0.1:* http://localhost:*"

// guards holds the headers that guard returns for a page that is not opened at a loopback address.
var guards = []api.Field{
	{Name: "Content-Security-Policy", Value: policy},
	{Name: "Permissions-Policy", Value: "camera=(self), clipboard-write=(self), geolocation=(), microphone=(), payment=(), usb=()"},
	{Name: "Referrer-Policy", Value: "no-referrer"},
	{Name: "Cross-Origin-Opener-Policy", Value: "same-origin"},
	{Name: "Cross-Origin-Resource-Policy", Value: "same-origin"},
	{Name: "X-Content-Type-Options", Value: "nosniff"},
	{Name: "X-Frame-Options", Value: "DENY"},
}

const missing = "The pages are not built into this program. `make build` builds them where Node is installed.\n" +
	"The interface under /v2 works without them.\n"

// Pages serves the web application: its built files, its page at every address for which it has one, and the sample pictures under
// /samples/. It stores nothing and is safe for concurrent use.
type Pages struct {
	files  map[string]*static.File // by path, such as "/assets/index-1a2b3c.js"
	page   *static.File            // index.html; nil if the pages are not built into the program
	refuse func(r *api.Request, err error) api.Response
}

// NewPages returns the pages that are built into this program. refuse returns the error answer to a request, in the envelope of the API.
// Pages calls it for requests without a page and with other methods than GET and HEAD.
func NewPages(refuse func(r *api.Request, err error) api.Response) (*Pages, error) {
	built, err := fs.Sub(dist, "dist")
	if err != nil {
		return nil, err
	}
	return newPages(built, refuse)
}

func newPages(built fs.FS, refuse func(r *api.Request, err error) api.Response) (*Pages, error) {
	p := &Pages{files: map[string]*static.File{}, refuse: refuse}
	err := fs.WalkDir(built, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || strings.HasPrefix(entry.Name(), ".") {
			return err
		}
		f, err := read(built, name)
		if err != nil {
			return err
		}
		name = strings.TrimSuffix(name, ".gz")
		if name == "index.html" {
			f.AddGzip()
			p.page = f
			return nil
		}
		p.files["/"+name] = f
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("pages: %w", err)
	}
	pictures := Samples()
	names, err := fs.Glob(pictures, "*.jpg")
	if err != nil {
		return nil, err
	}
	for _, name := range append(names, "credits.tsv") {
		f, err := read(pictures, name)
		if err != nil {
			return nil, fmt.Errorf("samples: %w", err)
		}
		p.files["/samples/"+name] = f
	}
	return p, nil
}

// read returns a file. One whose name ends in .gz is stored in gzip only.
func read(from fs.FS, name string) (f *static.File, err error) {
	data, err := fs.ReadFile(from, name)
	if err != nil {
		return nil, err
	}
	if plain, isZipped := strings.CutSuffix(name, ".gz"); isZipped {
		f, _, err = static.NewPacked(plain, "gzip", data)
	} else {
		f = static.New(name, data)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if strings.HasPrefix(name, "assets/") {
		f.Cache = static.Immutable
	}
	return f, nil
}

// Serve answers a request with a file, or with the application's page if the application has one at that address. Otherwise it answers
// 404: with the page if the client reads pages, and with the API's envelope if not.
func (p *Pages) Serve(_ context.Context, r *api.Request) api.Response {
	if r.Method != "GET" && r.Method != "HEAD" {
		res := p.Refuse(r, api.ErrMethod)
		res.Header = append(res.Header, api.Field{Name: "Allow", Value: "GET, HEAD"})
		return res
	}
	if f, ok := p.files[r.Path]; ok {
		return f.Answer(r, guard(r)...)
	}
	switch drawn := draws(r.Path); {
	case p.page == nil && (drawn || reads(r)):
		return absent(static.File{Body: []byte(missing), ContentType: static.ContentTypeOf(".txt"), Cache: static.Revalidate}, r)
	case drawn:
		return p.page.Answer(r, guard(r)...)
	case reads(r):
		return absent(*p.page, r)
	}
	return p.Refuse(r, api.ErrPath)
}

// Refuse returns the error answer to a request that the server rejects.
func (p *Pages) Refuse(r *api.Request, err error) api.Response {
	return p.refuse(r, err)
}

// absent returns an answer with a file and status 404, for a page that does not exist.
func absent(f static.File, r *api.Request) api.Response {
	f.Tag = ""
	res := f.Answer(r, guard(r)...)
	res.Status = 404
	return res
}

// draws reports whether the application has a page at a path.
func draws(path string) bool {
	parts := strings.Split(strings.TrimSuffix(path, "/"), "/")
	return slices.ContainsFunc(routes, func(route string) bool {
		names := strings.Split(strings.TrimSuffix(route, "/"), "/")
		if len(names) > 1 && strings.HasPrefix(names[1], ":") && (len(parts) < 2 || !appID.MatchString(parts[1])) {
			return false
		}
		return slices.EqualFunc(names, parts, func(name, part string) bool {
			return name == part || strings.HasPrefix(name, ":") && part != ""
		})
	})
}

// reads reports whether the client accepts pages, like a browser that opens a URL.
func reads(r *api.Request) bool {
	return strings.Contains(static.Header(r, "Accept"), "text/html")
}

// guard returns the security headers of the answer to r. They depend on whether r is for a loopback address.
func guard(r *api.Request) []api.Field {
	all := slices.Clone(guards)
	host, _, _ := strings.Cut(static.Header(r, "Host"), ":")
	if host == "127.0.0.1" || host == "localhost" {
		all[0].Value = strings.Replace(policy, "connect-src 'self'", "connect-src 'self'"+near, 1)
	}
	return all
}
