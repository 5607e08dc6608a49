package api_test

import (
	"encoding/base64"
	"strings"
	"testing"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/api/apitest"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/kv/memkv"
	"github.com/sightline-dev/sightline/core/log"
)

// TestRecordWithoutFingerprint reads the derived record of an older program, which has no fingerprint. Its input has no re-encoded
// duplicates. Adding the picture again creates a record with a fingerprint.
func TestRecordWithoutFingerprint(t *testing.T) {
	w := apitest.NewWorld(t, memkv.New(), apitest.Tiny(t), nil, nil)
	add := func(id, crop string) {
		t.Helper()
		body := `{"inputs":[{"id":"` + id + `","data":{"image":{"base64":"` + base64.StdEncoding.EncodeToString(apitest.Picture("red.png")) + `"` + crop + `}}}]}`
		if r := w.Serve(t, api.Request{Method: "POST", Path: "/v2/inputs", Body: []byte(body)}); r.Status != 200 {
			t.Fatalf("%d %s", r.Status, r.Body)
		}
	}
	isDuplicate := func() bool {
		t.Helper()
		r := w.Serve(t, api.Request{Method: "GET", Path: "/v2/inputs/red/duplicates"})
		if r.Status != 200 {
			t.Fatalf("%d %s", r.Status, r.Body)
		}
		return strings.Contains(string(r.Body), `"tier":"re_encoded"`)
	}
	add("red", "")
	add("part", `,"crop":[0,0,0.5,0.5]`)
	if !isDuplicate() {
		t.Fatal("the part of a plain picture is not the picture saved again")
	}
	p, err := w.Engine.Partition(w.App)
	if err != nil {
		t.Fatal(err)
	}
	app, err := catalog.ParseAppID(w.App)
	if err != nil {
		t.Fatal(err)
	}
	v := p.View()
	defer v.Close()
	in, err := v.InputByID("red")
	if err != nil {
		t.Fatal(err)
	}
	h, err := v.Header()
	if err != nil {
		t.Fatal(err)
	}
	d, err := v.DerivedOfInput(h.Base, &in)
	if err != nil {
		t.Fatal(err)
	}
	d.Fingerprint = nil
	if err := p.AddDerived([]log.Dot{in.Dot}, func(b kv.Writer, _ []catalog.Input) { catalog.PutDerived(b, app, h.Base, in.Blob, in.Crop, d) }); err != nil {
		t.Fatal(err)
	}
	if isDuplicate() {
		t.Error("a record without a fingerprint is of the same picture as another")
	}
	add("red again", "")
	if !isDuplicate() {
		t.Error("adding the picture again made no fingerprint")
	}
}
