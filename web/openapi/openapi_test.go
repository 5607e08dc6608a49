package openapi_test

import (
	"bytes"
	"compress/gzip"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/auth"
	"github.com/sightline-dev/sightline/web/openapi"
	"github.com/sightline-dev/sightline/web/openapi/describe"
)

// TestGenerated checks that openapi.json is the current output of go generate.
func TestGenerated(t *testing.T) {
	want, err := describe.Document()
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(openapi.Document(), want) {
		t.Error("openapi.json is out of date: run go generate ./web/openapi")
	}
}

// load parses the document as a client does.
func load(t testing.TB) *openapi3.T {
	t.Helper()
	doc, err := openapi3.NewLoader().LoadFromData(openapi.Document())
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

func TestDocumentIsValid(t *testing.T) {
	doc := load(t)
	if !doc.IsOpenAPI31OrLater() {
		t.Errorf("version %q, want 3.1", doc.OpenAPI)
	}
	if err := doc.Validate(t.Context(), openapi3.EnableExamplesValidation()); err != nil {
		t.Error(err)
	}
}

// TestEndpoints checks that each operation of the document is in the table of endpoints and each endpoint in the document, with the
// same list in error answers and the same scopes.
func TestEndpoints(t *testing.T) {
	doc := load(t)
	documented := map[string]*openapi3.Operation{}
	for path, item := range doc.Paths.Map() {
		for method, op := range item.Operations() {
			documented[method+" "+path] = op
		}
	}
	errorLists := doc.Components.Schemas["Error"].Value.Properties
	for _, e := range api.Endpoints() {
		op := documented[e.Method+" "+e.Path]
		if op == nil {
			t.Errorf("%s %s: not in the document", e.Method, e.Path)
			continue
		}
		delete(documented, e.Method+" "+e.Path)
		if e.List != "" && errorLists[e.List] == nil {
			t.Errorf("%s %s: the schema Error has no list %s", e.Method, e.Path, e.List)
		}
		if e.List != "" && !strings.Contains(answerSchema(t, op), `"`+e.List+`"`) {
			t.Errorf("%s: its answer has no list %s", op.OperationID, e.List)
		}
		for _, scope := range slices.Concat(e.Required, e.Redacted, e.Patch) {
			if name := strings.Replace(scope, "_", ":", 1); !strings.Contains(op.Description, "`"+name+"`") {
				t.Errorf("%s: %q does not speak of %s", op.OperationID, op.Description, name)
			}
		}
		checkSecurity(t, op, &e)
	}
	for name, op := range documented {
		if !protocol(op) {
			t.Errorf("%s: in the document, but no endpoint", name)
		}
	}
}

// protocol reports whether an operation belongs to the sync protocol. Other packages have its handlers and tests.
func protocol(op *openapi3.Operation) bool { return slices.Contains(op.Tags, "Sync protocol") }

// ofCopy reports whether only a replica has the operation.
func ofCopy(op *openapi3.Operation) bool { return slices.Contains(op.Tags, "Replicas") }

// answerSchema returns the schema of a successful answer as JSON, or "" if the answer is not JSON.
func answerSchema(t *testing.T, op *openapi3.Operation) string {
	t.Helper()
	media := op.Responses.Status(200).Value.Content["application/json"]
	if media == nil {
		return ""
	}
	text, err := media.Schema.Value.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func checkSecurity(t *testing.T, op *openapi3.Operation, e *api.Endpoint) {
	t.Helper()
	want := map[auth.Credential][]string{
		auth.OfApplication: {"key", "session", "token"}, auth.OfClient: {"client"}, auth.OfAccount: {"session"}, auth.OfNobody: nil,
	}[e.Credential]
	var got []string
	for _, way := range *op.Security {
		for name, scopes := range way {
			got = append(got, name)
			if len(scopes) != len(e.Required) {
				t.Errorf("%s: %s with %v, want %v", op.OperationID, name, scopes, e.Required)
			}
		}
	}
	if slices.Sort(got); !slices.Equal(got, want) {
		t.Errorf("%s is asked with %v, want %v", op.OperationID, got, want)
	}
}

func TestServeZipped(t *testing.T) {
	for accept, want := range map[string]bool{
		"": false, "br": false, "gzip": true, "br, gzip;q=0.5": true, "gzip;q=0": false, "gzip; q=1.0, *": true, "xgzip": false,
	} {
		got := openapi.Serve(&api.Request{Method: "GET", Path: openapi.Path, Header: func(name string) string {
			if name == "Accept-Encoding" {
				return accept
			}
			return ""
		}})
		body := got.Body
		zipped := slices.Contains(got.Header, api.Field{Name: "Content-Encoding", Value: "gzip"})
		if zipped {
			r, err := gzip.NewReader(bytes.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			if body, err = io.ReadAll(r); err != nil {
				t.Fatal(err)
			}
		}
		if zipped != want || !bytes.Equal(body, openapi.Document()) {
			t.Errorf("%q: zipped is %t with %d bytes, want %t with %d", accept, zipped, len(body), want, len(openapi.Document()))
		}
	}
}

func TestServe(t *testing.T) {
	header := func(name, value string) func(string) string {
		return func(key string) string {
			if strings.EqualFold(key, name) {
				return value
			}
			return ""
		}
	}
	tag := openapi.ETag()
	tests := []struct {
		name, method string
		header       func(string) string
		status       int
		body         string // text that the body contains; empty: the body is empty
	}{
		{"plain", "GET", nil, 200, `"openapi": "3.1.0"`},
		{"head", "HEAD", header("Accept", "*/*"), 200, `"openapi": "3.1.0"`},
		{"another tag", "GET", header("If-None-Match", `"abc"`), 200, `"openapi": "3.1.0"`},
		{"part of the tag", "GET", header("If-None-Match", tag[:9]+`"`), 200, `"openapi": "3.1.0"`},
		{"same tag", "GET", header("If-None-Match", tag), 304, ""},
		{"among others", "HEAD", header("If-None-Match", `"abc", `+tag), 304, ""},
		{"weak", "GET", header("If-None-Match", "W/"+tag), 304, ""},
		{"any", "GET", header("If-None-Match", "*"), 304, ""},
		{"preflight", "OPTIONS", nil, 200, `"code":10000`},
		{"write", "POST", nil, 405, `"code":11103`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := openapi.Serve(&api.Request{Method: tt.method, Path: openapi.Path, Header: tt.header})
			if got.Status != tt.status || !strings.Contains(string(got.Body), tt.body) || (tt.body == "") != (len(got.Body) == 0) {
				t.Errorf("%d %.200s, want %d with %q", got.Status, got.Body, tt.status, tt.body)
			}
			fields := map[string]string{}
			for _, f := range got.Header {
				fields[f.Name] = f.Value
			}
			if fields["Access-Control-Allow-Origin"] != "*" {
				t.Errorf("header %v, want one that lets every page in", fields)
			}
			if tt.status == 200 && tt.method != "OPTIONS" && (fields["ETag"] != tag || got.ContentType != "application/json") {
				t.Errorf("header %v of %s, want the tag %s of JSON", fields, got.ContentType, tag)
			}
		})
	}
}
