package feed_test

import (
	"bytes"
	"crypto/ed25519"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/register"
	"github.com/sightline-dev/sightline/sync/feed"
	"github.com/sightline-dev/sightline/sync/wire"
)

// signer is an enrolled edge that signs requests.
type signer struct {
	w   *world
	id  string
	key ed25519.PrivateKey
}

// newSigner enrols an edge.
func (w *world) newSigner(seed byte) *signer {
	w.t.Helper()
	token, _, err := w.Engine.Register.CreateEdge(w.t.Context(), register.Caller{}, "shop", []string{w.App})
	if err != nil {
		w.t.Fatal(err)
	}
	s := &signer{w: w, key: ed25519.NewKeyFromSeed(bytes.Repeat([]byte{seed}, 32))}
	var got feed.EnrolReply
	anybody := &replica{w: w, app: w.App}
	if err := json.Unmarshal(anybody.must(200, "POST", "/v2/sync/enrol", feed.Enrolment(s.key, token)).Body, &got); err != nil {
		w.t.Fatal(err)
	}
	s.id = got.Edge.ID
	return s
}

// head returns the head of a push of 4 MB from a network, with a valid Sync-Head and a forged signature of the body.
func (s *signer) head(remote string) (r *api.Request, header map[string]string) {
	const length = 4 << 20
	header = map[string]string{
		"Content-Length": fmt.Sprint(length),
		"Sync-Head":      feed.SignHead(s.key, s.w.Now, "POST", "/v2/sync/push", "app="+s.w.App, length),
	}
	return &api.Request{
		Method: "POST", Path: "/v2/sync/push", Query: "app=" + s.w.App, Remote: remote,
		Authorization: fmt.Sprintf("Edge %s %d %0128d", s.id, s.w.Now.UnixMilli(), 0),
		Header:        func(name string) string { return header[name] },
	}, header
}

// caller returns the result of Caller for a push of 4 MB. change may change its head; nil changes nothing.
func (s *signer) caller(remote string, change func(r *api.Request, header map[string]string)) string {
	s.w.t.Helper()
	r, header := s.head(remote)
	if change != nil {
		change(r, header)
	}
	caller, err := s.w.feed.Caller(s.w.t.Context(), r)
	if err != nil {
		s.w.t.Fatal(err)
	}
	return caller
}

// before makes the head that of an edge of an earlier program.
func before(_ *api.Request, header map[string]string) { delete(header, "Sync-Head") }

// chunked makes the body one without a length.
func chunked(_ *api.Request, header map[string]string) {
	delete(header, "Content-Length")
	header["Transfer-Encoding"] = "chunked"
}

// serve sends a small request with a signature, from a network, and returns its status.
func (s *signer) serve(remote string, key ed25519.PrivateKey) int {
	r := &api.Request{Method: "POST", Path: "/v2/sync/blobs/have", Body: (&wire.HaveRequest{App: s.w.App}).Encode(), Remote: remote}
	r.Authorization = feed.Sign(key, s.id, s.w.Now, r.Method, r.Path, r.Query, r.Body)
	return s.w.feed.Serve(s.w.t.Context(), r).Status
}

// TestEdgesSignTheirBodies: the head of a request belongs to an edge only with the edge's signature in Sync-Head.
func TestEdgesSignTheirBodies(t *testing.T) {
	w := newWorld(t, nil)
	edge, other := w.newSigner(7), w.newSigner(8)
	name := "edge " + edge.id
	text := fmt.Sprintf("sightline edge head 1\nPOST\n/v2/sync/push?app=%s\n%d\n4194304", w.App, w.Now.UnixMilli())
	if _, header := edge.head(""); header["Sync-Head"] != hex.EncodeToString(ed25519.Sign(edge.key, []byte(text))) {
		t.Errorf("SignHead does not sign %q", text)
	}
	sign := func(key ed25519.PrivateKey, at time.Time, method, path string, length int) func(*api.Request, map[string]string) {
		return func(r *api.Request, header map[string]string) {
			r.Authorization = fmt.Sprintf("Edge %s %d %0128d", edge.id, at.UnixMilli(), 0)
			header["Sync-Head"] = feed.SignHead(key, at, method, path, "app="+w.App, length)
		}
	}
	type change = func(*api.Request, map[string]string)
	set := func(field, value string) change {
		return func(_ *api.Request, header map[string]string) { header[field] = value }
	}
	for _, tt := range []struct {
		name   string
		change change
		want   string
	}{
		{"signed", nil, name},
		{"signed four minutes ago", sign(edge.key, w.Now.Add(-4*time.Minute), "POST", "/v2/sync/push", 4<<20), name},
		{"signed six minutes ago", sign(edge.key, w.Now.Add(-6*time.Minute), "POST", "/v2/sync/push", 4<<20), ""},
		{"signed for another time", func(r *api.Request, _ map[string]string) {
			r.Authorization = fmt.Sprintf("Edge %s %d %0128d", edge.id, w.Now.UnixMilli()+1, 0)
		}, ""},
		{"signed for another method", sign(edge.key, w.Now, "PUT", "/v2/sync/push", 4<<20), ""},
		{"signed for another path", sign(edge.key, w.Now, "POST", "/v2/sync/back", 4<<20), ""},
		{"signed for another query", func(r *api.Request, _ map[string]string) { r.Query += "&x=1" }, ""},
		{"signed for another length", sign(edge.key, w.Now, "POST", "/v2/sync/push", 4<<20-1), ""},
		{"signed by another edge", sign(other.key, w.Now, "POST", "/v2/sync/push", 4<<20), ""},
		{"another edge's id", func(r *api.Request, _ map[string]string) {
			r.Authorization = fmt.Sprintf("Edge %s %d %0128d", other.id, w.Now.UnixMilli(), 0)
		}, ""},
		{"an unknown edge", func(r *api.Request, _ map[string]string) {
			r.Authorization = fmt.Sprintf("Edge %032d %d %0128d", 0, w.Now.UnixMilli(), 0)
		}, ""},
		{"without a signature", func(r *api.Request, _ map[string]string) { r.Authorization = "Edge " + edge.id }, ""},
		{"a larger body", set("Content-Length", strconv.Itoa(95e6)), ""},
		{"a body without a length", chunked, ""},
		{"no hexadecimal digits", set("Sync-Head", "signature"), ""},
		{"the signature of nothing", set("Sync-Head", fmt.Sprintf("%0128d", 0)), ""},
		{"as before", before, ""},
		{"no headers", func(r *api.Request, _ map[string]string) { r.Header = nil }, ""},
	} {
		if got := edge.caller("n", tt.change); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
	if err := w.Engine.Register.RevokeEdge(t.Context(), register.Caller{}, edge.id); err != nil {
		t.Fatal(err)
	}
	if got := edge.caller("n", nil); got != "" {
		t.Errorf("a revoked edge: %q", got)
	}
}

// TestEdgesWithoutHeadSignature: without Sync-Head, a head belongs to an edge for ten minutes after a request with a valid signature, from
// the same network only.
func TestEdgesWithoutHeadSignature(t *testing.T) {
	w := newWorld(t, nil)
	edge, other := w.newSigner(7), w.newSigner(8)
	expect := func(when, remote, want string) {
		t.Helper()
		for name, change := range map[string]func(*api.Request, map[string]string){"as before": before, "without a length": chunked} {
			if got := edge.caller(remote, change); got != want {
				t.Errorf("%s, %s: %q, want %q", when, name, got, want)
			}
		}
	}
	name := "edge " + edge.id
	if status := edge.serve("a", other.key); status != 401 {
		t.Errorf("a forged signature: %d", status)
	}
	expect("after a forged signature", "a", "")
	if status := edge.serve("a", edge.key); status != 200 {
		t.Fatalf("a valid signature: %d", status)
	}
	expect("after a valid signature", "a", name)
	expect("from another network", "b", "")
	if got := other.caller("a", before); got != "" {
		t.Errorf("another edge in the same network: %q", got)
	}
	if got := edge.caller("a", func(_ *api.Request, header map[string]string) { header["Sync-Head"] = fmt.Sprintf("%0128d", 0) }); got != "" {
		t.Errorf("a forged Sync-Head in the same network: %q", got)
	}
	if got := edge.caller("a", func(r *api.Request, header map[string]string) { r.Authorization = "Edge " + edge.id; before(r, header) }); got != "" {
		t.Errorf("the ID alone: %q", got)
	}

	w.Now = w.Now.Add(5 * time.Minute)
	edge.serve("a", edge.key)
	w.Now = w.Now.Add(10 * time.Minute)
	expect("ten minutes later", "a", name)
	w.Now = w.Now.Add(time.Millisecond)
	expect("more than ten minutes later", "a", "")

	for _, network := range []string{"a", "b", "c", "d", "b", "e"} {
		edge.serve(network, edge.key)
	}
	expect("after four other networks", "a", "")
	for _, network := range []string{"b", "c", "d", "e"} {
		expect("one of the last four networks", network, name)
	}
	if err := w.feed.Step(t.Context()); err != nil {
		t.Fatal(err)
	}
	expect("after a step", "e", name)
	if err := w.Engine.Register.RevokeEdge(t.Context(), register.Caller{}, edge.id); err != nil {
		t.Fatal(err)
	}
	expect("after the revocation", "e", "")
}
