// Package served serves the files with which a page computes by itself: the runtime of web/runtime, the module with its kernels, and the
// bundles.
//
//	/runtime/index.js, worker.js, …        a browser checks them again at each use
//	/runtime/manifest.json                 likewise: names the files below with their sizes and hashes
//	/runtime/guest-0f3a….wasm              cached for ever, like all files with a hash in their names
//	/runtime/kernels-….wasm                one of two: see load.ts
//	/runtime/kernels-relaxed-….wasm
//	/runtime/network-….plan                the network alone
//	/runtime/background-….f16              the background alone, which only trainings need
//	/runtime/bundles-….bin                 all other files of the bundles, concatenated
//	/runtime/ffmpreg-….wasm                the module that decodes videos, HEIC and AVIF, if the server has it
//	/runtime/jpegxl-….wasm                 the module that decodes JPEG XL, if the server has it
//
// `npm run build` in the folder above builds the scripts. web/runtime/src/load.ts reads the manifest.
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

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/web/static"
)

//go:embed all:dist
var dist embed.FS

// Path is the path below which a host serves the files.
const Path = "/runtime/"

// ErrNotBuilt is returned if the program was compiled before the runtime was built.
var ErrNotBuilt = errors.New("the pages' runtime is not built into this program: run make web, then build again")

// Parts are the modules and bundles that the runtime's scripts start.
type Parts struct {
	Modules map[string][]byte // guest.wasm, kernels.wasm and kernels-relaxed.wasm, compressed by brotli
	Bundles fs.FS             // folders of models, in the layout of package models

	// Decoders read the decoding modules, compressed by gzip, by their names in the manifest: ffmpreg.wasm and jpegxl.wasm. New and each
	// request for a module call them. If one returns an error to New, pages work without that module.
	Decoders map[string]func() ([]byte, error)
}

// Files are the files, ready to send. They are safe for concurrent use.
type Files struct {
	files map[string]*file // by their paths without Path
}

type file struct {
	static.File
	packed func() ([]byte, error) // reads the file, compressed by gzip; nil: the file is in Body
}

// New returns the files for p. They borrow the bytes of p.
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
	add := func(to *[]entry, name, stem, ending string, data []byte, parts []part) {
		sum := sha256.Sum256(data)
		hash := hex.EncodeToString(sum[:])
		url := stem + "-" + hash[:16] + ending
		f.add(url, data).Cache = static.Immutable
		*to = append(*to, entry{name, url, len(data), hash, parts})
	}
	for _, name := range slices.Sorted(maps.Keys(p.Modules)) {
		module, err := f.module(name, p.Modules[name])
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		manifest.Files = append(manifest.Files, module)
	}
	names, err := bundleFiles(p.Bundles)
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
		ending := path.Ext(name)
		if to := map[string]*[]entry{".plan": &manifest.Files, ".f16": &manifest.Later}[ending]; to != nil {
			add(to, name, strings.TrimSuffix(path.Base(name), ending), ending, data, nil)
			continue
		}
		parts = append(parts, part{name, len(all), len(data)})
		all = append(all, data...)
	}
	add(&manifest.Files, "bundles", "bundles", ".bin", all, parts)
	for _, name := range slices.Sorted(maps.Keys(p.Decoders)) {
		if decoder, err := f.decoder(name, p.Decoders[name]); err == nil {
			manifest.Later = append(manifest.Later, decoder)
		}
	}
	text, err := json.MarshalIndent(manifest, "", " ")
	if err != nil {
		return err
	}
	f.add("manifest.json", text)
	return nil
}

// module adds a module that is stored as brotli.
func (f *Files) module(name string, packed []byte) (entry, error) {
	one, plain, err := static.NewPacked(name, "br", packed)
	if err != nil {
		return entry{}, err
	}
	sum := sha256.Sum256(plain)
	hash := hex.EncodeToString(sum[:])
	one.AddGzip()
	one.Cache = static.Immutable
	url := strings.TrimSuffix(name, ".wasm") + "-" + hash[:16] + ".wasm"
	f.files[url] = &file{File: *one}
	return entry{name, url, len(plain), hash, nil}, nil
}

// decoder adds a decoding module.
func (f *Files) decoder(name string, read func() ([]byte, error)) (entry, error) {
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
	ending := path.Ext(name)
	e := entry{Name: name, URL: strings.TrimSuffix(name, ending) + "-" + hash[:16] + ending, Size: int(size), SHA256: hash}
	f.files[e.URL] = &file{static.File{Tag: `"` + hash[:24] + `"`, ContentType: static.ContentTypeOf(e.URL), Cache: static.Immutable}, read}
	return e, nil
}

// bundleFiles returns the names of the bundles' files: each manifest, and the files that it lists.
func bundleFiles(bundles fs.FS) ([]string, error) {
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

func (f *Files) add(name string, data []byte) *file {
	one := &file{File: *static.New(name, data)}
	one.AddGzip()
	f.files[name] = one
	return one
}

// Has reports whether a file has this path. The path includes [Path].
func (f *Files) Has(path string) bool {
	name, ok := strings.CutPrefix(path, Path)
	return ok && f.files[name] != nil
}

// policy lets a worker load from this server only, and run only its files.
const policy = "default-src 'self'; script-src 'self' 'wasm-unsafe-eval'; connect-src 'self'; object-src 'none'; base-uri 'none'"

// Serve answers GET and HEAD of the files, and 404 without a body to other paths.
func (f *Files) Serve(_ context.Context, r *api.Request) api.Response {
	name, _ := strings.CutPrefix(r.Path, Path)
	one := f.files[name]
	if one == nil {
		return api.Response{Status: 404}
	}
	if r.Method != "GET" && r.Method != "HEAD" {
		return api.Response{Status: 405, Header: []api.Field{{Name: "Allow", Value: "GET, HEAD"}}}
	}
	if one.packed != nil {
		var err error
		if one, err = one.read(r); err != nil {
			return api.Response{Status: 404} // New could read it
		}
	}
	header := []api.Field{
		{Name: "Content-Security-Policy", Value: policy},
		{Name: "Cross-Origin-Resource-Policy", Value: "same-origin"},
		{Name: "X-Content-Type-Options", Value: "nosniff"},
	}
	if name == "serviceWorker.js" {
		header = append(header, api.Field{Name: "Service-Worker-Allowed", Value: "/"})
	}
	return one.Answer(r, header...)
}

// read returns a file that is stored compressed, in a form that the client accepts.
func (f *file) read(r *api.Request) (*file, error) {
	packed, err := f.packed()
	if err != nil {
		return nil, err
	}
	one := *f
	one.Encodings = []static.Encoding{{Name: "gzip", Body: func() []byte { return packed }}}
	if !api.AcceptsEncoding(static.Header(r, "Accept-Encoding"), "gzip") {
		unzip, err := gzip.NewReader(bytes.NewReader(packed))
		if err != nil {
			return nil, err
		}
		if one.Body, err = io.ReadAll(unzip); err != nil {
			return nil, err
		}
	}
	return &one, nil
}
