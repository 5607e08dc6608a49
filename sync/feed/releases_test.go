package feed_test

import (
	"bytes"
	"crypto/ed25519"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/sync/feed"
	"github.com/sightline-dev/sightline/sync/wire"
)

// released is one module on one channel.
type released struct {
	module []byte
	key    [32]byte
}

func (r *released) Manifest(channel string) ([]byte, bool) {
	return []byte("manifest of stable"), channel == "stable"
}
func (r *released) Module(h blob.Hash) ([]byte, bool) { return r.module, h == blob.Sum(r.module) }
func (r *released) Key() [32]byte                     { return r.key }

// TestReleases gives an edge the manifest and the module, whole and in parts, and others nothing.
func TestReleases(t *testing.T) {
	module := bytes.Repeat([]byte("module "), 1000)
	r := &released{module: module, key: [32]byte{31: 9}}
	w := newWorld(t, func(o *feed.Options) { o.Releases = r })
	token, made, err := w.Engine.CreateEdge(t.Context(), "", "edge", []string{w.App})
	if err != nil {
		t.Fatal(err)
	}
	key := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{3}, 32))
	e := &replica{w: w, app: w.App, sign: func(string, string, string, []byte) string { return "" }}
	enrol := func() string {
		var told feed.Enrolled
		if err := json.Unmarshal(e.must(200, "POST", "/v2/sync/enrol", feed.Enrolment(key, token)).Body, &told); err != nil {
			t.Fatal(err)
		}
		return told.Edge.ReleaseKey
	}
	if got := enrol(); got != hex.EncodeToString(r.key[:]) {
		t.Errorf("the edge learns the key %q", got)
	}
	e.sign = func(method, path, query string, body []byte) string {
		return feed.Sign(key, made.ID, w.Now, method, path, query, body)
	}
	if res := e.must(200, "GET", "/v2/sync/releases/stable", nil); string(res.Body) != "manifest of stable" || res.ContentType != wire.ContentType {
		t.Errorf("%s: %q", res.ContentType, res.Body)
	}
	for _, path := range []string{"/v2/sync/releases/canary", "/v2/sync/releases/", "/v2/sync/releases", "/v2/sync/releases/stable/x", "/v2/sync/modules/" + blob.Sum(nil).String(), "/v2/sync/modules/x"} {
		if res := e.ask("GET", path, nil); res.Status != 404 {
			t.Errorf("%s = %d, want 404", path, res.Status)
		}
	}
	path := "/v2/sync/modules/" + blob.Sum(module).String()
	if res := e.must(200, "GET", path, nil); !bytes.Equal(res.Body, module) {
		t.Errorf("the module has %d bytes, want %d", len(res.Body), len(module))
	}
	e.headers = map[string]string{"Range": "bytes=6000-"}
	if res := e.must(206, "GET", path, nil); !bytes.Equal(res.Body, module[6000:]) {
		t.Errorf("the rest has %d bytes, want %d", len(res.Body), len(module)-6000)
	}
	var session wire.Session
	session.Min, session.Max, session.Fold, session.Schema = 1, 1, 1, 1
	if o := e.session(&session); fmt.Sprint(o.Links) == "" || o.Links[len(o.Links)-1].Path != "/v2/sync/releases/stable" {
		t.Errorf("links %v, want the release's", o.Links)
	}

	stranger := &replica{w: w, app: w.App}
	if err := w.Engine.RevokeEdge(t.Context(), "", made.ID); err != nil {
		t.Fatal(err)
	}
	for name, x := range map[string]*replica{"nobody": stranger, "a revoked edge": e} {
		for _, path := range []string{path, "/v2/sync/releases/stable"} {
			if res := x.ask("GET", path, nil); res.Status < 401 || res.Status > 403 {
				t.Errorf("%s gets %s: %d", name, path, res.Status)
			}
		}
	}
	plain := newWorld(t, nil)
	if got := plain.join(plain.App, plain.Key).ask("GET", "/v2/sync/releases/stable", nil); got.Status != 404 {
		t.Errorf("an origin without modules answers %d", got.Status)
	}
	r.key = [32]byte{}
}
