package core_test

import (
	"strings"
	"testing"
	"time"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/api/apitest"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/kv/kvtest"
	"github.com/sightline-dev/sightline/core/kv/memkv"
	"github.com/sightline-dev/sightline/core/predict/raster/exif"
)

// TestUndatedInputsGetDatesAfterUpdate updates the program of a server whose stored pictures have no dates. Each gets its date in the
// background, and its predictions stay.
func TestUndatedInputsGetDatesAfterUpdate(t *testing.T) {
	w := apitest.NewWorld(t, kvtest.OrLate(t, memkv.New()), apitest.Tiny(t), nil, nil)
	get := func(path, query string) string {
		t.Helper()
		return string(w.Serve(t, api.Request{Method: "GET", Path: path, Query: query}).Body)
	}
	w.Serve(t, api.Request{Method: "POST", Path: "/v2/inputs", Body: []byte(`{"inputs":[
		{"id":"dated","data":{"image":{"url":"http://pictures.test/dated.png"}}},{"id":"crop","data":{"image":{"url":"http://pictures.test/dated.png?2","crop":[0,0,0.5,1]}}},
		{"id":"day","data":{"image":{"url":"http://pictures.test/day.png"}}},{"id":"undated","data":{"image":{"url":"http://pictures.test/undated.png"}}},
		{"id":"lost","data":{"image":{"url":"http://pictures.test/photos/000"}}}]}`)})
	w.Step(t, 0)
	before, outputs := get("/v2/inputs", "show=taken"), get("/v2/inputs/dated/outputs", "")
	if strings.Count(before, `"taken":`) != 4 {
		t.Fatalf("before: %s", before)
	}
	app, err := catalog.ParseAppID(w.App)
	if err != nil {
		t.Fatal(err)
	}
	base := apitest.Tiny(t).Base()
	var b kv.Batch
	b.Delete(app.LocalKey("undated"))
	for _, id := range []string{"dated", "crop", "day", "undated", "lost"} {
		in, err := catalog.Read(w.Store, app).InputByID(id)
		if err != nil {
			t.Fatal(err)
		}
		d, err := catalog.Read(w.Store, app).DerivedOfInput(base, &in)
		if err != nil {
			t.Fatal(err)
		}
		d.Read, d.Taken = 0, exif.Time{}
		catalog.PutDerived(&b, app, base, in.Blob, in.Crop, d)
		if id == "lost" {
			if err := w.Blobs.Delete(t.Context(), in.Blob); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.Store.Apply(&b); err != nil {
		t.Fatal(err)
	}
	w.Open(t, w.Store)
	if got := get("/v2/inputs", "show=taken"); strings.Contains(got, `"taken":`) {
		t.Fatalf("after the update at once: %s", got)
	}
	for range 10 {
		w.Step(t, 30*time.Second)
	}
	i := strings.Index(before, `{"id":"lost"`)
	if got := get("/v2/inputs", "show=taken"); got[:i] != before[:i] || strings.Count(got, `"taken":`) != 3 {
		t.Errorf("after the update\n%s\nwant\n%s", got, before)
	}
	if got := get("/v2/inputs/dated/outputs", ""); got != outputs {
		t.Errorf("outputs\n%s\nwant\n%s", got, outputs)
	}
}
