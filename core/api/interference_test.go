package api_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/api/apitest"
	"github.com/sightline-dev/sightline/core/auth"
	"github.com/sightline-dev/sightline/core/register"
	"github.com/sightline-dev/sightline/core/testkit"
)

// TestTenantsDoNotInterfere runs a random program of anna's calls twice: alone, and between calls of bert. Bert has the same ids, pictures
// and words, requests her data by every path, and sometimes deletes his application. The bytes and headers of her answers and the pictures
// at her URLs are equal in both runs.
func TestTenantsDoNotInterfere(t *testing.T) {
	answers := 0
	for seed := range testkit.Seeds(t, 500, 50_000) {
		steps := program9(seed)
		alone := run9(t, steps, nil)
		among := run9(t, steps, rand.New(rand.NewPCG(seed, 99)))
		for i := range alone {
			if !bytes.Equal(alone[i], among[i]) {
				t.Fatalf("seed %d: %s\nalone:\n%s\n\namong others:\n%s", seed, steps[min(i, len(steps)-1)], alone[i], among[i])
			}
		}
		answers += len(alone)
	}
	t.Logf("%d answers", answers)
}

// step9 is a call of a program, or a pause in which the background works.
type step9 struct {
	api.Request
	pause time.Duration // negative for a call
}

func (s step9) String() string {
	return fmt.Sprintf("%s %s?%s %s", s.Method, s.Path, s.Query, s.Body)
}

func program9(seed uint64) []step9 {
	w := wanderer{rand.New(rand.NewPCG(seed, 9))}
	var steps []step9
	for range 10 + w.IntN(10) {
		if w.IntN(5) == 0 {
			steps = append(steps, step9{pause: time.Duration(w.IntN(3)) * time.Second})
			continue
		}
		steps = append(steps, step9{w.call(), -1})
	}
	return append(steps,
		step9{pause: 0},
		step9{api.Request{Method: "GET", Path: "/v2/inputs", Query: "per_page=1000"}, -1},
		step9{api.Request{Method: "POST", Path: "/v2/searches", Body: []byte(`{"query":{"ands":[{"output":{"data":{"concepts":[{"id":"ai_red"}]}}}]}}`)}, -1},
		step9{api.Request{Method: "GET", Path: "/v2/models"}, -1})
}

// run9 runs anna's program and returns her answers, followed by her pictures. If other is not nil, bert makes random calls in between.
func run9(t testing.TB, steps []step9, other *rand.Rand) [][]byte {
	e := newEstate(t, map[string]string{"rate": "20,12", "owner": "anna", "calls": "25"})
	anna := e.settle("anna", 1)
	var answers [][]byte
	var bert *tenant
	var hosted []string
	for _, s := range steps {
		if other != nil {
			bert = e.meddle(other, bert, anna, hosted)
		}
		if s.pause >= 0 {
			e.work(s.pause)
			answers = append(answers, nil)
			continue
		}
		got := e.serve(anna, s.Request)
		answers = append(answers, fmt.Appendf(nil, "%d %s %v\n%s", got.Status, got.ContentType, got.Header, got.Body))
		for part := range strings.SplitSeq(string(got.Body), api.HostedPath) {
			if len(part) >= 32 && !strings.ContainsAny(part[:32], `"{:`) && !slices.Contains(hosted, part[:32]) {
				hosted = append(hosted, part[:32])
			}
		}
	}
	for _, name := range hosted {
		p, err := e.Engine.Register.HostedPicture(name)
		thumb, noThumb := e.Engine.Register.Thumbnail(name)
		answers = append(answers, fmt.Appendf(nil, "%s %v %v %x %v", name, p, err, thumb, noThumb))
	}
	return answers
}

// meddle makes up to two random calls of bert, and returns his current tenant. It is nil after he deleted his application.
func (e *estate) meddle(r *rand.Rand, bert, anna *tenant, hosted []string) *tenant {
	w := wanderer{r}
	for range w.IntN(3) {
		if bert == nil {
			e.moves++
			bert = e.settle("bert", 1+e.moves)
		}
		call := w.call()
		switch w.IntN(8) {
		case 0:
			call.Path = long(call.Path, []string{"anna", "me", "bert"}[w.IntN(3)], anna.App)
		case 1:
			call.Session, call.Path = bert.session, long(call.Path, "me", []string{anna.App, bert.App}[w.IntN(2)])
		case 2:
			if len(hosted) > 0 {
				address := "http://127.0.0.1:8080" + api.HostedPath + hosted[w.IntN(len(hosted))]
				call = api.Request{Method: "POST", Path: "/v2/searches", Body: []byte(searches(&tenant{hosted: address})[w.IntN(12)])}
			}
		case 3:
			call = api.Request{Method: "POST", Path: "/v2/token", Authorization: []string{apitest.Basic(anna.Client)[:40], apitest.Basic(bert.Client)}[w.IntN(2)]}
		}
		e.serve(bert, call)
		if w.IntN(20) == 0 {
			if err := e.Engine.Register.DeleteApp(e.Context(), register.Caller{Account: bert.Owner}, bert.App); err != nil {
				e.Fatal(err)
			}
			bert = nil
		}
	}
	return bert
}

// wanderer makes random calls.
type wanderer struct{ *rand.Rand }

func (w wanderer) of(words ...string) string { return words[w.IntN(len(words))] }

func (w wanderer) input() string   { return w.of("input-word", "a", "b", "c") }
func (w wanderer) concept() string { return w.of("warm-word", "cold", "ai_red") }
func (w wanderer) own() string     { return w.of("heat", "m") }

// general and color are the ids of public models.
const (
	general = "aaa03c23b3724a16a56b629203edc62c"
	color   = "eeed0b6733a644cea07cf4c60f87ebb7"
)

func (w wanderer) image() string {
	if w.IntN(3) == 0 {
		return `{"base64":"` + w.of("R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7", "R0lGODlhAQABAIAAAP8AAP///yH5BAAAAAAALAAAAAABAAEAAAICRAEAOw==") + `"}`
	}
	return `{"url":"http://pictures.test/` + w.of("red.png", "blue.png", "half.png", "white.png", "red.png?url-word", "torn.png", "none") + `"` + w.of("", `,"allow_duplicate_url":true`) + `}`
}

func (w wanderer) labels() string {
	return fmt.Sprintf(`"concepts":[{"id":%q,"value":%s},{"id":%q}]`, w.concept(), w.of("true", "false"), w.concept())
}

func (w wanderer) list(n int, element func() string) string {
	all := make([]string, 1+w.IntN(n))
	for i := range all {
		all[i] = element()
	}
	return strings.Join(all, ",")
}

// call returns a random call. Calls that add data are more frequent.
func (w wanderer) call() api.Request {
	of := func(method, path, body string) api.Request {
		return api.Request{Method: method, Path: "/v2" + path, Body: []byte(body)}
	}
	switch w.IntN(22) {
	case 0, 1, 2, 3:
		return of("POST", "/inputs", `{"inputs":[`+w.list(3, func() string {
			return fmt.Sprintf(`{"id":%q,"data":{"image":%s,%s,"metadata":{"k":%q}}}`, w.input(), w.image(), w.labels(), w.of("v", "w"))
		})+`]}`)
	case 4, 5:
		return of("PATCH", "/inputs", fmt.Sprintf(`{"inputs":[{"id":%q,"data":{%s}}],"action":%q}`, w.input(), w.labels(), w.of("merge", "remove", "overwrite")))
	case 6, 7:
		return of("POST", "/searches", searches(&tenant{hosted: "http://127.0.0.1:8080/hosted/" + strings.Repeat("0", 32)})[w.IntN(12)])
	case 8, 9:
		return of("POST", "/models/"+w.of(general, color, "heat", "m")+"/outputs", `{"inputs":[`+w.list(2, func() string { return fmt.Sprintf(`{"id":%q,"data":{"image":%s}}`, w.input(), w.image()) })+`]}`)
	case 10, 11:
		return of("POST", "/models", fmt.Sprintf(`{"model":{"id":%q,"output_info":{"data":{"concepts":[{"id":%q},{"id":"cold"}]}}}}`, w.own(), w.concept()))
	case 12:
		return of("POST", "/models/"+w.own()+"/versions", "")
	case 13:
		return of("PATCH", "/models", fmt.Sprintf(`{"models":[{"id":%q,"name":%q,"output_info":{"data":{"concepts":[{"id":%q}]}}}],"action":%q}`, w.own(), w.of("x", "y"), w.concept(), w.of("merge", "remove", "overwrite")))
	case 14:
		return of("DELETE", w.of("/inputs/"+w.input(), "/models/"+w.own(), "/workflows/flow"), "")
	case 15:
		return of("DELETE", "/inputs", w.of(`{"ids":["a","b"]}`, `{"delete_all":true}`, ``))
	case 16:
		return of("POST", "/concepts", fmt.Sprintf(`{"concepts":[{"id":%q,"name":%q}]}`, w.of("warm-word", "cold", "new"), w.of("x", "y")))
	case 17:
		return of("PATCH", "/concepts", fmt.Sprintf(`{"concepts":[{"id":%q,"name":%q}],"action":"overwrite"}`, w.concept(), w.of("x", "named-word")))
	case 18:
		return of("POST", w.of("/workflows", "/workflows/flow/results"), fmt.Sprintf(`{"workflows":[{"id":"flow","nodes":[{"model":{"id":%q}}]}],"inputs":[{"id":"a","data":{"image":%s}}]}`, w.of("heat", color), w.image()))
	}
	r := of("GET", w.of("/inputs", "/inputs/status", "/inputs/"+w.input(), "/inputs/"+w.input()+"/outputs", "/inputs/"+w.input()+"/thumbnail", "/inputs/"+w.input()+"/rendition", "/inputs/"+w.input()+"/source",
		"/concepts", "/concepts/"+w.concept(), "/models", "/models/"+w.own()+"/output_info", "/models/"+w.own()+"/inputs", "/models/"+w.own()+"/versions", "/workflows", "/myscopes"), "")
	r.Query = w.of("", "page=2&per_page=1", "per_page=1000")
	return r
}

// TestTenantsTokenLimits checks that tenants share no limit on token requests. A client that sends wrong secrets blocks no other client,
// and not the owner of the client that it names.
func TestTenantsTokenLimits(t *testing.T) {
	e := newEstate(t, nil)
	anna := e.settle("anna", 1)
	wrong := anna.Client
	wrong.Secret = strings.Repeat("0", 64)
	refused := 0
	for range 200 {
		got := e.serve(anna, api.Request{Method: "POST", Path: "/v2/token", Authorization: apitest.Basic(wrong), Remote: "192.0.2.1"})
		if got.Status == 429 {
			refused++
		}
		if got.Status != 401 && got.Status != 429 {
			t.Fatalf("a wrong secret: %d %s", got.Status, got.Body)
		}
	}
	if refused < 150 {
		t.Errorf("%d of 200 wrong secrets were refused for their number", refused)
	}
	r := api.Request{Method: "POST", Path: "/v2/token", Authorization: apitest.Basic(anna.Client), Remote: "192.0.2.2"}
	if got := e.serve(anna, r); got.Status != 200 {
		t.Errorf("the owner, from elsewhere: %d %s", got.Status, got.Body)
	}
	r.Remote = "192.0.2.1"
	got := e.serve(anna, r)
	if got.Status != 429 || !slices.ContainsFunc(got.Header, func(f api.Field) bool { return f.Name == "Retry-After" }) {
		t.Errorf("from where too many came: %d %s %v", got.Status, got.Body, got.Header)
	}
	if s := statusOf(t, got); s.code != 11005 || !strings.Contains(s.details, auth.ErrRate.Error()) {
		t.Errorf("from where too many came: %v", s)
	}
}
