package program

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/sightline-dev/sightline/core/auth"
	"github.com/sightline-dev/sightline/core/partition"
	"github.com/sightline-dev/sightline/origin/server"
	"github.com/sightline-dev/sightline/origin/server/account"
	"github.com/sightline-dev/sightline/origin/server/cli"
)

// visitor is the browser of one person at a server.
type visitor struct {
	t      *testing.T
	base   string
	client *http.Client
	csrf   string
	remote string // client address in the proxy's header; empty: no proxy
}

func visit(t *testing.T, base string) *visitor {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	v := &visitor{t: t, base: base, client: &http.Client{Jar: jar}}
	v.must("GET", "/session", nil)
	return v
}

// ask sends a request to /console as a page does.
func (v *visitor) ask(method, path string, body any) (int, []byte) {
	v.t.Helper()
	var in io.Reader
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			v.t.Fatal(err)
		}
		in = bytes.NewReader(b)
	}
	req, err := http.NewRequest(method, v.base+"/console"+path, in)
	if err != nil {
		v.t.Fatal(err)
	}
	if method != "GET" {
		req.Header.Set("Origin", v.base)
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("X-Sightline-CSRF", v.csrf)
	}
	if v.remote != "" {
		req.Header.Set("X-Forwarded-For", v.remote)
	}
	res, err := v.client.Do(req)
	if err != nil {
		v.t.Fatal(err)
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	if err != nil {
		v.t.Fatal(err)
	}
	if acao := res.Header.Get("Access-Control-Allow-Origin"); acao != "" {
		v.t.Errorf("%s %s may be read by %s", method, path, acao)
	}
	var page struct{ Session struct{ CSRF string } }
	if json.Unmarshal(answer, &page) == nil && page.Session.CSRF != "" {
		v.csrf = page.Session.CSRF
	}
	return res.StatusCode, answer
}

// must sends a request and fails the test unless it succeeds.
func (v *visitor) must(method, path string, body any) (answer struct {
	Session struct {
		Account *struct {
			Email    string
			Verified bool
			Left     *int64 `json:"calls_left"`

			Inputs, Bytes *int64
			InputsLimit   *int64 `json:"inputs_limit"`
			BytesLimit    *int64 `json:"bytes_limit"`
		}
		Mail string
	}
	App    struct{ ID string }
	Apps   []struct{ ID, Name string }
	Client struct {
		ID     string `json:"client_id"`
		Secret string `json:"client_secret"`
	}
	Key    struct{ ID, Key string }
	Token  string
	Mails  []struct{ Text string }
	Usage  struct{ Total int64 }
	Events []struct{ Action, Actor string }
},
) {
	v.t.Helper()
	code, text := v.ask(method, path, body)
	if code != 200 {
		v.t.Fatalf("%s %s = %d %s", method, path, code, text)
	}
	if err := json.Unmarshal(text, &answer); err != nil && !strings.HasSuffix(path, "/export") {
		v.t.Fatal(err)
	}
	return answer
}

// v2 sends a GET request below /v2 with one authentication header.
func v2(t *testing.T, base, path, name, value string) (int, http.Header) {
	t.Helper()
	req, err := http.NewRequest("GET", base+"/v2"+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set(name, value)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	_, _ = io.Copy(io.Discard, res.Body)
	return res.StatusCode, res.Header
}

const aPassword = "a lantern in the fog"

// setup returns the token of the sign-up link that a server prints at its start.
func setup(t *testing.T, srv *server.Server) string {
	t.Helper()
	var output strings.Builder
	if err := srv.Settings.Options.Started(srv, &output); err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(output.String(), "/sign-up?setup=")
	token, _, _ := strings.Cut(rest, "\n")
	return token
}

// TestAccounts tests accounts over HTTP: the first account, a second one that is not verified, its application and key, its hundred calls,
// and the state after a restart.
func TestAccounts(t *testing.T) {
	s := testSettings(t)
	srv, base := startOrigin(t, s)
	op := visit(t, base)
	first := setup(t, srv)
	if code, _ := op.ask("POST", "/accounts", cli.Object{"name": "Eve", "email": "eve@x.example", "password": aPassword}); code != 403 {
		t.Errorf("a stranger makes the first account: %d", code)
	}
	op.must("POST", "/accounts", cli.Object{"name": "Op", "email": "op@x.example", "password": aPassword, "setup": first})
	if apps := op.must("GET", "/apps", nil).Apps; len(apps) != 1 || apps[0].Name != server.LocalApp {
		t.Errorf("the operator has the applications %v", apps)
	}
	ada := visit(t, base)
	ada.must("POST", "/accounts", cli.Object{"name": "Ada", "email": "ada@x.example", "password": aPassword})
	newApp := ada.must("POST", "/apps", cli.Object{"name": "Birds", "language": "no", "default_model": ""})
	app := "/apps/" + newApp.App.ID
	key := ada.must("POST", app+"/keys", cli.Object{"description": "camera", "scopes": []string{"All"}}).Key
	allowed := 0
	for range account.TrialCalls + 5 {
		code, header := v2(t, base, "/models", "Authorization", "Key "+key.Key)
		if code == 200 {
			allowed++
			if left := header.Get("X-Sightline-Calls-Left"); left != fmt.Sprint(account.TrialCalls-allowed) {
				t.Errorf("after call %d: %q calls left", allowed, left)
			}
		} else if code != 402 && code != 429 {
			t.Errorf("a call = %d", code)
		}
	}
	if left := *ada.must("GET", "/session", nil).Session.Account.Left; allowed+int(left) != account.TrialCalls {
		t.Errorf("%d calls were allowed, and %d are left", allowed, left)
	}
	if total := ada.must("GET", app+"/usage", nil).Usage.Total; total != int64(allowed) {
		t.Errorf("the page tells of %d calls, want %d", total, allowed)
	}
	ada.must("DELETE", app+"/keys/"+key.ID, cli.Object{})
	if code, _ := v2(t, base, "/models", "Authorization", "Key "+key.Key); code != 401 {
		t.Errorf("a deleted key = %d", code)
	}
	if code, _ := op.ask("GET", app, nil); code != 404 {
		t.Errorf("the operator sees another's application: %d", code)
	}
	if err := srv.Stop(); err != nil {
		t.Fatal(err)
	}
	restarted, base := startOrigin(t, s)
	if link := setup(t, restarted); link != "" {
		t.Error("a second start makes another first account")
	}
	ada.base = base
	u, _ := url.Parse(base)
	if len(ada.client.Jar.Cookies(u)) == 0 {
		t.Fatal("the browser has no cookie for the new port")
	}
	if a := ada.must("GET", "/session", nil).Session.Account; a == nil || *a.Left != int64(account.TrialCalls-allowed) {
		t.Errorf("after a restart the session is %+v", a)
	}
	ada.must("DELETE", app, cli.Object{"name": "Birds"})
	if a, err := restarted.Accounts.VerifyAudit(); err != nil || a.Count == 0 {
		t.Errorf("audit = %+v, %v", a, err)
	}
}

// sentMails are the emails that a server has sent.
type sentMails chan account.Mail

func (s sentMails) Send(_ context.Context, m account.Mail) error {
	s <- m
	return nil
}

// TestSignedOutEverywhere checks that the token of a page ends when its person signs out, and in all browsers when one of them changes the
// password. The email about the password names the new keys, which stay valid.
func TestSignedOutEverywhere(t *testing.T) {
	s := testSettings(t)
	mails := make(sentMails, 16)
	accounts := s.Options.Accounts
	s.Options.Accounts = func(o *account.Options) error {
		err := accounts(o)
		o.Mail = mails
		return err
	}
	srv, base := startOrigin(t, s)
	here := visit(t, base)
	here.must("POST", "/accounts", cli.Object{"name": "Op", "email": "op@x.example", "password": aPassword, "setup": setup(t, srv)})
	app := "/apps/" + here.must("POST", "/apps", cli.Object{"name": "Birds", "language": "en", "default_model": ""}).App.ID
	key := here.must("POST", app+"/keys", cli.Object{"description": "camera", "scopes": []string{"All"}}).Key
	there := visit(t, base)
	there.must("POST", "/session", cli.Object{"email": "op@x.example", "password": aPassword})
	check := func(when, authorization string, want int) {
		t.Helper()
		if code, _ := v2(t, base, "/models", "Authorization", authorization); code != want {
			t.Errorf("%s: %d, want %d", when, code, want)
		}
	}
	bearer := func(v *visitor) string { return "Bearer " + v.must("POST", app+"/page-token", cli.Object{}).Token }
	one, other := bearer(here), bearer(there)
	check("the page here", one, 200)
	check("the page there", other, 200)
	there.must("DELETE", "/session", cli.Object{})
	check("the page there, signed out", other, 401)
	check("the page here, after a sign-out elsewhere", one, 200)

	there.must("POST", "/session", cli.Object{"email": "op@x.example", "password": aPassword})
	other = bearer(there)
	check("the page there, signed in again", other, 200)
	here.must("PATCH", "/account", cli.Object{"password": cli.Object{"old": aPassword, "new": aPassword + "!"}})
	check("the page here, after the password was changed", one, 401)
	check("the page there, after the password was changed", other, 401)
	check("the page here, with another token", bearer(here), 200)
	check("a key", "Key "+key.Key, 200)
	if m := <-mails; !strings.Contains(m.Text, key.ID) || !strings.Contains(m.Text, `"camera" of the application "Birds"`) || strings.Contains(m.Text, key.Key) {
		t.Errorf("the email about the password:\n%s", m.Text)
	}
}

// TestDemoSignsIn creates an application through a demo's page, adds a picture to it and exports it.
func TestDemoSignsIn(t *testing.T) {
	s := testSettings(t)
	s.Options = (&origin{people: peopleSettings{demo: true}}).options()
	srv, base := startOrigin(t, s)
	v := visit(t, base)
	page := v.must("GET", "/session", nil).Session
	if page.Account == nil || !page.Account.Verified || page.Mail != "page" {
		t.Fatalf("session = %+v", page)
	}
	newApp := v.must("POST", "/apps", cli.Object{"name": "Lanterns", "language": "en", "default_model": ""})
	key := v.must("POST", "/apps/"+newApp.App.ID+"/keys", cli.Object{"description": "d", "scopes": []string{"All"}}).Key.Key
	req, err := http.NewRequest("POST", base+"/v2/inputs", bytes.NewReader(byBase64(dots(t, 1, 64), dots(t, 2, 64))))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Key "+key)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if res.StatusCode != 200 {
		t.Fatalf("POST /v2/inputs = %s", res.Status)
	}
	code, archive := v.ask("GET", "/apps/"+newApp.App.ID+"/export", nil)
	z, err := zip.NewReader(bytes.NewReader(archive), int64(len(archive)))
	if code != 200 || err != nil {
		t.Fatalf("export = %d, %v", code, err)
	}
	var names []string
	for _, f := range z.File {
		names = append(names, f.Name)
	}
	if !slices.Contains(names, "sightline.json") || !slices.Contains(names, "inputs.jsonl") || len(names) != 7 {
		t.Errorf("the export holds %q", names)
	}
	rebound, err := http.NewRequest("GET", base+"/console/session", nil)
	if err != nil {
		t.Fatal(err)
	}
	rebound.Host = "evil.example"
	if res, err = http.DefaultClient.Do(rebound); err != nil || res.StatusCode != 403 {
		t.Errorf("under another name: %v, %v", res, err)
	}
	res.Body.Close()
	if setup(t, srv) != "" {
		t.Error("a demo tells a link")
	}
}

// readOrigin reads the flags that only the origin has.
func readOrigin(t *testing.T, environ []string, args ...string) (*origin, error) {
	t.Helper()
	var o origin
	options := o.options()
	flags := pflag.NewFlagSet("serve", pflag.ContinueOnError)
	server.Flags(flags, &options)
	if err := flags.Parse(args); err != nil {
		t.Fatal(err)
	}
	_, err := server.LoadSettings(flags, func() []string { return environ }, &options)
	return &o, err
}

func TestAccountSettings(t *testing.T) {
	o, err := readOrigin(t, nil)
	if err != nil {
		t.Fatal(err)
	}
	if o.people != (peopleSettings{signUps: 5, rate: auth.Rate{PerSecond: 100, Burst: 1000}, unverified: account.Storage{Inputs: 10_000, Bytes: 500 << 20}}) {
		t.Errorf("settings = %+v, want limits of sign-ups, calls and storage alone", o.people)
	}
	if o.retention != (partition.Retention{Age: 720 * time.Hour, MaxOffline: 2160 * time.Hour, Writes: 168 * time.Hour}) {
		t.Errorf("logs are kept for %+v", o.retention)
	}
	for _, args := range [][]string{
		{"--sign-up", "maybe"},
		{"--plan-calls", "-1"},
		{"--smtp-user", "u"},
		{"--smtp", "mail.example:587"},
		{"--smtp", "mail.example:587", "--mail-from", "a@x.example", "--smtp-user", "u"},
		{"--log-retention", "1m"},
		{"--max-offline", "59m"},
		{"--demo", "--listen", ":8080", "--behind-proxy", "--public-url", "https://a.example"},
		{"--demo", "--listen", ":443", "--acme-domain", "a.example"},
		{"--demo", "--behind-proxy", "--public-url", "https://a.example"},
	} {
		if _, err := readOrigin(t, nil, args...); err == nil {
			t.Errorf("%q were taken", args)
		}
	}
	if _, err := readOrigin(t, []string{"SIGHTLINE_DEMO=perhaps"}); err == nil {
		t.Error("SIGHTLINE_DEMO=perhaps was taken")
	}
	if _, err := readOrigin(t, []string{"SIGHTLINE_PLAN_CALLS=many"}); err == nil {
		t.Error("SIGHTLINE_PLAN_CALLS=many was taken")
	}
	o, err = readOrigin(t, nil, "--sign-up", "closed", "--plan-calls", "5000", "--smtp", "127.0.0.1:25", "--mail-from", "Sightline <a@x.example>")
	if err != nil {
		t.Fatal(err)
	}
	people := o.people
	if !people.closed || people.calls != 5000 {
		t.Fatalf("settings = %+v", people)
	}
	if sender, err := people.sender(); sender == nil || err != nil {
		t.Errorf("sender = %v, %v", sender, err)
	}
	password := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(password, []byte("planted\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	people.smtpUser, people.smtpPassword = "u", password
	if _, err := people.sender(); err != nil {
		t.Error(err)
	}
	people.smtpPassword = password + "no"
	if _, err := people.sender(); err == nil {
		t.Error("a password file that is missing was taken")
	}
}

// watchedLog is a log that reports when it contains a text.
type watchedLog struct {
	safeBuffer
	text  string
	found chan struct{}
	once  sync.Once
}

func (l *watchedLog) Write(p []byte) (int, error) {
	n, err := l.safeBuffer.Write(p)
	if strings.Contains(string(p), l.text) {
		l.once.Do(func() { close(l.found) })
	}
	return n, err
}

// TestMailsAreLogged checks that a server without SMTP writes a code to its log.
func TestMailsAreLogged(t *testing.T) {
	log := &watchedLog{found: make(chan struct{}), text: "Your Sightline code"}
	srv, err := server.Start(t.Context(), testSettings(t), slog.New(slog.NewTextHandler(log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	base := "http://" + srv.Listener.Addr().String()
	op := visit(t, base)
	op.must("POST", "/accounts", cli.Object{"name": "Op", "email": "op@x.example", "password": aPassword, "setup": setup(t, srv)})
	visit(t, base).must("POST", "/accounts", cli.Object{"name": "Ada", "email": "ada@x.example", "password": aPassword})
	<-log.found
	srv.LogAudit()
	if err := srv.Stop(); err != nil {
		t.Fatal(err)
	}
	if text := log.String(); strings.Contains(text, aPassword) || !strings.Contains(text, "audit log") {
		t.Errorf("the log says %s", text)
	}
}
