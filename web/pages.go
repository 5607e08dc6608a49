package web

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/sightline-dev/sightline/core/api"
)

//go:embed all:dist
var dist embed.FS

// routes are the addresses that the application draws, those of src/routes.ts. A name after a
// colon stands for one part of a path.
var routes = []string{
	"/", "/look", "/sync", "/apps", "/apps/:app", "/account", "/docs",
	"/sign-in", "/sign-up", "/verify", "/forgot", "/reset",
	"/:app/inputs", "/:app/inputs/:input", "/:app/search", "/:app/next",
	"/:app/models", "/:app/models/:model", "/:app/models/:model/:version", "/:app/concepts",
}

// appID is an application's id, which a first name in a route stands for.
var appID = regexp.MustCompile(`^[0-9a-f]{32}$`)

// policy is what a page may do: load from this server alone, and run no program but its files.
const policy = "default-src 'self'; script-src 'self' 'wasm-unsafe-eval'; style-src 'self'; " +
	"img-src 'self' blob: data:; media-src 'self' blob:; connect-src 'self'; object-src 'none'; " +
	"base-uri 'none'; form-action 'self'; frame-ancestors 'none'"

// near is what the policy adds for a page of this machine's own: it may compare its answers with those of
// another server here, such as an edge.
const near = " http://127.0.0.1:* http://localhost:*"

// guard are headers of every answer here.
var guard = []api.Field{
	{Name: "Content-Security-Policy", Value: policy},
	{Name: "Permissions-Policy", Value: "camera=(self), clipboard-write=(self), geolocation=(), microphone=(), payment=(), usb=()"},
	{Name: "Referrer-Policy", Value: "no-referrer"},
	{Name: "Cross-Origin-Opener-Policy", Value: "same-origin"},
	{Name: "Cross-Origin-Resource-Policy", Value: "same-origin"},
	{Name: "X-Content-Type-Options", Value: "nosniff"},
	{Name: "X-Frame-Options", Value: "DENY"},
}

// Caching: a file whose name holds a hash of its bytes never changes; any other is asked for again.
const (
	forever = "public, max-age=31536000, immutable"
	ask     = "no-cache"
)

const missing = "The pages are not built into this program. `make build` builds them where Node is installed.\n" +
	"The interface under /v2 works without them.\n"

// Pages serves the web application: its files as they were built, its page to every address that
// it draws, and the sample pictures under /samples/. It keeps nothing and is safe for concurrent use.
type Pages struct {
	files  map[string]*file // by path, "/assets/index-1a2b3c.js"
	page   *file            // index.html; nil where the pages are not built
	refuse func(r *api.Request, err error) api.Response
}

// file is one file, ready to send.
type file struct {
	plain, zipped []byte // zipped is nil where it would gain nothing
	kind, tag     string // content type, and entity tag with its quotes
	cache         string
}

// NewPages is the pages of this program. refuse makes the answers to what no page can be: the
// envelope of the interface.
func NewPages(refuse func(r *api.Request, err error) api.Response) (*Pages, error) {
	built, err := fs.Sub(dist, "dist")
	if err != nil {
		return nil, err
	}
	return newPages(built, refuse)
}

func newPages(built fs.FS, refuse func(r *api.Request, err error) api.Response) (*Pages, error) {
	p := &Pages{files: map[string]*file{}, refuse: refuse}
	err := fs.WalkDir(built, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || strings.HasPrefix(entry.Name(), ".") || strings.HasSuffix(name, ".gz") {
			return err
		}
		f, err := read(built, name)
		if err != nil {
			return err
		}
		if name == "index.html" {
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

// read takes a file and its gzip twin, which must hold the same bytes.
func read(from fs.FS, name string) (*file, error) {
	plain, err := fs.ReadFile(from, name)
	if err != nil {
		return nil, err
	}
	f := &file{plain: plain, kind: kindOf(name), cache: ask}
	sum := sha256.Sum256(plain)
	f.tag = `"` + hex.EncodeToString(sum[:12]) + `"`
	if strings.HasPrefix(name, "assets/") {
		f.cache = forever
	}
	zipped, err := fs.ReadFile(from, name+".gz")
	if err != nil {
		return f, nil // not every file has one
	}
	r, err := gzip.NewReader(bytes.NewReader(zipped))
	if err != nil {
		return nil, fmt.Errorf("%s.gz: %w", name, err)
	}
	if same, err := io.ReadAll(r); err != nil || !bytes.Equal(same, plain) {
		return nil, fmt.Errorf("%s.gz is not %s", name, name)
	}
	f.zipped = zipped
	return f, nil
}

// kinds are content types by ending. The hosts' tables differ, so none is asked.
var kinds = map[string]string{
	".html":        "text/html; charset=utf-8",
	".js":          "text/javascript; charset=utf-8",
	".css":         "text/css; charset=utf-8",
	".svg":         "image/svg+xml",
	".jpg":         "image/jpeg",
	".png":         "image/png",
	".json":        "application/json",
	".webmanifest": "application/manifest+json",
	".wasm":        "application/wasm",
	".txt":         "text/plain; charset=utf-8",
	".tsv":         "text/tab-separated-values; charset=utf-8",
}

func kindOf(name string) string {
	if kind, ok := kinds[path.Ext(name)]; ok {
		return kind
	}
	return "application/octet-stream"
}

// Serve answers a request: a file, the application's page where it draws something at that
// address, or 404, as that page to those who read pages and in the envelope to all others.
func (p *Pages) Serve(_ context.Context, r *api.Request) api.Response {
	if r.Method != "GET" && r.Method != "HEAD" {
		res := p.Refuse(r, api.ErrMethod)
		res.Header = append(res.Header, api.Field{Name: "Allow", Value: "GET, HEAD"})
		return res
	}
	if f, ok := p.files[r.Path]; ok {
		return f.answer(r, 200)
	}
	switch drawn := draws(r.Path); {
	case p.page == nil && (drawn || reads(r)):
		return api.Response{Status: 404, ContentType: kinds[".txt"], Header: fields(r, ask), Body: []byte(missing)}
	case drawn:
		return p.page.answer(r, 200)
	case reads(r):
		return p.page.answer(r, 404)
	}
	return p.Refuse(r, api.ErrPath)
}

// Refuse is the answer to a request that the server does not let through.
func (p *Pages) Refuse(r *api.Request, err error) api.Response {
	return p.refuse(r, err)
}

// answer sends a file, or says that the client has it.
func (f *file) answer(r *api.Request, status int) api.Response {
	res := api.Response{Status: status, ContentType: f.kind, Header: fields(r, f.cache), Body: f.plain}
	if status == 200 {
		res.Header = append(res.Header, api.Field{Name: "ETag", Value: f.tag})
		if slices.Contains(list(header(r, "If-None-Match")), f.tag) {
			res.Status, res.ContentType, res.Body = 304, "", nil
			return res
		}
	}
	if f.zipped != nil {
		res.Header = append(res.Header, api.Field{Name: "Vary", Value: "Accept-Encoding"})
		if unzips(r) {
			res.Header = append(res.Header, api.Field{Name: "Content-Encoding", Value: "gzip"})
			res.Body = f.zipped
		}
	}
	return res
}

// draws reports whether the application has something to show at a path.
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

// reads reports whether who asks reads pages, as a browser does that goes to an address.
func reads(r *api.Request) bool {
	return strings.Contains(header(r, "Accept"), "text/html")
}

// unzips reports whether who asks takes gzip.
func unzips(r *api.Request) bool {
	for _, one := range list(header(r, "Accept-Encoding")) {
		name, weight, _ := strings.Cut(one, ";")
		if name = strings.TrimSpace(name); name == "gzip" || name == "*" {
			return !strings.HasPrefix(strings.TrimLeft(weight, " q="), "0") || strings.ContainsAny(weight, "123456789")
		}
	}
	return false
}

func header(r *api.Request, name string) string {
	if r.Header == nil {
		return ""
	}
	return r.Header(name)
}

func list(value string) []string {
	parts := strings.Split(value, ",")
	for i, part := range parts {
		parts[i] = strings.TrimPrefix(strings.TrimSpace(part), "W/")
	}
	return parts
}

// fields are the headers of an answer, but what depends on what the client has and takes.
func fields(r *api.Request, cache string) []api.Field {
	all := append(slices.Clone(guard), api.Field{Name: "Cache-Control", Value: cache})
	host, _, _ := strings.Cut(header(r, "Host"), ":")
	if host == "127.0.0.1" || host == "localhost" {
		all[0].Value = strings.Replace(policy, "connect-src 'self'", "connect-src 'self'"+near, 1)
	}
	return all
}
