package console

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/auth"
	"github.com/sightline-dev/sightline/core/register"
	"github.com/sightline-dev/sightline/origin/server/account"
)

func TestJourney(t *testing.T) {
	s := newSite(t, nil)
	b := s.browser()
	var got answerBody
	b.ok("GET", "/session", "", &got)
	if v := got.Session; v.Account != nil || v.SignUp != "first" || v.Mail != "smtp" || len(v.CSRF) != 64 || len(v.Languages) != 23 {
		t.Errorf("session = %+v", v)
	}
	b.checkRefusal("POST", "/accounts", `{"name":"Eve","email":"eve@x.example","password":"long enough, this"}`, 403, 11102, "sign_up")
	op := s.operator()
	op.ok("GET", "/session", "", &got)
	if a := got.Session.Account; a == nil || !a.Verified || !a.Operator || a.Limit != nil || a.Left != nil || got.Session.SignUp != "open" {
		t.Fatalf("session = %+v", got.Session)
	}
	var newApp answerBody
	op.ok("POST", "/apps", `{"name":"Birds","language":"no","default_model":""}`, &newApp)
	if newApp.App.Name != "Birds" || newApp.App.Language != "no" || len(newApp.Client.ID) != 32 || len(newApp.Client.Secret) != 64 {
		t.Fatalf("created %+v", newApp)
	}
	app := "/apps/" + newApp.App.ID
	var key, answer answerBody
	op.ok("POST", app+"/keys", `{"description":"camera","scopes":["Predict","Inputs:Get"]}`, &key)
	if !regexp.MustCompile(`^[0-9a-f]{32}$`).MatchString(key.Key.Key) || !slices.Equal(key.Key.Scopes, []string{"Predict", "Inputs_Get"}) {
		t.Fatalf("key = %+v", key.Key)
	}
	for range 3 {
		_, err := s.accounts.Spend(t.Context(), api.CountedCall{Account: got.Session.Account.ID, App: newApp.App.ID, By: key.Key.ID, Route: "GET /inputs"})
		if err != nil {
			t.Fatal(err)
		}
	}
	var list answerBody
	op.ok("GET", app+"/keys", "", &list)
	if len(list.Keys) != 1 || list.Keys[0].ID != key.Key.ID || list.Keys[0].Calls != 3 || list.Keys[0].Used == "" {
		t.Errorf("keys = %+v", list.Keys)
	}
	op.ok("GET", app+"/usage", "", &list)
	if u := list.Usage; u.Total != 3 || len(u.Days) != 30 || u.Days[29].Calls != 3 || u.Keys[0].Description != "camera" || u.Endpoints[0].Endpoint != "GET /inputs" {
		t.Errorf("usage = %+v", u)
	}
	op.ok("GET", app, "", &list)
	if list.App.Client != newApp.Client.ID || list.App.Counts["keys"] != 1 || len(list.App.Counts) != 6 {
		t.Errorf("app = %+v", list.App)
	}
	op.ok("POST", app+"/keys/"+key.Key.ID+"/replacement", "{}", &answer)
	if answer.Key.Key == key.Key.Key || answer.Key.Description != "camera" || len(answer.Key.Key) != 32 {
		t.Errorf("replacement = %+v", answer.Key)
	}
	op.checkRefusal("DELETE", app+"/keys/"+key.Key.ID, "{}", 404, 11101, "missing")
	op.ok("DELETE", app+"/keys/"+answer.Key.ID, "{}", nil)
	if keys, err := s.engine.Register.Keys(newApp.App.ID); len(keys) != 0 || err != nil {
		t.Errorf("keys = %v, %v", keys, err)
	}
	var client answerBody
	op.ok("POST", app+"/client", "{}", &client)
	if client.Client.ID != newApp.Client.ID || client.Client.Secret == newApp.Client.Secret {
		t.Errorf("client = %+v", client.Client)
	}
	op.ok("DELETE", app+"/tokens", "{}", nil)
	op.ok("PATCH", app, `{"name":"Birds of the fjord"}`, &answer)
	if answer.App.Name != "Birds of the fjord" {
		t.Errorf("renamed = %+v", answer.App)
	}
	op.checkRefusal("DELETE", app, `{"name":"birds of the fjord"}`, 400, 11102, "app_name")
	op.ok("DELETE", app, `{"name":"Birds of the fjord"}`, nil)
	op.checkRefusal("GET", app, "", 404, 11101, "missing")
	op.ok("GET", "/audit", "", &list)
	var actions []string
	for _, e := range list.Events {
		actions = append(actions, e.Action)
	}
	want := []string{
		"app.delete", "app.change", "tokens.revoke", "client.secret", "key.delete", "key.create", "key.replace", "key.create", "app.create", "account.create",
	}
	if !slices.Equal(actions, want) {
		t.Errorf("audit = %v, want %v", actions, want)
	}
	op.ok("GET", fmt.Sprint("/audit?before=", list.Events[7].Seq), "", &list)
	if len(list.Events) != 2 {
		t.Errorf("the second page = %+v", list.Events)
	}
	if _, err := s.accounts.VerifyAudit(); err != nil {
		t.Error(err)
	}
}

// TestEdges checks that an application's edges are listed by name. The list has the edges that have enrolled and were not revoked.
func TestEdges(t *testing.T) {
	s := newSite(t, nil)
	s.operator()
	ada := s.person("ada")
	ownApp, other := ada.application("A"), ada.application("B")
	edge := func(name string, app string, enrols bool) string {
		t.Helper()
		token, e, err := s.engine.Register.CreateEdge(t.Context(), register.Caller{}, name, []string{app})
		if err == nil && enrols {
			e, err = s.engine.Register.EnrolEdge(t.Context(), token, auth.HashKey(name))
		}
		if err != nil {
			t.Fatal(err)
		}
		return e.ID
	}
	north, attic := edge("north", ownApp, true), edge("attic", ownApp, true)
	edge("elsewhere", other, true)
	edge("in its box", ownApp, false)
	if err := s.engine.Register.RevokeEdge(t.Context(), register.Caller{}, edge("lost", ownApp, true)); err != nil {
		t.Fatal(err)
	}
	got := ada.do("GET", "/apps/"+ownApp+"/edges", "")
	if want := fmt.Sprintf(`{"status":{"code":10000,"description":"Ok"},"edges":[{"id":%q,"name":"attic"},{"id":%q,"name":"north"}]}`, attic, north); string(got.Body) != want {
		t.Errorf("edges = %d %s, want %s", got.Status, got.Body, want)
	}
}

func TestMistakes(t *testing.T) {
	s := newSite(t, nil)
	op := s.operator()
	ada := s.person("ada")
	app := "/apps/" + ada.application("A")
	nobody := s.browser()
	tests := []struct {
		b            *browser
		method, path string
		body         string
		http, code   int
		reason       string
	}{
		{nobody, "POST", "/session", `{"email":"ada@x.example","password":"wrong wrong wrong"}`, 401, 11002, "login"},
		{nobody, "POST", "/session", `{"email":"no@x.example","password":"wrong wrong wrong"}`, 401, 11002, "login"},
		{nobody, "POST", "/session", `{"email":1}`, 400, 11100, ""},
		{nobody, "POST", "/session", `[]`, 400, 11100, ""},
		{nobody, "POST", "/session", `{"email":"a","more":1}`, 400, 11100, ""},
		{nobody, "POST", "/session", `{} {}`, 400, 11100, ""},
		{nobody, "POST", "/session", `{}}`, 400, 11100, ""},
		{nobody, "POST", "/session", `{"email":"` + strings.Repeat("a", 1<<16) + `"}`, 413, 40033, ""},
		{nobody, "GET", "/apps", "", 401, 11001, "sign_in"},
		{nobody, "GET", "/audit", "", 401, 11001, "sign_in"},
		{nobody, "POST", "/accounts", `{"name":"","email":"b@x.example","password":"long enough, this"}`, 400, 11102, "name"},
		{nobody, "POST", "/accounts", `{"name":"B","email":"b","password":"long enough, this"}`, 400, 11102, "email"},
		{nobody, "POST", "/accounts", `{"name":"B","email":"b@x.example","password":"short"}`, 400, 11102, "password"},
		{nobody, "POST", "/password", `{"token":"0","password":"long enough, this"}`, 400, 11102, "link"},
		{nobody, "GET", "/mail", "", 404, 11101, "missing"},
		{nobody, "GET", "/nothing", "", 404, 11101, "missing"},
		{nobody, "GET", "", "", 404, 11101, "missing"},
		{nobody, "GET", "/apps/%zz", "", 404, 11101, "missing"},
		{nobody, "PUT", "/session", "{}", 405, 11103, ""},
		{ada, "PATCH", "/account", `{}`, 400, 11100, ""},
		{ada, "PATCH", "/account", `{"name":"A","email":"a@y.example"}`, 400, 11100, ""},
		{ada, "PATCH", "/account", `{"password":{"old":"wrong","new":"long enough, this"}}`, 400, 11102, "wrong_password"},
		{ada, "PATCH", "/account", `{"email":"a@y.example"}`, 400, 11102, "wrong_password"},
		{ada, "DELETE", "/account", `{"password":"` + password + `"}`, 400, 11102, "owner"},
		{nobody, "DELETE", "/account", `{}`, 401, 11001, "sign_in"},
		{ada, "POST", "/verification", `{"code":"x"}`, 400, 11102, "code"},
		{ada, "POST", "/verification/mail", `{}`, 429, 11005, "rate"},
		{ada, "POST", "/apps", `{"name":"","language":"en"}`, 400, 11102, "text"},
		{ada, "POST", "/apps", `{"name":"B","language":"xx"}`, 400, 11102, "language"},
		{ada, "POST", "/apps", `{"name":"B","language":"en","default_model":"none"}`, 400, 11102, "model"},
		{ada, "PATCH", app, `{"default_model":"none"}`, 400, 11102, "model"},
		{ada, "PATCH", app, `{"language":"de"}`, 400, 11100, ""},
		{ada, "POST", app + "/keys", `{"scopes":["Nothing"]}`, 400, 11102, "scope"},
		{ada, "POST", app + "/keys", `{"scopes":[]}`, 400, 11102, "scope"},
		{ada, "DELETE", app + "/keys/0011223344556677", `{}`, 404, 11101, "missing"},
		{ada, "GET", app + "/export", "", 404, 11101, "missing"},
		{ada, "DELETE", "/sessions/0011223344556677", "{}", 404, 11101, "missing"},
		{ada, "GET", "/audit?before=x", "", 400, 11100, ""},
	}
	for _, tt := range tests {
		tt.b.checkRefusal(tt.method, tt.path, tt.body, tt.http, tt.code, tt.reason)
	}
	res := ada.checkRefusal("POST", "/verification/mail", "{}", 429, 11005, "rate")
	if !slices.Contains(res.Header, api.Field{Name: "Retry-After", Value: "60"}) {
		t.Errorf("headers = %v", res.Header)
	}
	res = nobody.checkRefusal("PUT", "/session", "{}", 405, 11103, "")
	if !slices.Contains(res.Header, api.Field{Name: "Allow", Value: "GET, POST, DELETE"}) {
		t.Errorf("headers = %v", res.Header)
	}
	for range 40 {
		res = nobody.do("POST", "/session", `{"email":"ada@x.example","password":"wrong wrong wrong"}`)
	}
	if res.Status != 429 {
		t.Errorf("guess 40 = %d %s", res.Status, res.Body)
	}
	op.ok("GET", "/session", "", nil)
}

// TestForeignApplicationLooksMissing makes all requests for another account's application and for an application that does not exist. The
// answers have the same bytes, and nothing changes.
func TestForeignApplicationLooksMissing(t *testing.T) {
	s := newSite(t, func(o *Options, _ *account.Options) {
		o.Export = func(context.Context, string, io.Writer) error { return nil }
	})
	s.operator()
	ada, eve := s.person("ada"), s.person("eve")
	app := ada.application("Secret")
	var key answerBody
	ada.ok("POST", "/apps/"+app+"/keys", `{"description":"d","scopes":["All"]}`, &key)
	before := fmt.Sprint(s.engine.Register.Apps())
	bodies := map[string]string{
		"PATCH /apps/{id}":     `{"name":"Mine"}`,
		"DELETE /apps/{id}":    `{"name":"Secret"}`,
		"POST /apps/{id}/keys": `{"description":"d","scopes":["All"]}`,
	}
	requests := 0
	for _, r := range routes {
		if !strings.Contains(r.path, "/apps/{id}") {
			continue
		}
		path := strings.ReplaceAll(r.path, "{key}", key.Key.ID)
		body := bodies[r.method+" "+r.path]
		foreign := eve.do(r.method, strings.ReplaceAll(path, "{id}", app), body)
		absent := eve.do(r.method, strings.ReplaceAll(path, "{id}", missing), body)
		if foreign.Status != 404 || string(foreign.Body) != string(absent.Body) || fmt.Sprint(foreign.Header) != fmt.Sprint(absent.Header) {
			t.Errorf("%s %s: another's is\n%d %s %v, and none\n%d %s %v", r.method, r.path, foreign.Status, foreign.Body, foreign.Header, absent.Status, absent.Body, absent.Header)
		}
		requests++
	}
	if requests != 14 {
		t.Errorf("%d routes of applications were asked", requests)
	}
	if after := fmt.Sprint(s.engine.Register.Apps()); after != before {
		t.Errorf("applications changed: %s", after)
	}
	if keys, err := s.engine.Register.Keys(app); len(keys) != 1 || err != nil {
		t.Errorf("keys changed: %v, %v", keys, err)
	}
	var list answerBody
	eve.ok("GET", "/apps", "", &list)
	if len(list.Apps) != 0 {
		t.Errorf("another's applications are listed: %v", list.Apps)
	}
	eve.ok("GET", "/audit", "", &list)
	if len(list.Events) != 1 {
		t.Errorf("another's events are listed: %v", list.Events)
	}
}

// mint issues tokens whose text is their claims.
type mint struct{}

func (mint) Issue(c auth.Claims) (string, time.Duration, error) {
	return fmt.Sprintf("%s %s %d %t %s", c.App, c.Client, c.Generation, c.Page, c.Session), 15 * time.Minute, nil
}

// TestPageToken requests the token for a page's replica. It belongs to the application and has the generation of its client's tokens, so
// that it is revoked together with them. It names its session, which ends when the password is changed.
func TestPageToken(t *testing.T) {
	s := newSite(t, func(o *Options, _ *account.Options) { o.Tokens = mint{} })
	s.operator()
	ada, eve := s.person("ada"), s.person("eve")
	app := ada.application("A")
	path := "/apps/" + app + "/page-token"
	var got struct {
		Token   string
		Expires int `json:"expires_in"`
	}
	ask := func() string {
		t.Helper()
		ada.ok("POST", path, "{}", &got)
		return got.Token
	}
	client, err := s.engine.Register.Client(app)
	if err != nil {
		t.Fatal(err)
	}
	var open struct{ Sessions []struct{ ID string } }
	ada.ok("GET", "/sessions", "", &open)
	if want := fmt.Sprintf("%s %s %d true %s", app, client.ID, client.Generation, open.Sessions[0].ID); ask() != want || got.Expires != 900 {
		t.Errorf("token = %+v, want %s for 900 s", got, want)
	}
	first := got.Token
	ada.ok("PATCH", "/account", fmt.Sprintf(`{"password":{"old":%q,"new":"another lantern in the fog"}}`, password), nil)
	ada.ok("GET", "/sessions", "", &open)
	changed := open.Sessions[0].ID
	if !strings.HasSuffix(ask(), " "+changed) || strings.HasSuffix(first, changed) {
		t.Errorf("the token after the password was changed is %q, before %q, want one of the session %s", got.Token, first, changed)
	}
	if err := s.accounts.CheckSession(t.Context(), strings.Fields(first)[4]); !errors.Is(err, auth.ErrSession) {
		t.Errorf("the session that changed the password: %v, want %v", err, auth.ErrSession)
	}
	first = got.Token
	ada.ok("DELETE", "/apps/"+app+"/tokens", "{}", nil)
	if ask() == first {
		t.Error("the token outlives the others")
	}
	eve.checkRefusal("POST", path, "{}", 404, 11101, "missing")
	s.browser().checkRefusal("POST", path, "{}", 401, 11001, "sign_in")
	ada.checkRefusal("POST", path, `{"scopes":["All"]}`, 400, 11100, "")
	ada.checkRefusal("GET", path, "", 405, 11103, "")

	s.Handler.o.Tokens = nil
	ada.checkRefusal("POST", path, "{}", 404, 11101, "missing")
}

func TestOperatorSeesOnlyOwnApplications(t *testing.T) {
	s := newSite(t, nil)
	op, ada := s.operator(), s.person("ada")
	app := op.application("Mine")
	a, _, err := s.engine.Register.CreateApp(t.Context(), register.Caller{}, register.NewApp{Name: "By command", Language: "en"})
	if err != nil {
		t.Fatal(err)
	}
	var list answerBody
	op.ok("GET", "/apps", "", &list)
	if len(list.Apps) != 2 || list.Apps[0].ID != app && list.Apps[1].ID != app {
		t.Errorf("the operator has %v", list.Apps)
	}
	op.ok("GET", "/apps/"+a.ID, "", nil)
	for b, want := range map[*browser]string{op: "app.create app.create account.create ", ada: "account.create "} {
		b.ok("GET", "/audit", "", &list)
		got := ""
		for _, e := range list.Events {
			got += e.Action + " "
		}
		if got != want {
			t.Errorf("audit = %s, want %s", got, want)
		}
	}
	ada.checkRefusal("GET", "/apps/"+a.ID, "", 404, 11101, "missing")
}
