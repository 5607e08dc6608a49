// Package served is what a server gives to pages that compute for themselves: the runtime of web/runtime, the
// module with its kernels, and the bundles.
//
//	/runtime/index.js, worker.js, …        asked for again each time
//	/runtime/manifest.json                 likewise: names the files below with their sizes and hashes
//	/runtime/guest-0f3a….wasm              for ever, as all whose name holds a hash
//	/runtime/kernels-….wasm
//	/runtime/network-….plan                the network alone
//	/runtime/bundles-….bin                 all other files of the bundles, one behind the other
//	/runtime/ffmpreg-….wasm                the module that decodes videos, if the server has it
//
// The scripts are built by `npm run build` beside this folder, and with them a copy of the module that is
// compressed better than a server has time for. web/runtime/src/load.ts reads the manifest.
package served

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/sightline-dev/sightline/core/api"
)

//go:embed all:dist
var dist embed.FS

// Path is where the files stand.
const Path = "/runtime/"

// ErrNotBuilt is returned by a program that was compiled before the runtime was.
var ErrNotBuilt = errors.New("the pages' runtime is not built into this program: run make web, then build again")

// Parts are what the runtime's scripts start.
type Parts struct {
	Guest, Kernels []byte // modules
	Bundles        fs.FS  // folders of models, as package models has them

	// Film reads the module that decodes videos, compressed by gzip. New and each request for the module call it. Nil, or an
	// error for New: pages do without.
	Film func() ([]byte, error)
}

// Files are the files, ready to send. They are safe for concurrent use.
type Files struct {
	files map[string]*file // by what follows Path
}

type file struct {
	data      []byte
	tag, kind string
	hashed    bool   // its name holds its hash
	brotli    []byte // nil where it was not made
	gzip      func() []byte
	packed    func() ([]byte, error) // reads the file, compressed by gzip; nil: it is in data
}

// New makes the files. It keeps the parts' bytes.
func New(p Parts) (*Files, error) {
	built, err := fs.Sub(dist, "dist")
	if err != nil {
		return nil, err
	}
	return newFiles(built, p)
}

func newFiles(built fs.FS, p Parts) (*Files, error) {
	f := &Files{files: map[string]*file{}}
	scripts, err := fs.Glob(built, "*.js")
	if err != nil {
		return nil, err
	}
	if len(scripts) == 0 {
		return nil, ErrNotBuilt
	}
	for _, name := range scripts {
		data, err := fs.ReadFile(built, name)
		if err != nil {
			return nil, err
		}
		f.add(name, data)
	}
	if err := f.parts(p); err != nil {
		return nil, err
	}
	for name, one := range f.files { // what was compressed when the scripts were built
		if data, err := fs.ReadFile(built, name+".br"); err == nil && one.hashed {
			one.brotli = data
		}
	}
	return f, nil
}

// entry is a line of the manifest.
type entry struct {
	Name   string `json:"name"`
	URL    string `json:"url"`
	Size   int    `json:"size"`
	SHA256 string `json:"sha256"`
	Parts  []part `json:"parts,omitempty"`
}

type part struct {
	Name string `json:"name"`
	At   int    `json:"at"`
	Size int    `json:"size"`
}

func (f *Files) parts(p Parts) error {
	manifest := struct {
		Format int     `json:"format"`
		Files  []entry `json:"files"`
		Later  []entry `json:"later,omitempty"` // loaded when something needs them
	}{Format: 1}
	add := func(name, stem, ending string, data []byte, parts []part) {
		sum := sha256.Sum256(data)
		hash := hex.EncodeToString(sum[:])
		url := stem + "-" + hash[:16] + ending
		f.add(url, data).hashed = true
		manifest.Files = append(manifest.Files, entry{name, url, len(data), hash, parts})
	}
	add("guest.wasm", "guest", ".wasm", p.Guest, nil)
	add("kernels.wasm", "kernels", ".wasm", p.Kernels, nil)
	names, err := bundled(p.Bundles)
	if err != nil {
		return fmt.Errorf("bundles: %w", err)
	}
	var all []byte
	var parts []part
	for _, name := range names {
		data, err := fs.ReadFile(p.Bundles, name)
		if err != nil {
			return fmt.Errorf("bundles: %w", err)
		}
		if ending := path.Ext(name); ending == ".plan" {
			add(name, strings.TrimSuffix(path.Base(name), ending), ending, data, nil)
			continue
		}
		parts = append(parts, part{name, len(all), len(data)})
		all = append(all, data...)
	}
	add("bundles", "bundles", ".bin", all, parts)
	if p.Film != nil {
		if film, err := f.film(p.Film); err == nil {
			manifest.Later = append(manifest.Later, film)
		}
	}
	text, err := json.MarshalIndent(manifest, "", " ")
	if err != nil {
		return err
	}
	f.add("manifest.json", text)
	return nil
}

// film adds the module that decodes videos.
func (f *Files) film(read func() ([]byte, error)) (entry, error) {
	packed, err := read()
	if err != nil {
		return entry{}, err
	}
	r, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return entry{}, err
	}
	sum := sha256.New()
	size, err := io.Copy(sum, r)
	if err != nil {
		return entry{}, err
	}
	hash := hex.EncodeToString(sum.Sum(nil))
	e := entry{Name: "ffmpreg.wasm", URL: "ffmpreg-" + hash[:16] + ".wasm", Size: int(size), SHA256: hash}
	f.files[e.URL] = &file{tag: `"` + hash[:24] + `"`, kind: kinds[".wasm"], hashed: true, packed: read}
	return e, nil
}

// bundled are the files of the bundles: of each folder that has a manifest what its manifest lists, and itself.
func bundled(bundles fs.FS) ([]string, error) {
	manifests, err := fs.Glob(bundles, "*/manifest.json")
	if err != nil {
		return nil, err
	}
	var names []string
	for _, name := range manifests {
		data, err := fs.ReadFile(bundles, name)
		if err != nil {
			return nil, err
		}
		var m struct {
			Files map[string]string `json:"files"`
		}
		if err := json.Unmarshal(data, &m); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		names = append(names, name)
		for _, file := range slices.Sorted(maps.Keys(m.Files)) {
			names = append(names, path.Join(path.Dir(name), file))
		}
	}
	if len(names) == 0 {
		return nil, fs.ErrNotExist
	}
	return names, nil
}

var kinds = map[string]string{
	".js":   "text/javascript; charset=utf-8",
	".json": "application/json",
	".wasm": "application/wasm",
}

func (f *Files) add(name string, data []byte) *file {
	sum := sha256.Sum256(data)
	one := &file{data: data, tag: `"` + hex.EncodeToString(sum[:12]) + `"`, kind: kinds[path.Ext(name)]}
	if one.kind == "" {
		one.kind = "application/octet-stream"
	}
	one.gzip = sync.OnceValue(func() []byte {
		var buf bytes.Buffer
		w := gzip.NewWriter(&buf)
		if _, err := w.Write(data); err != nil || w.Close() != nil || buf.Len() > len(data)*9/10 {
			return nil // it gains nothing
		}
		return buf.Bytes()
	})
	f.files[name] = one
	return one
}

// Has reports whether a file stands at a path, which begins with [Path].
func (f *Files) Has(path string) bool {
	name, ok := strings.CutPrefix(path, Path)
	return ok && f.files[name] != nil
}

// policy is what a worker may do: load from this server alone, and run no program but its files.
const policy = "default-src 'self'; script-src 'self' 'wasm-unsafe-eval'; connect-src 'self'; object-src 'none'; base-uri 'none'"

// Serve answers GET and HEAD of what [Files.Has], and 404 without a body to all else.
func (f *Files) Serve(_ context.Context, r *api.Request) api.Response {
	name, _ := strings.CutPrefix(r.Path, Path)
	one := f.files[name]
	if one == nil {
		return api.Response{Status: 404}
	}
	if r.Method != "GET" && r.Method != "HEAD" {
		return api.Response{Status: 405, Header: []api.Field{{Name: "Allow", Value: "GET, HEAD"}}}
	}
	cache := "no-cache"
	if one.hashed {
		cache = "public, max-age=31536000, immutable"
	}
	res := api.Response{Status: 200, ContentType: one.kind, Header: []api.Field{
		{Name: "Content-Security-Policy", Value: policy},
		{Name: "Cross-Origin-Resource-Policy", Value: "same-origin"},
		{Name: "X-Content-Type-Options", Value: "nosniff"},
		{Name: "Cache-Control", Value: cache},
		{Name: "ETag", Value: one.tag},
		{Name: "Vary", Value: "Accept-Encoding"},
	}}
	if name == "serviceWorker.js" {
		res.Header = append(res.Header, api.Field{Name: "Service-Worker-Allowed", Value: "/"})
	}
	if slices.Contains(list(r, "If-None-Match"), one.tag) {
		res.Status, res.ContentType = 304, ""
		return res
	}
	body, encoding, err := one.encoded(r)
	if err != nil {
		return api.Response{Status: 404} // it was there before
	}
	if encoding != "" {
		res.Header = append(res.Header, api.Field{Name: "Content-Encoding", Value: encoding})
	}
	res.Body = body
	return res
}

// encoded is the file as who asks takes it.
func (one *file) encoded(r *api.Request) (body []byte, encoding string, err error) {
	takes := map[string]bool{}
	for _, field := range list(r, "Accept-Encoding") {
		name, weight, _ := strings.Cut(field, ";")
		weight = strings.TrimLeft(weight, " q=")
		takes[strings.TrimSpace(name)] = !strings.HasPrefix(weight, "0") || strings.ContainsAny(weight, "123456789")
	}
	switch {
	case one.packed != nil:
		packed, err := one.packed()
		if err != nil || takes["gzip"] {
			return packed, "gzip", err
		}
		unzip, err := gzip.NewReader(bytes.NewReader(packed))
		if err != nil {
			return nil, "", err
		}
		body, err = io.ReadAll(unzip)
		return body, "", err
	case one.brotli != nil && takes["br"]:
		return one.brotli, "br", nil
	case takes["gzip"]:
		if zipped := one.gzip(); zipped != nil {
			return zipped, "gzip", nil
		}
	}
	return one.data, "", nil
}

// list are the elements of a header's value.
func list(r *api.Request, name string) []string {
	if r.Header == nil {
		return nil
	}
	parts := strings.Split(r.Header(name), ",")
	for i, part := range parts {
		parts[i] = strings.TrimPrefix(strings.TrimSpace(part), "W/")
	}
	return parts
}
