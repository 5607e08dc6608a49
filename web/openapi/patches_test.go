package openapi_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/api/apitest"
)

// patches has, for the path of each PATCH, a body with the required members, and the calls that show the record.
var patches = map[string]struct {
	path, body string
	records    []string
}{
	"/inputs":                          {"/inputs", `{"inputs":[{"id":"a"}]}`, []string{"/inputs/a"}},
	"/inputs/{input_id}/data/concepts": {"/inputs/a/data/concepts", `{}`, []string{"/inputs/a"}},
	"/inputs/{input_id}/outputs":       {"/inputs/a/outputs", `{"outputs":[{}]}`, []string{"/inputs/a/outputs"}},
	"/models":                          {"/models", `{"models":[{"id":"a"}]}`, []string{"/models/a", "/models/a/output_info"}},
	"/models/{model_id}/output_info/data/concepts": {
		"/models/a/output_info/data/concepts", `{"concepts":[{"id":"a"}]}`, []string{"/models/a/output_info"},
	},
	"/concepts": {"/concepts", `{"concepts":[{"id":"a","name":"a"}]}`, []string{"/concepts/a"}},
}

// newValues are values that the records do not have, by the end of the member's path. All other members get a value of their type.
var newValues = []struct {
	end   string
	value any
}{
	{"action", "no such action"},
	{"inputs[].id", "none"},
	{"models[].id", "none"},
	{"metadata", map[string]any{"shelf": 7}},
	{"hyper_parameters", `{"precision":0.8}`},
	{"hyper_params", map[string]any{"precision": 0.7}},
	{"language", "de"},
	{"concepts[].value", false},
	{"select_concepts[].id", "a"},
	{"select_concepts[].name", "b"},
}

// companions are members that a request needs in addition to a member, by its name.
var companions = map[string]map[string]any{
	"longitude": {"latitude": 1.5}, "latitude": {"longitude": 2.5}, "value": {"id": "a"},
}

// TestPatches sends each member of each PATCH with a new value. The call must change the record, or fail with details that name the member.
func TestPatches(t *testing.T) {
	doc := load(t)
	set := apitest.Tiny(t)
	for path, item := range doc.Paths.Map() {
		op := item.Patch
		if op == nil || ofCopy(op) { // TestCopies sends those of replicas
			continue
		}
		t.Run(path, func(t *testing.T) {
			p, ok := patches[path]
			if !ok {
				t.Fatal("no row in patches")
			}
			serve := apitest.NewServer(t, set, nil, map[string]string{"owner": "anna"})
			furnish(t, serve)
			record := func() (all string) {
				for _, path := range p.records {
					all += string(serve(api.Request{Method: "GET", Path: "/v2" + path}).Body)
				}
				return all
			}
			n := 0
			for _, member := range membersOf(op.RequestBody.Value.Content["application/json"].Schema.Value, "") {
				n++
				var body any
				if err := json.Unmarshal([]byte(p.body), &body); err != nil {
					t.Fatal(err)
				}
				value := newValue(member, n)
				text, err := json.Marshal(withMember(body, strings.Split(member.path, "."), value))
				if err != nil {
					t.Fatal(err)
				}
				before := record()
				got := serve(api.Request{Method: "PATCH", Path: "/v2" + p.path, Body: text})
				after := record()
				name := strings.TrimSuffix(member.path[strings.LastIndexByte(member.path, '.')+1:], "[]")
				named := slices.ContainsFunc(detailsIn(t, got.Body), func(details string) bool { return strings.Contains(details, name) })
				if before == after && !named {
					t.Errorf("%s: %s changes nothing and answers %d %s", member.path, text, got.Status, got.Body)
				}
			}
			if n == 0 {
				t.Error("the schema has no members")
			}
		})
	}
}

// schemaMember is a member of a request: its path, such as "inputs[].data.metadata", and its schema.
type schemaMember struct {
	path   string
	schema *openapi3.Schema
}

// membersOf returns the innermost members of s.
func membersOf(s *openapi3.Schema, path string) (all []schemaMember) {
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		all = append(all, membersOf(s.Properties[name].Value, strings.TrimPrefix(path+"."+name, "."))...)
	}
	for _, part := range s.AllOf {
		all = append(all, membersOf(part.Value, path)...)
	}
	if s.Items != nil {
		all = append(all, membersOf(s.Items.Value, path+"[]")...)
	}
	if len(all) == 0 {
		return []schemaMember{{path, s}}
	}
	return all
}

// newValue returns a value for a member. n distinguishes the texts and numbers of several members.
func newValue(m schemaMember, n int) any {
	for _, v := range newValues {
		if strings.HasSuffix(m.path, v.end) {
			return v.value
		}
	}
	switch {
	case m.schema.Type.Permits("boolean"):
		return true
	case m.schema.Type.Permits("number"):
		return float64(n) / 128
	case m.schema.Type.Permits("integer"):
		return n
	}
	return fmt.Sprintf("new %d", n)
}

// withMember returns v with a value at a path. It adds the missing objects and lists on the way, and the companions of the member.
func withMember(v any, path []string, value any) any {
	o, ok := v.(map[string]any)
	if !ok {
		o = map[string]any{}
	}
	name, isList := strings.CutSuffix(path[0], "[]")
	switch {
	case len(path) == 1:
		maps.Copy(o, companions[name])
		o[name] = value
	case isList:
		var first any
		if list, ok := o[name].([]any); ok && len(list) > 0 {
			first = list[0]
		}
		o[name] = []any{withMember(first, path[1:], value)}
	default:
		o[name] = withMember(o[name], path[1:], value)
	}
	return o
}

// detailsIn returns the details of all statuses of an answer.
func detailsIn(t *testing.T, answer []byte) (all []string) {
	t.Helper()
	var v any
	if err := json.Unmarshal(answer, &v); err != nil {
		t.Fatalf("%s: %v", answer, err)
	}
	objects(v, "", func(_ string, o map[string]any) {
		if details, ok := o["details"].(string); ok {
			all = append(all, details)
		}
	})
	return all
}
