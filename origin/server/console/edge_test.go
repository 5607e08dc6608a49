package console

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/auth"
	"github.com/sightline-dev/sightline/core/register"
	"github.com/sightline-dev/sightline/origin/server/account"
)

// issuer issues tokens whose text is their claims.
type issuer struct{}

func (issuer) Issue(c auth.Claims) (string, time.Duration, error) {
	return "token of " + c.App + " to " + c.Client, time.Minute, nil
}

// newEdge returns the handler of an edge over an engine with two applications; of maps a header to the application that it opens.
func newEdge(t *testing.T, open bool) (b *browser, apps []string, of map[string]string) {
	t.Helper()
	of = map[string]string{}
	s := newSite(t, func(o *Options, _ *account.Options) {
		o.PublicURL, o.Tokens = "http://127.0.0.1:8081", issuer{}
		o.Edge = &Edge{
			Identity: func() (string, string) { return "north", "https://pictures.example" },
			AppOf:    func(_ context.Context, r *api.Request) string { return of[r.Authorization] },
			Open:     open,
			KeysAge: func(app string) (KeysAge, bool) {
				return KeysAge{Known: time.Unix(1_700_000_000, 0).UTC(), Writes: 2 * time.Hour, Reads: 24 * time.Hour}, app == of["Key Birds"]
			},
		}
	})
	for _, name := range []string{"Birds", "Boats"} {
		a, _, err := s.engine.Register.CreateApp(t.Context(), register.Caller{}, register.NewApp{Name: name, Language: "en"})
		if err != nil {
			t.Fatal(err)
		}
		apps = append(apps, a.ID)
		of["Key "+name] = a.ID
	}
	return s.browser(), apps, of
}

// appNames returns the names of the applications in an answer.
func appNames(t *testing.T, res api.Response) (names []string) {
	t.Helper()
	var in struct{ Apps []struct{ Name string } }
	if err := json.Unmarshal(res.Body, &in); err != nil {
		t.Fatal(err)
	}
	for _, a := range in.Apps {
		names = append(names, a.Name)
	}
	return names
}

// shows asks with an Authorization header.
func (b *browser) shows(authorization, method, path string) api.Response {
	r, _ := b.request(method, path, "{}")
	r.Authorization = authorization
	return b.Serve(b.t.Context(), r)
}

// TestEdgeSession: the answer names the edge, and gives nobody a cookie or an account.
func TestEdgeSession(t *testing.T) {
	b, _, _ := newEdge(t, false)
	res := b.do("GET", "/session", "")
	var in struct {
		Session struct {
			Account *person
			SignUp  string `json:"sign_up"`
			Demo    bool
			Version string
			Edge    struct {
				Name, Origin string
				Open         bool
			}
		}
	}
	if err := json.Unmarshal(res.Body, &in); err != nil || res.Status != 200 {
		t.Fatalf("%d %s, %v", res.Status, res.Body, err)
	}
	s := in.Session
	if s.Account != nil || s.Demo || s.SignUp != "closed" || s.Version != "1.2.3" {
		t.Errorf("session = %+v", s)
	}
	if s.Edge.Name != "north" || s.Edge.Origin != "https://pictures.example" || s.Edge.Open {
		t.Errorf("edge = %+v", s.Edge)
	}
	if b.cookie != "" {
		t.Errorf("a cookie was set: %q", b.cookie)
	}
}

// TestEdgeApps shows the application that a key opens, and no other.
func TestEdgeApps(t *testing.T) {
	b, apps, of := newEdge(t, false)
	for name := range map[string]bool{"Birds": true, "Boats": true} {
		if got := appNames(t, b.shows("Key "+name, "GET", "/apps")); len(got) != 1 || got[0] != name {
			t.Errorf("the key of %s opens %v", name, got)
		}
	}
	of["Key gone"] = missing // of an application that was deleted meanwhile
	for _, tt := range []struct {
		name, authorization, method, path string
		want                              int
	}{
		{"no key", "", "GET", "/apps", 401},
		{"a key of nothing", "Key x", "GET", "/apps", 401},
		{"a key of what is gone", "Key gone", "GET", "/apps", 404},
		{"a page's token", "Key Birds", "POST", "/apps/" + apps[0] + "/page-token", 404},
		{"keys", "Key Birds", "GET", "/apps/" + apps[0] + "/keys", 404},
		{"a new application", "Key Birds", "POST", "/apps", 405},
		{"a deletion", "Key Birds", "DELETE", "/apps/" + apps[0], 404},
		{"accounts", "", "POST", "/accounts", 404},
	} {
		if res := b.shows(tt.authorization, tt.method, tt.path); res.Status != tt.want {
			t.Errorf("%s: %d %s, want %d", tt.name, res.Status, res.Body, tt.want)
		}
	}
}

// TestEdgeKeys: only a caller with a key of an application gets the age of the edge's knowledge of its keys.
func TestEdgeKeys(t *testing.T) {
	b, apps, _ := newEdge(t, false)
	for _, tt := range []struct {
		name, authorization, app string
		want                     int
	}{
		{"a key", "Key Birds", apps[0], 200},
		{"no key", "", apps[0], 401},
		{"a key of nothing", "Key x", apps[0], 404},
		{"another's key", "Key Boats", apps[0], 404},
		{"an application of the edge's own", "Key Boats", apps[1], 404},
	} {
		if res := b.shows(tt.authorization, "GET", "/apps/"+tt.app+"/keys-age"); res.Status != tt.want {
			t.Errorf("%s: %d %s, want %d", tt.name, res.Status, res.Body, tt.want)
		}
	}
	open, apps, _ := newEdge(t, true)
	const want = `"keys":{"known":"2023-11-14T22:13:20Z","writes_seconds":7200,"reads_seconds":86400}`
	if res := open.do("GET", "/apps/"+apps[0]+"/keys-age", ""); res.Status != 200 || !strings.Contains(string(res.Body), want) {
		t.Errorf("%d %s, want %s", res.Status, res.Body, want)
	}
}

// TestEdgeOpen: a demonstration's edge admits every caller, but only from its pages.
func TestEdgeOpen(t *testing.T) {
	b, apps, _ := newEdge(t, true)
	if got := appNames(t, b.do("GET", "/apps", "")); len(got) != 2 {
		t.Errorf("applications = %v", got)
	}
	path := "/apps/" + apps[1] + "/page-token"
	var in struct{ Token string }
	if res := b.do("POST", path, "{}"); json.Unmarshal(res.Body, &in) != nil || res.Status != 200 || in.Token == "" {
		t.Errorf("page token: %d %s", res.Status, res.Body)
	}
	if res := b.do("POST", "/apps/"+missing+"/page-token", "{}"); res.Status != 404 {
		t.Errorf("of nothing: %d", res.Status)
	}
	for name, change := range map[string]func(header map[string]string){
		"another host":        func(h map[string]string) { h["Host"] = "pictures.example:8081" },
		"another origin":      func(h map[string]string) { h["Origin"] = "http://127.0.0.1:8080" },
		"another site's page": func(h map[string]string) { h["Sec-Fetch-Site"] = "cross-site" },
		"a neighbour's page":  func(h map[string]string) { h["Sec-Fetch-Site"] = "same-site" },
		"no page":             func(h map[string]string) { delete(h, "Origin"); delete(h, "Sec-Fetch-Site") },
		"a form":              func(h map[string]string) { h["Content-Type"] = "text/plain" },
	} {
		r, header := b.request("POST", path, "{}")
		change(header)
		if res := b.Serve(t.Context(), r); res.Status != 403 && res.Status != 415 {
			t.Errorf("%s: %d %s", name, res.Status, res.Body)
		}
	}
}
