package main_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/cookiejar"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/sightline-dev/sightline/origin/server/system"
)

// planCalls is the number of calls that the plan of the test's account includes.
const planCalls = 300

// person is a user of an origin's web pages.
type person struct {
	t      testing.TB
	base   string
	client http.Client
	csrf   string
}

// must makes a request as pages do and requires status 200.
func (p *person) must(method, path string, body object) (out object) {
	p.t.Helper()
	b, err := json.Marshal(body)
	if err != nil {
		p.t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(p.t.Context(), method, p.base+"/console"+path, bytes.NewReader(b))
	if err != nil {
		p.t.Fatal(err)
	}
	req.Header.Set("Origin", p.base)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-Sightline-CSRF", p.csrf)
	res, err := p.client.Do(req)
	if err != nil {
		p.t.Fatal(err)
	}
	defer res.Body.Close()
	if err := json.NewDecoder(res.Body).Decode(&out); err != nil || res.StatusCode != 200 {
		p.t.Fatalf("%s %s = %d %v, %v", method, path, res.StatusCode, out, err)
	}
	if s, ok := out["session"].(object); ok {
		p.csrf, _ = s["csrf"].(string)
	}
	return out
}

// sharing is an origin, an application of its first account, and two edges that replicate it.
type sharing struct {
	t              testing.TB
	origin, binary string
	data           string
	app, key       string
	client         *client // with the client's id and secret
	owner          *person // of the application, signed in at the origin
	hub            *server
	edges          [2]*server
	ids            [2]string
	folders        [2]string
	answered       int // number of answered calls, with any key or token
}

// share creates the account and the application, and starts the servers.
func share(t *testing.T, binary string) *sharing {
	s := &sharing{t: t, origin: hubOf(t, binary), binary: binary, data: filepath.Join(t.TempDir(), "origin")}
	s.hub = serve(t, s.origin, s.data, "--plan-calls", strconv.Itoa(planCalls))
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	ada := &person{t: t, base: s.hub.base, client: http.Client{Jar: jar}}
	ada.must("GET", "/session", nil)
	setup := s.hub.find(t, regexp.MustCompile(`/sign-up\?setup=([0-9a-f]+)`), 1)
	ada.must("POST", "/accounts", object{"name": "Ada", "email": "ada@x.example", "password": "correct horse battery", "setup": setup})
	response := ada.must("POST", "/apps", object{"name": "shared", "language": "en"})
	s.app = at(t, response, "app", "id").(string)
	s.key = strings.TrimSpace(command(t, s.origin, "key", "create", "--app", s.app, "--scopes", "All", "--data", s.data))
	s.owner = ada
	s.rotateSecret()
	for i := range s.edges {
		var enrolment struct {
			Token string
			ID    string `json:"edge_id"`
		}
		text := command(t, s.origin, "edge", "create", "edge", "--apps", s.app, "--data", s.data, "--json")
		if err := json.Unmarshal([]byte(text), &enrolment); err != nil {
			t.Fatal(err)
		}
		s.ids[i], s.folders[i] = enrolment.ID, folder(t, binary)
		s.edges[i] = serve(t, binary, s.folders[i], "--origin", s.hub.base, "--token", enrolment.Token)
	}
	return s
}

// rotateSecret replaces the client's secret.
func (s *sharing) rotateSecret() {
	s.t.Helper()
	var ids struct {
		ID     string `json:"client_id"`
		Secret string `json:"client_secret"`
	}
	if err := json.Unmarshal([]byte(command(s.t, s.origin, "app", "rotate-secret", s.app, "--data", s.data, "--json")), &ids); err != nil {
		s.t.Fatal(err)
	}
	basic, err := http.NewRequest("POST", s.hub.base, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	basic.SetBasicAuth(ids.ID, ids.Secret)
	s.client = &client{t: s.t, auth: basic.Header.Get("Authorization")}
}

// token returns a new token of a server, as an Authorization header.
func (s *sharing) token(at0 *server) string {
	s.t.Helper()
	c := *s.client
	c.s = at0
	return "Bearer " + at(s.t, c.must("POST", "/v2/token", nil), "access_token").(string)
}

// call makes a call with a credential and returns its HTTP status.
func (s *sharing) call(to *server, credential string) int {
	s.t.Helper()
	c := client{s.t, to, credential}
	status, out, err := c.do("GET", "/v2/inputs/status", nil)
	if err != nil {
		s.t.Fatal(err)
	}
	if status == 200 {
		s.answered++
	}
	code := map[int]any{200: 10000.0, 401: 11001.0, 402: 11006.0}[status]
	if status == 401 && strings.HasPrefix(credential, "Key ") {
		code = 11009.0
	}
	if at(s.t, out, "status", "code") != code {
		s.t.Errorf("HTTP status %d with %v", status, out["status"])
	}
	return status
}

// everywhere waits until each server answers a credential with a status.
func (s *sharing) everywhere(name, credential string, want int, servers ...*server) {
	s.t.Helper()
	for _, to := range servers {
		for tries := 0; s.call(to, credential) != want; tries++ {
			if tries == 900 { // three minutes
				s.t.Fatalf("%s is never answered with %d", name, want)
			}
			system.Pause(s.t.Context(), 200*time.Millisecond) // each try may be a call that is counted
		}
	}
}

// atOnce checks that the first call with a new credential at each edge succeeds.
func (s *sharing) atOnce(name, credential string) {
	s.t.Helper()
	for i, edge := range s.edges {
		if status := s.call(edge, credential); status != 200 {
			s.t.Errorf("%s, at edge %d at once: HTTP status %d", name, i, status)
		}
	}
}

// replaceCredentials replaces the key and the client's secret at the origin, and uses the new ones at the edges at once.
func (s *sharing) replaceCredentials() {
	s.t.Helper()
	s.key = strings.TrimSpace(command(s.t, s.origin, "key", "rotate", s.key, "--data", s.data))
	s.atOnce("a key that replaces another", "Key "+s.key)
	s.rotateSecret()
	s.atOnce("a token for a new secret", s.token(s.hub))
	s.rotateSecret()
	s.atOnce("a token that an edge issued for a new secret", s.token(s.edges[0]))
}

// credentials checks that tokens of an origin and of its edges are valid at all of them until they are revoked, even while the origin is
// offline. Edges refuse the tokens of the origin's pages. All servers refuse calls once the account has used up its plan.
func credentials(t *testing.T, binary string) {
	s := share(t, binary)
	since := system.Now()
	s.everywhere("the key", "Key "+s.key, 200, s.edges[0], s.edges[1])
	first := s.token(s.hub)
	s.atOnce("the first token of an origin", first)
	s.replaceCredentials()
	first = s.token(s.hub)
	second := s.token(s.edges[0])
	s.everywhere("the origin's token", first, 200, s.hub, s.edges[0], s.edges[1])
	s.everywhere("an edge's token", second, 200, s.hub, s.edges[0], s.edges[1])
	page := "Bearer " + at(t, s.owner.must("POST", "/apps/"+s.app+"/page-token", object{}), "token").(string)
	s.everywhere("the token of a page of the origin", page, 200, s.hub)
	s.answered-- // the account is not charged for a page's read
	s.everywhere("the token of a page of the origin, at an edge", page, 401, s.edges[0], s.edges[1])
	if text := command(t, binary, "status", "--data", s.folders[0]); !strings.Contains(text, "keys last verified ") || strings.Contains(text, "too old") {
		t.Errorf("the status says nothing of the age of keys: %s", text)
	}

	if err := s.hub.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-s.hub.ended
	third := s.token(s.edges[1])
	for _, credential := range []string{first, second, third} {
		s.everywhere("a token without the origin", credential, 200, s.edges[0])
	}
	s.hub = serve(t, s.origin, s.data, "--plan-calls", strconv.Itoa(planCalls), "--listen", strings.TrimPrefix(s.hub.base, "http://"))
	s.everywhere("a token that was issued without the origin", third, 200, s.hub)

	command(t, s.origin, "edge", "revoke", s.ids[1], "--data", s.data)
	s.everywhere("a revoked edge's token", third, 401, s.hub, s.edges[0], s.edges[1])
	s.everywhere("another's", second, 200, s.hub, s.edges[0])
	command(t, s.origin, "app", "revoke-tokens", s.app, "--data", s.data)
	for _, dead := range []string{first, second} {
		s.everywhere("a token of an older generation", dead, 401, s.hub, s.edges[0])
	}

	key := "Key " + s.key
	s.everywhere("a call beyond the plan's, at the origin", key, 402, s.hub)
	s.everywhere("a call beyond the plan's, once the edge has heard of it", key, 402, s.edges[0])
	if lost := planCalls / 64; s.answered < planCalls-lost { // the origin had reserved as many when it was killed
		t.Errorf("%d calls of %d were answered, and at most %d can be lost", s.answered, planCalls, lost)
	}
	t.Logf("%d of %d calls were answered by an origin and its edges in %.1f s", s.answered, planCalls, system.Now().Sub(since).Seconds())
}
