package api

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/sightline-dev/sightline/core/api/call"
	"github.com/sightline-dev/sightline/core/lang"
	"github.com/sightline-dev/sightline/core/predict"
)

// TestLanguages checks how the application and the request determine the language of a model's names.
func TestLanguages(t *testing.T) {
	for _, own := range lang.Codes() {
		s, _ := newService(t, newSmallModels(t), Options{Apps: fixedApp(own)})
		for _, model := range []string{"general", "color"} {
			for _, language := range append(lang.Codes(), "", "xx", "EN", "zh-tw") {
				effective := language
				if language == "" {
					effective = own
				}
				good := lang.Valid(effective) && (model == "general" || effective == "en")
				body := `{"inputs":[{"data":{"image":{"url":"http://a/b"}}}],"model":{"output_info":{"output_config":{"language":"` + language + `"}}}}`
				got := serve(t, s, Request{Method: "POST", Path: "/v2/models/" + model + "/outputs", Body: []byte(body)}, func(j Job) Result {
					return Result{Analysis: predict.Analysis{Has: j.Want}}
				})
				code := readEnvelope(t, got).Status.Code
				if want := 21202; good != (got.Status == 200) || !good && (got.Status != 400 || code != want) {
					t.Errorf("default %s, %s asked for %q: %d %d", own, model, language, got.Status, code)
				}
				if !good && language == "" && !strings.Contains(string(got.Body), `pass \"en\"`) {
					t.Errorf("default %s, %s: %s does not say what helps", own, model, got.Body)
				}
			}
		}
	}
}

func TestOutputConfig(t *testing.T) {
	s := smallService(t)
	const both = `White Black`
	tests := []struct {
		config string
		want   string // expected names, or a status code
	}{
		{`{}`, both},
		{`null`, both},
		{`[]`, both},
		{`{"max_concepts":0}`, both},
		{`{"max_concepts":1}`, "White"},
		{`{"max_concepts":1.0,"unknown":[{}]}`, "White"},
		{`{"max_concepts":200}`, both},
		{`{"max_concepts":201}`, "21202"},
		{`{"max_concepts":-1}`, "21202"},
		{`{"max_concepts":1.5}`, "21202"},
		{`{"max_concepts":"1"}`, "21202"},
		{`{"min_value":0.25}`, both},
		{`{"min_value":0.26}`, "White"},
		{`{"min_value":0.75}`, "White"},
		{`{"min_value":1}`, ""},
		{`{"min_value":1.01}`, "21202"},
		{`{"min_value":-0.1}`, "21202"},
		{`{"min_value":"0"}`, "21202"},
		{`{"select_concepts":[{"id":"ai_white"}]}`, "White"},
		{`{"select_concepts":[{"name":"White"}]}`, "White"},
		{`{"select_concepts":[{"name":"White"},{"id":"ai_white","name":"other"}]}`, "White"},
		{`{"select_concepts":[{"name":"white"}]}`, "21202"},
		{`{"select_concepts":[{"id":"ai_WHITE"}]}`, "21202"},
		{`{"select_concepts":[{}]}`, "21202"},
		{`{"select_concepts":[{"name":"White"},{"name":"None"}]}`, "10010"},
		{`{"select_concepts":[` + strings.Repeat(`{"name":"x"},`, call.MaxSelected-1) + `{"id":"ai_white"}]}`, "10010"},
		{`{"select_concepts":[]}`, both},
		{`{"select_concepts":null}`, both},
		{`{"select_concepts":7}`, "21202"},
		{`{"select_concepts":[7]}`, "21202"},
		{`{"select_concepts":[{"id":7}]}`, "21202"},
		{`{"select_concepts":[{"name":7}]}`, "21202"},
		{`{"select_concepts":[` + strings.Repeat(`{"id":"x"},`, call.MaxSelected) + `{"id":"ai_white"}]}`, "21202"},
		{`{"language":"en"}`, both},
		{`{"language":7}`, "21202"},
		{`7`, "21202"},
		{`[7]`, "21202"},
	}
	for _, tt := range tests {
		t.Run(tt.config[:min(len(tt.config), 60)], func(t *testing.T) {
			body := `{"inputs":[{"data":{"image":{"url":"http://a/b"}}}],"model":{"output_info":{"output_config":` + tt.config + `}}}`
			got, a := predictOn(t, s, "color", body)
			if a.Status.Code != 10000 {
				if fmt.Sprint(a.Status.Code) != tt.want {
					t.Errorf("%d %s, want %s", got.Status, got.Body, tt.want)
				}
				return
			}
			var data struct {
				Colors []struct{ W3C struct{ Name string } }
			}
			if err := json.Unmarshal(a.Outputs[0].Data, &data); err != nil || data.Colors == nil {
				t.Fatalf("%s: %v", a.Outputs[0].Data, err)
			}
			names := make([]string, 0, 2)
			for _, c := range data.Colors {
				names = append(names, c.W3C.Name)
			}
			if got := strings.Join(names, " "); got != tt.want {
				t.Errorf("colors %q, want %q", got, tt.want)
			}
		})
	}
}
