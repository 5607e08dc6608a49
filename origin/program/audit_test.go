package program

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/register"
	"github.com/sightline-dev/sightline/origin/server"
	"github.com/sightline-dev/sightline/origin/server/account"
	"github.com/sightline-dev/sightline/origin/server/cli"
	"github.com/sightline-dev/sightline/origin/server/control"
	"github.com/sightline-dev/sightline/origin/server/data"
)

// actions returns the actions on an application in the audit log, the oldest first.
func actions(t *testing.T, n *server.Node, app string) (done []account.Action) {
	t.Helper()
	events, err := n.Accounts.Events(app, 0, 100)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range slices.Backward(events) {
		done = append(done, e.Action)
	}
	return done
}

// TestOperatorIsAudited checks that the audit log has every command of the operator.
func TestOperatorIsAudited(t *testing.T) {
	srv, _ := startOrigin(t, testSettings(t))
	a := srv.Node
	newApp, err := control.CreateApp.Do(t.Context(), a, register.NewApp{Name: "Birds", Language: "en"})
	if err != nil {
		t.Fatal(err)
	}
	app, name := newApp.App, "Birds of the fjord"
	first, err := control.CreateKey.Do(t.Context(), a, register.NewKey{App: app.ID, Scopes: []string{"All"}})
	if err != nil {
		t.Fatal(err)
	}
	second, err := control.ReplaceKey.Do(t.Context(), a, control.ID{ID: first.Record.ID})
	if err != nil {
		t.Fatal(err)
	}
	for _, do := range []func() error{
		func() error {
			_, err := control.ChangeApp.Do(t.Context(), a, control.ChangedApp{ID: app.ID, Change: register.AppChange{Name: &name}})
			return err
		},
		func() error {
			_, err := control.DeleteKey.Do(t.Context(), a, control.ID{ID: second.Record.ID})
			return err
		},
		func() error { _, err := control.ReplaceSecret.Do(t.Context(), a, control.ID{ID: app.ID}); return err },
		func() error { _, err := control.RevokeTokens.Do(t.Context(), a, control.ID{ID: app.ID}); return err },
		func() error { _, err := control.DeleteApp.Do(t.Context(), a, control.ID{ID: app.ID}); return err },
	} {
		if err := do(); err != nil {
			t.Fatal(err)
		}
	}
	want := []account.Action{"app.create", "app.change", "client.secret", "tokens.revoke", "app.delete"}
	if got := actions(t, srv.Node, app.ID); !slices.Equal(got, want) {
		t.Errorf("the audit log has %v, want %v", got, want)
	}
	for _, do := range []func() error{
		func() error {
			_, err := control.DeleteKey.Do(t.Context(), a, control.ID{ID: second.Record.ID})
			return err
		},
		func() error { _, err := control.ReplaceSecret.Do(t.Context(), a, control.ID{ID: app.ID}); return err },
		func() error { _, err := control.RevokeTokens.Do(t.Context(), a, control.ID{ID: app.ID}); return err },
		func() error { _, err := control.DeleteApp.Do(t.Context(), a, control.ID{ID: app.ID}); return err },
	} {
		if err := do(); err == nil {
			t.Error("what is gone was changed")
		}
	}
	before, err := srv.Accounts.VerifyAudit()
	if err != nil || before.Count != 11 {
		t.Errorf("audit = %+v, %v; want 11 records: two are of the first start", before, err)
	}
}

// TestCallsAreAudited checks that the audit log has the creations of a session and the deletions of API calls.
func TestCallsAreAudited(t *testing.T) {
	srv, base := startOrigin(t, testSettings(t))
	op := visit(t, base)
	op.must("POST", "/accounts", cli.Object{"name": "Op", "email": "op@x.example", "password": aPassword, "setup": setup(t, srv)})
	login := func(method, path, header, value, body string) (int, string) {
		t.Helper()
		req, err := http.NewRequest(method, base+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		if header != "" {
			req.Header.Set(header, value)
		}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		var text bytes.Buffer
		if _, err := text.ReadFrom(res.Body); err != nil {
			t.Fatal(err)
		}
		return res.StatusCode, text.String()
	}
	code, text := login("POST", "/v2/login", "", "", `{"email":"op@x.example","password":"`+aPassword+`"}`)
	_, session, _ := strings.Cut(text, `"session_token":"`)
	if code != 200 || len(session) < 64 {
		t.Fatalf("login = %d %s", code, text)
	}
	session = session[:64]
	if code, text = login("POST", "/v2/users/me/apps", "X-Clarifai-Session-Token", session, `{"apps":[{"name":"Birds","default_language":"en"}]}`); code != 200 {
		t.Fatalf("POST apps = %d %s", code, text)
	}
	app := newIn([]byte(text)).Apps[0].ID
	code, text = login("POST", "/v2/users/me/keys", "X-Clarifai-Session-Token", session, `{"keys":[{"description":"d","scopes":["All"],"apps":[{"id":"`+app+`"}]}]}`)
	if code != 200 {
		t.Fatalf("POST keys = %d %s", code, text)
	}
	key := newIn([]byte(text)).Keys[0].ID
	if code, text = login("DELETE", "/v2/inputs", "Authorization", "Key "+key, `{"delete_all":true}`); code != 200 {
		t.Fatalf("DELETE inputs = %d %s", code, text)
	}
	// An empty body deletes all models.
	if code, text = login("DELETE", "/v2/models", "Authorization", "Key "+key, ""); code != 200 {
		t.Fatalf("DELETE models = %d %s", code, text)
	}
	if got, want := actions(t, srv.Node, app), []account.Action{"app.create", "inputs.delete_all", "models.delete_all"}; !slices.Equal(got, want) {
		t.Errorf("the audit log has %v of the application, want %v", got, want)
	}
	var names []string
	for _, e := range op.must("GET", "/audit", nil).Events {
		names = append(names, e.Action)
	}
	if want := []string{"models.delete_all", "inputs.delete_all", "key.create", "app.create", "session.create", "account.create", "key.create", "app.create"}; !slices.Equal(names, want) {
		t.Errorf("the page shows %v, want %v", names, want)
	}
}

// createResponse is the answer of a call that creates applications or keys.
type createResponse struct {
	Apps [1]struct{ ID string }
	Keys [1]struct {
		ID   string
		Apps [1]struct{ ID string }
	}
}

func newIn(answer []byte) (m createResponse) {
	_ = json.Unmarshal(answer, &m) // the server's own valid JSON
	return m
}

// TestDoctorReadsTheAuditLog changes one record and checks that doctor finds it.
func TestDoctorReadsTheAuditLog(t *testing.T) {
	s := testSettings(t)
	srv, err := server.Start(t.Context(), s, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if err := srv.Accounts.Record(account.Event{Actor: account.ByOperator, Action: "app.change", Target: "x"}); err != nil {
			t.Fatal(err)
		}
	}
	if err := srv.Stop(); err != nil {
		t.Fatal(err)
	}
	folder, err := data.Open(filepath.Clean(s.Data), data.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer folder.Close()
	report, err := folder.Check(t.Context(), data.CheckOptions{})
	if err != nil || !report.OK() {
		t.Fatalf("a sound folder: %+v, %v", report, err)
	}
	var b kv.Batch
	b.Delete([]byte("ul\x00\x00\x00\x00\x00\x00\x00\x02"))
	if err := folder.Store.Apply(&b); err != nil {
		t.Fatal(err)
	}
	report, err = folder.Check(t.Context(), data.CheckOptions{})
	if err != nil || report.OK() || len(report.Findings) != 1 || report.Findings[0].Part != "audit" {
		t.Errorf("a folder whose audit log lacks a record: %+v, %v", report, err)
	}
}
