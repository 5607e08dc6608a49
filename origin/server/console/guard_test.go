package console

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/origin/server/account"
)

// TestOtherSitesChangeNothing sends each change as a browser would send it for a page of another site.
func TestOtherSitesChangeNothing(t *testing.T) {
	s := newSite(t, nil)
	s.operator()
	ada := s.person("ada")
	app := ada.application("A")
	eve := s.browser()
	attacks := map[string]func(header map[string]string){
		"another origin":        func(h map[string]string) { h["Origin"] = "https://evil.example" },
		"an origin like ours":   func(h map[string]string) { h["Origin"] = "https://pictures.example.evil.example" },
		"ours without TLS":      func(h map[string]string) { h["Origin"] = "http://pictures.example" },
		"the null origin":       func(h map[string]string) { h["Origin"] = "null" },
		"cross-site":            func(h map[string]string) { h["Sec-Fetch-Site"] = "cross-site" },
		"same-site":             func(h map[string]string) { h["Sec-Fetch-Site"] = "same-site" },
		"no origin":             func(h map[string]string) { delete(h, "Origin"); delete(h, "Sec-Fetch-Site") },
		"typed":                 func(h map[string]string) { delete(h, "Origin"); h["Sec-Fetch-Site"] = "none" },
		"a form":                func(h map[string]string) { h["Content-Type"] = "application/x-www-form-urlencoded" },
		"a form with text":      func(h map[string]string) { h["Content-Type"] = "text/plain" },
		"no content type":       func(h map[string]string) { delete(h, "Content-Type") },
		"no csrf token":         func(h map[string]string) { delete(h, "X-Sightline-CSRF") },
		"another's csrf token":  func(h map[string]string) { h["X-Sightline-CSRF"] = eve.csrf },
		"no cookie":             func(h map[string]string) { delete(h, "Cookie") },
		"a cookie of one digit": func(h map[string]string) { h["Cookie"] = ada.Handler.cookie + "=0" },
		"another host":          func(h map[string]string) { h["Host"] = "evil.example" },
		"no host":               func(h map[string]string) { delete(h, "Host") },
	}
	for _, r := range routes {
		if r.method == "GET" {
			continue
		}
		path := strings.NewReplacer("{id}", app, "{key}", "0011223344556677").Replace(r.path)
		for name, attack := range attacks {
			req, header := ada.request(r.method, path, `{"name":"A"}`)
			attack(header)
			res := s.Serve(t.Context(), req)
			checkAnswer(t, name, &res)
			if res.Status != 403 && res.Status != 415 {
				t.Errorf("%s: %s %s = %d %s", name, r.method, path, res.Status, res.Body)
			}
			for _, f := range res.Header {
				if f.Name == "Set-Cookie" {
					t.Errorf("%s: %s %s sets a cookie", name, r.method, path)
				}
			}
		}
	}
	ada.ok("GET", "/apps/"+app, "", nil)
}

// TestOtherSitesReadNothing sends requests with a host name that was changed to our address, and requests from a page of another site.
func TestOtherSitesReadNothing(t *testing.T) {
	s := newSite(t, func(o *Options, p *account.Options) {
		o.PublicURL, o.Demo, p.Demo = "http://127.0.0.1:8080", true, true
		o.Origins = []string{"http://localhost:8080", "http://[::1]:8080"}
	})
	b := s.browser()
	for _, host := range []string{"evil.example", "evil.example:8080", "127.0.0.1", "127.0.0.1:8081", "localhost:8080.evil.example", ""} {
		req, header := b.request("GET", "/session", "")
		header["Host"] = host
		if res := s.Serve(t.Context(), req); res.Status != 403 || bytes.Contains(res.Body, []byte("csrf\":")) {
			t.Errorf("Host %q = %d %s", host, res.Status, res.Body)
		}
	}
	for _, host := range []string{"127.0.0.1:8080", "localhost:8080", "LOCALHOST:8080", "[::1]:8080"} {
		req, header := b.request("GET", "/session", "")
		header["Host"] = host
		if res := s.Serve(t.Context(), req); res.Status != 200 {
			t.Errorf("Host %q = %d %s", host, res.Status, res.Body)
		}
	}
	for _, h := range [][2]string{{"Origin", "https://evil.example"}, {"Origin", "http://127.0.0.1:9999"}, {"Sec-Fetch-Site", "cross-site"}, {"Sec-Fetch-Site", "same-site"}} {
		for _, path := range []string{"/session", "/mail", "/apps"} {
			req, header := b.request("GET", path, "")
			header[h[0]] = h[1]
			if res := s.Serve(t.Context(), req); res.Status != 403 {
				t.Errorf("%s with %s: %s = %d %s", path, h[0], h[1], res.Status, res.Body)
			}
		}
	}
}

func TestCookie(t *testing.T) {
	for origin, want := range map[string]string{
		"https://pictures.example": "__Host-sightline=*; Path=/; Max-Age=2592000; HttpOnly; SameSite=Lax; Secure",
		"http://127.0.0.1:8080":    "sightline=*; Path=/; Max-Age=2592000; HttpOnly; SameSite=Lax",
	} {
		s := newSite(t, func(o *Options, _ *account.Options) { o.PublicURL = origin })
		b := &browser{site: s}
		res := b.get("/session")
		got := ""
		for _, f := range res.Header {
			if f.Name == "Set-Cookie" {
				_, token, _ := strings.Cut(b.cookie, "=")
				got = strings.Replace(f.Value, token, "*", 1)
			}
		}
		if got != want {
			t.Errorf("at %s the cookie is %q, want %q", origin, got, want)
		}
		before, csrf := b.cookie, b.csrf
		if b.get("/session"); b.cookie != before || b.csrf != csrf {
			t.Errorf("at %s the cookie changes by itself", origin)
		}
	}
}

// TestSessionsRotate checks that a cookie from before a sign-in or a change of password is invalid afterwards.
func TestSessionsRotate(t *testing.T) {
	s := newSite(t, nil)
	b := s.operator()
	stale := func(cookie, csrf string) {
		t.Helper()
		old := &browser{site: s, cookie: cookie, csrf: csrf, network: "192.0.2.1"}
		old.checkRefusal("GET", "/apps", "", 401, 11001, "sign_in")
	}
	cookie, csrf := b.cookie, b.csrf
	b.ok("DELETE", "/session", "{}", nil)
	stale(cookie, csrf)
	cookie, csrf = b.cookie, b.csrf // belongs to no account
	b.ok("POST", "/session", `{"email":"op@pictures.example","password":`+quote(password)+`}`, nil)
	stale(cookie, csrf)
	other := s.browser()
	other.ok("POST", "/session", `{"email":"op@pictures.example","password":`+quote(password)+`}`, nil)
	var list answerBody
	b.ok("GET", "/sessions", "", &list)
	if len(list.Sessions) != 2 || list.Sessions[0].Remote != "192.0.2.1" {
		t.Errorf("sessions = %+v", list.Sessions)
	}
	cookie, csrf = b.cookie, b.csrf
	b.ok("PATCH", "/account", `{"password":{"old":`+quote(password)+`,"new":"two lanterns, and no fog"}}`, nil)
	stale(cookie, csrf)
	stale(other.cookie, other.csrf)
	b.ok("GET", "/apps", "", nil)
	cookie, csrf = b.cookie, b.csrf
	b.ok("POST", "/session", `{"email":"op@pictures.example","password":"two lanterns, and no fog"}`, nil)
	stale(cookie, csrf)
	var got answerBody
	b.ok("GET", "/sessions", "", &got)
	if len(got.Sessions) != 1 {
		t.Errorf("signing in twice leaves %d sessions", len(got.Sessions))
	}
	b.ok("DELETE", "/sessions/"+got.Sessions[0].ID, "{}", nil)
	stale(b.cookie, b.csrf)
}

// TestAccountDeletion checks that an account without applications can be deleted together with its sessions, and that its browsers are then
// signed out.
func TestAccountDeletion(t *testing.T) {
	s := newSite(t, nil)
	s.operator()
	ada := s.person("ada")
	app := "/apps/" + ada.application("A")
	away := s.browser()
	away.ok("POST", "/session", `{"email":"ada@x.example","password":`+quote(password)+`}`, nil)
	var list struct{ Sessions []struct{ This bool } }
	away.ok("GET", "/sessions", "", &list)
	if len(list.Sessions) != 2 || list.Sessions[0].This == list.Sessions[1].This {
		t.Errorf("sessions = %+v, want two, one of which asks", list.Sessions)
	}
	ada.checkRefusal("DELETE", "/account", `{"password":`+quote(password)+`}`, 400, 11102, "owner")
	ada.ok("DELETE", app, `{"name":"A"}`, nil)
	ada.checkRefusal("DELETE", "/account", `{"password":"no"}`, 400, 11102, "wrong_password")
	ada.ok("DELETE", "/account", `{"password":`+quote(password)+`}`, nil)
	for _, b := range []*browser{ada, away} {
		b.checkRefusal("GET", "/apps", "", 401, 11001, "sign_in")
	}
	ada.checkRefusal("POST", "/session", `{"email":"ada@x.example","password":`+quote(password)+`}`, 401, 11002, "login")
	if _, err := s.accounts.VerifyAudit(); err != nil {
		t.Error(err)
	}
}

func TestDemo(t *testing.T) {
	s := newSite(t, func(o *Options, p *account.Options) {
		o.PublicURL, o.Demo, p.Demo = "http://127.0.0.1:8080", true, true
	})
	b := s.browser()
	var got answerBody
	b.ok("GET", "/session", "", &got)
	if a := got.Session.Account; a == nil || !a.Verified || !a.Operator || !got.Session.Demo || got.Session.Mail != "page" {
		t.Fatalf("session = %+v", got.Session)
	}
	app := b.application("Demo")
	b.ok("GET", "/apps/"+app, "", nil)
	ada := s.person("ada")
	ada.ok("GET", "/mail", "", &got)
	if len(got.Mails) != 1 || got.Mails[0].To != "ada@x.example" {
		t.Fatalf("mails = %+v", got.Mails)
	}
	ada.ok("GET", "/session", "", &got)
	if got.Session.Account.Email != "ada@x.example" {
		t.Errorf("the demo's account displaced one that signed up: %+v", got.Session.Account)
	}
	at := strings.Index(got.Mails[0].Text, "\n    ")
	ada.ok("POST", "/verification", `{"code":"`+got.Mails[0].Text[at+5:at+11]+`"}`, &got)
	if !got.Session.Account.Verified || got.Session.Account.Limit != nil {
		t.Errorf("session = %+v", got.Session.Account)
	}
}

func TestResetByMail(t *testing.T) {
	s := newSite(t, func(_ *Options, p *account.Options) { p.Demo = true })
	s.person("ada")
	b := s.browser()
	s.pass(time.Hour)
	b.ok("POST", "/password/mail", `{"email":"nobody@x.example"}`, nil)
	b.ok("POST", "/password/mail", `{"email":"ada@x.example"}`, nil)
	text := s.accounts.Mails()[0].Text
	_, token, _ := strings.Cut(text, "/reset?token=")
	var got answerBody
	b.ok("POST", "/password", `{"token":"`+token[:64]+`","password":"two lanterns, and no fog"}`, &got)
	if got.Session.Account == nil || got.Session.Account.Email != "ada@x.example" {
		t.Errorf("session = %+v", got.Session)
	}
	b.checkRefusal("POST", "/password", `{"token":"`+token[:64]+`","password":"two lanterns, and no fog"}`, 400, 11102, "link")
}

// TestResetEndsCredentials makes the owner of an email address reset the password of an account that a stranger created with it. No
// credential of the stranger works afterwards. The owner's keys survive a later reset.
func TestResetEndsCredentials(t *testing.T) {
	s := newSite(t, func(_ *Options, p *account.Options) { p.Demo = true })
	stranger := s.person("ada")
	app := stranger.application("Birds")
	stranger.ok("POST", "/apps/"+app+"/keys", `{"description":"first","scopes":["All"]}`, nil)
	stranger.ok("POST", "/apps/"+app+"/keys", `{"description":"second","scopes":["All"]}`, nil)
	before, err := s.engine.Register.Client(app)
	if err != nil {
		t.Fatal(err)
	}
	reset := func() *browser {
		t.Helper()
		b := s.browser()
		s.pass(time.Hour)
		b.ok("POST", "/password/mail", `{"email":"ada@x.example"}`, nil)
		_, token, _ := strings.Cut(s.accounts.Mails()[0].Text, "/reset?token=")
		b.ok("POST", "/password", `{"token":"`+token[:64]+`","password":"two lanterns, and no fog"}`, nil)
		return b
	}
	owner := reset()
	stranger.checkRefusal("GET", "/apps", "", 401, 11001, "sign_in")
	after, err := s.engine.Register.Client(app)
	if err != nil {
		t.Fatal(err)
	}
	if after.Secret == before.Secret || after.Generation == before.Generation {
		t.Errorf("the client's secret and tokens still work: %+v, before %+v", after, before)
	}
	if keys, err := s.engine.Register.Keys(app); len(keys) != 0 || err != nil {
		t.Errorf("%d keys of the stranger still work, %v", len(keys), err)
	}
	var list answerBody
	owner.ok("GET", "/audit", "", &list)
	var actions []string
	for _, e := range list.Events {
		actions = append(actions, e.Action)
	}
	if !slices.Contains(actions, string("key.delete")) || !slices.Contains(actions, string("client.secret")) {
		t.Errorf("audit = %v", actions)
	}

	owner.ok("POST", "/apps/"+app+"/keys", `{"description":"mine","scopes":["All"]}`, nil)
	reset()
	if keys, err := s.engine.Register.Keys(app); len(keys) != 1 || err != nil {
		t.Errorf("%d keys of a verified account after its reset, %v", len(keys), err)
	}
}

func TestLists(t *testing.T) {
	s := newSite(t, nil)
	b := s.operator()
	var got answerBody
	b.ok("GET", "/scopes", "", &got)
	if len(got.Scopes) != 21 || got.Scopes[0].ID != "All" || got.Scopes[5].Name != "Inputs:Add" {
		t.Errorf("scopes = %+v", got.Scopes)
	}
	b.ok("GET", "/models", "", &got)
	if len(got.Models) != 1 || got.Models[0].Name != "general" {
		t.Errorf("models = %+v", got.Models)
	}
}

func TestNewChecks(t *testing.T) {
	s := newSite(t, nil)
	for _, url := range []string{"", "pictures.example", "ftp://pictures.example", "http://"} {
		if _, err := New(Options{Accounts: s.accounts, Register: s.engine.Register, Refuse: s.engine.Refuse, Now: s.clock, PublicURL: url}); err == nil {
			t.Errorf("New took the address %q", url)
		}
	}
	if _, err := New(Options{PublicURL: "http://x.example"}); err == nil {
		t.Error("New took nothing to work on")
	}
}

// FuzzBodies sends arbitrary bodies to every change. Every answer has the envelope and is not a server error.
func FuzzBodies(f *testing.F) {
	for i := range routes {
		f.Add(uint8(i), `{}`)
	}
	for i, body := range []string{
		`{"name":"x"}`, `{"email":"a@b.example","password":"x"}`, `{"password":{"old":"a","new":"b"}}`, `{"code":null}`, `null`, `[`,
		`{"scopes":["All",1]}`, `{"name":"\ud800"}`, "\xff", `{"default_model":"m"}`, strings.Repeat("[", 1000), `{"description":"\u0000","scopes":["All"]}`,
	} {
		f.Add(uint8(3*i), body)
	}
	s := newSite(f, nil)
	s.operator()
	b := s.person("ada")
	app := b.application("A")
	f.Fuzz(func(t *testing.T, n uint8, body string) {
		r := routes[int(n)%len(routes)]
		s.pass(time.Minute)
		s.t = t
		defer func() { s.t = f }()
		path := strings.NewReplacer("{id}", app, "{key}", "0011223344556677").Replace(r.path)
		res := b.do(r.method, path, body)
		if res.Status >= 500 {
			t.Errorf("%s %s %q = %d %s", r.method, path, body, res.Status, res.Body)
		}
		var session answerBody
		if err := json.Unmarshal(b.get("/session").Body, &session); err != nil || session.Session.Account == nil {
			b.do("POST", "/session", `{"email":"ada@x.example","password":`+quote(password)+`}`)
		}
	})
}

// FuzzRequests sends arbitrary paths and headers. Every answer has the envelope, and without a session it contains no data.
func FuzzRequests(f *testing.F) {
	f.Add("GET", "/console/apps/x/../y", "q=%zz", "pictures.example", "sightline=;;;=", "https://pictures.example")
	f.Add("POST", "//console//session", "", "pictures.example:443", "__Host-sightline="+strings.Repeat("0", 64), "null")
	f.Add("DELETE", "/console/apps/%2f/keys/%00", "", "", "=", "")
	s := newSite(f, nil)
	s.operator()
	f.Fuzz(func(t *testing.T, method, path, query, host, cookie, origin string) {
		header := map[string]string{"Host": host, "Cookie": cookie, "Origin": origin, "Content-Type": "application/json"}
		res := s.Serve(t.Context(), &api.Request{Method: method, Path: path, Query: query, Header: func(n string) string { return header[n] }})
		checkAnswer(t, method+" "+path, &res)
		if res.Status >= 500 || bytes.Contains(res.Body, []byte("op@pictures.example")) {
			t.Errorf("%s %s = %d %s", method, path, res.Status, res.Body)
		}
	})
}

// TestRaces makes several users work at once, for the race detector.
func TestRaces(t *testing.T) {
	s := newSite(t, nil)
	s.operator()
	const people = 4
	done := make(chan error, people)
	for i := range people {
		b := s.person(string(rune('a' + i)))
		b.network = "192.0.2." + string(rune('1'+i))
		go func() {
			done <- func() error {
				for range 3 {
					app := b.do("POST", "/apps", `{"name":"A","language":"en"}`)
					var answer answerBody
					if err := json.Unmarshal(app.Body, &answer); err != nil || app.Status != 200 {
						return errors.New(string(app.Body))
					}
					b.do("POST", "/apps/"+answer.App.ID+"/keys", `{"description":"k","scopes":["All"]}`)
					b.get("/apps")
					b.get("/audit")
					b.get("/apps/" + answer.App.ID + "/usage")
					if res := b.do("DELETE", "/apps/"+answer.App.ID, `{"name":"A"}`); res.Status != 200 {
						return errors.New(string(res.Body))
					}
				}
				return nil
			}()
		}()
	}
	for range people {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	if _, err := s.accounts.VerifyAudit(); err != nil {
		t.Error(err)
	}
}
