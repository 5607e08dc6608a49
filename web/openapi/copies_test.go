package openapi_test

import (
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3filter"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/api/apitest"
	"github.com/sightline-dev/sightline/web/openapi/describe"
)

// TestCopies checks the answers of a replica about its own sync status against the document. It also checks the answers of an application
// that is not a replica.
func TestCopies(t *testing.T) {
	doc := load(t)
	c := apitest.NewReplica(t, apitest.Tiny(t), map[string]string{"owner": "anna"})
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
			note(t, seen, op.OperationID, "", got.Body)
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
	for _, call := range []string{"GET /sync/status", "GET /sync/outbox", "GET /sync/conflicts", "DELETE /sync/conflicts/" + id} {
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
