package feed_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/api/apitest"
	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/fold"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/register"
	"github.com/sightline-dev/sightline/sync/wire"
)

// localOnly changes the setting of the world's application.
func (w *world) localOnly(on bool) {
	w.t.Helper()
	if _, err := w.Engine.Register.ChangeApp(w.t.Context(), register.Caller{}, w.App, register.AppChange{LocalOnly: &on}); err != nil {
		w.t.Fatal(err)
	}
}

// TestLocalOnly asks for all that a local-only application holds, as every kind of replica: the feed sends nothing of it. The feed takes
// operations of replicas, and sends all of the application when it is shared again.
func TestLocalOnly(t *testing.T) {
	w := newWorld(t, nil)
	w.input("secret-input", "red.png")
	picture := blob.Sum(apitest.Picture("red.png"))
	page, edge := w.join(w.App, w.Key), w.enrolEdge(7)
	chunk := w.chunkOf(page)
	w.localOnly(true)
	for name, r := range map[string]*replica{"a page, or sightline sync": page, "an edge": edge} {
		app := "?app=" + w.App
		for _, path := range []string{
			"changes" + app, "changes" + app + "&live=poll", "changes" + app + "&live=stream", "snapshot" + app, "snapshot/" + chunk + app,
			"digest" + app, "digest" + app + "&at=1", "blobs/" + picture.String() + app, "keys" + app,
		} {
			res := r.ask("GET", "/v2/sync/"+path, nil)
			if m, err := wire.DecodeRefusal(res.Body); err != nil || res.Status != 403 || m.Code != wire.RefusedScope {
				t.Errorf("%s: GET %s = %d %+v, %v", name, path, res.Status, m, err)
			}
			if bytes.Contains(res.Body, []byte("secret")) || bytes.Contains(res.Body, apitest.Picture("red.png")) {
				t.Errorf("%s: GET %s sends what the application holds", name, path)
			}
		}
		m := wire.Session{Min: wire.Oldest, Max: wire.Protocol, Fold: fold.Version, Schema: 1, Apps: []wire.Position{{App: w.App}}}
		if g := r.session(&m).Grants[0]; g.Do != wire.DoRefused || !g.Drain || !strings.Contains(g.Detail, "local only") || g.Head != 0 {
			t.Errorf("%s: granted %+v", name, g)
		}
	}
	h := page.upload(apitest.Picture("blue.png"))
	out := page.mustPush(page.next(&log.InputCreate{ID: "pushed", Blob: h, ContentType: "image/png"}))
	if _, err := w.Input("pushed"); out.Accepted != 1 || err != nil {
		t.Errorf("what the replica had made: %+v, %v", out, err)
	}
	w.localOnly(false)
	if k := kinds(page.pull("since=0&vectors=q16")); k != "register derived entries checkpoint end" {
		t.Errorf("once it is shared again: %s", k)
	}
	edge.must(200, "GET", "/v2/sync/blobs/"+picture.String()+"?app="+w.App, nil)
}

// TestLocalOnlyMidway: an application becomes local only, and something is written, after a reader's entries were read and before each of
// its frames goes out. No frame that follows has what was written.
func TestLocalOnlyMidway(t *testing.T) {
	w := newWorld(t, nil)
	r := w.join(w.App, w.Key)
	for i := range 3 {
		var bodies []log.Body
		for j := range wire.MaxOps {
			bodies = append(bodies, &log.ConceptCreate{ID: fmt.Sprint("c", i, "-", j), Name: "name", Language: "en"})
		}
		for ops := r.next(bodies...); len(ops) > 0; {
			n := min(len(ops), 100)
			r.mustPush(ops[:n])
			ops = ops[n:]
		}
	}
	before := w.partition(w.App).Log().Head()
	res := w.feed.Serve(t.Context(), &api.Request{Method: "GET", Path: "/v2/sync/changes", Query: "app=" + w.App + "&since=0", Authorization: r.authorization, Header: header})
	var sent bytes.Buffer
	frames := 0
	err := res.Stream(writer(func(p []byte) (int, error) {
		if frames++; frames == 2 {
			w.localOnly(true)
			r.mustPush(r.next(&log.ConceptCreate{ID: "secret", Name: "secret", Language: "en"}))
		}
		return sent.Write(p)
	}))
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(sent.Bytes(), []byte("secret")) || frames < 3 || w.partition(w.App).Log().Head() != before+1 {
		t.Errorf("%d frames, with what was written later", frames)
	}
}

type writer func(p []byte) (int, error)

func (w writer) Write(p []byte) (int, error) { return w(p) }
