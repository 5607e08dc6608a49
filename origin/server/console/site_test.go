package console

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sightline-dev/sightline/core"
	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/api/apitest"
	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/kv/memkv"
	"github.com/sightline-dev/sightline/origin/server/account"
)

const (
	password = "a lantern in the fog"
	missing  = "ffffffffffffffffffffffffffffffff" // an ID that does not exist
)

// site is a handler with a real engine and a real registry.
type site struct {
	*Handler
	t        testing.TB
	origin   string
	accounts *account.Registry
	engine   *core.Engine

	mu  sync.Mutex
	now time.Time
}

func (s *site) clock() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now
}

func (s *site) pass(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now = s.now.Add(d)
}

// postbox accepts and discards every mail.
type postbox struct{}

func (postbox) Send(context.Context, account.Mail) error { return nil }

func newSite(t testing.TB, change func(*Options, *account.Options)) *site {
	t.Helper()
	s := &site{t: t, origin: "https://pictures.example", now: apitest.Start}
	store := memkv.New()
	blobs := blob.NewMemory(blob.Options{})
	hosted, err := blob.OpenHosted(blob.HostedOptions{Blobs: blobs, Random: rand.Reader})
	if err != nil {
		t.Fatal(err)
	}
	people := account.Options{
		Store: store, Now: s.clock, Random: rand.Reader, Log: slog.New(slog.DiscardHandler),
		PublicURL: s.origin, Mail: postbox{},
	}
	o := Options{Now: s.clock, PublicURL: s.origin, Version: "1.2.3", Models: []Model{{"m1", "general"}}}
	if change != nil {
		change(&o, &people)
	}
	s.origin = o.PublicURL
	if s.accounts, err = account.Open(people); err != nil {
		t.Fatal(err)
	}
	s.engine, err = core.Open(core.Options{Store: store, Models: apitest.Tiny(t), Hosted: hosted, Clock: s.clock, Rand: rand.Reader, Audit: s.accounts.Audit})
	if err != nil {
		t.Fatal(err)
	}
	o.Accounts, o.Register, o.Refuse = s.accounts, s.engine.Register, s.engine.Refuse
	if s.Handler, err = New(o); err != nil {
		t.Fatal(err)
	}
	return s
}

// browser is a client that stores its cookie and the page's CSRF token.
type browser struct {
	*site
	cookie  string // name=value
	csrf    string
	network string
}

func (s *site) browser() *browser {
	b := &browser{site: s, network: "192.0.2.1"}
	b.get("/session")
	return b
}

// request returns a request of the browser's page, and its headers.
func (b *browser) request(method, path, body string) (*api.Request, map[string]string) {
	path, query, _ := strings.Cut(path, "?")
	u := strings.SplitN(b.origin, "/", 4)[2]
	header := map[string]string{"Host": u, "Cookie": "other=1; " + b.cookie, "Sec-Fetch-Site": "same-origin"}
	if method != "GET" {
		header["Origin"], header["Content-Type"], header["X-Sightline-CSRF"] = b.origin, "application/json", b.csrf
	}
	return &api.Request{
		Method: method, Path: "/console" + path, Query: query, Body: []byte(body), Remote: b.network,
		Header: func(name string) string { return header[name] },
	}, header
}

// do sends a request and stores the cookie of its answer.
func (b *browser) do(method, path, body string) api.Response {
	b.t.Helper()
	r, _ := b.request(method, path, body)
	res := b.Serve(context.Background(), r)
	checkAnswer(b.t, method+" "+path, &res)
	for _, f := range res.Header {
		if f.Name == "Set-Cookie" {
			b.cookie, _, _ = strings.Cut(f.Value, ";")
		}
	}
	var in struct{ Session struct{ CSRF string } }
	if res.Stream == nil && json.Unmarshal(res.Body, &in) == nil && in.Session.CSRF != "" {
		b.csrf = in.Session.CSRF
	}
	return res
}

// checkAnswer checks what every answer must have: an envelope or a stream, and headers that forbid storing it.
func checkAnswer(t testing.TB, request string, res *api.Response) {
	t.Helper()
	var in struct {
		Status struct {
			Code        int
			Description string
		}
	}
	if res.Stream == nil && (json.Unmarshal(res.Body, &in) != nil || in.Status.Code == 0 || in.Status.Description == "" || res.ContentType != contentType) {
		t.Errorf("%s: no envelope: %d %s %s", request, res.Status, res.ContentType, res.Body)
	}
	if (res.Status == 200) != (in.Status.Code == 10000) && res.Stream == nil {
		t.Errorf("%s: status %d with code %d", request, res.Status, in.Status.Code)
	}
	if !slices.Contains(res.Header, api.Field{Name: "Cache-Control", Value: "no-store"}) {
		t.Errorf("%s: may be stored: %v", request, res.Header)
	}
}

func (b *browser) get(path string) api.Response { b.t.Helper(); return b.do("GET", path, "") }

// ok sends a request that must succeed, and decodes its answer.
func (b *browser) ok(method, path, body string, out any) {
	b.t.Helper()
	res := b.do(method, path, body)
	if res.Status != 200 {
		b.t.Fatalf("%s %s = %d %s", method, path, res.Status, res.Body)
	}
	if out != nil {
		if err := json.Unmarshal(res.Body, out); err != nil {
			b.t.Fatal(err)
		}
	}
}

// checkRefusal sends a request that must fail.
func (b *browser) checkRefusal(method, path, body string, http, code int, reason string) api.Response {
	b.t.Helper()
	res := b.do(method, path, body)
	var in struct {
		Status struct {
			Code   int
			Reason string
		}
	}
	if err := json.Unmarshal(res.Body, &in); err != nil || res.Status != http || in.Status.Code != code || in.Status.Reason != reason {
		b.t.Errorf("%s %s %s = %d %s, want %d, %d, %q", method, path, body, res.Status, res.Body, http, code, reason)
	}
	return res
}

type answerBody struct {
	Session struct {
		Account *struct {
			ID, Name, Email    string
			Verified, Operator bool
			Left               *int64 `json:"calls_left"`
			Limit              *int64 `json:"calls_limit"`
		}
		CSRF      string
		Demo      bool
		SignUp    string `json:"sign_up"`
		Mail      string
		Languages []string
	}
	App struct {
		ID, Name, Language, DefaultModel string
		Client                           string `json:"client_id"`
		Counts                           map[string]int
	}
	Apps   []struct{ ID, Name string }
	Client struct {
		ID     string `json:"client_id"`
		Secret string `json:"client_secret"`
	}
	Key struct {
		ID, Key, Description string
		Scopes               []string
	}
	Keys []struct {
		ID, Description string
		Calls           int64
		Used            string `json:"last_used_at"`
	}
	Events []struct {
		Seq                    uint64
		Action, Target, Remote string
	}
	Scopes   []struct{ ID, Name string }
	Sessions []struct{ ID, Remote string }
	Mails    []struct{ To, Text string }
	Models   []Model
	Usage    struct {
		Total int64
		Days  []struct {
			Date  string
			Calls int64
		}
		Keys []struct {
			ID, Description string
			Calls           int64
		}
		Endpoints []struct {
			Endpoint string
			Calls    int64
		}
	}
}

func quote(v string) string { b, _ := json.Marshal(v); return string(b) }

// operator signs up the first account.
func (s *site) operator() *browser {
	s.t.Helper()
	b := s.browser()
	link, err := s.accounts.SetupLink()
	if err != nil {
		s.t.Fatal(err)
	}
	_, setup, _ := strings.Cut(link, "setup=")
	b.ok("POST", "/accounts", `{"name":"Op","email":"op@pictures.example","password":`+quote(password)+`,"setup":"`+setup+`"}`, nil)
	return b
}

// person signs up another account.
func (s *site) person(name string) *browser {
	s.t.Helper()
	b := s.browser()
	b.ok("POST", "/accounts", `{"name":`+quote(name)+`,"email":"`+name+`@x.example","password":`+quote(password)+`}`, nil)
	return b
}

// application creates an application and returns its ID.
func (b *browser) application(name string) string {
	b.t.Helper()
	var answer answerBody
	b.ok("POST", "/apps", `{"name":`+quote(name)+`,"language":"en","default_model":""}`, &answer)
	return answer.App.ID
}
