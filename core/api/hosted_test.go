package api_test

import (
	"bytes"
	"encoding/hex"
	"errors"
	"image/jpeg"
	"strings"
	"testing"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/api/apitest"
	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/kv/kvtest"
	"github.com/sightline-dev/sightline/core/kv/memkv"
)

// TestHostedInputs requests pictures of inputs by public names, also by unknown ones.
func TestHostedInputs(t *testing.T) {
	store := kvtest.NewFailing(memkv.New())
	w := apitest.NewWorld(t, store, apitest.Tiny(t), nil, nil)
	nameOf := func(id string) string {
		t.Helper()
		in, err := w.Input(id)
		if err != nil {
			t.Fatal(err)
		}
		return hex.EncodeToString(in.Hosted[:])
	}
	checkNotFound := func(name string) {
		t.Helper()
		if p, err := w.Engine.Register.HostedPicture(name); !errors.Is(err, blob.ErrNotFound) {
			t.Errorf("Hosted(%q) = %+v, %v, want blob.ErrNotFound", name, p, err)
		}
		if thumb, err := w.Engine.Register.Thumbnail(name); !errors.Is(err, blob.ErrNotFound) {
			t.Errorf("Thumbnail(%q) = %d bytes, %v, want blob.ErrNotFound", name, len(thumb), err)
		}
	}
	w.Serve(t, api.Request{Method: "POST", Path: "/v2/inputs", Body: []byte(
		`{"inputs":[{"id":"a","data":{"image":{"url":"http://pictures.test/half.png","crop":[0,0,0.5,1]}}},{"id":"b","data":{"image":{"url":"http://pictures.test/gone"}}}]}`)})
	a, b := nameOf("a"), nameOf("b")
	checkNotFound(a) // not downloaded yet
	w.Step(t, 0)
	checkNotFound(b) // the download failed
	app, _ := catalog.ParseAppID(w.App)
	p, err := w.Engine.Register.HostedPicture(a)
	if p.App != app {
		t.Errorf("the picture belongs to %v, want %v", p.App, app)
	}
	if err != nil || p.Hash != blob.Sum(apitest.Picture("half.png")) || p.ContentType != "image/png" || !p.Expires.IsZero() {
		t.Errorf("Hosted = %+v, %v", p, err)
	}
	thumb, err := w.Engine.Register.Thumbnail(a)
	if img, bad := jpeg.Decode(bytes.NewReader(thumb)); err != nil || bad != nil || img.Bounds().Dx() != 8 || img.Bounds().Dy() != 4 {
		t.Errorf("Thumbnail = %v, %v: it is the part that the input is", err, bad)
	}
	for _, name := range []string{"", "x", a[1:], a + "0", strings.ToUpper(a), strings.Repeat("0", 32), "../" + a[3:]} {
		if name != a {
			checkNotFound(name)
		}
	}
	for reads := range int64(3) {
		store.Left.Store(reads)
		if _, err := w.Engine.Register.HostedPicture(a); !errors.Is(err, kvtest.ErrDisk) {
			t.Errorf("Hosted after %d reads = %v, want the disk's error", reads, err)
		}
		store.Left.Store(reads)
		if _, err := w.Engine.Register.Thumbnail(a); !errors.Is(err, kvtest.ErrDisk) {
			t.Errorf("Thumbnail after %d reads = %v, want the disk's error", reads, err)
		}
	}
	store.Heal()
	w.Serve(t, api.Request{Method: "DELETE", Path: "/v2/inputs", Body: []byte(`{"delete_all":true}`)})
	checkNotFound(a)
	w.Step(t, 0)
	checkNotFound(a)
}

// TestSearchByHostedURL finds an input by the hosted URL of its picture.
func TestSearchByHostedURL(t *testing.T) {
	w := apitest.NewWorld(t, memkv.New(), apitest.Tiny(t), nil, nil)
	const gif = "R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7"
	w.Serve(t, api.Request{Method: "POST", Path: "/v2/inputs", Body: []byte(
		`{"inputs":[{"id":"a","data":{"image":{"base64":"` + gif + `"}}},{"id":"b","data":{"image":{"base64":"` + gif + `"}}}]}`)})
	b, err := w.Input("b")
	if err != nil {
		t.Fatal(err)
	}
	name := hex.EncodeToString(b.Hosted[:])
	for address, want := range map[string]string{
		"http://127.0.0.1:8080/hosted/" + name:                    `"id":"b"`,
		"http://127.0.0.1:8080/hosted/" + name + "0":              `"hits":[]`,
		"http://127.0.0.1:8080/hosted/" + strings.Repeat("g", 32): `"hits":[]`,
		"http://127.0.0.1:8080/hosted/" + strings.Repeat("0", 32): `"hits":[]`,
		"http://elsewhere.test/hosted/" + name:                    `"hits":[]`,
	} {
		got := w.Serve(t, api.Request{Method: "POST", Path: "/v2/searches", Body: []byte(
			`{"query":{"ands":[{"input":{"data":{"image":{"url":"` + address + `"}}}}]}}`)})
		if got.Status != 200 || !strings.Contains(string(got.Body), want) || strings.Contains(string(got.Body), `"id":"a"`) {
			t.Errorf("%s = %d %s, want %s", address, got.Status, got.Body, want)
		}
	}
}
