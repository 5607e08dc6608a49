package api_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/api/apitest"
	"github.com/sightline-dev/sightline/core/lang"
)

// modelsOfLanguages are the models of TestLanguages. Models that do not speak all languages have English only.
var modelsOfLanguages = []struct {
	id     string
	speaks bool
}{
	{"aaa03c23b3724a16a56b629203edc62c", true},  // general
	{"bd367be194cf45149e75f01d59f77ba7", false}, // food
	{"eeed0b6733a644cea07cf4c60f87ebb7", false}, // color
	{"heat", false},
}

// TestLanguages checks the answer of every model in applications of every language, if a request names no language, English, another one or
// an invalid one.
func TestLanguages(t *testing.T) {
	set := apitest.Tiny(t)
	for _, own := range lang.Codes() {
		t.Run(own, func(t *testing.T) {
			serve := apitest.NewServer(t, set, nil, map[string]string{"default-language": own})
			post := func(path, body string) api.Response {
				return serve(api.Request{Method: "POST", Path: path, Body: []byte(body)})
			}
			post("/v2/inputs", `{"inputs":[{"data":{"image":{"url":"http://pictures.test/red.png"},"concepts":[{"id":"warm"}]}}]}`)
			post("/v2/models", `{"model":{"id":"heat","output_info":{"data":{"concepts":[{"id":"warm"}]}}}}`)
			post("/v2/models/heat/versions", "")
			serve(api.Request{Method: "STEP", Path: "0s"})
			other := "fi"
			if own == other {
				other = "ja"
			}
			for _, m := range modelsOfLanguages {
				for _, langParam := range []string{"", lang.English, other, "xx"} {
					body := `{"inputs":[{"data":{"image":{"url":"http://pictures.test/red.png"}}}]`
					if langParam != "" {
						body += fmt.Sprintf(`,"model":{"output_info":{"output_config":{"language":%q}}}`, langParam)
					}
					checkLanguage(t, post("/v2/models/"+m.id+"/outputs", body+"}"), own, langParam, m.speaks)
				}
			}
		})
	}
}

// checkLanguage checks the answer to a request for the language langParam in an application with the language own.
func checkLanguage(t *testing.T, got api.Response, own, langParam string, speaks bool) {
	t.Helper()
	language := langParam
	if language == "" {
		language = own
	}
	want := 10000
	if !lang.Valid(language) || !speaks && language != lang.English {
		want = 21202
	}
	var a struct {
		Status  struct{ Code int }
		Outputs []struct {
			Data struct{ Concepts []struct{ Name string } }
		}
	}
	if err := json.Unmarshal(got.Body, &a); err != nil || a.Outputs == nil {
		t.Fatalf("%s: %v", got.Body, err)
	}
	if a.Status.Code != want || (want == 10000) != (got.Status == 200 && len(a.Outputs) == 1) {
		t.Errorf("asked for %q: %d %s, want %d", langParam, got.Status, got.Body, want)
		return
	}
	if want != 10000 || !speaks {
		return
	}
	name := "red"
	if language != lang.English {
		name += "-" + language
	}
	if concept := a.Outputs[0].Data.Concepts[0].Name; concept != name {
		t.Errorf("asked for %q: concept %q, want %q", langParam, concept, name)
	}
}
