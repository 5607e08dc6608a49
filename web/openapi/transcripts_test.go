package openapi_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"

	"github.com/sightline-dev/sightline/core/api/apitest"
	"github.com/sightline-dev/sightline/core/testkit"
)

// exchange is an exchange of a transcript. source has its file and number.
type exchange struct {
	source string
	apitest.Exchange
}

// transcripts reads every exchange of core/api's transcripts.
func transcripts(t testing.TB) []exchange {
	t.Helper()
	var all []exchange
	for _, pattern := range []string{"*.txt", "released/*.txt"} {
		names, err := filepath.Glob(filepath.Join(testkit.Root(t), "core", "api", "testdata", pattern))
		if err != nil || len(names) == 0 {
			t.Fatalf("%v: no transcripts at %s", err, pattern)
		}
		for _, name := range names {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			tr, err := apitest.Parse(string(text))
			if err != nil {
				t.Fatal(err)
			}
			for i, e := range tr.Exchanges {
				source := fmt.Sprintf("%s, exchange %d: %s %s", filepath.Base(name), i+1, e.Request.Method, e.Request.Path)
				all = append(all, exchange{source, e})
			}
		}
	}
	return all
}

// odd lists requests that the service accepts for old clients but the document does not describe, by file and number.
var odd = map[string]string{
	"bodies.txt, exchange 2": "[] as the whole body",
	"bodies.txt, exchange 3": "[] in place of an object",
}

// TestTranscripts validates every exchange of the transcripts against the document: each answer, and each request that the service
// accepted completely.
func TestTranscripts(t *testing.T) {
	doc := load(t)
	oddities := maps.Clone(odd)
	answered := map[string]bool{}
	for _, e := range transcripts(t) {
		op, input := find(t, doc, &e)
		if op == nil {
			checkError(t, doc, &e)
			continue
		}
		if err := openapi3filter.ValidateResponse(t.Context(), answerOf(input, &e)); err != nil {
			t.Errorf("%s: answer %d: %s", e.source, e.Status, brief(err))
		}
		if e.Status != 200 { // all or part of the request was refused
			continue
		}
		answered[op.OperationID] = true
		err := openapi3filter.ValidateRequest(t.Context(), input)
		key, _, _ := strings.Cut(e.source, ":")
		switch _, known := odd[key]; {
		case err != nil && !known:
			t.Errorf("%s: request %s: %s", e.source, e.Request.Body, brief(err))
		case err == nil && known:
			t.Errorf("%s: is not odd: the document describes it", e.source)
		}
		delete(oddities, key)
	}
	for key := range oddities {
		t.Errorf("%s: no such exchange, or it was refused", key)
	}
	// Transcripts are text and contain no JPEG, and the hash of a source depends on its picture. TestExamples makes these calls.
	answered["readThumbnail"], answered["readRendition"], answered["readSource"] = true, true, true
	for _, path := range doc.Paths.Map() {
		for _, op := range path.Operations() {
			if !answered[op.OperationID] && !protocol(op) && !ofCopy(op) { // TestCopies makes these calls
				t.Errorf("%s: no transcript has it answered well", op.OperationID)
			}
		}
	}
}

// brief returns the text of an error without the schemas that it quotes.
func brief(err error) string {
	text, _, _ := strings.Cut(err.Error(), "\nSchema:")
	return text
}

// find returns the operation of an exchange and its request for validation. It returns nil if the document has no such path or method.
// First it reduces the path to the form in the document.
func find(t testing.TB, doc *openapi3.T, e *exchange) (*openapi3.Operation, *openapi3filter.RequestValidationInput) {
	t.Helper()
	parts := split(e.Request.Path)
	if parts == nil {
		return nil, nil
	}
	path, params := match(doc, parts)
	if path == "" {
		return nil, nil
	}
	item := doc.Paths.Value(path)
	op := item.GetOperation(e.Request.Method)
	if op == nil {
		return nil, nil
	}
	r, err := http.NewRequest(e.Request.Method, "http://localhost/v2"+path+"?"+e.Request.Query, bytes.NewReader(plain(e.Request.Body)))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	return op, &openapi3filter.RequestValidationInput{
		Request: r, PathParams: params,
		Route: &routers.Route{Spec: doc, Path: path, PathItem: item, Method: e.Request.Method, Operation: op},
		Options: &openapi3filter.Options{
			IncludeResponseStatus: true, AuthenticationFunc: openapi3filter.NoopAuthenticationFunc, MultiError: true,
		},
	}
}

// split returns the parts of a path as the service reads it: without empty parts, /v2 and the application's long prefix.
func split(path string) []string {
	var parts []string
	for part := range strings.SplitSeq(path, "/") {
		if part != "" {
			parts = append(parts, part)
		}
	}
	if len(parts) == 0 || parts[0] != "v2" {
		return nil
	}
	if parts = parts[1:]; len(parts) > 4 && parts[0] == "users" && parts[2] == "apps" {
		parts = parts[4:]
	}
	return parts
}

// match returns the document's path that fits parts, with the ids in it. It prefers fixed parts to ids.
func match(doc *openapi3.T, parts []string) (path string, ids map[string]string) {
	best := -1
	for candidate := range doc.Paths.Map() {
		want := strings.Split(candidate[1:], "/")
		if len(want) != len(parts) {
			continue
		}
		fixed, found := 0, map[string]string{}
		for i, w := range want {
			switch {
			case w[0] == '{':
				id, err := url.PathUnescape(parts[i])
				if err != nil {
					fixed = -100
				}
				found[w[1:len(w)-1]] = id
			case w == parts[i], w == "versions" && parts[i] == "version":
				fixed++
			default:
				fixed = -100
			}
		}
		if fixed >= 0 && fixed > best {
			best, path, ids = fixed, candidate, found
		}
	}
	return path, ids
}

// plain returns a body in the form that the document describes: it removes members that are null, except in metadata.
func plain(body []byte) []byte {
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil {
		return body
	}
	var strip func(any) any
	strip = func(v any) any {
		switch v := v.(type) {
		case map[string]any:
			for name, m := range v {
				if m == nil {
					delete(v, name)
				} else if name != "metadata" {
					v[name] = strip(m)
				}
			}
		case []any:
			for i := range v {
				v[i] = strip(v[i])
			}
		}
		return v
	}
	if v = strip(v); v == nil {
		return nil
	}
	text, err := json.Marshal(v)
	if err != nil {
		return body
	}
	return text
}

// answerOf returns the answer of an exchange for validation.
func answerOf(input *openapi3filter.RequestValidationInput, e *exchange) *openapi3filter.ResponseValidationInput {
	contentType := "application/json; charset=UTF-8"
	if !strings.HasPrefix(e.Body, "{") {
		contentType = "image/jpeg"
	}
	header := http.Header{"Content-Type": {contentType}}
	for line := range strings.Lines(e.Header) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		header.Set(name, value)
	}
	return &openapi3filter.ResponseValidationInput{
		RequestValidationInput: input, Options: input.Options, Status: e.Status,
		Header: header, Body: io.NopCloser(strings.NewReader(e.Body)),
	}
}

// checkError checks an answer to a request without an operation in the document: it must be 200 to OPTIONS, or an error.
func checkError(t *testing.T, doc *openapi3.T, e *exchange) {
	t.Helper()
	name := "Error"
	switch {
	case e.Request.Method == "OPTIONS" && e.Status == 200:
		name = "Done"
	case e.Status != 404 && e.Status != 405:
		t.Errorf("%s: %d, but the document has no such operation", e.source, e.Status)
	}
	var v any
	if err := json.Unmarshal([]byte(e.Body), &v); err != nil {
		t.Errorf("%s: answer %q: %v", e.source, e.Body, err)
		return
	}
	if err := doc.Components.Schemas[name].Value.VisitJSON(v, openapi3.EnableJSONSchema2020()); err != nil {
		t.Errorf("%s: %v", e.source, err)
	}
}

// TestExtraMemberIsRefused adds a member to each object of one successful answer of each operation. The document must refuse it everywhere
// except in metadata and hyper-parameters, which callers define.
func TestExtraMemberIsRefused(t *testing.T) {
	doc := load(t)
	seen := map[string]bool{}
	tried := 0
	for _, e := range transcripts(t) {
		op, input := find(t, doc, &e)
		if op == nil || e.Status != 200 || seen[op.OperationID] {
			continue
		}
		seen[op.OperationID] = true
		schema := op.Responses.Status(200).Value.Content["application/json"].Schema.Value
		var answer any
		if err := json.Unmarshal([]byte(e.Body), &answer); err != nil {
			t.Fatal(err)
		}
		objects(answer, "", func(path string, o map[string]any) {
			o["surprise"] = 1
			if err := schema.VisitJSON(answer, openapi3.EnableJSONSchema2020()); err == nil {
				t.Errorf("%s %s: one more member%s is let in", input.Request.Method, input.Route.Path, path)
			}
			delete(o, "surprise")
			tried++
		})
	}
	if tried < 300 {
		t.Errorf("only %d objects in all answers", tried)
	}
}

// objects calls f with every object within v, except those of metadata and hyper-parameters.
func objects(v any, path string, f func(path string, o map[string]any)) {
	switch v := v.(type) {
	case map[string]any:
		f(path, v)
		for _, name := range slices.Sorted(maps.Keys(v)) {
			if name != "metadata" && name != "hyper_params" {
				objects(v[name], path+"."+name, f)
			}
		}
	case []any:
		for i := range v[:min(len(v), 3)] {
			objects(v[i], fmt.Sprintf("%s[%d]", path, i), f)
		}
	}
}

// TestSchemasAreClosed checks that the schemas of answers are closed: each object in them lists its members and allows no others.
func TestSchemasAreClosed(t *testing.T) {
	doc := load(t)
	seen := map[*openapi3.Schema]bool{}
	var visit func(path string, s *openapi3.SchemaRef)
	visit = func(path string, s *openapi3.SchemaRef) {
		if s == nil || seen[s.Value] {
			return
		}
		seen[s.Value] = true
		if closed := s.Value.AdditionalProperties.Has; s.Value.Type.Is("object") && (closed == nil || *closed) {
			t.Errorf("%s: other members are let in", path)
		}
		for _, name := range slices.Sorted(maps.Keys(s.Value.Properties)) {
			visit(path+"."+name, s.Value.Properties[name])
		}
		visit(path+"[]", s.Value.Items)
		for _, s := range slices.Concat(s.Value.AnyOf, s.Value.AllOf, s.Value.OneOf) {
			visit(path, s)
		}
	}
	for path, item := range doc.Paths.Map() {
		for method, op := range item.Operations() {
			for status, r := range op.Responses.Map() {
				for _, media := range r.Value.Content {
					visit(fmt.Sprintf("%s %s %s", method, path, status), media.Schema)
				}
			}
		}
	}
}
