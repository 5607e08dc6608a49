package main_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/sightline-dev/sightline/core/testkit"
	"github.com/sightline-dev/sightline/sync/wire"
)

// storedAnswer is a row of the table in edge/README.md: an answer that a cache may store.
type storedAnswer struct{ path, cacheControl, vary string }

// storedAnswers reads the table in edge/README.md.
func storedAnswers(t *testing.T) (rows []storedAnswer) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(testkit.Root(t), "edge", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(text), "| answer | Cache-Control | Vary |\n|---|---|---|\n")
	for line := range strings.Lines(table) {
		cells := strings.Split(line, "|")
		if len(cells) != 5 {
			break
		}
		clean := func(cell string) string { return strings.ReplaceAll(strings.TrimSpace(cell), "`", "") }
		for path := range strings.SplitSeq(clean(cells[1]), ", ") {
			rows = append(rows, storedAnswer{path, clean(cells[2]), clean(cells[3])})
		}
	}
	if len(rows) < 6 {
		t.Fatalf("the table of answers that may be stored has %d rows", len(rows))
	}
	return rows
}

var (
	pathParameter = regexp.MustCompile(`\\\{\w+\\\}`)
	longPath      = regexp.MustCompile(`^/v2/users/me/apps/\w+/`)
	otherPath     = regexp.MustCompile(`^/(v2|console|healthz|readyz|metrics|version)(/|$)`)
)

// matches reports whether an answer for a path belongs to the row: "…" matches any characters.
func (s storedAnswer) matches(path string) bool {
	if strings.HasPrefix(s.path, "every other page") {
		return !otherPath.MatchString(path)
	}
	path, _, _ = strings.Cut(path, "?")
	pattern := pathParameter.ReplaceAllString(strings.ReplaceAll(regexp.QuoteMeta(s.path), "…", ".*"), "[^/]+")
	return regexp.MustCompile("^" + pattern + "$").MatchString(longPath.ReplaceAllString(path, "/v2/"))
}

// isPersonal reports whether the answer belongs to one credential.
func (s storedAnswer) isPersonal() bool { return strings.HasPrefix(s.cacheControl, "private") }

// answered is an answer as a cache sees it.
type answered struct {
	status int
	header http.Header
	body   []byte
}

// fetch sends a GET with a key, or without one, and with the tag of a stored answer.
func (s *server) fetch(t *testing.T, path, key, tag string) answered {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.base+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{"Authorization": strings.TrimSuffix("Key "+key, "Key "), "If-None-Match": tag, "Sync-Protocol": "2"} {
		if value != "" {
			req.Header.Set(name, value)
		}
	}
	res, err := asking.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answered{res.StatusCode, res.Header, body}
}

// checkStored compares the answers of an origin and an edge to GET requests with the table in edge/README.md. Everything else must not be
// stored. Two credentials and a wrong one share one cache: no answer reaches another credential.
func checkStored(t *testing.T, binary string) {
	rows, program, data, names := storedAnswers(t), hubOf(t, binary), filepath.Join(t.TempDir(), "origin"), photos(t)
	app, key, _ := owner(t, program, data, "shared")
	_, other, _ := owner(t, program, data, "other")
	hub := serve(t, program, data)
	hub.as(t, key).must("POST", "/v2/inputs", object{"inputs": []object{input("seen", photo(t, names[0]))}})
	var enrolment struct{ Token string }
	if err := json.Unmarshal([]byte(command(t, program, "edge", "create", "north", "--apps", app, "--data", data, "--json")), &enrolment); err != nil {
		t.Fatal(err)
	}
	edge := serve(t, binary, folder(t, binary), "--origin", hub.base, "--token", enrolment.Token)
	until(t, "the edge has the input", func() bool { return edge.fetch(t, "/v2/inputs/seen/thumbnail", key, "").status == 200 })

	paths := getPaths(t, hub, app, key)
	used := map[string]bool{}
	for name, s := range map[string]*server{"origin": hub, "edge": edge} {
		for _, path := range paths {
			first := s.fetch(t, path, key, "")
			if path == "/metrics" || path == "/version" {
				first = s.fetch(t, path, "", "")
			}
			row := storedAnswer{cacheControl: "no-store"}
			if i := slices.IndexFunc(rows, func(r storedAnswer) bool { return r.matches(path) }); i >= 0 && first.status == 200 {
				row = rows[i]
				used[row.path] = true
			}
			cacheControl, vary := first.header.Get("Cache-Control"), strings.Join(first.header.Values("Vary"), ", ")
			if want, ok := strings.CutSuffix(row.vary, " if compressed"); ok && (vary == want || vary == "") {
				vary = row.vary
			}
			if cacheControl != row.cacheControl || cacheControl != "no-store" && vary != row.vary {
				t.Errorf("%s: GET %s = %d, Cache-Control %q, Vary %q; want %q, %q", name, path, first.status, cacheControl, vary, row.cacheControl, row.vary)
			}
			if row.isPersonal() {
				s.checkPersonal(t, name, path, key, map[string]string{"another key": other, "a wrong key": strings.Repeat("0", 32), "no key": ""}, first)
			}
		}
	}
	for _, row := range rows {
		if !used[row.path] {
			t.Errorf("no GET request gets the answer of the row %s", row.path)
		}
	}
	hub.as(t, key).must("DELETE", "/v2/inputs/seen", nil)
	thumbnail := "/v2/inputs/seen/thumbnail"
	until(t, "the edge has no input", func() bool { return edge.fetch(t, thumbnail, key, "*").status == 404 })
	if got := hub.fetch(t, thumbnail, key, "*"); got.status != 404 || got.header.Get("Cache-Control") != "no-store" {
		t.Errorf("after the deletion: %d, Cache-Control %q", got.status, got.header.Get("Cache-Control"))
	}
	edge.terminate(t)
	hub.terminate(t)
}

// checkPersonal has other credentials ask for an answer that the cache has, with its tag.
func (s *server) checkPersonal(t *testing.T, name, path, key string, others map[string]string, first answered) {
	t.Helper()
	tag := first.header.Get("ETag")
	if again := s.fetch(t, path, key, tag); !strings.Contains(first.header.Get("Cache-Control"), "immutable") && (again.status != 304 || len(again.body) > 0) {
		t.Errorf("%s: %s with its tag %s = %d, %d bytes", name, path, tag, again.status, len(again.body))
	}
	for who, credential := range others {
		got := s.fetch(t, path, credential, tag)
		if got.status < 400 || bytes.Equal(got.body, first.body) || got.header.Get("Cache-Control") != "no-store" {
			t.Errorf("%s: %s with %s and the tag of the answer = %d, Cache-Control %q", name, path, who, got.status, got.header.Get("Cache-Control"))
		}
	}
}

// getPaths returns an address of every GET route of an origin and an edge.
func getPaths(t *testing.T, hub *server, app, key string) []string {
	t.Helper()
	var description struct {
		Paths map[string]map[string]any
	}
	if err := json.Unmarshal(hub.fetch(t, "/openapi.json", "", "").body, &description); err != nil {
		t.Fatal(err)
	}
	source := at(t, hub.as(t, key).must("GET", "/v2/inputs/seen/source", nil), "source").(object)
	picture := source["picture"].(string)
	ids := strings.NewReplacer("{input_id}", "seen", "{model_id}", general, "{concept_id}", "x", "{version_id}", "aa9ca48295b37401f8af92ad1af0d91d",
		"{workflow_id}", "x", "{user_id}", "me", "{app_id}", app, "{conflict_id}", "1", "{hash}", source["sha256"].(string), "{id}", app, "{key}", "x")
	var paths []string
	for path, methods := range description.Paths {
		if methods["get"] == nil {
			continue
		}
		query := ""
		if strings.HasPrefix(path, "/sync/") {
			query = "?app=" + app + "&since=0&live=0"
		}
		paths = append(paths, ids.Replace("/v2"+path)+query)
		if strings.HasSuffix(path, "/thumbnail") {
			paths = append(paths, ids.Replace("/v2/users/me/apps/{app_id}"+path))
		}
	}
	if len(paths) < 30 {
		t.Fatalf("openapi.json has %d GET routes", len(paths))
	}
	for _, file := range []string{"routes.go", "edge.go"} {
		text, err := os.ReadFile(filepath.Join(testkit.Root(t), "origin", "server", "console", file))
		if err != nil {
			t.Fatal(err)
		}
		found := regexp.MustCompile(`\{"GET", "(/[^"]*)", `).FindAllStringSubmatch(string(text), -1)
		if len(found) < 3 {
			t.Fatalf("%s has %d GET routes", file, len(found))
		}
		for _, m := range found {
			paths = append(paths, ids.Replace("/console"+m[1]))
		}
	}
	page := hub.fetch(t, "/", "", "")
	for _, m := range regexp.MustCompile(`(?:src|href)="(/[^"]+)"`).FindAllStringSubmatch(string(page.body), -1) {
		paths = append(paths, m[1])
	}
	var runtime struct {
		Files []struct{ URL string }
	}
	if err := json.Unmarshal(hub.fetch(t, "/runtime/manifest.json", "", "").body, &runtime); err != nil {
		t.Fatal(err)
	}
	for _, f := range runtime.Files {
		paths = append(paths, "/runtime/"+f.URL)
	}
	manifest := hub.fetch(t, "/v2/sync/snapshot?app="+app+"", key, "")
	snapshot, err := wire.DecodeManifest(manifest.body)
	if err != nil || len(snapshot.Chunks) == 0 {
		t.Fatalf("snapshot = %d with %d chunks, %v", manifest.status, len(snapshot.Chunks), err)
	}
	paths = append(paths, "/v2/sync/snapshot/"+snapshot.Chunks[0].Hash.String()+"?app="+app+"", picture[strings.Index(picture, "/hosted/"):], "/", "/"+app+"/inputs", "/samples/credits.tsv", "/runtime/manifest.json", "/runtime/index.js",
		"/openapi.json", "/.well-known/jwks.json", "/healthz", "/readyz", "/metrics", "/version", "/v2/nothing", "/v2", "/console")
	unique := map[string]bool{}
	for _, path := range paths {
		if strings.ContainsAny(path, "{}") {
			t.Fatal(fmt.Errorf("%s has an id that the test does not know", path))
		}
		unique[path] = true
	}
	return slices.Sorted(maps.Keys(unique))
}
