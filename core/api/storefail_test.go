package api_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/api/apitest"
	"github.com/sightline-dev/sightline/core/kv/kvtest"
	"github.com/sightline-dev/sightline/core/kv/memkv"
)

// TestStoreFails: if any read of the store fails, a call on models returns an internal error without the reason. Once the store works
// again, the call is answered as before.
func TestStoreFails(t *testing.T) {
	store := kvtest.NewFailing(memkv.New())
	w := apitest.NewWorld(t, store, apitest.Tiny(t), nil, map[string]string{})
	do := func(method, path, body string) api.Response {
		at, query, _ := strings.Cut(path, "?")
		return w.Serve(t, api.Request{Method: method, Path: at, Query: query, Body: []byte(body)})
	}
	do("POST", "/v2/inputs", `{"inputs":[{"id":"r","data":{"image":{"url":"http://pictures.test/red.png"},"concepts":[{"id":"warm"}]}},`+
		`{"id":"h","data":{"image":{"url":"http://pictures.test/half.png"},"concepts":[{"id":"warm"}]}},`+
		`{"id":"b","data":{"image":{"url":"http://pictures.test/blue.png"},"concepts":[{"id":"cold"}]}}]}`)
	do("POST", "/v2/models", `{"model":{"id":"heat","output_info":{"data":{"concepts":[{"id":"warm"},{"id":"cold"}]}}}}`)
	do("POST", "/v2/workflows", `{"workflows":[{"id":"flow","nodes":[{"model":{"id":"heat"}}]}]}`)
	trained := string(do("POST", "/v2/models/heat/versions", "").Body)
	_, version, _ := strings.Cut(trained, `"model_version":{"id":"`)
	version = "/v2/models/heat/versions/" + version[:32]
	w.Step(t, 0)
	for _, r := range []struct{ method, path, body string }{
		{"GET", "/v2/concepts", ""},
		{"GET", "/v2/concepts/warm", ""},
		{"POST", "/v2/concepts/searches", `{"concept_query":{"name":"w*"}}`},
		{"GET", "/v2/models", ""},
		{"POST", "/v2/models/searches", `{"model_query":{"name":"h*"}}`},
		{"GET", "/v2/models/heat", ""},
		{"GET", "/v2/models/heat/output_info", ""},
		{"GET", "/v2/models/heat/inputs", ""},
		{"GET", "/v2/models/heat/versions?show=digest", ""},
		{"GET", version + "?show=digest,progress", ""},
		{"GET", version + "/output_info", ""},
		{"GET", version + "/inputs", ""},
		{"GET", version + "/metrics", ""},
		{"GET", version + "/metrics?show=digest,sightline", ""},
		{"POST", version + "/metrics", ""},
		{"GET", "/v2/workflows", ""},
		{"GET", "/v2/workflows/flow", ""},
		{"GET", "/v2/inputs", ""},
		{"GET", "/v2/inputs/r", ""},
		{"GET", "/v2/inputs/status", ""},
		{"GET", "/v2/inputs/r/outputs", ""},
		{"GET", "/v2/inputs/r/thumbnail", ""},
		{"GET", "/v2/inputs/r/rendition", ""},
		{"PATCH", "/v2/inputs", `{"inputs":[{"id":"r","data":{}}]}`},
		{"DELETE", "/v2/inputs", `{"ids":["none"]}`},
	} {
		want := do(r.method, r.path, r.body)
		if want.Status != 200 {
			t.Fatalf("%s %s = %d %s", r.method, r.path, want.Status, want.Body)
		}
		for reads := 0; ; reads++ {
			store.Left.Store(int64(reads))
			got := do(r.method, r.path, r.body)
			succeeded := store.Left.Load() >= 0
			store.Heal()
			if succeeded {
				if string(got.Body) != string(want.Body) {
					t.Errorf("%s %s = %s once the store is well, want %s", r.method, r.path, got.Body, want.Body)
				}
				break
			}
			if got.Status != 500 || strings.Contains(string(got.Body), kvtest.ErrDisk.Error()) || strings.Contains(string(got.Body), "details") || !errors.Is(got.Err, kvtest.ErrDisk) {
				t.Errorf("%s %s = %d %s, %v after %d reads", r.method, r.path, got.Status, got.Body, got.Err, reads)
				break
			}
		}
	}
}

// TestStoreFailsWriting does the same for calls that write. A call that succeeds has read without failures. All others return an internal
// error.
func TestStoreFailsWriting(t *testing.T) {
	for i, r := range []struct{ method, path, body string }{
		{"POST", "/v2/concepts", `{"concepts":[{"id":"new%d"}]}`},
		{"POST", "/v2/models", `{"model":{"id":"new%d"}}`},
		{"POST", "/v2/workflows", `{"workflows":[{"id":"new%d","nodes":[{"model":{"id":"heat"}}]}]}`},
		{"PATCH", "/v2/concepts", `{"concepts":[{"id":"warm","name":"new%d"}]}`},
		{"PATCH", "/v2/models", `{"models":[{"id":"heat","name":"new%d","output_info":{"data":{"concepts":[{"id":"new%[1]d"}]}}}]}`},
		{"POST", "/v2/models/heat/feedback", `{"input":{"id":"new%d"}}`},
		{"POST", "/v2/models/heat/versions", `{"a":%d}`},
		{"POST", "/v2/inputs", `{"inputs":[{"id":"new%d","data":{"image":{"url":"http://pictures.test/red.png"},"concepts":[{"id":"x"}]}}]}`},
		{"POST", "/v2/inputs", `{"inputs":[{"id":"new%d","data":{"image":{"base64":"R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7"}}}]}`},
		{"PATCH", "/v2/inputs", `{"inputs":[{"id":"i","data":{"concepts":[{"id":"new%d"}]}}]}`},
		{"PATCH", "/v2/inputs/i/data/concepts", `{"concepts":[{"id":"new%d"}],"action":"merge_concepts"}`},
		{"PATCH", "/v2/inputs/i/outputs", `{"outputs":[{"data":{"concepts":[{"id":"new%d"}]}}]}`},
		{"DELETE", "/v2/inputs/i", `{"a":%d}`},
		{"DELETE", "/v2/inputs", `{"ids":["i","new%d"]}`},
		{"POST", "/v2/searches", `{"query":{"ands":[{"input":{"data":{"concepts":[{"name":"x"}]}}},{"output":{"input":{"id":"i","data":{"image":{"crop":[0,0,0.5,1]}}}}}]},"pagination":{"page":1,"per_page":%d}}`},
		{"POST", "/v2/searches/feedback", `{"input":{"id":"i","feedback_info":{"event_type":"search_click","search_id":"%d"}}}`},
	} {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			for reads := 0; reads < 200; reads++ {
				store := kvtest.NewFailing(memkv.New())
				w := apitest.NewWorld(t, store, apitest.Tiny(t), nil, map[string]string{})
				do := func(method, path, body string) api.Response {
					return w.Serve(t, api.Request{Method: method, Path: path, Body: []byte(body)})
				}
				do("POST", "/v2/models", `{"model":{"id":"heat","output_info":{"data":{"concepts":[{"id":"warm"}]}}}}`)
				do("POST", "/v2/inputs", `{"inputs":[{"id":"i","data":{"image":{"base64":"R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7"},"concepts":[{"id":"x"}]}}]}`)
				store.Left.Store(int64(reads))
				got := do(r.method, r.path, fmt.Sprintf(r.body, reads))
				if got.Status == 200 && store.Left.Load() >= 0 {
					return
				}
				if got.Status != 200 && (got.Status != 500 || strings.Contains(string(got.Body), kvtest.ErrDisk.Error())) {
					t.Fatalf("%s %s = %d %s after %d reads", r.method, r.path, got.Status, got.Body, reads)
				}
			}
			t.Error("it reads without an end")
		})
	}
}
