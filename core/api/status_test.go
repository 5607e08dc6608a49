package api

import (
	"fmt"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/sightline-dev/sightline/core/api/call"
	"github.com/sightline-dev/sightline/core/log/form"
)

// TestCallsThatWrite checks which calls change an application: those with another method than GET, except calls that only read.
func TestCallsThatWrite(t *testing.T) {
	reads := map[string]bool{
		"/models/{model_id}/outputs": true, "/models/{model_id}/versions/{version_id}/outputs": true, "/models/searches": true,
		"/models/{model_id}/activations": true, "/models/{model_id}/versions/{version_id}/metrics": true, "/concepts/searches": true, "/searches": true, "/searches/summary": true,
		"/workflows/{workflow_id}/results": true, "/token": true, "/login": true, "/users/{user_id}/apps": true, "/users/{user_id}/keys": true,
	}
	for _, r := range routes {
		want := r.Method != "GET" && !reads[r.Path]
		if got := Writes(r.Method, "/v2"+r.Path); got != want {
			t.Errorf("Writes(%s %s) = %v, want %v", r.Method, r.Path, got, want)
		}
	}
	for _, path := range []string{"", "/", "/v2", "/v2/nothing", "/v3/inputs", "/v2/%zz"} {
		if Writes("POST", path) {
			t.Errorf("Writes(POST %s)", path)
		}
	}
}

// TestCallsThatOnlyRead checks which calls only read: GET, HEAD, OPTIONS, and these with POST. No call both reads and writes. A login opens
// a session.
func TestCallsThatOnlyRead(t *testing.T) {
	posts := map[string]bool{
		"/models/{model_id}/outputs": true, "/models/{model_id}/versions/{version_id}/outputs": true, "/models/{model_id}/activations": true,
		"/models/searches": true, "/models/{model_id}/versions/{version_id}/metrics": true, "/concepts/searches": true,
		"/searches": true, "/searches/summary": true, "/workflows/{workflow_id}/results": true, "/token": true,
	}
	account := map[string]bool{"POST /login": true, "POST /users/{user_id}/apps": true, "POST /users/{user_id}/keys": true}
	for _, r := range routes {
		got, want := Reads(r.Method, "/v2"+r.Path), r.Method == "GET" || r.Method == "POST" && posts[r.Path]
		if got != want {
			t.Errorf("Reads(%s %s) = %v, want %v", r.Method, r.Path, got, want)
		}
		if neither := account[r.Method+" "+r.Path]; (got == Writes(r.Method, "/v2"+r.Path)) != neither {
			t.Errorf("%s %s both reads and writes, or neither", r.Method, r.Path)
		}
	}
	for _, method := range []string{"GET", "HEAD", "OPTIONS"} {
		if !Reads(method, "/v2/nothing") {
			t.Errorf("Reads(%s)", method)
		}
	}
	for _, path := range []string{"", "/", "/v2", "/v2/nothing", "/v3/searches", "/v2/sync/push", "/v2/%zz"} {
		if Reads("POST", path) {
			t.Errorf("Reads(POST %s)", path)
		}
	}
}

// TestRoutesHaveHandlers checks that all routes differ, have a handler, and are found by their paths.
func TestRoutesHaveHandlers(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range routes {
		key := r.Method + " " + r.Path
		if seen[key] || r.handle == nil {
			t.Errorf("%s twice or without a handler", key)
		}
		seen[key] = true
		got, _, err := find(r.Method, segments("/v2"+r.Path))
		if err != nil || got.Path != r.Path {
			t.Errorf("%s finds %v, %v", key, got, err)
		}
	}
}

// TestTranscriptsShowEveryStatus checks that every status of the table is in a transcript.
func TestTranscriptsShowEveryStatus(t *testing.T) {
	names, err := filepath.Glob("testdata/*.txt")
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(text)
	}
	for _, s := range call.Statuses() {
		want := fmt.Sprintf(`"code":%d,"description":"%s"`, s.Code, s.Description)
		if !strings.Contains(all.String(), want) {
			t.Errorf("no transcript shows %s", want)
		}
	}
}

// TestFixedSegments checks that fixed lists the segments at which another path has an id.
func TestFixedSegments(t *testing.T) {
	want := map[string]bool{}
	for _, a := range routes {
		for _, b := range routes {
			x, y := strings.Split(a.Path, "/"), strings.Split(b.Path, "/")
			if len(x) > 2 && len(y) > 2 && x[1] == y[1] && x[2][0] != '{' && y[2][0] == '{' {
				want[x[2]] = true
			}
		}
	}
	if got := slices.Sorted(maps.Keys(want)); !slices.Equal(got, form.Reserved) {
		t.Errorf("fixed = %v, want %v", form.Reserved, got)
	}
}

// TestRouting draws a route with ids and writes its path in one of the forms that clients use. The router must find the route and the ids.
func TestRouting(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := rapid.SampledFrom(routes).Draw(t, "route")
		ids := map[string]string{}
		slashes := rapid.SampledFrom([]string{"/", "//", "///"})
		path := slashes.Draw(t, "slashes") + "v2"
		if rapid.Bool().Draw(t, "long address") {
			path += "/users/" + url.PathEscape(rapid.StringN(1, 8, -1).Draw(t, "user")) + "/apps//" + url.PathEscape(rapid.StringN(1, 8, -1).Draw(t, "app"))
		}
		for part := range strings.SplitSeq(want.Path[1:], "/") {
			path += slashes.Draw(t, "slashes")
			switch {
			case part[0] == '{':
				id := rapid.StringN(1, 12, -1).Filter(func(s string) bool { return !slices.Contains(form.Reserved, s) }).Draw(t, "id")
				ids[part[1:len(part)-1]] = id
				path += url.PathEscape(id)
			case part == "versions" && rapid.Bool().Draw(t, "singular"):
				path += "version"
			default:
				path += part
			}
		}
		if rapid.Bool().Draw(t, "trailing") {
			path += "/"
		}
		got, found, _, err := resolve(want.Method, path)
		if err != nil || got.Path != want.Path || !maps.Equal(found, ids) {
			t.Fatalf("%s finds %+v with %v, %v; want %s with %v", path, got, found, err, want.Path, ids)
		}
	})
}
