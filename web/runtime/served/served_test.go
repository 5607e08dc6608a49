package served

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/andybalholm/brotli"

	"github.com/sightline-dev/sightline/core/api"
)

var bundles = fstest.MapFS{
	"color/manifest.json":         {Data: []byte(`{"files":{"colors.tsv":""}}`)},
	"color/colors.tsv":            {Data: []byte("red\n")},
	"color/stray":                 {Data: []byte("not of the bundle")},
	"general/manifest.json":       {Data: []byte(`{"files":{"network.plan":"","names/en.tsv":"","background.f16":""}}`)},
	"general/background.f16":      {Data: []byte("a background")},
	"general/network.plan":        {Data: []byte("a network")},
	"general/names/en.tsv":        {Data: []byte(strings.Repeat("a name\n", 1000))},
	"README.md":                   {Data: []byte("not of a bundle")},
	"peers/node_modules/x/y.json": {Data: []byte("{}")},
}

func open(t *testing.T, built fstest.MapFS) *Files {
	t.Helper()
	modules := map[string][]byte{"guest.wasm": squeeze(t, "guest"), "kernels.wasm": squeeze(t, "kernels"), "kernels-relaxed.wasm": squeeze(t, "relaxed")}
	f, err := newFiles(built, Parts{Modules: modules, Bundles: bundles})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

var scripts = fstest.MapFS{
	"index.js":         {Data: []byte("export {}")},
	"index.d.ts":       {Data: []byte("export {}")},
	"serviceWorker.js": {Data: []byte("{}")},
}

// squeeze compresses a text by brotli.
func squeeze(t *testing.T, s string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := brotli.NewWriter(&b)
	if _, err := w.Write([]byte(s)); err != nil || w.Close() != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func hash(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:])
}

func get(f *Files, path string, header ...string) api.Response {
	return f.Serve(context.Background(), &api.Request{Method: "GET", Path: path, Header: func(name string) string {
		if at := slices.Index(header, name); at >= 0 {
			return header[at+1]
		}
		return ""
	}})
}

func field(r api.Response, name string) string {
	for _, f := range r.Header {
		if f.Name == name {
			return f.Value
		}
	}
	return ""
}

// TestManifest compares every file with its entry in the manifest.
func TestManifest(t *testing.T) {
	f := open(t, scripts)
	var m struct {
		Format       int
		Files, Later []entry
	}
	if err := json.Unmarshal(get(f, "/runtime/manifest.json").Body, &m); err != nil || m.Format != 1 {
		t.Fatalf("manifest: format %d, %v", m.Format, err)
	}
	if len(m.Later) != 1 || m.Later[0].Name != "general/background.f16" {
		t.Errorf("files for later: %+v", m.Later)
	}
	found := map[string]string{}
	for _, e := range append(m.Files, m.Later...) {
		r := get(f, Path+e.URL)
		if r.Status != 200 || len(r.Body) != e.Size || hash(string(r.Body)) != e.SHA256 || !strings.Contains(e.URL, e.SHA256[:16]) {
			t.Errorf("%s: status %d, %d bytes of %s", e.URL, r.Status, len(r.Body), hash(string(r.Body)))
		}
		if cache := field(r, "Cache-Control"); !strings.Contains(cache, "immutable") {
			t.Errorf("%s: Cache-Control is %q", e.URL, cache)
		}
		if e.Parts == nil {
			found[e.Name] = string(r.Body)
		}
		for _, p := range e.Parts {
			found[p.Name] = string(r.Body[p.At : p.At+p.Size])
		}
	}
	want := map[string]string{"guest.wasm": "guest", "kernels.wasm": "kernels", "kernels-relaxed.wasm": "relaxed"}
	for _, name := range []string{
		"color/manifest.json", "color/colors.tsv", "general/manifest.json", "general/network.plan", "general/background.f16", "general/names/en.tsv",
	} {
		want[name] = string(bundles[name].Data)
	}
	if !maps.Equal(found, want) {
		t.Errorf("files are %v", slices.Sorted(maps.Keys(found)))
	}
}

func TestServe(t *testing.T) {
	f := open(t, scripts)
	guest := Path + "guest-" + hash("guest")[:16] + ".wasm"
	tests := []struct {
		name, path, header, value string
		status                    int
		body, kind, cache         string
	}{
		{"script", "/runtime/index.js", "", "", 200, "export {}", "text/javascript; charset=utf-8", "no-cache"},
		{"module", guest, "", "", 200, "guest", "application/wasm", "public, max-age=31536000, immutable"},
		{"brotli", guest, "Accept-Encoding", "gzip, br", 200, string(squeeze(t, "guest")), "application/wasm", "public, max-age=31536000, immutable"},
		{"no brotli", guest, "Accept-Encoding", "br;q=0.0, identity", 200, "guest", "application/wasm", "public, max-age=31536000, immutable"},
		{"not packed for nothing", guest, "Accept-Encoding", "gzip", 200, "guest", "application/wasm", "public, max-age=31536000, immutable"},
		{"known", "/runtime/index.js", "If-None-Match", `"x", W/"` + hash("export {}")[:24] + `"`, 304, "", "", "no-cache"},
		{"types are for editors", "/runtime/index.d.ts", "", "", 404, "", "", ""},
		{"the folder", "/runtime/", "", "", 404, "", "", ""},
		{"elsewhere", "/index.js", "", "", 404, "", "", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := get(f, tt.path, tt.header, tt.value)
			if r.Status != tt.status || string(r.Body) != tt.body || r.ContentType != tt.kind || field(r, "Cache-Control") != tt.cache {
				t.Errorf("%d %s %q %q", r.Status, r.ContentType, field(r, "Cache-Control"), r.Body)
			}
			if f.Has(tt.path) != (tt.status != 404) {
				t.Errorf("Has = %v", f.Has(tt.path))
			}
		})
	}
	if got := field(get(f, "/runtime/serviceWorker.js"), "Service-Worker-Allowed"); got != "/" {
		t.Errorf("Service-Worker-Allowed is %q", got)
	}
	if r := f.Serve(context.Background(), &api.Request{Method: "POST", Path: "/runtime/index.js"}); r.Status != 405 {
		t.Errorf("POST: %d", r.Status)
	}
}

func TestGzip(t *testing.T) {
	f := open(t, scripts)
	for name, one := range f.files {
		r := get(f, Path+name, "Accept-Encoding", "gzip")
		if field(r, "Content-Encoding") != "gzip" {
			if strings.HasPrefix(name, "bundles-") {
				t.Error("the bundles are sent as they are")
			}
			continue
		}
		unzip, err := gzip.NewReader(bytes.NewReader(r.Body))
		if err != nil {
			t.Fatal(err)
		}
		if plain, err := io.ReadAll(unzip); err != nil || !bytes.Equal(plain, one.Body) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestDecoders: a decoding module is in the manifest. The package reads it again for each request.
func TestDecoders(t *testing.T) {
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	if _, err := io.WriteString(w, "FFmpeg"); err != nil || w.Close() != nil {
		t.Fatal(err)
	}
	reads, missing := 0, error(nil)
	read := func() ([]byte, error) { reads++; return packed.Bytes(), missing }
	absent := func() ([]byte, error) { return nil, fs.ErrNotExist }
	later := func() (*Files, []entry) {
		t.Helper()
		f, err := newFiles(scripts, Parts{Bundles: bundles, Decoders: map[string]func() ([]byte, error){"ffmpreg.wasm": read, "jpegxl.wasm": absent}})
		if err != nil {
			t.Fatal(err)
		}
		var m struct{ Later []entry }
		if err := json.Unmarshal(get(f, "/runtime/manifest.json").Body, &m); err != nil {
			t.Fatal(err)
		}
		return f, slices.DeleteFunc(m.Later, func(e entry) bool { return strings.Contains(e.Name, "/") })
	}
	f, films := later()
	name := "ffmpreg-" + hash("FFmpeg")[:16] + ".wasm"
	want := entry{Name: "ffmpreg.wasm", URL: name, Size: 6, SHA256: hash("FFmpeg")}
	if len(films) != 1 || films[0].Name != want.Name || films[0].URL != want.URL || films[0].Size != want.Size || films[0].SHA256 != want.SHA256 {
		t.Errorf("manifest: %+v, want %+v", films, want)
	}
	for encoding, body := range map[string]string{"": "FFmpeg", "gzip": packed.String(), "br": "FFmpeg"} {
		r := get(f, Path+name, "Accept-Encoding", encoding)
		packed := map[bool]string{true: "gzip"}[encoding == "gzip"]
		if r.Status != 200 || string(r.Body) != body || r.ContentType != "application/wasm" || field(r, "Content-Encoding") != packed ||
			!strings.Contains(field(r, "Cache-Control"), "immutable") {
			t.Errorf("as %q: %d %s %q %q", encoding, r.Status, r.ContentType, field(r, "Content-Encoding"), r.Body)
		}
	}
	if reads != 4 {
		t.Errorf("it was read %d times, want 4", reads)
	}
	missing = fs.ErrNotExist
	if r := get(f, Path+name); r.Status != 404 {
		t.Errorf("a module that was removed: %d", r.Status)
	}
	if _, films := later(); len(films) > 0 {
		t.Errorf("manifest without the module: %+v", films)
	}
}

func TestNew(t *testing.T) {
	if _, err := newFiles(fstest.MapFS{}, Parts{Bundles: bundles}); !errors.Is(err, ErrNotBuilt) {
		t.Errorf("without scripts: %v", err)
	}
	if _, err := newFiles(scripts, Parts{Bundles: fstest.MapFS{}}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without bundles: %v", err)
	}
	broken := fstest.MapFS{"a/manifest.json": {Data: []byte(`{"files":{"gone":""}}`)}}
	if _, err := newFiles(scripts, Parts{Bundles: broken}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("with a bundle that is not whole: %v", err)
	}
}
