package api_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/api/apitest"
	"github.com/sightline-dev/sightline/core/kv/memkv"
)

// TestLimitsOfInputs checks the limits of a call. A call above a limit writes nothing.
func TestLimitsOfInputs(t *testing.T) {
	w := apitest.NewWorld(t, memkv.New(), apitest.Tiny(t), nil, nil)
	call := func(method, path, body string) (api.Response, map[string]any) {
		t.Helper()
		got := w.Serve(t, api.Request{Method: method, Path: path, Body: []byte(body)})
		var out map[string]any
		if err := json.Unmarshal(got.Body, &out); err != nil {
			t.Fatal(err)
		}
		return got, out
	}
	list := func(n int, item string) string {
		items := make([]string, n)
		for i := range items {
			items[i] = strings.ReplaceAll(item, "#", fmt.Sprint(i))
		}
		return `{"inputs":[` + strings.Join(items, ",") + `]}`
	}
	counted := func(want float64) {
		t.Helper()
		_, out := call("GET", "/v2/inputs/status", "")
		if n := out["counts"].(map[string]any)["to_process"]; n != want {
			t.Errorf("%v inputs, want %v", n, want)
		}
	}
	const item = `{"id":"#","data":{"image":{"url":"http://pictures.test/#"}}}`
	for method, item := range map[string]string{"POST": item, "PATCH": `{"id":"0","data":{"concepts":[{"id":"#"}]}}`} {
		got, out := call(method, "/v2/inputs", list(129, item))
		if got.Status != 400 || out["status"].(map[string]any)["code"] != 39999.0 || fmt.Sprint(out["inputs"]) != "[]" {
			t.Errorf("%s of 129 = %d %s", method, got.Status, got.Body)
		}
		counted(0)
	}
	if got, out := call("POST", "/v2/inputs", list(128, item)); got.Status != 200 || len(out["inputs"].([]any)) != 128 {
		t.Errorf("POST of 128 = %d", got.Status)
	}
	counted(128)
	if got, _ := call("PATCH", "/v2/inputs", list(128, `{"id":"#","data":{"concepts":[{"id":"x"}]}}`)); got.Status != 200 {
		t.Errorf("PATCH of 128 = %d %s", got.Status, got.Body)
	}
	for query, want := range map[string]int{"": 20, "per_page=5000": 128, "per_page=7": 7, "per_page=0": 20, "page=2&per_page=100": 28} {
		got := w.Serve(t, api.Request{Method: "GET", Path: "/v2/inputs", Query: query})
		if n := strings.Count(string(got.Body), `"created_at"`); n != want {
			t.Errorf("GET ?%s has %d inputs, want %d", query, n, want)
		}
	}
	big := strings.Repeat("x", 64<<10)
	for name, data := range map[string]string{
		"metadata":             `"metadata":"` + big + `"`,
		"members of metadata":  `"metadata":[` + strings.Repeat("1,", 2000) + `1]`,
		"labels":               `"concepts":[` + strings.Repeat(`{"id":"x"},`, 1000) + `{"id":"x"}]`,
		"bytes of a concept":   `"concepts":[{"id":"` + big[:129] + `"}]`,
		"bytes of the address": `"image":{"url":"http://pictures.test/` + big[:8192] + `"}`,
	} {
		body := `{"inputs":[{"id":"big","data":{"image":{"url":"http://pictures.test/big"},` + data + `}}]}`
		if strings.HasPrefix(data, `"image"`) {
			body = `{"inputs":[{"id":"big","data":{` + data + `}}]}`
		}
		if got, _ := call("POST", "/v2/inputs", body); got.Status != 400 || len(got.Body) > 10_000 {
			t.Errorf("too much of %s = %d, %d bytes", name, got.Status, len(got.Body))
		}
	}
	// The limits also apply to the result of a patch.
	half := big[:40<<10]
	for i, want := range []int{200, 400, 200} {
		body := fmt.Sprintf(`{"inputs":[{"id":"0","data":{"metadata":{"k%d":"%s"}}}]}`, i, half)
		if i == 2 {
			body = `{"inputs":[{"id":"0","data":{"metadata":{"k2":"small"}}}]}`
		}
		if got, _ := call("PATCH", "/v2/inputs", body); got.Status != want {
			t.Errorf("metadata patch %d = %d, want %d", i, got.Status, want)
		}
	}
	var many []string
	for i := range 600 {
		many = append(many, fmt.Sprintf(`{"id":"label %d"}`, i))
	}
	body := func(ids []string) string {
		return `{"inputs":[{"id":"0","data":{"concepts":[` + strings.Join(ids, ",") + `]}}]}`
	}
	if got, _ := call("PATCH", "/v2/inputs", body(many)); got.Status != 200 {
		t.Errorf("600 labels = %d", got.Status)
	}
	for i := range many {
		many[i] = strings.Replace(many[i], "label", "more", 1)
	}
	if got, _ := call("PATCH", "/v2/inputs", body(many)); got.Status != 400 {
		t.Errorf("600 labels more = %d", got.Status)
	}
}

// TestDeletedWhileAnalysed deletes inputs between the start and the end of a call. The picture that the call needs stays stored.
func TestDeletedWhileAnalysed(t *testing.T) {
	w := apitest.NewWorld(t, memkv.New(), apitest.Tiny(t), nil, nil)
	const body = `{"inputs":[{"id":"#","data":{"image":{"base64":"R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7"}}}]}`
	post := func(id string) api.Request {
		return api.Request{Method: "POST", Path: "/v2/inputs", Authorization: "Key " + w.Key, Body: []byte(strings.ReplaceAll(body, "#", id))}
	}
	for i, meanwhile := range []func(){
		func() {
			w.Serve(t, api.Request{Method: "DELETE", Path: "/v2/inputs", Body: []byte(`{"delete_all":true}`)})
		},
		func() { w.Serve(t, api.Request{Method: "DELETE", Path: "/v2/inputs/before"}) },
	} {
		w.Serve(t, post("before"))
		r := post(fmt.Sprint(i))
		call := w.Engine.Begin(t.Context(), &r)
		result := w.RunJob(call.Jobs()[0])
		meanwhile()
		w.Step(t, 0)
		if ok, err := w.Blobs.Has(t.Context(), result.Blob); !ok || err != nil {
			t.Errorf("the picture of a call under way has gone: %v", err)
		}
		call.Resume([]api.Result{result})
		if got := call.Response(); got.Status != 200 {
			t.Errorf("%d %s", got.Status, got.Body)
		}
		w.Step(t, 0)
		if ok, err := w.Blobs.Has(t.Context(), result.Blob); !ok || err != nil {
			t.Errorf("the picture of an input has gone: %v", err)
		}
	}
}

// TestAdditionWithUnusableResultFails resumes calls with results that they cannot use. The calls fail and write nothing.
func TestAdditionWithUnusableResultFails(t *testing.T) {
	w := apitest.NewWorld(t, memkv.New(), apitest.Tiny(t), nil, nil)
	r := api.Request{Method: "POST", Path: "/v2/inputs", Authorization: "Key " + w.Key, Body: []byte(
		`{"inputs":[{"data":{"image":{"base64":"R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7"}}}]}`)}
	good := w.RunJob(w.Engine.Begin(t.Context(), &r).Jobs()[0])
	bare, other := good, good
	bare.Analysis.Has = 0
	other.Blob[0]++
	for i, results := range [][]api.Result{nil, {{}}, {bare}, {other}, {{Err: api.ErrBusy}}, {{Err: api.ErrInternal}}} {
		call := w.Engine.Begin(t.Context(), &r)
		call.Resume(results)
		if got := call.Response(); got.Status < 500 || !strings.Contains(string(got.Body), `"inputs":[]`) {
			t.Errorf("results %d: %d %s", i, got.Status, got.Body)
		}
	}
	got := w.Serve(t, api.Request{Method: "GET", Path: "/v2/inputs/status"})
	if !strings.Contains(string(got.Body), `"processed":0,"to_process":0,"errors":0`) {
		t.Errorf("%s", got.Body)
	}
	search := api.Request{Method: "POST", Path: "/v2/searches", Authorization: "Key " + w.Key, Body: []byte(
		`{"query":{"ands":[{"output":{"input":{"data":{"image":{"url":"http://pictures.test/red.png"}}}}}]}}`)}
	for i, results := range [][]api.Result{nil, {{}}, {{Err: api.ErrTimeout}}} {
		call := w.Engine.Begin(t.Context(), &search)
		call.Resume(results)
		if got := call.Response(); got.Status < 500 || !strings.Contains(string(got.Body), `"hits":[]`) {
			t.Errorf("results %d of a search: %d %s", i, got.Status, got.Body)
		}
	}
}
