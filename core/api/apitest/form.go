package apitest

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/sightline-dev/sightline/core/api/call"
)

// Form is a form of answers about public models and concepts, and the way in which a client gets it.
type Form struct {
	Setting string // public-app-id of transcripts that do not set it; empty: by the client
	Client  string // X-Clarifai-Client of requests that do not have it
}

// forms are the forms of answers. The transcripts show "auto".
var forms = map[string]Form{
	"auto":         {},
	"auto, client": {Client: "python:2.4.0"},
	"main":         {Setting: call.MainAppID},
	"null, client": {Setting: call.NullAppID, Client: "python:2.4.0"},
}

// RunForms is [Run] in each form.
func RunForms(t *testing.T, h Host) {
	t.Helper()
	for _, name := range slices.Sorted(maps.Keys(forms)) {
		t.Run(name, func(t *testing.T) {
			h.Form = forms[name]
			Run(t, h)
		})
	}
}

// set changes a transcript to the form: its settings, its requests and its expected answers.
func (f Form) set(tr *Transcript) {
	if _, set := tr.Settings["public-app-id"]; !set {
		tr.Settings["public-app-id"] = f.Setting
	}
	for i := range tr.Exchanges {
		e := &tr.Exchanges[i]
		if e.Request.Client == "" {
			e.Request.Client = f.Client
		}
		if form := tr.Settings["public-app-id"]; form == call.MainAppID || form == "" && e.Request.Client != "" {
			e.Body = InMain(e.Body)
		}
	}
}

var updated = regexp.MustCompile(`"updated_at":"[^"]*",`)

// InMain returns the answer of a transcript in the form in which the app_id of public models and concepts is "main".
func InMain(body string) string {
	return updated.ReplaceAllString(strings.ReplaceAll(body, `"app_id":null`, `"app_id":"main"`), "")
}
