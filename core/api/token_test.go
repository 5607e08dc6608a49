package api_test

import (
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/api/apitest"
	"github.com/sightline-dev/sightline/core/auth"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/kv/memkv"
)

// countedStore is a store that counts its reads.
type countedStore struct {
	kv.Store
	reads atomic.Int64
}

func (s *countedStore) Get(key []byte) ([]byte, error) {
	s.reads.Add(1)
	return s.Store.Get(key)
}

// TestUnknownClientsCostTheSame checks that a wrong secret, an unknown client and an invalid pair get the same answer after the same number
// of reads.
func TestUnknownClientsCostTheSame(t *testing.T) {
	store := &countedStore{Store: memkv.New()}
	w := apitest.NewWorld(t, store, apitest.Tiny(t), nil, nil)
	wrong, unknown := w.Client, w.Client
	wrong.Secret = strings.Repeat("0", 64)
	unknown.ID = strings.Repeat("0", 32)
	var reads []int64
	var answers []string
	for _, authorization := range []string{apitest.Basic(wrong), apitest.Basic(unknown), "Basic x", "Basic " + strings.Repeat("A", 1000)} {
		store.reads.Store(0)
		got := w.Serve(t, api.Request{Method: "POST", Path: "/v2/token", Authorization: authorization})
		reads, answers = append(reads, store.reads.Load()), append(answers, string(got.Body))
	}
	if len(slices.Compact(reads)) != 1 || reads[0] == 0 || len(slices.Compact(answers)) != 1 {
		t.Errorf("%d reads, answers %q", reads, answers)
	}
}

// TestTokenBodies checks that a token request may have any body, also one above the limit of bodies.
func TestTokenBodies(t *testing.T) {
	w := apitest.NewWorld(t, memkv.New(), apitest.Tiny(t), nil, map[string]string{"max-bytes": "100"})
	for _, body := range []string{"", "null", "{", `"grant_type":"client_credentials"`, "grant_type=client_credentials", "\x00\xff", strings.Repeat("[", 1<<20)} {
		got := w.Serve(t, api.Request{Method: "POST", Path: "/v2/token", Authorization: "client", Body: []byte(body)})
		if got.Status != 200 || !slices.Contains(got.Header, api.Field{Name: "Cache-Control", Value: "no-store"}) {
			t.Errorf("a body of %d bytes: %d %s %v", len(body), got.Status, got.Body, got.Header)
		}
	}
}

// TestPageTokensEndWithSession checks that the token of a page ends with its session at the next call, and that a host without accounts
// rejects it. A token of an earlier version, without a session, stays valid.
func TestPageTokensEndWithSession(t *testing.T) {
	w := apitest.NewWorld(t, memkv.New(), apitest.Tiny(t), nil, nil)
	anna := w.NewTenant(t, "anna", "en")
	client, err := w.Engine.Register.Client(anna.App)
	if err != nil {
		t.Fatal(err)
	}
	bearer := func(session string) string {
		token, _, err := w.Tokens.Issue(auth.Claims{App: anna.App, Client: client.ID, Generation: client.Generation, Page: true, Session: session})
		if err != nil {
			t.Fatal(err)
		}
		return "Bearer " + token
	}
	session, _, err := w.Accounts.Login(t.Context(), "anna@example.com", "anna's password", "")
	if err != nil {
		t.Fatal(err)
	}
	page, earlier := bearer(session), bearer("")
	check := func(when, authorization string, want answerStatus) {
		t.Helper()
		r := api.Request{Method: "GET", Path: "/v2/inputs", Authorization: authorization}
		if got := statusOf(t, w.Serve(t, r)); got != want {
			t.Errorf("%s: %v, want %v", when, got, want)
		}
	}
	ok, invalid := answerStatus{200, 10000, ""}, answerStatus{401, 11001, "invalid token"}
	check("signed in", page, ok)
	check("a session that never was", bearer("session-9"), invalid)
	w.Accounts.EndSessions()
	check("signed out", page, invalid)
	check("signed out, without a session in the token", earlier, ok)

	if session, _, err = w.Accounts.Login(t.Context(), "anna@example.com", "anna's password", ""); err != nil {
		t.Fatal(err)
	}
	page = bearer(session)
	check("signed in again", page, ok)
	w.ReopenAsEdge(t)
	check("without accounts", page, invalid)
}

// TestReadsOfPagesCountNoCalls: reads of our pages have their own rate and do not count as calls of the account. Predictions and changes of
// the pages count.
func TestReadsOfPagesCountNoCalls(t *testing.T) {
	w := apitest.NewWorld(t, memkv.New(), apitest.Tiny(t), nil, nil)
	anna := w.NewTenant(t, "anna", "en")
	client, err := w.Engine.Register.Client(anna.App)
	if err != nil {
		t.Fatal(err)
	}
	bearer := func(page bool) string {
		token, _, err := w.Tokens.Issue(auth.Claims{App: anna.App, Client: client.ID, Generation: client.Generation, Page: page})
		if err != nil {
			t.Fatal(err)
		}
		return "Bearer " + token
	}
	status := func(method, path, body, authorization string) int {
		return w.Serve(t, api.Request{Method: method, Path: "/v2" + path, Body: []byte(body), Authorization: authorization}).Status
	}
	page := bearer(true)
	for i := range 1000 {
		if got := status("GET", "/inputs", "", page); got != 200 {
			t.Fatalf("read %d of a page: %d", i, got)
		}
	}
	if n := len(w.Accounts.Spent); n != 0 {
		t.Errorf("a page's reads are %d calls", n)
	}
	if got := status("GET", "/inputs", "", page); got != 429 {
		t.Errorf("a page's read over its rate: %d", got)
	}
	for i, r := range [][3]string{
		{"POST", "/concepts", `{"concepts":[{"id":"one"}]}`},
		{"POST", "/models/color/outputs", `{"inputs":[]}`},
		{"POST", "/models/color/activations", `{}`},
	} {
		_ = status(r[0], r[1], r[2], page)
		if n := len(w.Accounts.Spent); n != i+1 {
			t.Errorf("%s %s of a page: %d calls, want %d", r[0], r[1], n, i+1)
		}
	}
	_ = status("GET", "/inputs", "", bearer(false))
	if n := len(w.Accounts.Spent); n != 4 {
		t.Errorf("a token that is no page's: %d calls, want 4", n)
	}
}

// TestPagesWithKeys checks that a page that sends a key reads like a page that sends its token, if the host marks its requests as a page's.
func TestPagesWithKeys(t *testing.T) {
	w := apitest.NewWorld(t, memkv.New(), apitest.Tiny(t), nil, nil)
	anna := w.NewTenant(t, "anna", "en")
	status := func(page bool, method, path string) int {
		return w.Serve(t, api.Request{Method: method, Path: "/v2" + path, Authorization: "Key " + anna.Key, Page: page}).Status
	}
	for i := range 1000 {
		if got := status(true, "GET", "/inputs"); got != 200 {
			t.Fatalf("read %d of a page: %d", i, got)
		}
	}
	for _, path := range []string{"/inputs", "/sync/status", "/sync/outbox", "/sync/conflicts"} {
		if got := status(true, "GET", path); got != 429 || len(w.Accounts.Spent) != 0 {
			t.Errorf("a page's read of %s over its rate: %d, after %d calls", path, got, len(w.Accounts.Spent))
		}
	}
	_ = status(true, "POST", "/models/color/outputs")
	_ = status(false, "GET", "/inputs")
	if n := len(w.Accounts.Spent); n != 2 {
		t.Errorf("a prediction of the page and a read that is no page's: %d calls, want 2", n)
	}
}

// TestOnlyKeysWithoutAccounts: without a host's accounts and tokens, only keys are accepted.
func TestOnlyKeysWithoutAccounts(t *testing.T) {
	w := apitest.NewWorld(t, memkv.New(), apitest.Tiny(t), nil, nil)
	w.ReopenStandalone(t)
	for want, r := range map[int]api.Request{
		200: {Method: "GET", Path: "/v2/inputs"},
		401: {Method: "POST", Path: "/v2/token", Authorization: "client"},
	} {
		if got := w.Serve(t, r); got.Status != want {
			t.Errorf("%s %s = %d %s, want %d", r.Method, r.Path, got.Status, got.Body, want)
		}
	}
	for _, r := range []api.Request{
		{Method: "GET", Path: "/v2/inputs", Authorization: "Bearer access-token-1"},
		{Method: "GET", Path: "/v2/inputs", Session: "session-1"},
		{Method: "POST", Path: "/v2/login", Authorization: "none", Body: []byte(`{"email":"anna@example.com","password":"anna's password"}`)},
		{Method: "GET", Path: "/v2/users/me/apps", Session: "session-1"},
	} {
		if got := w.Serve(t, r); got.Status != 401 {
			t.Errorf("%s %s = %d %s, want 401", r.Method, r.Path, got.Status, got.Body)
		}
	}
}

// TestCallsAreCounted checks the facts of each call that the counter gets.
func TestCallsAreCounted(t *testing.T) {
	e := newEstate(t, nil)
	n := e.settle("anna", 1)
	operators := e.settle("", 2)
	e.Accounts.Spent = nil
	e.serve(n, api.Request{Method: "GET", Path: "//v2/inputs/x/"})
	e.serve(n, api.Request{Method: "HEAD", Path: "/v2/models"})
	e.serve(n, api.Request{Method: "GET", Path: "/v2/inputs", Authorization: e.token(n)})
	e.serve(n, api.Request{Method: "GET", Path: "/v2/inputs", Session: n.session})
	e.serve(n, api.Request{Method: "GET", Path: "/v2/users/me/apps", Session: n.session})
	e.serve(n, api.Request{Method: "GET", Path: long("/v2/inputs", "me", operators.App)})
	e.serve(operators, api.Request{Method: "GET", Path: "/v2/inputs"})
	e.serve(n, api.Request{Method: "GET", Path: "/v2/inputs", App: n.App})
	by, byOperators := auth.ByKey(auth.HashKey(n.Key)), auth.ByKey(auth.HashKey(operators.Key))
	want := []api.CountedCall{
		{Account: "anna", App: n.App, By: by, Route: "GET /inputs/{input_id}"},
		{Account: "anna", App: n.App, By: by, Route: "GET /models"},
		{Account: "anna", App: n.App, By: "token", Route: "GET /inputs"},
		{Account: "anna", App: n.App, By: "session", Route: "GET /inputs"},
		{Account: "anna", By: "session", Route: "GET /users/{user_id}/apps"},
		{Account: "anna", App: n.App, By: by, Route: "GET /inputs"},
		{App: operators.App, By: byOperators, Route: "GET /inputs"},
	}
	if !slices.Equal(e.Accounts.Spent, want) {
		t.Errorf("counted %+v, want %+v", e.Accounts.Spent, want)
	}
}

// TestAccountsBounded checks the maximum number of applications and keys of an account.
func TestAccountsBounded(t *testing.T) {
	e := newEstate(t, nil)
	n := e.settle("anna", 1)
	for path, c := range map[string]struct {
		body  string
		limit int
	}{
		"/v2/users/me/apps": {`{"apps":[{"name":"another"}]}`, api.MaxApps},
		"/v2/users/me/keys": {`{"keys":[{"scopes":["All"],"apps":[{"id":"` + n.App + `"}]}]}`, api.MaxKeys},
	} {
		for count := 1; ; count++ { // one existed before
			got := e.serve(n, api.Request{Method: "POST", Path: path, Session: n.session, Body: []byte(c.body)})
			if got.Status == 200 && count < c.limit {
				continue
			}
			if s := statusOf(t, got); count != c.limit || s.http != 400 || s.code != 11102 {
				t.Errorf("%s after %d: %d %s", path, count, got.Status, got.Body)
			}
			break
		}
	}
}

// TestAccountRate: the calls with all keys, tokens and sessions of an account have one rate besides that of each. Reads of pages, calls of the
// account's owner by a host, other accounts and the operator have no part in it. A refused call does not count.
func TestAccountRate(t *testing.T) {
	e := newEstate(t, map[string]string{"account-rate": "1,6"})
	one, two := e.settle("anna", 1), e.settle("anna", 2)
	other, operators := e.settle("bert", 3), e.settle("", 4)
	e.Now = e.Now.Add(time.Minute)
	e.Accounts.Spent = nil
	key := e.NewKey(t, one.Tenant, auth.All)
	calls := []func() api.Response{
		func() api.Response { return e.serve(one, api.Request{Method: "GET", Path: "/v2/inputs"}) },
		func() api.Response {
			return e.serve(one, api.Request{Method: "GET", Path: "/v2/inputs", Authorization: "Key " + key})
		},
		func() api.Response { return e.serve(two, api.Request{Method: "GET", Path: "/v2/inputs"}) },
		func() api.Response {
			return e.serve(two, api.Request{Method: "GET", Path: "/v2/inputs", Authorization: e.token(two)})
		},
		func() api.Response {
			return e.serve(one, api.Request{Method: "GET", Path: "/v2/users/me/apps", Session: one.session})
		},
		func() api.Response {
			return e.serve(two, api.Request{Method: "GET", Path: long("/v2/inputs", "me", two.App), Session: one.session})
		},
	}
	for i, call := range calls {
		if got := call(); got.Status != 200 {
			t.Errorf("call %d = %d %s", i, got.Status, got.Body)
		}
	}
	for i, call := range calls {
		if got := call(); got.Status != 429 || !slices.Contains(got.Header, api.Field{Name: "Retry-After", Value: "1"}) {
			t.Errorf("call %d beyond the rate = %d %s %v", i, got.Status, got.Body, got.Header)
		}
	}
	if n := len(e.Accounts.Spent); n != len(calls) {
		t.Errorf("%d calls count, want %d", n, len(calls))
	}
	pages := map[*tenant]string{}
	for _, n := range []*tenant{one, two, e.settle("anna", 5), e.settle("anna", 6), e.settle("anna", 7)} {
		client, err := e.Engine.Register.Client(n.App)
		if err != nil {
			t.Fatal(err)
		}
		token, _, err := e.Tokens.Issue(auth.Claims{App: n.App, Client: client.ID, Generation: client.Generation, Page: true})
		if err != nil {
			t.Fatal(err)
		}
		pages[n] = "Bearer " + token
	}
	for name, got := range map[string]api.Response{
		"a read of a page": e.serve(one, api.Request{Method: "GET", Path: "/v2/inputs", Authorization: pages[one]}),
		"a host's call":    e.serve(one, api.Request{Method: "GET", Path: "/v2/inputs", App: one.App}),
		"another account":  e.serve(other, api.Request{Method: "GET", Path: "/v2/inputs"}),
		"the operator":     e.serve(operators, api.Request{Method: "GET", Path: "/v2/inputs"}),
	} {
		if got.Status != 200 {
			t.Errorf("%s = %d %s", name, got.Status, got.Body)
		}
	}
	reads := 1
	for n, token := range pages {
		for ; e.serve(n, api.Request{Method: "GET", Path: "/v2/inputs", Authorization: token}).Status == 200; reads++ {
			if reads > 5000 {
				t.Fatal("the reads of pages have no rate")
			}
		}
	}
	if reads != 4000 {
		t.Errorf("the pages of an account read %d times at once, want 4000", reads)
	}
	e.Now = e.Now.Add(time.Second)
	if got := calls[1](); got.Status != 200 {
		t.Errorf("a second later = %d %s", got.Status, got.Body)
	}
}
