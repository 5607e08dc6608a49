package api_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/api/apitest"
	"github.com/sightline-dev/sightline/core/auth"
	"github.com/sightline-dev/sightline/core/kv/memkv"
	"github.com/sightline-dev/sightline/core/register"
)

// tenant is one account's application in an estate. Its ids come from its own counters.
type tenant struct {
	apitest.Tenant
	session    string
	ids, names *apitest.Counter
	version    string // id of its trained model version
	hosted     string // URL of an input's picture that was sent as base64
}

// estate is a world with applications of more than one account.
type estate struct {
	testing.TB
	*apitest.World
	background tenant // the counters in use while no request is answered
	moves      uint64 // number of applications that bert has had
}

// newEstate returns a world with the settings of a transcript.
func newEstate(t testing.TB, settings map[string]string) *estate {
	return &estate{
		TB: t, World: apitest.NewWorld(t, memkv.New(), apitest.Tiny(t), nil, settings),
		background: tenant{ids: apitest.NewCounter(1 << 60), names: apitest.NewCounter(1 << 61)},
	}
}

// work advances the clock by d and runs the background work.
func (e *estate) work(d time.Duration) {
	e.turn(&e.background)
	e.Step(e.TB, d)
}

// settle creates an application of owner, or of the operator for "". draw selects the range of its ids.
func (e *estate) settle(owner string, draw uint64) *tenant {
	n := &tenant{ids: apitest.NewCounter(draw << 40), names: apitest.NewCounter(draw<<40 + 1<<39)}
	e.turn(n)
	n.Tenant = e.NewTenant(e.TB, owner, "en")
	e.serve(n, api.Request{Method: "GET", Path: "/v2/inputs/status"}) // opens its partition
	if owner == "" {
		return n // the operator has no session
	}
	r := e.Serve(e.TB, api.Request{Method: "POST", Path: "/v2/login", Authorization: "none", Body: fmt.Appendf(nil, `{"email":"%s@example.com","password":"%[1]s's password"}`, owner)})
	n.session = between(e.TB, r.Body, `"session_token":"`, `"`)
	return n
}

// turn makes the world draw ids and names from n's counters.
func (e *estate) turn(n *tenant) { e.IDs.Counter, e.Names.Counter = n.ids, n.names }

// serve answers a request of n. A request without credentials is sent with n's key.
func (e *estate) serve(n *tenant, r api.Request) api.Response {
	e.turn(n)
	if r.Authorization == "" && r.Session == "" {
		r.Authorization = "Key " + n.Key
	}
	return e.Serve(e.TB, r)
}

// call makes a request of n that must succeed, and returns the body of the answer.
func (e *estate) call(n *tenant, method, path, body string) []byte {
	e.Helper()
	got := e.serve(n, api.Request{Method: method, Path: path, Body: []byte(body)})
	if got.Status != 200 {
		e.Fatalf("%s %s %s = %d %s", method, path, body, got.Status, got.Body)
	}
	return got.Body
}

func between(t testing.TB, text []byte, before, after string) string {
	t.Helper()
	_, rest, ok := strings.Cut(string(text), before)
	got, _, ends := strings.Cut(rest, after)
	if !ok || !ends {
		t.Fatalf("no %s…%s in %s", before, after, text)
	}
	return got
}

// Words that only a furnished application contains.
const (
	conceptWord = "warm-word"  // id of a concept
	renamedWord = "named-word" // name of the concept conceptWord
	modelWord   = "heat-word"  // name of the model "heat"
	inputWord   = "input-word" // id of an input
	urlWord     = "url-word"   // part of the input's URL
)

// furnish adds data to an application: inputs with labels, one of them with base64, a trained model and a workflow.
func (e *estate) furnish(n *tenant) {
	e.Helper()
	e.call(n, "POST", "/v2/inputs", `{"inputs":[
		{"id":"input-word","data":{"image":{"url":"http://pictures.test/red.png?url-word"},"concepts":[{"id":"warm-word"}],"metadata":{"k":"v"}}},
		{"id":"h","data":{"image":{"url":"http://pictures.test/half.png?url-word"},"concepts":[{"id":"warm-word"}]}},
		{"id":"odd","data":{"image":{"url":"http://pictures.test/blue.png?url-word"},"concepts":[{"id":"warm-word"},{"id":"cold","value":false}]}},
		{"id":"b","data":{"image":{"url":"http://pictures.test/blue.png"},"concepts":[{"id":"cold"},{"id":"warm-word","value":false}]}},
		{"id":"w","data":{"image":{"url":"http://pictures.test/white.png"},"concepts":[{"id":"cold"},{"id":"warm-word","value":false}]}}]}`)
	hosted := e.call(n, "POST", "/v2/inputs", `{"inputs":[{"id":"gif","data":{"image":{"base64":"R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7"}}}]}`)
	n.hosted = between(e.TB, hosted, `"url":"`, `"`)
	e.call(n, "PATCH", "/v2/concepts", `{"concepts":[{"id":"warm-word","name":"named-word"}],"action":"overwrite"}`)
	e.call(n, "POST", "/v2/models", `{"model":{"id":"heat","name":"heat-word","output_info":{"data":{"concepts":[{"id":"warm-word"},{"id":"cold"}]},"output_config":{"select_concepts":[{"id":"warm-word"}]}}}}`)
	e.call(n, "POST", "/v2/workflows", `{"workflows":[{"id":"flow","nodes":[{"model":{"id":"heat"}}]}]}`)
	e.call(n, "POST", "/v2/models/heat/versions", "")
	e.work(0)
	e.call(n, "PATCH", "/v2/inputs", `{"inputs":[{"id":"input-word","data":{"concepts":[{"id":"cold","value":false}]}},{"id":"b","data":{"concepts":[{"id":"warm-word"}]}}],"action":"merge"}`)
	n.version = between(e.TB, e.call(n, "POST", "/v2/models/heat/versions", ""), `"model_version":{"id":"`, `"`)
	e.work(0)
	e.call(n, "PATCH", "/v2/inputs/input-word/outputs", `{"outputs":[{"data":{"concepts":[{"id":"warm-word","value":0.9}]}}],"action":"merge"}`)
	e.call(n, "POST", "/v2/workflows", `{"workflows":[{"id":"pinned","nodes":[{"model":{"id":"heat","model_version":{"id":"`+n.version+`"}}}]}]}`)
}

// examples are valid request bodies by endpoint. request replaces "%d" by a number.
var examples = map[string]string{
	"POST /models/{model_id}/outputs":                       predictBody,
	"POST /models/{model_id}/activations":                   `{"inputs":[{"id":"x","data":{"image":{"url":"http://pictures.test/red.png"}}}],"concepts":["warm-word"]}`,
	"POST /models/{model_id}/versions/{version_id}/outputs": predictBody,
	"POST /inputs":                           `{"inputs":[{"id":"new%d","data":{"image":{"url":"http://pictures.test/red.png?%[1]d"},"concepts":[{"id":"warm-word"}]}}]}`,
	"PATCH /inputs":                          `{"inputs":[{"id":"input-word","data":{"concepts":[{"id":"cold","value":false}]}}]}`,
	"DELETE /inputs":                         `{"ids":["none%d"]}`,
	"PATCH /inputs/{input_id}/data/concepts": `{"concepts":[{"id":"cold","value":false}],"action":"merge_concepts"}`,
	"PATCH /inputs/{input_id}/outputs":       `{"outputs":[{"data":{"concepts":[{"id":"warm-word","value":0.9}]}}],"action":"merge"}`,
	"POST /models/searches":                  `{"model_query":{"name":"heat*"}}`,
	"POST /models":                           `{"model":{"id":"new%d","name":"heat-word","output_info":{"data":{"concepts":[{"id":"warm-word"}]},"output_config":{"select_concepts":[{"id":"warm-word"}]}}}}`,
	"PATCH /models":                          `{"models":[{"id":"heat","output_info":{"data":{"concepts":[{"id":"warm-word"}]}}}]}`,
	"DELETE /models":                         `{"ids":["none%d"]}`,
	"PATCH /models/{model_id}/output_info/data/concepts":     `{"concepts":[{"id":"warm-word"}],"action":"merge_concepts"}`,
	"POST /models/{model_id}/feedback":                       `{"input":{"id":"x","feedback_info":{"event_type":"annotation"}}}`,
	"POST /models/{model_id}/versions/{version_id}/feedback": `{"input":{"id":"x","feedback_info":{"event_type":"annotation"}}}`,
	"POST /concepts/searches":                                `{"concept_query":{"name":"named*"}}`,
	"POST /concepts":                                         `{"concepts":[{"id":"new%d"}]}`,
	"PATCH /concepts":                                        `{"concepts":[{"id":"cold","name":"cold%d"}],"action":"overwrite"}`,
	"POST /searches":                                         `{"query":{"ands":[{"input":{"data":{"image":{"url":"http://pictures.test/red.png?url-word"}}}}]}}`,
	"POST /searches/feedback":                                `{"input":{"id":"x","feedback_info":{"event_type":"search_click","search_id":"1"}}}`,
	"POST /workflows":                                        `{"workflows":[{"id":"new%d","nodes":[{"model":{"id":"heat","model_version":{"id":"{version_id}"}}}]}]}`,
	"POST /workflows/{workflow_id}/results":                  `{"inputs":[{"id":"x","data":{"image":{"url":"http://pictures.test/red.png"}}}]}`,
	"POST /login":                                            `{"email":"anna@example.com","password":"a guess"}`,
	"POST /users/{user_id}/apps":                             `{"apps":[{"name":"another"}]}`,
	"POST /users/{user_id}/keys":                             `{"keys":[{"description":"another","scopes":["All"],"apps":[{"id":"{app_id}"}]}]}`,
}

const predictBody = `{"inputs":[{"id":"x","data":{"image":{"url":"http://pictures.test/red.png"}}}]}`

// request returns the example request of an endpoint with the ids of about's data. number makes its new ids unique.
func request(p api.Endpoint, about *tenant, number int) api.Request {
	fill := strings.NewReplacer("{model_id}", "heat", "{version_id}", about.version, "{input_id}", inputWord, "{concept_id}", conceptWord,
		"{workflow_id}", "pinned", "{user_id}", about.Owner, "{app_id}", about.App)
	body := fill.Replace(examples[p.Method+" "+p.Path])
	if strings.Contains(body, "%") {
		body = fmt.Sprintf(body, number)
	}
	return api.Request{Method: p.Method, Path: "/v2" + fill.Replace(p.Path), Body: []byte(body)}
}

// long returns the long form of a path, with the user and the application.
func long(path, user, app string) string {
	return "/v2/users/" + user + "/apps/" + app + strings.TrimPrefix(path, "/v2")
}

// answerStatus is the status of a response.
type answerStatus struct {
	http, code int
	details    string
}

func statusOf(t testing.TB, r api.Response) answerStatus {
	t.Helper()
	var e struct {
		Status struct {
			Code    int
			Details string
		}
	}
	if r.ContentType == "image/jpeg" {
		return answerStatus{r.Status, 10000, ""}
	}
	if err := json.Unmarshal(r.Body, &e); err != nil {
		t.Fatalf("%s: %v", r.Body, err)
	}
	return answerStatus{r.Status, e.Status.Code, e.Status.Details}
}

// TestTenantsCredentials sends every kind of credential to every endpoint. The body is not JSON, so that a request with the
// right credential changes nothing.
func TestTenantsCredentials(t *testing.T) {
	e := newEstate(t, nil)
	anna, bert := e.settle("anna", 1), e.settle("bert", 2)
	e.furnish(anna)
	deletedTenant := e.settle("bert", 3)
	cast := e.cast(anna, deletedTenant)
	keys := map[auth.Set]string{}
	for i := range auth.ScopeNames()[1:] {
		for _, s := range []auth.Set{1 << i, auth.All &^ (1 << i)} {
			keys[s] = "Key " + e.NewKey(t, anna.Tenant, s)
		}
	}
	token, answers := e.token(anna), 0
	for _, p := range api.Endpoints() {
		name := p.Method + " " + p.Path
		send := func(caller string, r api.Request, want answerStatus) {
			t.Helper()
			answers++
			got := checkServe(t, e.Server(), r)
			if s := statusOf(t, got); s.http != want.http || s.code != want.code || want.details != "" && s.details != want.details {
				t.Errorf("%s by %s = %d %s, want %v", name, caller, got.Status, got.Body, want)
			}
			if _, secret, ok := strings.Cut(r.Authorization, " "); ok && len(secret) > 8 && bytes.Contains(got.Body, []byte(secret)) {
				t.Errorf("%s by %s is answered with what it was sent: %s", name, caller, got.Body)
			}
		}
		r := request(p, anna, 0)
		with := func(authorization string) api.Request {
			r := r
			r.Authorization = authorization
			return r
		}
		through := answerStatus{200, 10000, ""}
		if p.Path == "/sync/status" || p.Path == "/sync/outbox" || strings.HasPrefix(p.Path, "/sync/conflicts/") {
			through = answerStatus{404, 11101, ""} // the application is not a replica
		}
		if p.Method != "GET" {
			r.Body, through = []byte("{"), answerStatus{400, 11100, ""}
		}
		switch p.Credential {
		case auth.OfNobody:
			r.Body = []byte(examples[name])
			send("anybody", with("none"), answerStatus{401, 11002, ""})
			continue
		case auth.OfClient:
			for caller, c := range cast {
				want := answerStatus{401, 11102, ""}
				if strings.HasPrefix(c.authorization, "Basic") {
					want = answerStatus{401, 11002, "invalid client ID or secret"}
				}
				send(caller, with(c.authorization), want)
			}
			send("the client", with(apitest.Basic(anna.Client)), answerStatus{200, 10000, ""})
			continue
		}
		for caller, c := range cast {
			send(caller, with(c.authorization), c.want)
		}
		r.Session = "session-0"
		send("a session that is not open", r, answerStatus{401, 11001, "invalid session token"})
		if p.Credential == auth.OfAccount {
			r.Session = anna.session
			send("the session", r, through)
			r.Session = bert.session
			send("another's session", r, answerStatus{404, 11101, ""})
			send("a key", with("Key "+anna.Key), answerStatus{403, 11007, ""})
			send("a token", with(token), answerStatus{403, 11007, ""})
			continue
		}
		send("the key", with("Key "+anna.Key), through)
		send("a token", with(token), through)
		r.Session = anna.session
		send("the session", r, through)
		for scopes, key := range keys {
			send(scopes.String(), with(key), expectedStatus(p, scopes, through))
		}
		// A long path must name the application of the credential. Other applications are not found.
		short := r.Path
		for user, want := range map[string]answerStatus{"anna": through, "me": through, "bert": {404, 11101, ""}, "%61nna": through, "": {404, 11101, ""}} {
			r.Path = long(short, user, anna.App)
			send("the key of "+user, with("Key "+anna.Key), want)
			send("the token of "+user, with(token), want)
		}
		r.Path = long(short, "me", bert.App)
		send("the key, of another's", with("Key "+anna.Key), answerStatus{404, 11101, ""})
		r.Path = long(short, "anna", anna.App)
		r.Session = bert.session
		send("another's session", r, answerStatus{404, 11101, ""})
		r.Session = anna.session
		send("the session", r, through)
	}
	t.Logf("%d answers", answers)
}

// expectedStatus returns the status that the endpoint table requires for a key with these scopes. through is the status if they suffice.
func expectedStatus(p api.Endpoint, scopes auth.Set, through answerStatus) answerStatus {
	missing := func(names []string) []string {
		return slices.DeleteFunc(slices.Clone(names), func(s string) bool { return scopes.Has(auth.SetOf([]string{s})) })
	}
	lacks := missing(p.Required)
	if len(p.Patch) > 0 {
		others := slices.DeleteFunc(slices.Clone(p.Required), func(s string) bool { return strings.HasSuffix(s, "_Add") || s == "Models_Train" })
		if instead := missing(slices.Concat(others, p.Patch)); len(instead) < len(lacks) {
			lacks = instead
		}
	}
	if len(lacks) == 0 {
		return through
	}
	return answerStatus{403, 11007, "insufficient scopes: the key lacks " + auth.SetOf(lacks).String()}
}

// role is a credential that the service rejects, with the expected status.
type role struct {
	authorization string
	want          answerStatus
}

// cast returns the rejected credentials by name. It revokes n's earlier tokens and deletes the application deletedTenant.
func (e *estate) cast(n, deletedTenant *tenant) map[string]role {
	e.Helper()
	old := e.token(n)
	var err error
	if n.Client, err = e.Engine.Register.ReplaceSecret(e.Context(), register.Caller{Account: n.Owner}, n.App); err != nil {
		e.Fatal(err)
	}
	revoked := e.token(n)
	if err := e.Engine.Register.RevokeTokens(e.Context(), register.Caller{Account: n.Owner}, n.App); err != nil {
		e.Fatal(err)
	}
	expired := e.token(n)
	e.work(20 * time.Minute)
	deleted := e.NewKey(e.TB, n.Tenant, auth.All)
	if err := e.Engine.Register.DeleteKey(e.Context(), register.Caller{Account: n.Owner}, n.App, auth.HashKey(deleted)); err != nil {
		e.Fatal(err)
	}
	deletedToken := e.token(deletedTenant)
	if err := e.Engine.Register.DeleteApp(e.Context(), register.Caller{Account: deletedTenant.Owner}, deletedTenant.App); err != nil {
		e.Fatal(err)
	}
	none, unknown, invalid := answerStatus{401, 11102, ""}, answerStatus{401, 11009, "invalid key"}, answerStatus{401, 11001, "invalid token"}
	wrong := n.Client
	wrong.Secret = deletedTenant.Client.Secret
	return map[string]role{
		"nobody":                    {"none", none},
		"another scheme":            {"Digest x", none},
		"a scheme alone":            {"Key", none},
		"a key alone":               {n.Key, none},
		"a malformed key":           {"Key 123", unknown},
		"a key in capitals":         {"Key ABCDEF0123456789ABCDEF0123456789", unknown},
		"a key and more":            {"Key " + n.Key + "0", unknown},
		"an unknown key":            {"Key 0123456789abcdef0123456789abcdef", unknown},
		"a deleted key":             {"Key " + deleted, unknown},
		"a deleted application":     {"Key " + deletedTenant.Key, unknown},
		"an unknown token":          {"Bearer x.y.z", invalid},
		"a long token":              {"Bearer " + strings.Repeat("x", 5000), invalid},
		"a key as a token":          {"Bearer " + n.Key, invalid},
		"an expired token":          {expired, answerStatus{401, 11001, "expired token"}},
		"a token of the old secret": {old, answerStatus{401, 11001, "expired token"}},
		"a revoked token":           {revoked, answerStatus{401, 11001, "expired token"}},
		"a deleted client's token":  {deletedToken, invalid},
		"another's secret":          {apitest.Basic(wrong), none},
		"a deleted client":          {apitest.Basic(deletedTenant.Client), none},
		"no pair":                   {"Basic " + n.Key, none},
	}
}

// token returns the Authorization header of a new access token of n.
func (e *estate) token(n *tenant) string {
	e.Helper()
	r := e.serve(n, api.Request{Method: "POST", Path: "/v2/token", Authorization: apitest.Basic(n.Client)})
	if r.Status != 200 {
		e.Fatalf("no token: %s", r.Body)
	}
	return "Bearer " + between(e.TB, r.Body, `"access_token":"`, `"`)
}

// Server returns a server that passes requests to the world with the current counters.
func (e *estate) Server() apitest.Server {
	return func(r api.Request) api.Response { return e.Serve(e.TB, r) }
}

// TestRevokedTokensAreInvalid checks that a token is invalid once its client gets another secret, its tokens are revoked, or its
// application is deleted.
func TestRevokedTokensAreInvalid(t *testing.T) {
	for name, kill := range map[string]func(e *estate, n *tenant) error{
		"secret": func(e *estate, n *tenant) error {
			_, err := e.Engine.Register.ReplaceSecret(t.Context(), register.Caller{Account: n.Owner}, n.App)
			return err
		},
		"revoked": func(e *estate, n *tenant) error {
			return e.Engine.Register.RevokeTokens(t.Context(), register.Caller{Account: n.Owner}, n.App)
		},
		"deleted": func(e *estate, n *tenant) error {
			return e.Engine.Register.DeleteApp(t.Context(), register.Caller{Account: n.Owner}, n.App)
		},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEstate(t, nil)
			n := e.settle("anna", 1)
			r := api.Request{Method: "GET", Path: "/v2/inputs", Authorization: e.token(n)}
			if got := e.Serve(t, r); got.Status != 200 {
				t.Fatalf("before: %s", got.Body)
			}
			if err := kill(e, n); err != nil {
				t.Fatal(err)
			}
			if got := statusOf(t, e.Serve(t, r)); got != (answerStatus{401, 11001, "invalid token"}) {
				t.Errorf("after: %v", got)
			}
		})
	}
}

// TestTenantsSeeForeignAsMissing makes the same calls of bert in a world with anna's application and in a world without it. The answers are
// equal, byte for byte, although bert knows all of anna's ids, URLs and paths.
func TestTenantsSeeForeignAsMissing(t *testing.T) {
	with, without := newEstate(t, nil), newEstate(t, nil)
	b1, b2 := with.settle("bert", 2), without.settle("bert", 2)
	anna := with.settle("anna", 1)
	with.furnish(anna)
	if b1.Key != b2.Key || b1.App != b2.App {
		t.Fatal("the two worlds are not alike")
	}
	answers := 0
	same := func(name string, r api.Request) {
		t.Helper()
		answers++
		one, two := with.serve(b1, r), without.serve(b2, r)
		if one.Status != two.Status || !bytes.Equal(one.Body, two.Body) || !slices.Equal(one.Header, two.Header) {
			t.Errorf("%s: %s %s %s\n%d %s %v where hers is,\n%d %s %v where it is not", name, r.Method, r.Path, r.Body, one.Status, one.Body, one.Header, two.Status, two.Body, two.Header)
		}
	}
	for round := range 2 {
		for i, p := range api.Endpoints() {
			if p.Credential == auth.OfNobody {
				continue
			}
			r := request(p, anna, round*1000+i)
			same("short", r)
			for _, user := range []string{"anna", "me", "bert"} {
				r := r
				r.Path = long(r.Path, user, anna.App)
				same("long", r)
				r.Session = b1.session
				same("session", r)
			}
			r.Session = b1.session
			same("session", r)
		}
		for _, body := range searches(anna) {
			same("search", api.Request{Method: "POST", Path: "/v2/searches", Body: []byte(body)})
		}
		for _, path := range []string{"/v2/inputs", "/v2/inputs/status", "/v2/concepts", "/v2/models", "/v2/workflows"} {
			same("list", api.Request{Method: "GET", Path: path, Query: "per_page=1000"})
		}
		// bert adds the same pictures under the same ids.
		same("twin", api.Request{Method: "POST", Path: "/v2/inputs", Body: []byte(`{"inputs":[{"id":"gif","data":{"image":{"base64":"R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7"}}},{"id":"input-word","data":{"image":{"url":"http://pictures.test/red.png?url-word"}}}]}`)})
		with.work(0)
		without.work(0)
		if round == 0 {
			with.call(anna, "DELETE", "/v2/inputs", `{"delete_all":true}`)
			with.call(anna, "DELETE", "/v2/models", "")
			with.call(anna, "DELETE", "/v2/workflows/flow", "")
			with.call(anna, "DELETE", "/v2/workflows/pinned", "")
			with.work(0)
			with.furnish(anna)
		}
	}
	t.Logf("%d answers", answers)
}

// searches returns search bodies that refer to a tenant's data.
func searches(n *tenant) []string {
	ands := func(clauses string) string { return `{"query":{"ands":[` + clauses + `]}}` }
	return []string{
		ands(``),
		ands(`{"input":{"id":"input-word"}}`),
		ands(`{"input":{"data":{"image":{"url":"http://pictures.test/red.png?url-word"}}}}`),
		ands(`{"input":{"data":{"image":{"url":"` + n.hosted + `"}}}}`),
		ands(`{"input":{"data":{"concepts":[{"id":"warm-word"}]}}}`),
		ands(`{"input":{"data":{"concepts":[{"name":"named-word","value":false}]}}}`),
		ands(`{"input":{"data":{"metadata":{"k":"v"}}}}`),
		ands(`{"output":{"data":{"concepts":[{"id":"warm-word"}]}}}`),
		ands(`{"output":{"data":{"concepts":[{"id":"ai_red"}]}}}`),
		ands(`{"output":{"input":{"id":"input-word"}}}`),
		ands(`{"output":{"input":{"data":{"image":{"url":"` + n.hosted + `"}}}}}`),
		ands(`{"output":{"input":{"data":{"image":{"url":"http://pictures.test/half.png"}}}}}`),
	}
}
