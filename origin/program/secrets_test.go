package program

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/url"
	"strings"
	"testing"

	"github.com/sightline-dev/sightline/core/register"
	"github.com/sightline-dev/sightline/origin/server"
)

// plantedSecrets maps the kind of a secret to the secret.
type plantedSecrets map[string]string

// forms returns the encodings in which a secret may appear in a text.
func forms(secret string) []string {
	quoted, _ := json.Marshal(secret)
	return []string{
		secret, strings.ToUpper(secret), url.QueryEscape(secret), strings.Trim(string(quoted), `"`),
		base64.StdEncoding.EncodeToString([]byte(secret)), fmt.Sprintf("%x", secret),
	}
}

// in returns the names of the secrets that a text contains.
func (p plantedSecrets) in(text string) (leaks []string) {
	for name, secret := range p {
		for _, form := range forms(secret) {
			if strings.Contains(text, form) {
				leaks = append(leaks, name)
				break
			}
		}
	}
	return leaks
}

// TestSecretsStayOutOfLogs uses every kind of secret in every place where a client can put one, correctly and incorrectly. It then searches
// the server's log, down to the debug level, and all answers except those that must contain a secret.
func TestSecretsStayOutOfLogs(t *testing.T) {
	var log safeBuffer
	s := testSettings(t)
	srv, err := server.Start(t.Context(), s, slog.New(slog.NewJSONHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})))
	if err != nil {
		t.Fatal(err)
	}
	base := "http://" + srv.Listener.Addr().String()
	var output strings.Builder
	if err := srv.CreateFirstApp(t.Context(), &output, "sightline"); err != nil {
		t.Fatal(err)
	}
	app, client, err := srv.Register.CreateApp(t.Context(), register.Caller{}, register.NewApp{Name: "secrets", Language: "en"})
	if err != nil {
		t.Fatal(err)
	}
	key, record, err := srv.Register.CreateKey(t.Context(), register.Caller{}, register.NewKey{App: app.ID, Scopes: []string{"All"}})
	if err != nil {
		t.Fatal(err)
	}
	a := calling(t, base)
	_, g := a.grant(client, "")
	secrets := plantedSecrets{
		"key": key, "first key": printedKey(output.String()), "client secret": client.Secret, "access token": g.AccessToken,
		"unknown key": strings.Repeat("5ec2e7", 6)[:32], "password": `pass "word" with 5 spaces`, "session": "planted-session-0123456789",
		"forged token": "eyJhbGciOiJub25lIn0.eyJwbGFudGVkIjoxfQ.", "malformed key": "planted-key-without-form",
	}
	var answers strings.Builder
	collect := func(status int, header any, body []byte) { fmt.Fprintln(&answers, status, header, string(body)) }
	for _, secret := range secrets {
		query, path := url.QueryEscape(secret), url.PathEscape(secret)
		for _, scheme := range []string{"Key ", "Bearer ", "Basic ", "Basic " + base64.StdEncoding.EncodeToString([]byte(client.ID + ":"))[:4], "", "Digest "} {
			collect(a.do("GET", "/v2/models", nil, "Authorization: "+scheme+secret))
			collect(a.do("POST", "/v2/token", nil, "Authorization: "+scheme+secret))
		}
		collect(a.do("POST", "/v2/token", nil, "Authorization: Basic "+base64.StdEncoding.EncodeToString([]byte(client.ID+":"+secret+"x"))))
		collect(a.do("GET", "/v2/inputs", nil, "X-Clarifai-Session-Token: "+secret))
		collect(a.do("GET", "/console/session", nil, "Cookie: sightline="+query))
		collect(a.do("GET", "/v2/models?key="+query, nil, "Authorization: Key "+key, "Referer: http://x.test/?"+query, "User-Agent: "+secret))
		if strings.Trim(secret, "0123456789abcdef") == "" { // logs shorten only path segments that look like secrets
			collect(a.do("GET", "/hosted/"+path, nil))
			collect(a.do("GET", "/v2/keys/"+path, nil, "Authorization: Key "+key))
			collect(a.do("DELETE", "/v2/users/me/apps/"+app.ID+"/keys/"+path, nil, "Authorization: Key "+key))
		}
		body, _ := json.Marshal(map[string]any{"email": "someone@example.org", "password": secret})
		collect(a.do("POST", "/v2/login", body))
		collect(a.do("POST", "/v2/login", append(body, '}')))
		collect(a.do("POST", "/console/session", body, "Content-Type: application/json"))
		collect(a.do("POST", "/console/accounts", body, "Content-Type: application/json"))
		for _, raw := range []string{
			"GET /v2/models HTTP/1.1\r\nHost: h\r\nAuthorization: Key " + secret + "\r\nAuthorization: Key " + secret + "\r\n\r\n",
			"GET /v2/models HTTP/1.1\r\nHost: h\r\nX-" + secret + ": " + secret + "\r\nContent-Length: x\r\n\r\n",
			secret + " / HTTP/1.1\r\n\r\n",
			"GET / HTTP/1.1\r\nHost: h\r\nX: " + secret + strings.Repeat("y", 17<<10) + "\r\n\r\n",
			"POST /v2/inputs HTTP/1.1\r\nHost: h\r\nContent-Length: 100\r\n\r\n" + secret,
		} {
			collect(0, nil, sendRaw(t, srv.Listener.Addr().String(), raw))
		}
	}
	if leaks := secrets.in(answers.String()); len(leaks) > 0 {
		t.Errorf("answers show: %q", leaks)
	}
	if err := srv.Register.DeleteKey(t.Context(), register.Caller{}, app.ID, record.Hash); err != nil {
		t.Fatal(err)
	}
	collect(a.do("GET", "/v2/models", nil, "Authorization: Key "+key))
	if err := srv.Stop(); err != nil {
		t.Fatal(err)
	}
	text := log.String()
	if n := strings.Count(text, `"msg":"request"`); n < 200 {
		t.Errorf("%d requests are logged, which proves nothing", n)
	}
	if leaks := secrets.in(text); len(leaks) > 0 {
		for line := range strings.Lines(text) {
			if in := secrets.in(line); len(in) > 0 {
				t.Errorf("the log shows %q: %s", in, line)
			}
		}
	}
}

// sendRaw sends bytes that may be an invalid request, and returns the answer.
func sendRaw(t testing.TB, address, raw string) []byte {
	t.Helper()
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_, _ = io.WriteString(c, raw) // the server may have closed the connection
	if half, ok := c.(*net.TCPConn); ok {
		_ = half.CloseWrite()
	}
	var b bytes.Buffer
	_, _ = io.Copy(&b, c)
	return b.Bytes()
}

// TestPlantedSecretsAreFound tests the search of plantedSecrets.
func TestPlantedSecretsAreFound(t *testing.T) {
	p := plantedSecrets{"a": `sec"ret`}
	for _, text := range []string{`x sec"ret y`, `{"v":"sec\"ret"}`, "q=sec%22ret", base64.StdEncoding.EncodeToString([]byte(`sec"ret`)), `SEC"RET`} {
		if len(p.in(text)) != 1 {
			t.Errorf("not found in %s", text)
		}
	}
	if len(p.in("secret")) != 0 {
		t.Error("found where it is not")
	}
}
