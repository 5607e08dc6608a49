package openapi_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/api/apitest"
	"github.com/sightline-dev/sightline/core/predict"
	"github.com/sightline-dev/sightline/core/testkit"
	"github.com/sightline-dev/sightline/web"
	"github.com/sightline-dev/sightline/web/openapi/describe"
)

// pictures is the content of https://pictures.example: one photograph of a dragonfly.
type pictures struct{}

func (pictures) Open(name string) (fs.File, error) {
	if name != "dragonfly.jpg" {
		return nil, fs.ErrNotExist
	}
	return web.Samples().Open("21-dragonfly-face-on.jpg")
}

// tour lists all operations in an order in which every example works: earlier calls create what later ones need. STEP runs the
// background between calls. VERSION is the newest version of the model that the tour trains, and APP an application of the account. AS
// names the caller: the application's client, the account's session, or nobody.
var tour = []string{
	"POST /models/aaa03c23b3724a16a56b629203edc62c/outputs",
	"POST /models/aaa03c23b3724a16a56b629203edc62c/versions/aa9ca48295b37401f8af92ad1af0d91d/outputs",
	"POST /concepts", "PATCH /concepts", "GET /concepts", "GET /concepts/cold", "POST /concepts/searches", "DELETE /concepts/cold",
	"POST /inputs", "STEP 10m",
	"GET /inputs", "GET /inputs/status", "GET /inputs/dragonfly",
	"GET /inputs/dragonfly/outputs", "PATCH /inputs/dragonfly/outputs", "GET /inputs/dragonfly/thumbnail", "GET /inputs/dragonfly/rendition",
	"GET /inputs/dragonfly/source",
	"GET /inputs/dragonfly/duplicates", "GET /duplicates",
	"GET /inputs/dragonfly/history", "GET /concepts/usage", "POST /models/aaa03c23b3724a16a56b629203edc62c/activations",
	"POST /searches", "POST /searches/summary", "POST /searches/feedback",
	"PATCH /inputs", "PATCH /inputs/dragonfly/data/concepts",
	"POST /models", "GET /models/weather/training_set", "POST /models/weather/versions", "STEP 10m", "GET /models/weather/versions", "GET /models/weather/next",
	"GET /models/weather/versions/VERSION", "GET /models/weather/versions/VERSION/output_info", "GET /models/weather/versions/VERSION/inputs",
	"POST /models/weather/versions/VERSION/metrics", "GET /models/weather/versions/VERSION/metrics",
	"POST /models/weather/versions", "STEP 10m", "GET /models/weather/versions", "GET /models/weather/versions/VERSION/comparison",
	"POST /models/weather/versions/VERSION/feedback", "POST /models/weather/feedback",
	"GET /models", "GET /models/weather", "GET /models/weather/output_info", "GET /models/weather/inputs", "POST /models/searches",
	"PATCH /models", "PATCH /models/weather/output_info/data/concepts",
	"POST /workflows", "GET /workflows", "GET /public_workflows", "GET /workflows/both", "POST /workflows/both/results", "DELETE /workflows/both",
	"DELETE /models/weather/versions/VERSION", "DELETE /models/weather", "POST /models", "DELETE /models",
	"DELETE /inputs/red", "DELETE /inputs",
	"GET /scopes", "GET /myscopes", "POST /token AS client",
	"POST /login AS nobody", "GET /users/me/apps AS session", "GET /users/me/apps/APP AS session", "POST /users/me/apps AS session",
	"POST /users/me/keys AS session", "GET /users/me/keys AS session",
}

// TestExamples sends every example of a request to a server with the released models, or a request without a body if the operation takes
// none. It checks that all succeed, and that all answers match the document.
func TestExamples(t *testing.T) {
	doc := load(t)
	set, err := predict.Load(os.DirFS(filepath.Join(testkit.Root(t), "models")))
	if err != nil {
		t.Fatal(err)
	}
	serve := apitest.NewServer(t, set, pictures{}, map[string]string{"owner": "anna"})
	left := map[string]bool{}
	for path, item := range doc.Paths.Map() {
		for method, op := range item.Operations() {
			if !protocol(op) && !ofCopy(op) {
				left[method+" "+path] = true
			}
		}
	}
	known := newKnown()
	seen := map[string]describe.Observation{}
	logged := map[string]bool{} // by operation with the documented header X-Sightline-Durability: whether an answer had it
	for _, stop := range tour {
		call, credential, _ := strings.Cut(stop, " AS ")
		method, path, _ := strings.Cut(known.fill(call), " ")
		if method == "STEP" {
			serve(api.Request{Method: method, Path: path})
			continue
		}
		e := exchange{source: stop}
		e.Request = known.request(method, "/v2"+path, credential)
		op, _ := find(t, doc, &e)
		if op == nil {
			t.Errorf("%s: not in the document", stop)
			continue
		}
		template, _ := match(doc, split(e.Request.Path))
		delete(left, method+" "+template)
		for name, body := range bodies(t, op) {
			e.Request.Body = []byte(known.fill(body))
			got := serve(e.Request)
			_, input := find(t, doc, &e)
			if got.Status != 200 {
				t.Errorf("%s %s: %d %s", stop, body, got.Status, got.Body)
			}
			if err := openapi3filter.ValidateResponse(t.Context(), responseOf(input, &got)); err != nil {
				t.Errorf("%s %s: %s", stop, body, brief(err))
			}
			known.learn(t, got.Body)
			note(t, seen, op.OperationID, name, got.Body)
			if documented, hasHeader := logs(op), strings.Contains(fmt.Sprint(got.Header), "{X-Sightline-Durability origin}"); hasHeader && !documented {
				t.Errorf("%s writes, and the document does not say so", op.OperationID)
			} else if documented {
				logged[op.OperationID] = logged[op.OperationID] || hasHeader
			}
			if op.OperationID == "searchInputs" && strings.Contains(string(got.Body), `"hits":[]`) {
				t.Errorf("%s %s finds nothing", stop, body)
			}
		}
	}
	for name := range left {
		t.Errorf("%s: not part of the tour", name)
	}
	compareAnswers(t, seen)
	for name, hasHeader := range logged {
		if !hasHeader {
			t.Errorf("%s: the document says that it writes, and it does not say where", name)
		}
	}
}

// logs reports whether the document lists X-Sightline-Durability among the headers of the operation's answer.
func logs(op *openapi3.Operation) bool {
	return op.Responses.Status(200).Value.Headers["X-Sightline-Durability"] != nil
}

// bodies yields the examples of an operation's request with their names, sorted by name. If the operation takes no body, it yields one
// empty body.
func bodies(t testing.TB, op *openapi3.Operation) iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		if op.RequestBody == nil {
			yield("", "")
			return
		}
		examples := op.RequestBody.Value.Content["application/json"].Examples
		if len(examples) == 0 {
			t.Errorf("%s has no example", op.OperationID)
		}
		for _, name := range slices.Sorted(maps.Keys(examples)) {
			body, err := json.Marshal(examples[name].Value.Value)
			if err != nil {
				t.Fatal(err)
			}
			if !yield(name, string(body)) {
				return
			}
		}
	}
}

func responseOf(input *openapi3filter.RequestValidationInput, got *api.Response) *openapi3filter.ResponseValidationInput {
	header := http.Header{"Content-Type": {got.ContentType}}
	for _, f := range got.Header {
		header.Add(f.Name, f.Value)
	}
	return &openapi3filter.ResponseValidationInput{
		RequestValidationInput: input, Options: input.Options, Status: got.Status,
		Header: header, Body: io.NopCloser(strings.NewReader(string(got.Body))),
	}
}

// placeholders has values from earlier answers, by the placeholder that they replace in stops and examples.
type placeholders struct {
	words   map[string]string
	session string
}

func newKnown() *placeholders {
	return &placeholders{words: map[string]string{"https://pictures.example/": "http://pictures.test/"}}
}

func (k *placeholders) fill(text string) string {
	for word, is := range k.words {
		text = strings.ReplaceAll(text, word, is)
	}
	return text
}

// learn stores the ids of versions and applications, and the session, of an answer.
func (k *placeholders) learn(t testing.TB, body []byte) {
	t.Helper()
	type thing struct {
		ID string `json:"id"`
	}
	var answer struct {
		Versions []thing `json:"model_versions"`
		Apps     []thing `json:"apps"`
		Session  string  `json:"session_token"`
	}
	if bytes.HasPrefix(body, []byte("{")) {
		if err := json.Unmarshal(body, &answer); err != nil {
			t.Fatalf("%s: %v", body, err)
		}
	}
	if len(answer.Versions) > 0 {
		k.words["VERSION"] = answer.Versions[0].ID
	}
	if len(answer.Apps) > 0 && k.words["APP"] == "" {
		k.words["APP"] = answer.Apps[0].ID
		k.words[exampleApp] = answer.Apps[0].ID
	}
	if answer.Session != "" {
		k.session = answer.Session
	}
}

// exampleApp is the application of the examples.
const exampleApp = "00000000000000010000000000000002"

// request returns a request with the credential of that name. If the name is empty, the credential is the application's key.
func (k *placeholders) request(method, path, credential string) api.Request {
	r := api.Request{Method: method, Path: path}
	switch credential {
	case "client":
		r.Authorization = "client"
	case "nobody":
		r.Authorization = "none"
	case "session":
		r.Session = k.session
	}
	return r
}
