package api

import (
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/sightline-dev/sightline/core/jsonio"
	"github.com/sightline-dev/sightline/core/proof"
)

// Bodies and paths that are right, to be bent.
var (
	seedBodies = []string{
		``, `null`, `{}`, `[]`,
		`{"inputs":[{"data":{"image":{"url":"http://a/b.jpg"}}}]}`,
		`{"inputs":[{"id":"x/y","data":{"image":{"url":"https://a/b.jpg","crop":[0.1,0.2,0.9,1.0],"allow_duplicate_url":true}}},{"id":null}],
		  "model":{"output_info":{"output_config":{"language":"de","max_concepts":3,"min_value":0.5,"select_concepts":[{"id":"ai_dog"},{"name":"cat-de"}]}}}}`,
		`{"inputs":[{"data":{"image":{"base64":"R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7"}}}]}`,
		`{"inputs":[{"data":{"image":{"base64":"/9j/4AAQSkZJRg=="}}},{"data":{"image":{"url":"http://missing/"}}}]}`,
		`{"model_query":{"name":"gen*","type":"concept"},"pagination":{"page":1,"per_page":2}}`,
		`{"concept_query":{"name":"dog*","language":"zh-TW"}}`,
		`{"a":1,"a":2}`, `{"inputs":"x"}`, `{"inputs":[1,"x",null,[],{}]}`, `{"model":[[]],"inputs":{}}`,
	}
	seedPaths = []string{
		"/v2/models/general/outputs", "//v2/models/color/versions/colorv/outputs/", "/v2/models/embed/outputs",
		"/v2/models/searches", "/v2/concepts/searches/", "/v2/models", "/v2/models/general/output_info",
		"/v2/users/u/apps/a/models/general/version/generalv/output_info", "/v2/models/a%2Fb", "/v2/concepts/ai_dog", "/v2/concepts",
		"/v2/models/general/versions", "/v2/models/%zz", "/", "/v2", "/v2/models/searches/outputs",
	}
	seedMethods = []string{"GET", "POST", "PATCH", "DELETE", "OPTIONS", "HEAD", "PUT"}
)

// FuzzServe holds that any request gets an answer with an envelope, a status of the table
// and the list of its endpoint.
func FuzzServe(f *testing.F) {
	for i, path := range seedPaths {
		f.Add("POST", path, "page=1&per_page=2", []byte(seedBodies[i%len(seedBodies)]))
		f.Add("GET", path, "page=2", []byte(nil))
	}
	for _, body := range seedBodies {
		f.Add("POST", "/v2/models/general/outputs", "", []byte(body))
		f.Add("POST", "/v2/models/searches", "per_page=x", []byte(body))
		f.Add("POST", "/v2/concepts/searches", "", []byte(body))
	}
	s := smallService(f)
	f.Fuzz(func(t *testing.T, method, path, query string, body []byte) {
		checkServe(t, s, Request{Method: method, Path: path, Query: query, Body: body})
	})
}

// TestG11BentBodies sends right requests with a few bytes changed, cut out or doubled.
func TestG11BentBodies(t *testing.T) {
	s := smallService(t)
	for seed := range proof.Seeds(t, 5_000, 200_000) {
		r := rand.New(rand.NewPCG(seed, 11))
		body := []byte(seedBodies[r.IntN(len(seedBodies))])
		path := []byte(seedPaths[r.IntN(len(seedPaths))])
		for range r.IntN(4) {
			body = bend(r, body)
		}
		if r.IntN(4) == 0 {
			path = bend(r, path)
		}
		method := seedMethods[r.IntN(2)]
		if r.IntN(8) == 0 {
			method = seedMethods[r.IntN(len(seedMethods))]
		}
		got := checkServe(t, s, Request{Method: method, Path: string(path), Body: body})
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

var allStatuses = append([]status{statusOk, statusMixed, statusFailure}, statuses...)

// checkServe answers a request, with a host that cannot fetch what is "missing", and looks
// at the form of what comes.
func checkServe(t *testing.T, s *Service, r Request) Response {
	t.Helper()
	call := s.Begin(context.Background(), &r)
	if jobs := call.Jobs(); call.Done() == (len(jobs) > 0) || len(jobs) > maxInputs {
		t.Fatalf("done %v with %d jobs", call.Done(), len(jobs))
	}
	for i := 0; !call.Done(); i++ {
		results := make([]Result, len(call.Jobs()))
		for k, job := range call.Jobs() {
			if job.URL == "" == job.Blob.IsZero() || job.Want == 0 {
				t.Fatalf("job %+v", job)
			}
			results[k].Analysis.Has = job.Want
			if strings.Contains(job.URL, "missing") || i > 5 {
				results[k].Err = ErrFetch
			}
		}
		call.Resume(results)
	}
	got := call.Response()
	var top map[string]json.RawMessage
	var said struct {
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
	if err := json.Unmarshal(top["status"], &said); err != nil {
		t.Fatalf("%s: %v", got.Body, err)
	}
	known := slices.ContainsFunc(allStatuses, func(row status) bool {
		return row.http == got.Status && row.code == said.Code && row.description == said.Description
	})
	if !known {
		t.Fatalf("%s %q = %d %s: not of the table", r.Method, r.Path, got.Status, got.Body)
	}
	if got.Status == 200 && string(top["status"]) != `{"code":10000,"description":"Ok"}` {
		t.Fatalf("a success is %s", top["status"])
	}
	matched, _, err := find(strings.Replace(r.Method, "HEAD", "GET", 1), segments(r.Path))
	if r.Method == "OPTIONS" || errors.Is(err, ErrPath) {
		matched = nil
	}
	if matched != nil && matched.list != "" && !strings.HasPrefix(string(top[matched.list]), "[") {
		t.Fatalf("%s %q: %s: no list %q", r.Method, r.Path, got.Body, matched.list)
	}
	return got
}

func smallService(t testing.TB) *Service {
	t.Helper()
	s, _ := newService(t, newSmallModels(t), Options{})
	return s
}
