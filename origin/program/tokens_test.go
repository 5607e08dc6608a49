package program

import (
	"bytes"
	"encoding/json"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sightline-dev/sightline/core/register"
	"github.com/sightline-dev/sightline/origin/server"
	"github.com/sightline-dev/sightline/origin/server/cli"
	"github.com/sightline-dev/sightline/origin/server/system"
	"github.com/sightline-dev/sightline/origin/server/token"
)

// asking is a client that adds no credential.
type asking struct {
	*http.Client
	t    testing.TB
	base string
}

func calling(t testing.TB, base string) *asking {
	transport := &http.Transport{MaxIdleConnsPerHost: 8}
	t.Cleanup(transport.CloseIdleConnections)
	return &asking{&http.Client{Transport: transport, Timeout: time.Minute}, t, base}
}

// do sends a request with the given header lines, "Name: value", and returns the answer.
func (a *asking) do(method, path string, body []byte, lines ...string) (int, http.Header, []byte) {
	a.t.Helper()
	request, err := http.NewRequestWithContext(a.t.Context(), method, a.base+path, bytes.NewReader(body))
	if err != nil {
		a.t.Fatal(err)
	}
	for _, line := range lines {
		name, value, _ := strings.Cut(line, ": ")
		request.Header.Set(name, value)
	}
	res, err := a.Do(request)
	if err != nil {
		a.t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		a.t.Fatal(err)
	}
	return res.StatusCode, res.Header, b
}

// tokenResponse is the answer of POST /v2/token.
type tokenResponse struct {
	Status      cli.Status
	AccessToken string `json:"access_token"`
	ExpiresIn   int    `json:"expires_in"`
	Scope       string
}

// grant requests a token as the clients do, with one of their bodies.
func (a *asking) grant(c register.Client, body string) (int, tokenResponse) {
	a.t.Helper()
	request, err := http.NewRequestWithContext(a.t.Context(), http.MethodPost, a.base+"/v2/token", strings.NewReader(body))
	if err != nil {
		a.t.Fatal(err)
	}
	request.SetBasicAuth(c.ID, c.Secret)
	res, err := a.Do(request)
	if err != nil {
		a.t.Fatal(err)
	}
	defer res.Body.Close()
	var g tokenResponse
	if err := json.NewDecoder(res.Body).Decode(&g); err != nil {
		a.t.Fatal(err)
	}
	return res.StatusCode, g
}

// refusal returns the status code and the details of a rejected call.
func refusal(t testing.TB, body []byte) (int, string) {
	t.Helper()
	var r struct {
		Status struct {
			Code    int
			Details string
		}
	}
	if err := json.Unmarshal(body, &r); err != nil {
		t.Fatalf("%s: %v", body, err)
	}
	return r.Status.Code, r.Status.Details
}

// TestTokenFlow tests the calls of a client: ID and secret, a token, a predict call with it, invalid tokens, a new secret and revoked
// tokens. The server restarts in between.
func TestTokenFlow(t *testing.T) {
	s := testSettings(t)
	s.PublicURL = "http://sightline.test"
	srv, base := startOrigin(t, s)
	app, client, err := srv.Register.CreateApp(t.Context(), register.Caller{}, register.NewApp{Name: "tokens", Language: "en"})
	if err != nil {
		t.Fatal(err)
	}
	a := calling(t, base)
	var last string
	for _, body := range []string{"", "grant_type=client_credentials", `"grant_type":"client_credentials"`, "{", strings.Repeat("x", 100_000)} {
		status, g := a.grant(client, body)
		if status != 200 || g.ExpiresIn != 900 || !strings.Contains(g.Scope, "api_access") || len(g.AccessToken) < 10 || g.AccessToken == last {
			t.Fatalf("a token for the body %.30q: %d %+v", body, status, g)
		}
		last = g.AccessToken
	}
	bearer := "Authorization: Bearer " + last
	picture := byBase64(dots(t, 4, 32))
	predict := "/v2/models/" + generalID + "/outputs"
	if status, _, b := a.do("POST", predict, picture, bearer); status != 200 {
		t.Errorf("predict with a token: %d %s", status, b)
	}
	if status, _, b := a.do("GET", "/v2/users/me/apps/"+app.ID+"/inputs", nil, bearer); status != 200 {
		t.Errorf("the application's own path: %d %s", status, b)
	}
	for name, line := range map[string]string{
		"no token": "Authorization: Bearer", "half a token": bearer[:len(bearer)/2], "as a key": "Authorization: Key " + last,
		"a letter more": bearer + "A", "as a session": "X-Clarifai-Session-Token: " + last,
	} {
		if status, _, b := a.do("POST", predict, picture, line); status != 401 {
			t.Errorf("%s: %d %s, want 401", name, status, b)
		}
	}
	status, _, b := a.do("GET", token.Path, nil)
	if status != 200 || !strings.Contains(string(b), `"crv":"Ed25519"`) || strings.Contains(string(b), `"d":`) {
		t.Errorf("the published keys: %d %s", status, b)
	}
	if status, _, b := a.do("POST", token.Path, nil); status != 405 || !strings.Contains(string(b), `"code":11103`) {
		t.Errorf("POST to the published keys: %d %s", status, b)
	}

	if err := srv.Stop(); err != nil {
		t.Fatal(err)
	}
	srv, base = startOrigin(t, s)
	a.base = base
	if status, _, b := a.do("POST", predict, picture, bearer); status != 200 {
		t.Errorf("after a restart: %d %s", status, b)
	}
	fresh, err := srv.Register.ReplaceSecret(t.Context(), register.Caller{}, app.ID)
	if err != nil {
		t.Fatal(err)
	}
	if status, _, b := a.do("POST", predict, picture, bearer); status != 401 {
		t.Errorf("after a new secret: %d %s", status, b)
	}
	if status, g := a.grant(client, ""); status != 401 {
		t.Errorf("the old secret: %d %+v", status, g.Status)
	}
	if status, g := a.grant(fresh, ""); status != 200 {
		t.Errorf("the new secret: %d %+v", status, g.Status)
	} else if err := srv.Register.RevokeTokens(t.Context(), register.Caller{}, app.ID); err != nil {
		t.Fatal(err)
	} else if status, _, _ := a.do("POST", predict, picture, "Authorization: Bearer "+g.AccessToken); status != 401 {
		t.Errorf("a revoked token: %d", status)
	}
}

// TestExpiredToken checks the code and the text on which clients request a new token.
func TestExpiredToken(t *testing.T) {
	s := testSettings(t)
	s.TokenLife = time.Second
	srv, base := startOrigin(t, s)
	_, client, err := srv.Register.CreateApp(t.Context(), register.Caller{}, register.NewApp{Name: "short", Language: "en"})
	if err != nil {
		t.Fatal(err)
	}
	a := calling(t, base)
	_, g := a.grant(client, "")
	if g.ExpiresIn != 1 {
		t.Fatalf("a token: %+v", g)
	}
	status := 200
	var b []byte
	for start := system.Now(); status == 200 && system.Now().Sub(start) < 2*time.Minute; {
		status, _, b = a.do("GET", "/v2/models", nil, "Authorization: Bearer "+g.AccessToken)
	}
	if code, details := refusal(t, b); status != 401 || code != 11001 || details != "expired token" {
		t.Errorf("an expired token: %d %d %q, want 401 11001 %q", status, code, details, "expired token")
	}
}

// TestTokensOfAnotherURL checks that a server rejects tokens for another public URL. A data folder that is served at another URL, such as a
// copy for tests, must not accept the first server's tokens.
func TestTokensOfAnotherURL(t *testing.T) {
	s := testSettings(t)
	s.PublicURL = "http://one.test"
	srv, base := startOrigin(t, s)
	_, client, err := srv.Register.CreateApp(t.Context(), register.Caller{}, register.NewApp{Name: "moves", Language: "en"})
	if err != nil {
		t.Fatal(err)
	}
	_, g := calling(t, base).grant(client, "")
	if err := srv.Stop(); err != nil {
		t.Fatal(err)
	}
	s.PublicURL = "http://two.test"
	srv, err = server.Start(t.Context(), s, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	status, _, _ := calling(t, "http://"+srv.Listener.Addr().String()).do("GET", "/v2/models", nil, "Authorization: Bearer "+g.AccessToken)
	if status != 401 {
		t.Errorf("another address's token: %d, want 401", status)
	}
	if err := srv.Stop(); err != nil {
		t.Error(err)
	}
}

// TestBackupsHoldNoSigningKeys: a backup has no keys for signing tokens. A restored folder signs with new keys.
func TestBackupsHoldNoSigningKeys(t *testing.T) {
	s := testSettings(t)
	s.PublicURL = "http://sightline.test"
	srv, base := startOrigin(t, s)
	_, client, err := srv.Register.CreateApp(t.Context(), register.Caller{}, register.NewApp{Name: "kept", Language: "en"})
	if err != nil {
		t.Fatal(err)
	}
	_, g := calling(t, base).grant(client, "")
	if _, err := os.Stat(filepath.Join(s.Data, token.KeysFile)); err != nil {
		t.Fatalf("the keys are not where they are looked for: %v", err)
	}
	backup, restored := filepath.Join(t.TempDir(), "backup"), filepath.Join(t.TempDir(), "restored")
	mustRun(t, "backup", backup, "--data", s.Data)
	err = filepath.WalkDir(backup, func(name string, entry fs.DirEntry, err error) error {
		if err == nil && strings.HasPrefix(entry.Name(), token.KeysFile) {
			t.Errorf("the backup holds %s", name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	mustRun(t, "restore", backup, "--data", restored)
	s.Data = restored
	_, base = startOrigin(t, s)
	a := calling(t, base)
	if status, _, b := a.do("GET", "/v2/models", nil, "Authorization: Bearer "+g.AccessToken); status != 401 {
		t.Errorf("a token of the folder that was copied: %d %s, want 401", status, b)
	}
	if status, g := a.grant(client, ""); status != 200 {
		t.Errorf("the same client at the restored folder: %d %+v", status, g)
	}
}
