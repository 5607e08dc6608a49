package api_test

import (
	"encoding/json"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/api/apitest"
	"github.com/sightline-dev/sightline/core/jsonio"
	"github.com/sightline-dev/sightline/core/testkit"
)

// Valid bodies and paths that the tests modify.
var (
	seedBodies = []string{
		``, `null`, `{}`, `[]`,
		`{"inputs":[{"data":{"image":{"url":"http://pictures.test/red.png"}}}]}`,
		`{"inputs":[{"id":"x/y","data":{"image":{"url":"http://pictures.test/half.png","crop":[0.1,0.2,0.9,1.0],"allow_duplicate_url":true}}},{"id":null}],
		  "model":{"output_info":{"output_config":{"language":"de","max_concepts":3,"min_value":0.5,"select_concepts":[{"id":"ai_red"},{"name":"blue-de"}]}}}}`,
		`{"inputs":[{"data":{"image":{"base64":"R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7"}}}]}`,
		`{"inputs":[{"data":{"image":{"base64":"/9j/4AAQSkZJRg=="}}},{"data":{"image":{"url":"http://pictures.test/torn.png"}}}]}`,
		`{"model_query":{"name":"gen*","type":"concept"},"pagination":{"page":1,"per_page":2}}`,
		`{"concept_query":{"name":"re*","language":"zh-TW"}}`,
		`{"inputs":[{"id":"a","data":{"image":{"url":"http://pictures.test/red.png","allow_duplicate_url":true},"concepts":[{"id":"cat","value":true},{"id":"ai_red"}],"metadata":{"k":[1,{"n":null}]},"geo":{"geo_point":{"longitude":1,"latitude":-2}}}},
		  {"id":"b","data":{"image":{"base64":"R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7"}}}],"action":"overwrite"}`,
		`{"inputs":[{"id":"a","data":{"concepts":[{"id":"cat","value":0}],"metadata":{"k":true,"o":{}}}}],"action":"remove"}`,
		`{"ids":["a","b"]}`, `{"delete_all":true}`, `{"concepts":[{"id":"cat"}],"action":"merge_concepts"}`,
		`{"outputs":[{"data":{"concepts":[{"id":"ai_red","value":0.5}]},"model":{"id":"x"}}],"action":"merge"}`,
		`{"query":{"ands":[{"input":{"data":{"concepts":[{"name":"cat","value":false}],"metadata":{"k":[1]},"geo":{"geo_point":{"longitude":1,"latitude":-2},"geo_limit":{"type":"withinMiles","value":3}}}}},
		  {"output":{"data":{"concepts":[{"id":"ai_red"}]}},"negate":true}],"language":"de"}}`,
		`{"query":{"ands":[{"output":{"input":{"id":"a","data":{"image":{"url":"http://pictures.test/red.png","crop":[0,0,1,1]}}}}}]}}`,
		`{"input":{"id":"a","feedback_info":{"event_type":"search_click","search_id":"1"}}}`,
		`{"a":1,"a":2}`, `{"inputs":"x"}`, `{"inputs":[1,"x",null,[],{}]}`, `{"model":[[]],"inputs":{}}`,
	}
	seedPaths = []string{
		"/v2/models/aaa03c23b3724a16a56b629203edc62c/outputs", "//v2/models/eeed0b6733a644cea07cf4c60f87ebb7/versions/dd9458324b4b45c2be1a7ba84d27cd04/outputs/", "/v2/models/bbb5f41425b8468d9b7a554ff10f8581/outputs",
		"/v2/models/searches", "/v2/concepts/searches/", "/v2/models", "/v2/models/aaa03c23b3724a16a56b629203edc62c/output_info",
		"/v2/users/u/apps/a/models/aaa03c23b3724a16a56b629203edc62c/version/aa9ca48295b37401f8af92ad1af0d91d/output_info", "/v2/models/a%2Fb", "/v2/concepts/ai_red", "/v2/concepts",
		"/v2/inputs", "/v2/inputs/a", "/v2/inputs/status", "/v2/inputs/a/data/concepts", "/v2/inputs/a/outputs", "/v2/inputs/b/thumbnail", "/v2/inputs/b/rendition",
		"/v2/searches", "/v2/searches/feedback",
		"/v2/token", "/v2/login", "/v2/users/me/apps", "/v2/users/me/keys/", "/v2/users/anna/apps/x", "/v2/scopes", "/v2/myscopes",
		"/v2/models/aaa03c23b3724a16a56b629203edc62c/versions", "/v2/models/%zz", "/", "/v2", "/v2/models/searches/outputs",
	}
	seedMethods = []string{"GET", "POST", "PATCH", "DELETE", "OPTIONS", "HEAD", "PUT"}
)

// FuzzServe checks that every request gets an answer with an envelope, a status of the table and the list of its endpoint.
func FuzzServe(f *testing.F) {
	for i, path := range seedPaths {
		f.Add("POST", path, "page=1&per_page=2", []byte(seedBodies[i%len(seedBodies)]))
		f.Add("GET", path, "page=2", []byte(nil))
	}
	for _, body := range seedBodies {
		f.Add("POST", "/v2/models/aaa03c23b3724a16a56b629203edc62c/outputs", "", []byte(body))
		f.Add("POST", "/v2/models/searches", "per_page=x", []byte(body))
		f.Add("POST", "/v2/concepts/searches", "", []byte(body))
		f.Add("POST", "/v2/inputs", "", []byte(body))
		f.Add("PATCH", "/v2/inputs", "", []byte(body))
		f.Add("DELETE", "/v2/inputs", "", []byte(body))
		f.Add("PATCH", "/v2/inputs/a/outputs", "", []byte(body))
		f.Add("POST", "/v2/searches", "page=1", []byte(body))
	}
	s := apitest.NewServer(f, apitest.Tiny(f), nil, nil)
	f.Fuzz(func(t *testing.T, method, path, query string, body []byte) {
		checkServe(t, s, api.Request{Method: method, Path: path, Query: query, Body: body})
	})
}

// TestHostileBodies sends valid requests with a few bytes changed, removed or repeated.
func TestHostileBodies(t *testing.T) {
	s := apitest.NewServer(t, apitest.Tiny(t), nil, nil)
	for seed := range testkit.Seeds(t, 5_000, 200_000) {
		r := rand.New(rand.NewPCG(seed, 11))
		body := []byte(seedBodies[r.IntN(len(seedBodies))])
		path := []byte(seedPaths[r.IntN(len(seedPaths))])
		for range r.IntN(4) {
			body = bend(r, body)
		}
		if r.IntN(4) == 0 {
			path = bend(r, path)
		}
		method := seedMethods[r.IntN(4)]
		if r.IntN(8) == 0 {
			method = seedMethods[r.IntN(len(seedMethods))]
		}
		got := checkServe(t, s, api.Request{Method: method, Path: string(path), Body: body})
		if got.Status >= 500 {
			t.Fatalf("%s %s %q = %d %s", method, path, body, got.Status, got.Body)
		}
	}
}

func bend(r *rand.Rand, b []byte) []byte {
	if len(b) == 0 {
		return b
	}
	b = slices.Clone(b)
	i := r.IntN(len(b))
	j := min(len(b), i+1+r.IntN(8))
	switch r.IntN(5) {
	case 0:
		b[i] = byte(r.Uint32())
	case 1:
		b[i] = `"\{}[]:,0-ntf%/`[r.IntN(15)]
	case 2:
		b = slices.Delete(b, i, j)
	case 3:
		b = slices.Insert(b, i, slices.Clone(b[i:j])...)
	default:
		b = b[:i]
	}
	return b
}

// checkServe answers a request and checks the form of the answer.
func checkServe(t *testing.T, serve apitest.Server, r api.Request) api.Response {
	t.Helper()
	got := serve(r)
	if got.Status == 200 && got.ContentType == "image/jpeg" {
		return got // a thumbnail or a rendition
	}
	var top map[string]json.RawMessage
	var status struct {
		Code        int
		Description string
	}
	if err := json.Unmarshal(got.Body, &top); err != nil {
		t.Fatalf("%s %q: %s: %v", r.Method, r.Path, got.Body, err)
	}
	var strict jsonio.Doc
	if err := strict.Parse(got.Body, jsonio.Limits{Members: 1 << 20}); err != nil {
		t.Fatalf("%s: %v", got.Body, err)
	}
	if err := json.Unmarshal(top["status"], &status); err != nil {
		t.Fatalf("%s: %v", got.Body, err)
	}
	if !api.IsKnownStatus(got.Status, status.Code, status.Description) {
		t.Fatalf("%s %q = %d %s: not of the table", r.Method, r.Path, got.Status, got.Body)
	}
	if got.Status == 200 && string(top["status"]) != `{"code":10000,"description":"Ok"}` {
		t.Fatalf("a success is %s", top["status"])
	}
	if list := api.ListOf(r.Method, r.Path); list != "" && !strings.HasPrefix(string(top[list]), "[") {
		t.Fatalf("%s %q: %s: no list %q", r.Method, r.Path, got.Body, list)
	}
	return got
}
