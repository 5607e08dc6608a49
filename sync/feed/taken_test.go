package feed_test

import (
	"bytes"
	"crypto/ed25519"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/sightline-dev/sightline/core/api/apitest"
	"github.com/sightline-dev/sightline/core/auth"
	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/fold"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/partition"
	"github.com/sightline-dev/sightline/core/predict/raster"
	"github.com/sightline-dev/sightline/core/register"
	"github.com/sightline-dev/sightline/sync/feed"
	"github.com/sightline-dev/sightline/sync/wire"
)

// others are the lines of everything that are not of an application.
func (w *world) others(app string) string {
	w.t.Helper()
	var b strings.Builder
	for line := range strings.Lines(w.everything()) {
		if !strings.HasPrefix(line, app) {
			b.WriteString(line)
		}
	}
	return b.String()
}

// TestHostileOperations: a replica pushes operations that it may not write, or with false content. Each gets its place in the log, has no
// effect there, and its replica gets the reason. Nothing of another application changes, nor the data of an honest replica. A deletion of a name
// that the log lacks counts if an operation with that name comes.
func TestHostileOperations(t *testing.T) {
	w := newWorld(t, nil)
	w.input("mine", "red.png")
	victim := w.NewTenant(t, "", "en")
	owner := w.join(victim.App, victim.Key)
	foreignPicture := owner.upload(apitest.Picture("blue.png"))
	foreignOps := owner.next(&log.InputCreate{ID: "theirs", Blob: foreignPicture, ContentType: "image/png", Hosted: [16]byte{1}}, &log.ModelCreate{ID: "m"}, &log.WorkflowCreate{ID: "f"})
	owner.mustPush(foreignOps)
	input, model, flow := foreignOps[0].Dot, foreignOps[1].Dot, foreignOps[2].Dot

	r := w.join(w.App, w.Key)
	good := w.newHonest(w.App, w.NewKey(t, apitest.Tenant{App: w.App}, auth.All))
	good.sync()
	good.write(&log.ConceptCreate{ID: "g", Name: "good", Language: "en"})
	picture := r.upload(apitest.Picture("white.png"))
	other := r.upload([]byte("a manifest of nothing"))
	view := good.view()
	name, nan := "stolen", math.NaN()
	tests := []struct {
		name string
		want fold.Code
		body log.Body
	}{
		{"another's input is labelled", fold.Gone, &log.InputLabels{Input: input, Labels: []log.Label{{Concept: "evil", Value: log.True}}}},
		{"another's input is deleted", fold.OK, &log.InputDelete{Input: input}},
		{"another's input is moved", fold.Gone, &log.InputGeo{Input: input, Geo: &log.Point{}}},
		{"another's input is described", fold.Gone, &log.InputMeta{Input: input, Writes: []log.MetaWrite{{JSON: []byte("{}")}}}},
		{"another's outputs are edited", fold.Gone, &log.OutputsPatch{Input: input, Edits: []log.OutputEdit{{Concept: "evil", Value: 1}}}},
		{"another's download ends", fold.Gone, &log.InputFetched{Input: input, Code: 30002, Detail: "gone"}},
		{"another's model is renamed", fold.Gone, &log.ModelPatch{Model: model, Name: &name}},
		{"another's model is trained", fold.Gone, &log.VersionTrain{Model: model}},
		{"another's training ends", fold.Gone, &log.VersionResult{Model: model, Version: "v", Code: 21111}},
		{"another's model is deleted", fold.OK, &log.ModelDelete{Model: model}},
		{"another's workflow is deleted", fold.OK, &log.WorkflowDelete{Workflow: flow}},
		{"another's public name", fold.Refused, &log.InputCreate{ID: "x", Blob: picture, ContentType: "image/png", Hosted: [16]byte{1}}},
		{"a manifest that is none", fold.Refused, &log.VersionResult{Model: model, Version: "v", Code: 21100, Manifest: other}},
		{"a picture that is none", fold.Refused, &log.InputCreate{ID: "x", Blob: other, ContentType: "image/png"}},
		{"a page as a picture", fold.Refused, &log.InputCreate{ID: "x", Blob: picture, ContentType: "text/html"}},
		{"a header line as a content type", fold.Refused, &log.InputCreate{ID: "x", Blob: picture, ContentType: "image/png\r\nSet-Cookie: x"}},
		{"a crop beyond its picture", fold.Refused, &log.InputCreate{ID: "x", Blob: picture, ContentType: "image/png", Crop: raster.Crop{Bottom: 9, Right: 9}}},
		{"a crop that is no number", fold.Refused, &log.InputCreate{ID: "x", Blob: picture, ContentType: "image/png", Crop: raster.Crop{Top: nan, Bottom: nan, Right: nan}}},
		{"a place that is no number", fold.Refused, &log.InputCreate{ID: "x", URL: "http://x/", Geo: &log.Point{Longitude: nan}}},
		{"metadata that is none", fold.Refused, &log.InputCreate{ID: "x", URL: "http://x/", Meta: []byte(`{"a":`)}},
		{"metadata without end", fold.Refused, &log.InputCreate{ID: "x", URL: "http://x/", Meta: []byte(strings.Repeat("[", 60_000))}},
		{"an operation without end", fold.Refused, &log.InputCreate{ID: "x", URL: "http://x/" + strings.Repeat("x", partition.MaxOperation)}},
		{"an id without end", fold.Refused, &log.ConceptCreate{ID: strings.Repeat("x", 2000)}},
		{"a concept of the general model", fold.Refused, &log.ConceptCreate{ID: "ai_evil", Name: "evil"}},
		{"an unknown kind", fold.Refused, &log.Unknown{Kind: 999, Data: []byte{1, 2, 3}}},
		{"the horizon", fold.Refused, &log.Horizon{At: 1 << 63}},
		{"another network", fold.Refused, &log.NetworkSwitch{Base: [32]byte{9}}},
		{"an application", fold.Refused, &log.AppCreate{ID: strings.Repeat("ab", 16), Name: "x"}},
		{"the end of another's application", fold.Refused, &log.AppDelete{ID: victim.App}},
		{"a key to another's application", fold.Refused, &log.KeyCreate{Hash: [32]byte{1}, App: victim.App, Scopes: []string{"All"}}},
		{"the end of another's key", fold.Refused, &log.KeyDelete{Hash: auth.HashKey(victim.Key)}},
		{"a client of another's application", fold.Refused, &log.ClientSet{App: victim.App, ID: "x"}},
		{"an edge", fold.Refused, &log.EdgeCreate{ID: "x", Name: "x", Apps: []string{victim.App}}},
		{"an edge's key", fold.Refused, &log.EdgeEnrolled{ID: "x", Key: [32]byte{1}}},
		{"the end of an edge", fold.Refused, &log.EdgeRevoke{ID: "x"}},
		{"a site", fold.Refused, &log.SiteLease{App: victim.App, Secret: [32]byte{1}}},
		{"the numbers of sites", fold.Refused, &log.SitesSkip{To: 1 << 31}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			before := w.others(w.App)
			ops := r.next(tt.body)
			ops[0].At = math.MaxUint64 // whatever it says, it does nothing the later for it
			out := r.mustPush(ops)
			got := fold.OK
			if len(out.Verdicts) > 0 {
				got = fold.Code(out.Verdicts[0].Code)
			}
			if out.Accepted != r.seq || got != tt.want {
				t.Errorf("accepted %d of %d, verdicts %+v; want %v", out.Accepted, r.seq, out.Verdicts, tt.want)
			}
			if after := w.others(w.App); after != before {
				t.Errorf("another's things have changed from\n%s to\n%s", before, after)
			}
			if good.view() != view {
				t.Error("the honest replica shows something else")
			}
		})
	}
	good.write(&log.ConceptName{ID: "g", Name: "better"})
	if good.view() == view {
		t.Error("after all of that the honest replica cannot write")
	}
}

// TestClocksAreClamped has a replica with a clock of the far future write what an honest one writes too: it
// wins for two seconds, and never again.
func TestClocksAreClamped(t *testing.T) {
	w := newWorld(t, nil)
	r := w.join(w.App, w.Key)
	good := w.newHonest(w.App, w.Key)
	good.sync()
	for _, at := range []log.HLC{math.MaxUint64, 1 << 63, log.HLC(w.Now.Add(1000*time.Hour).UnixMilli()) << 16} {
		ops := r.next(&log.ConceptCreate{ID: "c", Name: "c", Language: "en"}, &log.ConceptName{ID: "c", Name: "future"})
		ops[0].At, ops[1].At = at-1, at
		r.mustPush(ops)
		p, err := w.Engine.Origin(w.App)
		if err != nil {
			t.Fatal(err)
		}
		if h, err := p.Header(); err != nil || h.Clock.Time().Sub(w.Now) > 2*time.Second {
			t.Errorf("a push with a clock of %v moves the origin's to %v ahead, %v", at.Time(), h.Clock.Time().Sub(w.Now), err)
		}
		w.Now = w.Now.Add(2*time.Second + time.Millisecond)
		good.sync()
		good.write(&log.ConceptName{ID: "c", Name: "present"})
		good.sync()
		v := good.part.View()
		c, err := v.Concept("c")
		if err != nil || c.Name != "present" {
			t.Errorf("after a clock of %v: %q, %v", at.Time(), c.Name, err)
		}
		_ = v.Close()
	}
}

// enrolEdge returns an edge of the application.
func (w *world) enrolEdge(seed byte) *replica {
	w.t.Helper()
	token, _, err := w.Engine.Register.CreateEdge(w.t.Context(), register.Caller{}, "shop", []string{w.App})
	if err != nil {
		w.t.Fatal(err)
	}
	key := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{seed}, 32))
	e := &replica{w: w, app: w.App}
	var got feed.EnrolReply
	if err := json.Unmarshal(e.must(200, "POST", "/v2/sync/enrol", feed.Enrolment(key, token)).Body, &got); err != nil {
		w.t.Fatal(err)
	}
	e.edge, e.site = got.Edge.ID, log.Writer(got.Edge.Site)
	e.draw()
	e.sign = func(method, path, query string, body []byte) string {
		return feed.Sign(key, got.Edge.ID, w.Now, method, path, query, body)
	}
	return e
}

// TestSignedBy: replicas sign operations with permitted and forbidden names. A replica that is not an edge signs with its credential, an
// edge with those of the application.
func TestSignedBy(t *testing.T) {
	w := newWorld(t, nil)
	victim := w.NewTenant(t, "", "en")
	tenant, deletedKey, replaced := apitest.Tenant{App: w.App}, "", ""
	by := func(key string) string { return auth.ByKey(auth.HashKey(key)) }
	deletedKey = w.NewKey(t, tenant, auth.All)
	replaced = w.NewKey(t, tenant, auth.All)
	foreignKey := w.NewKey(t, victim, auth.All)
	e := w.enrolEdge(7)
	created := w.Now
	w.Now = w.Now.Add(time.Hour)
	if err := w.Engine.Register.DeleteKey(t.Context(), register.Caller{}, w.App, auth.HashKey(deletedKey)); err != nil {
		t.Fatal(err)
	}
	if _, _, err := w.Engine.Register.ReplaceKey(t.Context(), register.Caller{}, w.App, auth.HashKey(replaced)); err != nil {
		t.Fatal(err)
	}
	if err := w.Engine.Register.DeleteKey(t.Context(), register.Caller{}, victim.App, auth.HashKey(foreignKey)); err != nil {
		t.Fatal(err)
	}
	w.Now = w.Now.Add(time.Hour)
	page := w.join(w.App, w.Key)
	const refused = "refused"
	tests := []struct {
		name string
		by   string
		late bool // made after the deletion
		page string
		edge string
	}{
		{"nobody", "", false, by(w.Key), ""},
		{"the replica's key", by(w.Key), false, by(w.Key), by(w.Key)},
		{"a token", "token", false, by(w.Key), "token"},
		{"a session", "session", false, by(w.Key), "session"},
		{"another application's key", by(victim.Key), false, by(w.Key), ""},
		{"another application's key that was deleted", by(foreignKey), true, by(w.Key), ""},
		{"the operator", "operator", false, by(w.Key), ""},
		{"a key before it was deleted", by(deletedKey), false, by(w.Key), by(deletedKey)},
		{"a key after it was deleted", by(deletedKey), true, by(w.Key), refused},
		{"a key before it was replaced", by(replaced), false, by(w.Key), by(replaced)},
		{"a key after it was replaced", by(replaced), true, by(w.Key), refused},
		{"markup", "<script>", false, by(w.Key), ""},
		{"a text without end", strings.Repeat("x", 300), false, by(w.Key), ""},
	}
	for i, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for _, sender := range []struct {
				r    *replica
				want string
			}{{page, tt.page}, {e, tt.edge}} {
				ops := sender.r.next(&log.ConceptCreate{ID: fmt.Sprint(i, sender.r.writer), Name: "n", Language: "en"})
				ops[0].By = tt.by
				if ops[0].At = log.HLC(created.UnixMilli()) << 16; tt.late {
					ops[0].At = log.HLC(w.Now.UnixMilli()) << 16
				}
				sender.r.mustPush(ops)
				got := w.last(w.App)
				if _, no := got.Body.(*log.Refused); no != (sender.want == refused) || !no && got.By != sender.want {
					t.Errorf("writer %v: the log has %T by %q, want %q", sender.r.writer, got.Body, got.By, sender.want)
				}
			}
		})
	}
	result := page.next(&log.VersionResult{Version: "v", Code: 21111})
	result[0].By = ""
	page.mustPush(result)
	if got := w.last(w.App); got.By != "" {
		t.Errorf("what a machine has done is by %q", got.By)
	}
}

// last is the last operation of an application's log.
func (w *world) last(app string) (op log.Op) {
	w.t.Helper()
	l := w.partition(app).Log()
	if err := l.Read(l.Head(), func(e log.Entry) bool { op = e.Op; return true }); err != nil {
		w.t.Fatal(err)
	}
	return op
}

// TestTokenLimitsAreSeparate has clients of two applications, both with a token, use up what one may: the other is not held to it.
func TestTokenLimitsAreSeparate(t *testing.T) {
	w := newWorld(t, func(o *feed.Options) { o.Limits.Snapshots = 2 })
	other := w.NewTenant(t, "", "en")
	bearer := func(app string) *replica {
		client, err := w.Engine.Register.Client(app)
		if err != nil {
			t.Fatal(err)
		}
		token, _, err := w.Tokens.Issue(auth.Claims{App: app, Client: client.ID, Generation: client.Generation})
		if err != nil {
			t.Fatal(err)
		}
		return &replica{w: w, app: app, authorization: "Bearer " + token}
	}
	one, two := bearer(w.App), bearer(other.App)
	digest := func(r *replica) string { return "/v2/sync/digest?app=" + r.app }
	for i := 0; one.ask("GET", digest(one), nil).Status == 200; i++ {
		if i > 100 {
			t.Fatal("nothing ends it")
		}
		w.input(fmt.Sprint("i", i), "red.png")
	}
	two.must(200, "GET", digest(two), nil)
}

// TestUploadsOfApplicationsAreSeparate begins uploads without end: they take the application's share, and nothing of another's.
func TestUploadsOfApplicationsAreSeparate(t *testing.T) {
	w := newWorld(t, func(o *feed.Options) { o.Limits.UploadBytes, o.Limits.BlobSize, o.Limits.Uploads = 100_000, 10_000, 10 })
	other := w.NewTenant(t, "", "en")
	r, friend := w.join(w.App, w.Key), w.join(other.App, other.Key)
	begin := func(r *replica, i int) int {
		r.headers = contentRange(0, 1, 2)
		return r.ask("PUT", r.blob(blob.Sum(fmt.Append(nil, i))), []byte("x")).Status
	}
	n := 0
	for ; begin(r, n) == 202; n++ {
		if n > 1000 {
			t.Fatal("nothing ends it")
		}
	}
	if n < 10 || n > 100 {
		t.Errorf("%d uploads of two bytes have begun in 25,000 bytes", n)
	}
	if got := begin(friend, 0); got != 202 {
		t.Errorf("another application: %d", got)
	}
	data := []byte("xy")
	w.Now = w.Now.Add(11 * time.Minute)
	r.headers = nil
	for i := range 10 {
		r.upload(fmt.Append(nil, "whole ", i))
	}
	if no := r.mustRefuse("PUT", r.blob(blob.Sum(data)), data); no.Code != wire.RefusedQuota || no.Limit != "Uploads" {
		t.Errorf("the eleventh that nothing names: %+v", no)
	}
	friend.headers = nil
	friend.upload(data)
	w.later(2 * time.Hour)
	r.upload(data)
}
