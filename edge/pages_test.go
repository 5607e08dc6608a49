package main_test

import (
	"encoding/json"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
)

// asks makes a request as a page of the server does; authorization may be empty.
func (s *server) asks(t *testing.T, method, path, authorization string) (status int, header http.Header, answer object) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, s.base+path, strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{"Authorization": authorization, "Origin": s.base, "Content-Type": "application/json"} {
		if value != "" {
			req.Header.Set(name, value)
		}
	}
	res, err := asking.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if strings.Contains(res.Header.Get("Content-Type"), "json") {
		if err := json.NewDecoder(res.Body).Decode(&answer); err != nil {
			t.Fatal(err)
		}
	}
	return res.StatusCode, res.Header, answer
}

// checkPages checks every page of an edge, and the requests of pages with a key and, at a demonstration, without one.
func checkPages(t *testing.T, binary string) {
	data := filepath.Join(t.TempDir(), "data")
	app, key, _ := owner(t, binary, data, "birds")
	srv := serve(t, binary, data)
	for _, path := range []string{
		"/", "/look", "/sync", "/docs", "/sign-in", "/apps", "/account", "/" + app + "/inputs", "/" + app + "/inputs/x", "/" + app + "/search",
		"/" + app + "/next", "/" + app + "/models", "/" + app + "/models/m/v", "/" + app + "/concepts",
	} {
		status, header, _ := srv.asks(t, "GET", path, "")
		// A program that was built without the pages returns 404 as plain text for their addresses.
		if kind := header.Get("Content-Type"); !(status == 200 && kind == "text/html; charset=utf-8" || status == 404 && kind == "text/plain; charset=utf-8") {
			t.Errorf("%s = %d, %s", path, status, kind)
		}
		if p := header.Get("Content-Security-Policy"); !strings.Contains(p, "default-src 'self'; script-src 'self'") || header.Get("X-Frame-Options") != "DENY" {
			t.Errorf("%s: policy %q", path, p)
		}
	}
	if status, _, answer := srv.asks(t, "GET", "/console/session", ""); status != 200 || at(t, answer, "session", "sign_up") != "closed" || at(t, answer, "session", "edge", "open") != false {
		t.Errorf("session = %d %v", status, answer)
	}
	if status, _, answer := srv.asks(t, "GET", "/console/apps", "Key "+key); status != 200 || at(t, answer, "apps", 0, "id") != app || at(t, answer, "apps", 0, "name") != "birds" {
		t.Errorf("the key opens %d %v, want %s", status, answer, app)
	}
	for name, refused := range map[string][3]string{
		"nobody":        {"GET", "/console/apps", ""},
		"another's key": {"GET", "/console/apps", "Key 0123456789abcdef0123456789abcdef"},
		"no token":      {"GET", "/console/apps", "Bearer x"},
		"without a key": {"POST", "/console/apps/" + app + "/page-token", ""},
	} {
		if status, header, answer := srv.asks(t, refused[0], refused[1], refused[2]); status != 401 && status != 404 || header.Get("Set-Cookie") != "" {
			t.Errorf("%s: %d %v", name, status, answer)
		}
	}
	srv.terminate(t)

	for _, args := range [][]string{{"--behind-proxy", "--public-url", "https://edge.example"}, {"--listen", "0.0.0.0:0"}} {
		if code, _, stderr := try(t, binary, append([]string{"serve", "--demo", "--data", data}, args...)...); code != 2 || !strings.Contains(stderr, "demo: refusing to run on ") {
			t.Errorf("a demonstration with %v = %d, %s", args, code, stderr)
		}
	}
	open := serve(t, binary, data, "--demo")
	_, _, answer := open.asks(t, "GET", "/console/apps", "")
	if at(t, answer, "apps", 0, "id") != app {
		t.Errorf("a demonstration's applications: %v", answer)
	}
	_, _, answer = open.asks(t, "POST", "/console/apps/"+app+"/page-token", "")
	token, ok := at(t, answer, "token").(string)
	if status, _, inputs := open.asks(t, "GET", "/v2/inputs", "Bearer "+token); !ok || status != 200 {
		t.Errorf("with the page's token: %d %v", status, inputs)
	}
	open.terminate(t)
}
