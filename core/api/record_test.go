package api_test

import (
	"strings"
	"testing"
	"time"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/api/apitest"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/kv/memkv"
)

// TestOldTrainingRecord reads the training set of a version that an older program trained, which stored no ids of inputs. The call lists
// existing inputs and omits deleted ones.
func TestOldTrainingRecord(t *testing.T) {
	w := apitest.NewWorld(t, memkv.New(), apitest.Tiny(t), nil, nil)
	call := func(method, path, body string) string {
		t.Helper()
		got := w.Serve(t, api.Request{Method: method, Path: "/v2/" + path, Body: []byte(body)})
		if got.Status != 200 {
			t.Fatalf("%s %s: %d %s", method, path, got.Status, got.Body)
		}
		return string(got.Body)
	}
	call("POST", "inputs", `{"inputs":[{"id":"r","data":{"image":{"url":"http://pictures.test/red.png"},"concepts":[{"id":"warm"}]}},
		{"id":"b","data":{"image":{"url":"http://pictures.test/blue.png"},"concepts":[{"id":"warm","value":false}]}}]}`)
	call("POST", "models", `{"model":{"id":"heat","output_info":{"data":{"concepts":[{"id":"warm"}]}}}}`)
	call("POST", "models/heat/versions", "")
	w.Step(t, time.Second)

	app, err := catalog.ParseAppID(w.App)
	if err != nil {
		t.Fatal(err)
	}
	overlay := kv.NewOverlay(w.Store)
	records := catalog.Write(overlay, app)
	m, err := records.Model("heat")
	if err != nil {
		t.Fatal(err)
	}
	version, err := records.Version(m.Dot, m.Newest)
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := records.Manifest(&version)
	if err != nil || len(manifest.Inputs) != 2 {
		t.Fatalf("%+v, %v", manifest.Inputs, err)
	}
	for i := range manifest.Inputs {
		if in := &manifest.Inputs[i]; in.ID == "" || in.Created == 0 {
			t.Errorf("the record of an input lacks its id or its time: %+v", in)
		}
		manifest.Inputs[i].ID, manifest.Inputs[i].Created = "", 0
	}
	version.Manifest = catalog.PutObject(overlay, app, manifest.Marshal())
	records.PutVersion(&version)
	if err := w.Store.Apply(overlay.Batch()); err != nil {
		t.Fatal(err)
	}

	list := func() int {
		return strings.Count(call("GET", "models/heat/versions/"+version.ID+"/inputs", ""), `"created_at"`)
	}
	if n := list(); n != 2 {
		t.Errorf("%d inputs, want 2", n)
	}
	call("DELETE", "inputs/r", "")
	if n := list(); n != 1 {
		t.Errorf("%d inputs after one was deleted, want 1", n)
	}
}
