package openapi_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/api/apitest"
	"github.com/sightline-dev/sightline/web/openapi/describe"
)

// examplesOf returns the names of the examples of an operation with a body.
func examplesOf(op *openapi3.Operation, body string) (names []string) {
	if op.RequestBody == nil {
		return []string{""}
	}
	for name, example := range op.RequestBody.Value.Content["application/json"].Examples {
		if text, err := json.Marshal(example.Value.Value); err == nil && string(text) == body {
			names = append(names, name)
		}
	}
	return names
}

// TestCopies checks the answers of a replica about its own sync status against the document. It also checks the answers of an application
// that is not a replica.
func TestCopies(t *testing.T) {
	doc := load(t)
	c := apitest.NewReplica(t, apitest.Tiny(t), map[string]string{"owner": "anna"})
	c.SyncStatus.Contact, c.SyncStatus.Name, c.SyncStatus.Kind, c.SyncStatus.KeysAsOf = c.Now, "Cabin", "edge", c.Now
	answered := map[string]bool{}
	seen := map[string]describe.Observation{}
	ask := func(w *apitest.World, want int, call, body string) string {
		t.Helper()
		method, path, _ := strings.Cut(call, " ")
		e := exchange{source: call}
		e.Request = api.Request{Method: method, Path: "/v2" + path, Body: []byte(body)}
		got := w.Serve(t, e.Request)
		op, input := find(t, doc, &e)
		if got.Status != want {
			t.Fatalf("%s: %d %s", call, got.Status, got.Body)
		}
		if err := openapi3filter.ValidateResponse(t.Context(), responseOf(input, &got)); err != nil {
			t.Errorf("%s: %s\n%s", call, got.Body, brief(err))
		}
		if want == 200 && ofCopy(op) {
			answered[op.OperationID] = true
			for _, name := range examplesOf(op, body) {
				note(t, seen, op.OperationID, name, got.Body)
			}
		}
		return string(got.Body)
	}
	ask(c.Origin, 200, "POST /inputs", `{"inputs":[{"id":"pond","data":{"image":{"url":"http://pictures.test/red.png"}}}]}`)
	c.Pull(t)
	ask(c.World, 200, "GET /sync/status", "")
	ask(c.World, 200, "PATCH /inputs", `{"action":"merge","inputs":[{"id":"pond","data":{"concepts":[{"id":"water"}],"metadata":{"a":1},"geo":{"geo_point":{"longitude":1,"latitude":2}}}}]}`)
	ask(c.World, 200, "POST /inputs", `{"inputs":[{"id":"lake","data":{"image":{"url":"http://pictures.test/blue.png","crop":[0,0,1,0.5]},"metadata":{"b":2},"concepts":[{"id":"water","value":0}]}}]}`)
	ask(c.World, 200, "POST /models", `{"model":{"id":"way","output_info":{"data":{"concepts":[{"id":"water"}]}}}}`)
	ask(c.World, 200, "POST /workflows", `{"workflows":[{"id":"flow","nodes":[{"model":{"id":"aaa03c23b3724a16a56b629203edc62c"}}]}]}`)
	ask(c.World, 200, "DELETE /inputs/pond", "")
	ask(c.World, 200, "GET /sync/devices", "")
	ask(c.World, 200, "GET /sync/history", "")
	if outbox := ask(c.World, 200, "GET /sync/outbox", ""); strings.Count(outbox, `"queued"`) < 7 {
		t.Errorf("outbox: %s", outbox)
	}
	ask(c.Origin, 200, "DELETE /inputs", `{"delete_all":true}`)
	ask(c.Origin, 200, "POST /models", `{"model":{"id":"way"}}`)
	c.Push(t)
	c.Pull(t)
	ask(c.World, 200, "GET /sync/status", "")
	conflicts := ask(c.World, 200, "GET /sync/conflicts", "")
	_, id, _ := strings.Cut(conflicts, `"conflicts":[{"id":"`)
	id, _, found := strings.Cut(id, `"`)
	if !found {
		t.Fatalf("conflicts: %s", conflicts)
	}
	ask(c.World, 200, "DELETE /sync/conflicts/"+id, "")
	ask(c.Origin, 200, "POST /inputs", `{"inputs":[{"id":"sea","data":{"image":{"url":"http://pictures.test/red.png"}}}]}`)
	c.Pull(t)
	for w, value := range map[*apitest.World]string{c.Origin: "1", c.World: "0"} {
		ask(w, 200, "PATCH /inputs", `{"action":"merge","inputs":[{"id":"sea","data":{"concepts":[{"id":"water","value":`+value+`}]}}]}`)
	}
	c.Push(t)
	c.Pull(t)
	_, id, found = strings.Cut(ask(c.Origin, 200, "GET /sync/conflicts", ""), `"conflicts":[{"id":"`)
	if id, _, _ = strings.Cut(id, `"`); !found {
		t.Fatal("the origin lists no contradiction")
	}
	ask(c.World, 200, "PATCH /sync/conflicts/"+id, `{"keep":0}`)
	ask(c.Origin, 200, "GET /sync/devices", "")
	ask(c.Origin, 200, "GET /sync/history", "")
	for _, call := range []string{"GET /sync/status", "GET /sync/outbox", "DELETE /sync/conflicts/2-1"} {
		ask(c.Origin, 404, call, "")
	}
	compareAnswers(t, seen)
	for _, path := range doc.Paths.Map() {
		for _, op := range path.Operations() {
			if ofCopy(op) && !answered[op.OperationID] {
				t.Errorf("%s: was not asked", op.OperationID)
			}
		}
	}
}
