package web

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/sightline-dev/sightline/core/api"
)

const script = "console.log('sightline, sightline, sightline')"

func zip(t *testing.T, text string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := io.WriteString(w, text); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// refusal replaces the API's error answers in tests. It returns an answer with the error's text as the body.
func refusal(_ *api.Request, err error) api.Response {
	status := map[error]int{api.ErrPath: 404, api.ErrMethod: 405}[err]
	return api.Response{Status: status, ContentType: "application/json", Body: []byte(err.Error())}
}

func testPages(t *testing.T) *Pages {
	t.Helper()
	p, err := newPages(fstest.MapFS{
		".gitignore":              {Data: []byte("*")},
		"index.html":              {Data: []byte("<!doctype html>")},
		"theme.js":                {Data: []byte("0")},
		"assets/index-1a2b.js.gz": {Data: zip(t, script)},
	}, refusal)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func get(p *Pages, method, path string, headers map[string]string) api.Response {
	return p.Serve(context.Background(), &api.Request{Method: method, Path: path, Header: func(name string) string { return headers[name] }})
}

func field(res api.Response, name string) string {
	for _, f := range res.Header {
		if f.Name == name {
			return f.Value
		}
	}
	return ""
}

func TestPagesServe(t *testing.T) {
	p := testPages(t)
	page := map[string]string{"Accept": "text/html,application/xhtml+xml"}
	tests := []struct {
		method, path string
		headers      map[string]string
		status       int
		kind, body   string
	}{
		{"GET", "/", page, 200, "text/html", "<!doctype html>"},
		{"GET", "/", nil, 200, "text/html", "<!doctype html>"},
		{"HEAD", "/sign-in", page, 200, "text/html", "<!doctype html>"},
		{"GET", "/apps/", page, 200, "text/html", "<!doctype html>"},
		{"GET", "/apps/0af3%2F1", page, 200, "text/html", "<!doctype html>"},
		{"GET", "/apps/a/b", page, 404, "text/html", "<!doctype html>"},
		{"GET", "/nowhere", page, 404, "text/html", "<!doctype html>"},
		{"GET", "/nowhere", nil, 404, "application/json", api.ErrPath.Error()},
		{"GET", "/index.html", nil, 404, "application/json", api.ErrPath.Error()},
		{"GET", "/.gitignore", nil, 404, "application/json", api.ErrPath.Error()},
		{"GET", "/assets/index-1a2b.js.gz", nil, 404, "application/json", api.ErrPath.Error()},
		{"GET", "/assets/../pages.go", nil, 404, "application/json", api.ErrPath.Error()},
		{"GET", "//", page, 404, "text/html", "<!doctype html>"},
		{"GET", "/assets/index-1a2b.js", nil, 200, "text/javascript", script},
		{"GET", "/assets/index-1a2b.js", map[string]string{"Accept-Encoding": "gzip;q=0, br"}, 200, "text/javascript", script},
		{"GET", "/theme.js", nil, 200, "text/javascript", "0"},
		{"POST", "/", page, 405, "application/json", api.ErrMethod.Error()},
		{"DELETE", "/assets/index-1a2b.js", nil, 405, "application/json", api.ErrMethod.Error()},
	}
	for _, tt := range tests {
		t.Run(tt.method+" "+tt.path, func(t *testing.T) {
			res := get(p, tt.method, tt.path, tt.headers)
			if res.Status != tt.status || !strings.HasPrefix(res.ContentType, tt.kind) || string(res.Body) != tt.body {
				t.Errorf("= %d %s %q, want %d %s %q", res.Status, res.ContentType, res.Body, tt.status, tt.kind, tt.body)
			}
			if tt.status == 405 && field(res, "Allow") != "GET, HEAD" {
				t.Errorf("Allow: %q", field(res, "Allow"))
			}
			if strings.HasPrefix(res.ContentType, "text/") && !strings.Contains(field(res, "Content-Security-Policy"), "default-src 'self'") {
				t.Error("no policy")
			}
		})
	}
}

func TestPagesAreCachedByName(t *testing.T) {
	p := testPages(t)
	res := get(p, "GET", "/assets/index-1a2b.js", map[string]string{"Accept-Encoding": "br, gzip;q=0.8"})
	if field(res, "Content-Encoding") != "gzip" || field(res, "Vary") != "Accept-Encoding" || !bytes.Equal(res.Body, zip(t, script)) {
		t.Errorf("not zipped: %v", res.Header)
	}
	if c := field(res, "Cache-Control"); !strings.Contains(c, "immutable") {
		t.Errorf("a hashed file: Cache-Control: %s", c)
	}
	if c := field(get(p, "GET", "/apps", nil), "Cache-Control"); c != "no-cache" {
		t.Errorf("the page: Cache-Control: %s", c)
	}
	tag := field(get(p, "GET", "/", nil), "ETag")
	if tag == "" || tag == field(res, "ETag") {
		t.Errorf("tags %s and %s", tag, field(res, "ETag"))
	}
	again := get(p, "GET", "/", map[string]string{"If-None-Match": `"x", W/` + tag})
	if again.Status != 304 || again.Body != nil {
		t.Errorf("with its tag = %d, %d bytes", again.Status, len(again.Body))
	}
	if other := get(p, "GET", "/", map[string]string{"If-None-Match": `"x"`}); other.Status != 200 {
		t.Errorf("with another tag = %d", other.Status)
	}
}

func TestPagesRefuseDamage(t *testing.T) {
	for name, zipped := range map[string][]byte{"no gzip": []byte("x"), "cut": zip(t, script)[:20]} {
		_, err := newPages(fstest.MapFS{"a.js.gz": {Data: zipped}}, refusal)
		if err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestPagesNotBuilt(t *testing.T) {
	p, err := newPages(fstest.MapFS{".gitignore": {}}, refusal)
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/", "/sign-in"} {
		if res := get(p, "GET", path, nil); res.Status != 404 || !strings.Contains(string(res.Body), "make build") {
			t.Errorf("%s = %d %q", path, res.Status, res.Body)
		}
	}
	if res := get(p, "GET", "/x", nil); string(res.Body) != api.ErrPath.Error() {
		t.Errorf("/x = %q", res.Body)
	}
}

func TestPagesServeSamples(t *testing.T) {
	p, err := NewPages(refusal)
	if err != nil {
		t.Fatal(err)
	}
	res := get(p, "GET", "/samples/42-lighthouse-in-the-sea.jpg", nil)
	if res.Status != 200 || res.ContentType != "image/jpeg" || !bytes.HasPrefix(res.Body, []byte{0xff, 0xd8}) {
		t.Errorf("the sample of the examples = %d %s", res.Status, res.ContentType)
	}
	if res := get(p, "GET", "/samples/credits.tsv", nil); res.Status != 200 {
		t.Errorf("credits = %d", res.Status)
	}
}

// TestRoutesEqualThePages checks that the package has the same routes as src/routing/routes.ts.
func TestRoutesEqualThePages(t *testing.T) {
	source, err := os.ReadFile("src/routing/routes.ts")
	if errors.Is(err, os.ErrNotExist) {
		t.Skip("the sources of the pages are not here")
	} else if err != nil {
		t.Fatal(err)
	}
	list := regexp.MustCompile(`(?s)routes = \[(.*?)\]`).FindSubmatch(source)
	if list == nil {
		t.Fatal("src/routing/routes.ts has no list of routes")
	}
	var theirs []string
	for _, m := range regexp.MustCompile(`'([^']+)'`).FindAllSubmatch(list[1], -1) {
		theirs = append(theirs, string(m[1]))
	}
	ours := slices.Clone(routes)
	slices.Sort(ours)
	slices.Sort(theirs)
	if !slices.Equal(ours, theirs) {
		t.Errorf("the server knows %q, the application %q", ours, theirs)
	}
}

// TestPolicyOnThisMachine checks that a page at a loopback address may call other servers of the machine, and that no other page may.
func TestPolicyOnThisMachine(t *testing.T) {
	p := testPages(t)
	for host, wide := range map[string]bool{
		"127.0.0.1:8080": true, "localhost": true, "localhost:80": true,
		"": false, "pictures.example.org": false, "localhost.example.org": false, "127.0.0.1.example.org:80": false, "10.0.0.1": false,
	} {
		got := field(get(p, "GET", "/look", map[string]string{"Host": host, "Accept": "text/html"}), "Content-Security-Policy")
		want := policy
		if wide {
			want = strings.Replace(policy, "connect-src 'self';", "connect-src 'self' http://127.0.0.1:* http://localhost:*;", 1)
		}
		if got != want || strings.Count(got, "connect-src") != 1 {
			t.Errorf("at %q: %s", host, got)
		}
	}
}

// TestPolicyBlocksInjectedPrograms checks that the policy prevents injected programs from running.
func TestPolicyBlocksInjectedPrograms(t *testing.T) {
	for _, bad := range []string{"'unsafe-inline'", "'unsafe-eval'", "http:", "https:", "*"} {
		if slices.Contains(strings.FieldsFunc(policy, func(c rune) bool { return c == ' ' || c == ';' }), bad) {
			t.Errorf("the policy has %s", bad)
		}
	}
	for _, good := range []string{"default-src 'self'", "object-src 'none'", "base-uri 'none'", "frame-ancestors 'none'"} {
		if !strings.Contains(policy, good) {
			t.Errorf("the policy lacks %s", good)
		}
	}
	if page, err := os.ReadFile("index.html"); err == nil && regexp.MustCompile(`<style|\sstyle=|\son\w+=|<script>`).Match(page) {
		t.Error("index.html holds what the policy forbids")
	}
}
