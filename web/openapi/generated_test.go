package openapi_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/api/apitest"
	"github.com/sightline-dev/sightline/core/testkit"
)

// TestGeneratedRequests generates requests from the document, damages some of them, and sends them to a server. It checks that every
// answer matches the document, and that none is an internal error.
func TestGeneratedRequests(t *testing.T) {
	doc := load(t)
	set := apitest.Tiny(t)
	calls := 60
	if testing.Short() {
		calls = 20
	}
	for seed := range testkit.Seeds(t, 6, 200) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			g := &generator{Rand: rand.New(rand.NewPCG(seed, 5)), doc: doc}
			serve := apitest.NewServer(t, set, nil, map[string]string{"owner": "anna"})
			furnish(t, serve)
			for range calls {
				if g.IntN(10) == 0 {
					serve(api.Request{Method: "STEP", Path: time.Minute.String()})
				}
				e := exchange{}
				e.Request = g.request()
				_, input := find(t, doc, &e)
				got := serve(e.Request)
				if err := openapi3filter.ValidateResponse(t.Context(), responseOf(input, &got)); err != nil || got.Status == 500 {
					t.Errorf("%s %s?%s %s: %d %s\n%v", e.Request.Method, e.Request.Path, e.Request.Query, e.Request.Body, got.Status, got.Body, brief(err))
				}
			}
		})
	}
}

// furnish creates the records that generated requests name: inputs, a trained model, a workflow, a session.
func furnish(t *testing.T, serve apitest.Server) {
	t.Helper()
	for _, call := range []api.Request{
		{Method: "POST", Path: "/v2/login", Body: []byte(`{"email":"anna@example.com","password":"anna's password"}`)},
		{Method: "POST", Path: "/v2/inputs", Body: []byte(`{"inputs":[
			{"id":"a","data":{"image":{"url":"http://pictures.test/red.png"},"concepts":[{"id":"a"},{"id":"b","value":false}],"metadata":{"a":[1,2]}}},
			{"id":"b","data":{"image":{"url":"http://pictures.test/blue.png"},"concepts":[{"id":"b"}],"geo":{"geo_point":{"longitude":0.25,"latitude":0.5}}}},
			{"id":"the/model","data":{"image":{"url":"http://pictures.test/torn.png"}}}]}`)},
		{Method: "POST", Path: "/v2/models", Body: []byte(`{"model":{"id":"a","output_info":{"data":{"concepts":[{"id":"a"},{"id":"b"}]}}}}`)},
		{Method: "POST", Path: "/v2/models/a/versions"},
		{Method: "POST", Path: "/v2/workflows", Body: []byte(`{"workflows":[{"id":"a","nodes":[{"model":{"id":"aaa03c23b3724a16a56b629203edc62c"}}]}]}`)},
	} {
		if got := serve(call); got.Status != 200 {
			t.Fatalf("%s: %d %s", call.Path, got.Status, got.Body)
		}
	}
	serve(api.Request{Method: "STEP", Path: time.Minute.String()})
}

// generator generates requests from the document, and damages some.
type generator struct {
	*rand.Rand
	doc *openapi3.T
}

// words are the ids and names in requests. They are few, so that calls often name records of earlier calls.
var words = []string{"a", "b", "red", "ai_red", "ai_none", "red*", "the/model", "aaa03c23b3724a16a56b629203edc62c", "General", "", "searches", "é"}

func (g *generator) word() string { return words[g.IntN(len(words))] }

func (g *generator) request() api.Request {
	paths := slices.Sorted(maps.Keys(g.doc.Paths.Map()))
	path := paths[g.IntN(len(paths))]
	item := g.doc.Paths.Value(path)
	methods := slices.Sorted(maps.Keys(item.Operations()))
	method := methods[g.IntN(len(methods))]
	op := item.GetOperation(method)
	if protocol(op) {
		return g.request()
	}
	at := path
	for strings.Contains(at, "{") {
		before, rest, _ := strings.Cut(at, "{")
		_, after, _ := strings.Cut(rest, "}")
		word := g.word()
		switch before, _, _ := strings.Cut(at, "{"); {
		case before == "/users/":
			word = "me"
		case word == "":
			word = "none"
		case g.IntN(2) == 0:
			word = "a"
		}
		at = before + url.PathEscape(word) + after
	}
	r := api.Request{Method: method, Path: "/v2" + at}
	if match, _ := match(g.doc, split(r.Path)); match != path {
		return g.request() // the id makes it a request for another path
	}
	switch ways := *op.Security; {
	case len(ways) == 1 && ways[0]["client"] != nil:
		r.Authorization = "client"
	case len(ways) == 1:
		r.Session = "session-1"
	}
	if len(op.Parameters) > 0 && g.IntN(2) == 0 {
		r.Query = fmt.Sprintf("page=%d&per_page=%d", g.IntN(3), g.IntN(5))
	}
	if op.RequestBody != nil {
		v := g.value(op.RequestBody.Value.Content["application/json"].Schema.Value, 0)
		if g.IntN(4) == 0 {
			v = g.spoil(v)
		}
		r.Body, _ = json.Marshal(v) // maps, lists and scalars always encode
	}
	return r
}

// value returns a value for a schema. An object always has the required members, and sometimes the others.
func (g *generator) value(s *openapi3.Schema, depth int) any {
	if len(s.AllOf) > 0 {
		all := map[string]any{}
		for _, part := range s.AllOf {
			if o, ok := g.value(part.Value, depth).(map[string]any); ok {
				maps.Copy(all, o)
			}
		}
		return all
	}
	if len(s.Enum) > 0 {
		return s.Enum[g.IntN(len(s.Enum))]
	}
	switch {
	case s.Type.Includes("object") || s.Type == nil && len(s.Properties) > 0:
		o := map[string]any{}
		for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
			if slices.Contains(s.Required, name) || depth < 8 && g.IntN(3) > 0 {
				o[name] = g.member(name, s.Properties[name].Value, depth+1)
			}
		}
		return o
	case s.Type.Includes("array"):
		n := int(s.MinItems) + g.IntN(3)
		if s.MaxItems != nil {
			n = min(n, int(*s.MaxItems))
		}
		list := make([]any, n)
		for i := range list {
			list[i] = g.value(s.Items.Value, depth+1)
		}
		return list
	case s.Type.Includes("string"):
		return g.word()
	case s.Type.Includes("boolean"):
		return g.IntN(2) == 0
	case s.Type.Includes("integer"):
		return g.IntN(30)
	case s.Type.Includes("number"):
		return float64(g.IntN(5)) / 4
	}
	return map[string]any{g.word(): []any{g.IntN(3), g.word()}}
}

// member returns a value that suits the name of a member, such as an email address.
func (g *generator) member(name string, s *openapi3.Schema, depth int) any {
	switch name {
	case "email":
		return "anna@example.com" // the world counts no failed logins
	case "user_id":
		return "me"
	case "url":
		return "http://pictures.test/" + []string{"red.png", "half.png", "torn.png", "none.png"}[g.IntN(4)]
	case "base64":
		if g.IntN(2) == 0 {
			return apitest.Picture([]string{"blue.png", "white.png", "text.html"}[g.IntN(3)])
		}
		return ""
	case "crop":
		return []any{[]any{}, []any{0, 0, 0.5, 1}, []any{0.5, 0.5, 0.1, 1}}[g.IntN(3)]
	}
	return g.value(s, depth)
}

// spoil replaces one part of a value, mostly with an invalid one.
func (g *generator) spoil(v any) any {
	switch v := v.(type) {
	case map[string]any:
		if names := slices.Sorted(maps.Keys(v)); len(names) > 0 && g.IntN(4) > 0 {
			name := names[g.IntN(len(names))]
			v[name] = g.spoil(v[name])
			return v
		}
	case []any:
		if len(v) > 0 && g.IntN(4) > 0 {
			i := g.IntN(len(v))
			v[i] = g.spoil(v[i])
			return v
		}
	}
	others := []any{nil, true, -1, 1e300, "x", strings.Repeat("x", 2000), []any{}, []any{nil}, map[string]any{}, map[string]any{"x": nil}}
	return others[g.IntN(len(others))]
}
