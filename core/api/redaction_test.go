package api_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/auth"
)

// words returns the words of a furnished application that an answer may contain only for a key with the scope.
func words(n *tenant, scope string) []string {
	switch scope {
	case "Concepts_Get":
		return []string{conceptWord, renamedWord, `"concepts"`, `"select_concepts"`, `"edits"`}
	case "Models_Get":
		return []string{modelWord, n.version, `"model_version"`, `"models"`, "general-v1.3", "display_name", "output_config"}
	case "Inputs_Get":
		return []string{inputWord, urlWord, "pictures.test", `"test_set"`, "total_input_count"}
	}
	return nil
}

// covered has the endpoints whose answers contain data that need another scope than the required ones. Answers of other endpoints have no
// data of the scopes that may be missing.
var covered = map[string][]string{
	"POST /models/{model_id}/outputs":                       {"Models_Get"},
	"POST /models/{model_id}/versions/{version_id}/outputs": {"Models_Get"},
	"POST /inputs":                                             {"Concepts_Get"},
	"GET /inputs":                                              {"Concepts_Get"},
	"PATCH /inputs":                                            {"Concepts_Get"},
	"GET /inputs/{input_id}":                                   {"Concepts_Get"},
	"PATCH /inputs/{input_id}/data/concepts":                   {"Concepts_Get"},
	"GET /inputs/{input_id}/outputs":                           {"Models_Get"},
	"PATCH /inputs/{input_id}/outputs":                         {"Models_Get"},
	"GET /inputs/{input_id}/source":                            {"Concepts_Get"},
	"GET /inputs/{input_id}/duplicates":                        {"Concepts_Get"},
	"GET /duplicates":                                          {"Concepts_Get"},
	"GET /inputs/{input_id}/history":                           {"Concepts_Get"},
	"GET /models/{model_id}/training_set":                      {"Concepts_Get"},
	"GET /models/{model_id}/next":                              {"Concepts_Get"},
	"GET /models/{model_id}/versions/{version_id}/comparison":  {"Concepts_Get"},
	"GET /concepts/usage":                                      {"Models_Get"},
	"POST /models/searches":                                    {"Concepts_Get"},
	"GET /models":                                              {"Concepts_Get"},
	"POST /models":                                             {"Concepts_Get"},
	"PATCH /models":                                            {"Concepts_Get"},
	"GET /models/{model_id}":                                   {"Concepts_Get"},
	"GET /models/{model_id}/output_info":                       {"Concepts_Get"},
	"PATCH /models/{model_id}/output_info/data/concepts":       {"Concepts_Get"},
	"GET /models/{model_id}/inputs":                            {"Concepts_Get"},
	"POST /models/{model_id}/versions":                         {"Concepts_Get"},
	"GET /models/{model_id}/versions/{version_id}/output_info": {"Concepts_Get"},
	"GET /models/{model_id}/versions/{version_id}/inputs":      {"Concepts_Get"},
	"POST /models/{model_id}/versions/{version_id}/metrics":    {"Inputs_Get"},
	"GET /models/{model_id}/versions/{version_id}/metrics":     {"Inputs_Get"},
	"POST /searches":                                           {"Concepts_Get"},
	"POST /workflows":                                          {"Models_Get"},
	"GET /workflows":                                           {"Models_Get"},
	"GET /workflows/{workflow_id}":                             {"Models_Get"},
	"POST /workflows/{workflow_id}/results":                    {"Models_Get"},
}

// predictEndpoints has the endpoints that show concepts to every caller, because Predict permits it.
var predictEndpoints = []string{
	"POST /models/{model_id}/outputs", "POST /models/{model_id}/versions/{version_id}/outputs", "POST /workflows/{workflow_id}/results",
	"POST /models/{model_id}/activations",
}

// TestRedaction sends every endpoint its example, with keys that lack one redacting scope and with keys that have the required scopes only.
// The answer is a success without any data of the missing scope.
func TestRedaction(t *testing.T) {
	e := newEstate(t, nil)
	n := e.settle("anna", 1)
	e.furnish(n)
	e.call(n, "POST", "/v2/inputs", `{"inputs":[{"id":"twin","data":{"image":{"url":"http://pictures.test/red.png?url-word","allow_duplicate_url":true},"concepts":[{"id":"warm-word"}]}}]}`)
	e.work(0)
	number := 0
	do := func(p api.Endpoint, key string) api.Response {
		t.Helper()
		number++
		r := request(p, n, number)
		r.Authorization = key
		got := e.serve(n, r)
		if got.Status != 200 {
			t.Errorf("%s %s = %d %s", p.Method, p.Path, got.Status, got.Body)
		}
		return got
	}
	for _, p := range api.Endpoints() {
		name := p.Method + " " + p.Path
		if len(p.Redacted) == 0 || p.Method == "DELETE" {
			continue
		}
		required := auth.SetOf(p.Required)
		least := "Key " + e.NewKey(t, n.Tenant, required)
		for _, scope := range p.Redacted {
			one := auth.SetOf([]string{scope})
			all, without, alone := do(p, "Key "+n.Key), do(p, "Key "+e.NewKey(t, n.Tenant, auth.All&^one)), do(p, least)
			visible := false
			for _, word := range words(n, scope) {
				if slices.Contains(predictEndpoints, name) && scope == "Concepts_Get" {
					break
				}
				visible = visible || bytes.Contains(all.Body, []byte(word))
				for _, got := range []api.Response{without, alone} {
					if bytes.Contains(got.Body, []byte(word)) {
						t.Errorf("%s without %s shows %s: %s", name, scope, word, got.Body)
					}
				}
			}
			if want := slices.Contains(covered[name], scope); visible != want {
				t.Errorf("%s with %s shows what it covers: %v, want %v: %s", name, scope, visible, want, all.Body)
			}
		}
	}
	for name := range covered {
		method, path, _ := strings.Cut(name, " ")
		if !slices.ContainsFunc(api.Endpoints(), func(p api.Endpoint) bool { return p.Method == method && p.Path == path }) {
			t.Errorf("%s is no endpoint", name)
		}
	}
	t.Logf("%d answers", number)
}
