package feed_test

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/api/apitest"
	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/sync/feed"
	"github.com/sightline-dev/sightline/sync/wire"
)

// callRecorder records the calls of the picture store. They determine how long an answer takes.
type callRecorder struct {
	blob.Blobs
	feed.Pinner
	calls []string
}

func (x *callRecorder) note(call string) { x.calls = append(x.calls, call) }

func (x *callRecorder) Has(ctx context.Context, h blob.Hash) (bool, error) {
	x.note("Has")
	return x.Blobs.Has(ctx, h)
}

func (x *callRecorder) Len(ctx context.Context, h blob.Hash) (int64, error) {
	x.note("Len")
	return x.Blobs.Len(ctx, h)
}

func (x *callRecorder) Get(ctx context.Context, h blob.Hash) ([]byte, error) {
	x.note("Get")
	return x.Blobs.Get(ctx, h)
}

func (x *callRecorder) Open(ctx context.Context, h blob.Hash) (io.ReadCloser, error) {
	x.note("Open")
	return x.Blobs.Open(ctx, h)
}

func (x *callRecorder) Pin(ctx context.Context, data []byte) (blob.Hash, error) {
	x.note("Hold")
	return x.Pinner.Pin(ctx, data)
}

// TestExistenceDoesNotLeak requests objects of another application and objects that do not exist. The answers are equal byte by byte, and
// so are the calls of the picture store.
func TestExistenceDoesNotLeak(t *testing.T) {
	spy := &callRecorder{}
	w := newWorld(t, func(o *feed.Options) {
		spy.Blobs, spy.Pinner = o.Blobs, o.Pinner
		o.Blobs, o.Pinner = spy, spy
	})
	victim := w.NewTenant(t, "", "en")
	owner := w.join(victim.App, victim.Key)
	referenced := owner.upload(apitest.Picture("blue.png"))
	owner.mustPush(owner.next(&log.InputCreate{ID: "theirs", Blob: referenced, ContentType: "image/png"}))
	orphan := owner.upload(apitest.Picture("white.png"))
	half := blob.Sum([]byte("half of it"))
	owner.headers = contentRange(0, 4, 10)
	owner.must(202, "PUT", owner.blob(half), []byte("half"))
	owner.headers = nil
	chunk, err := blob.ParseHash(w.chunkOf(owner))
	if err != nil {
		t.Fatal(err)
	}

	r := w.join(w.App, w.Key)
	base := apitest.Tiny(t).Base()
	push := func(body func(h blob.Hash) log.Body) func(h blob.Hash) api.Response {
		return func(h blob.Hash) api.Response {
			m := r.push([]log.Op{{Dot: log.Dot{Writer: r.writer, Seq: r.seq + 1}, At: 1, Body: body(h)}})
			return r.ask("POST", "/v2/sync/push", m.Encode())
		}
	}
	get := func(method, path string) func(h blob.Hash) api.Response {
		return func(h blob.Hash) api.Response { return r.ask(method, path+h.String()+"?app="+w.App, nil) }
	}
	requests := map[string]func(h blob.Hash) api.Response{
		"have": func(h blob.Hash) api.Response {
			return r.ask("POST", "/v2/sync/blobs/have", (&wire.HaveRequest{App: w.App, Hashes: []blob.Hash{h}}).Encode())
		},
		"dates": func(h blob.Hash) api.Response {
			names := slices.Concat(h[:], make([]byte, 16), base[:])
			return r.ask("POST", "/v2/sync/dates", (&wire.DatesRequest{App: w.App, Names: names}).Encode())
		},
		"GET":            get("GET", "/v2/sync/blobs/"),
		"HEAD":           get("HEAD", "/v2/sync/blobs/"),
		"chunk":          get("GET", "/v2/sync/snapshot/"),
		"create":         push(func(h blob.Hash) log.Body { return &log.InputCreate{ID: "x", Blob: h, ContentType: "image/png"} }),
		"manifest":       push(func(h blob.Hash) log.Body { return &log.VersionResult{Version: "v", Code: 21100, Manifest: h} }),
		"in the middle":  func(h blob.Hash) api.Response { return r.piece(h, 4, 8, 10) },
		"with the wrong": func(h blob.Hash) api.Response { return r.ask("PUT", r.blob(h), []byte("wrong")) },
	}
	nobodys := blob.Sum([]byte("nobody has this"))
	for name, ask := range requests {
		for kind, h := range map[string]blob.Hash{"named": referenced, "held": orphan, "half": half, "chunk": chunk} {
			t.Run(name+" "+kind, func(t *testing.T) {
				spy.calls = nil
				got, calls := shape(ask(h), h), spy.calls
				spy.calls = nil
				if want := shape(ask(nobodys), nobodys); got != want {
					t.Errorf("another's is answered with\n%s and nobody's with\n%s", got, want)
				}
				if !slices.Equal(calls, spy.calls) {
					t.Errorf("for another's the pictures are asked %v, for nobody's %v", calls, spy.calls)
				}
			})
		}
	}
	apps := map[string]func(app string) api.Response{
		"changes": func(app string) api.Response { return r.ask("GET", "/v2/sync/changes?since=0&app="+app, nil) },
		"keys":    func(app string) api.Response { return r.ask("GET", "/v2/sync/keys?app="+app, nil) },
		"push": func(app string) api.Response {
			m := r.push(nil)
			m.App = app
			return r.ask("POST", "/v2/sync/push", m.Encode())
		},
	}
	for name, ask := range apps {
		if got, want := shape(ask(victim.App), blob.Hash{}), shape(ask(strings.Repeat("ab", 16)), blob.Hash{}); got != want {
			t.Errorf("%s of another application: %s, and of none: %s", name, got, want)
		}
	}
}

// piece uploads the bytes from to to of a picture of size bytes, as zeros.
func (r *replica) piece(h blob.Hash, from, to, size int) api.Response {
	x := *r
	x.headers = contentRange(from, to, size)
	return x.ask("PUT", r.blob(h), make([]byte, to-from))
}

// shape returns an answer as text, with the requested hash replaced.
func shape(res api.Response, h blob.Hash) string {
	text := fmt.Sprintf("%d %s %q %q", res.Status, res.ContentType, res.Header, res.Body)
	text = strings.ReplaceAll(text, h.String(), "HASH")
	return strings.ReplaceAll(text, strings.Trim(fmt.Sprintf("%q", h[:]), `"`), "HASH")
}
