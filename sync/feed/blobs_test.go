package feed_test

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/sightline-dev/sightline/core/api/apitest"
	"github.com/sightline-dev/sightline/core/auth"
	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/fold"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/partition"
	"github.com/sightline-dev/sightline/core/register"
	"github.com/sightline-dev/sightline/sync/feed"
	"github.com/sightline-dev/sightline/sync/wire"
)

func contentRange(from, to, size int) map[string]string {
	return map[string]string{"Content-Range": fmt.Sprintf("bytes %d-%d/%d", from, to-1, size)}
}

// TestUploadsCutAnywhere uploads a picture in two parts, cut at each byte, and loses the answer to the first part. Nobody can read the
// incomplete picture, and the replica does not send received bytes again.
func TestUploadsCutAnywhere(t *testing.T) {
	w := newWorld(t, nil)
	r := w.join(w.App, w.Key)
	for cut := 1; cut < 80; cut++ {
		data := fmt.Appendf(nil, "picture %d %s", cut, strings.Repeat("x", 70))
		h := blob.Sum(data)
		for range 2 { // again, since the first answer was lost
			r.headers = contentRange(0, cut, len(data))
			begun, err := wire.DecodeHaveReply(r.must(202, "PUT", r.blob(h), data[:cut]).Body)
			if err != nil || len(begun.Partial) != 1 || begun.Partial[0] != (wire.PartialBlob{Hash: h, Size: uint64(cut)}) {
				t.Fatalf("cut at %d: %+v, %v", cut, begun, err)
			}
		}
		r.headers = nil
		if res := r.ask("GET", r.blob(h), nil); res.Status != 404 {
			t.Fatalf("cut at %d: GET = %d before it is whole", cut, res.Status)
		}
		had, err := wire.DecodeHaveReply(r.must(200, "POST", "/v2/sync/blobs/have", (&wire.HaveRequest{App: r.app, Hashes: []blob.Hash{h}}).Encode()).Body)
		if err != nil || len(had.Hashes) != 0 || len(had.Partial) != 1 || had.Partial[0].Size != uint64(cut) {
			t.Fatalf("cut at %d: have = %+v, %v", cut, had, err)
		}
		r.headers = contentRange(cut-1, len(data), len(data))
		if cut > 1 {
			if res := r.ask("PUT", r.blob(h), data[cut-1:]); res.Status != 409 {
				t.Fatalf("cut at %d: a piece that overlaps = %d", cut, res.Status)
			}
		}
		r.headers = contentRange(cut, len(data), len(data))
		r.must(201, "PUT", r.blob(h), data[cut:])
		r.must(200, "PUT", r.blob(h), data[cut:])
		for from := 0; from < len(data); from += 7 {
			r.headers = map[string]string{"Range": fmt.Sprintf("bytes=%d-", from)}
			if res := r.must(206, "GET", r.blob(h), nil); !bytes.Equal(res.Body, data[from:]) {
				t.Fatalf("from %d: %q", from, res.Body)
			}
		}
		r.headers = nil
		if res := r.must(200, "GET", r.blob(h), nil); !bytes.Equal(res.Body, data) {
			t.Fatalf("GET = %q", res.Body)
		}
	}
}

func TestUploadOfAnotherHash(t *testing.T) {
	w := newWorld(t, nil)
	r := w.join(w.App, w.Key)
	data := []byte(strings.Repeat("data", 10))
	h := blob.Sum([]byte("something else"))
	r.headers = contentRange(0, 20, 40)
	r.must(202, "PUT", r.blob(h), data[:20])
	r.headers = contentRange(20, 40, 40)
	if no := r.mustRefuse("PUT", r.blob(h), data[20:]); no.Code != wire.RefusedContent {
		t.Errorf("refused with %+v", no)
	}
	had, err := wire.DecodeHaveReply(r.must(409, "PUT", r.blob(h), data[20:]).Body)
	if err != nil || len(had.Partial) != 0 {
		t.Errorf("the wrong bytes are kept: %+v, %v", had, err)
	}
	if ok, err := w.Blobs.Has(t.Context(), blob.Sum(data)); ok || err != nil {
		t.Errorf("they are in the blobs: %v", err)
	}
}

// TestUploadsEnd: the origin deletes incomplete uploads after some minutes, and pictures that no operation names after an hour.
func TestUploadsEnd(t *testing.T) {
	w := newWorld(t, func(o *feed.Options) { o.Limits.UploadBytes, o.Limits.BlobSize = 1000, 200 })
	r := w.join(w.App, w.Key)
	h := r.upload([]byte("whole"))
	other := blob.Sum([]byte("other"))
	r.headers = contentRange(0, 80, 200)
	r.must(202, "PUT", r.blob(other), make([]byte, 80))
	third := r.blob(blob.Sum([]byte("third")))
	if no := r.mustRefuse("PUT", third, make([]byte, 80)); no.Code != wire.RefusedBusy || no.WaitMillis == 0 {
		t.Errorf("beyond the memory of uploads: %+v", no)
	}
	w.Now = w.Now.Add(11 * time.Minute)
	r.must(202, "PUT", third, make([]byte, 80))
	if ok, _ := w.Blobs.Has(t.Context(), h); !ok {
		t.Error("a picture has gone that an operation may still name")
	}
	w.Now = w.Now.Add(time.Hour) // the upload has expired, and the host has not called Step yet
	r.headers = nil
	r.upload([]byte("whole"))
	r.must(200, "GET", r.blob(h), nil)
	w.later(time.Hour)
	if ok, _ := w.Blobs.Has(t.Context(), h); ok {
		t.Error("a picture stays that no operation names")
	}
}

// TestEmptyUpload: an upload has at least one byte.
func TestEmptyUpload(t *testing.T) {
	w := newWorld(t, nil)
	r := w.join(w.App, w.Key)
	if no := r.mustRefuse("PUT", r.blob(blob.Sum(nil)), nil); no.Code != wire.RefusedFormat {
		t.Errorf("an empty upload: %+v", no)
	}
}

func TestRange(t *testing.T) {
	w := newWorld(t, nil)
	r := w.join(w.App, w.Key)
	data := bytes.Repeat([]byte("0123456789"), 200_000) // more than fits into one answer
	h := r.upload(data)
	for text, want := range map[string]struct{ status, from, to int }{
		"":                      {200, 0, len(data)},
		"bytes=0-":              {206, 0, len(data)},
		"bytes=1999999-":        {206, 1999999, len(data)},
		"bytes=1500000-1500009": {206, 1500000, 1500010},
		"bytes=5-9999999999":    {206, 5, len(data)},
		"bytes=-7":              {206, len(data) - 7, len(data)},
		"bytes=2000000-":        {416, 0, 0},
		"bytes=5-1":             {200, 0, len(data)},
		"bytes=0-1,5-6":         {200, 0, len(data)},
		"lines=1-2":             {200, 0, len(data)},
	} {
		r.headers = map[string]string{"Range": text}
		if res := r.ask("GET", r.blob(h), nil); res.Status != want.status || !bytes.Equal(res.Body, data[want.from:want.to]) {
			t.Errorf("Range: %s = %d and %d bytes, want %+v", text, res.Status, len(res.Body), want)
		}
	}
}

// TestSnapshotOfAtLeast requests a snapshot with an entry that the last snapshot lacks. The origin ignores an entry beyond the log.
func TestSnapshotOfAtLeast(t *testing.T) {
	w := newWorld(t, nil)
	r := w.join(w.App, w.Key)
	path := "/v2/sync/snapshot?app=" + r.app + "&least="
	for _, least := range []uint64{0, w.partition(r.app).Log().Head() + 2, 99} {
		r.mustPush(r.next(&log.ConceptCreate{ID: fmt.Sprint("c", least), Name: "n", Language: "en"}))
		m, err := wire.DecodeManifest(r.must(200, "GET", path+fmt.Sprint(least), nil).Body)
		if err != nil || m.Seq != w.partition(r.app).Log().Head() {
			t.Errorf("a snapshot of at least entry %d is of %d, %v; want the newest", least, m.Seq, err)
		}
	}
}

// TestSnapshot fetches a snapshot in chunks, while the log grows.
func TestSnapshot(t *testing.T) {
	w := newWorld(t, nil)
	for i := range 5 {
		w.input(fmt.Sprint("i", i), "red.png")
	}
	r := w.join(w.App, w.Key)
	manifest := r.must(200, "GET", "/v2/sync/snapshot?app="+r.app+"&vectors=q16", nil).Body
	m, err := wire.DecodeManifest(manifest)
	if err != nil || m.App != r.app || m.Seq != w.partition(r.app).Log().Head() || len(m.Chunks) == 0 {
		t.Fatalf("manifest %+v, %v", m, err)
	}
	w.input("later", "blue.png")
	byName := r.must(200, "GET", fmt.Sprintf("/v2/sync/snapshot?app=%s&vectors=q16&name=%x", r.app, sha256.Sum256(manifest)), nil).Body
	if !bytes.Equal(byName, manifest) {
		t.Error("by its name it is another")
	}
	keys := 0
	for _, c := range m.Chunks {
		data := r.must(200, "GET", "/v2/sync/snapshot/"+c.Hash.String()+"?app="+r.app+"", nil).Body
		if blob.Sum(data) != c.Hash || uint64(len(data)) != c.Size {
			t.Fatalf("a chunk of %d bytes is not the one listed", len(data))
		}
		if err := partition.Unpack(data, func(_, _ []byte) bool { keys++; return true }); err != nil {
			t.Error(err)
		}
	}
	if keys < 20 {
		t.Errorf("only %d keys", keys)
	}
	other := w.NewTenant(t, "", "en")
	thief := w.join(other.App, other.Key)
	if no := thief.mustRefuse("GET", "/v2/sync/snapshot/"+m.Chunks[0].Hash.String()+"?app="+other.App, nil); no.Code != wire.RefusedUnknown {
		t.Errorf("another application's chunk: %+v", no)
	}
	s := wire.Session{Min: wire.Oldest, Max: wire.Protocol, Fold: fold.Version, Schema: 1, Apps: []wire.Position{
		{App: r.app, Epoch: m.Epoch, Seq: m.Seq, Chain: m.Chain},
		{App: r.app, Epoch: m.Epoch, Seq: m.Seq},
		{App: r.app, Epoch: m.Epoch, Seq: m.Seq + 99, Chain: m.Chain},
		{App: other.App},
	}}
	var got []wire.Do
	for _, g := range r.session(&s).Grants {
		got = append(got, g.Do)
	}
	if want := []wire.Do{wire.DoTail, wire.DoRebase, wire.DoRebase, wire.DoRefused}; fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("grants %v, want %v", got, want)
	}
}

// TestDigest: the digest is that of the state. The answer to a request for another entry has no digest. The origin reads a state once.
func TestDigest(t *testing.T) {
	w := newWorld(t, func(o *feed.Options) { o.Limits.Snapshots = 2 })
	r := w.join(w.App, w.Key)
	app, err := catalog.ParseAppID(w.App)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 2 {
		w.input(fmt.Sprint("i", i), "red.png")
		l := w.partition(r.app).Log()
		state, err := fold.Digest(w.Store, app)
		if err != nil {
			t.Fatal(err)
		}
		for at, want := range map[uint64][32]byte{0: state, l.Head(): state, l.Head() - 1: {}, l.Head() + 1: {}} {
			m, err := wire.DecodeDigest(r.must(200, "GET", fmt.Sprintf("/v2/sync/digest?app=%s&at=%d", r.app, at), nil).Body)
			if err != nil || m.Epoch != l.EpochOf(l.Head()).Epoch || m.Seq != l.Head() || m.Digest != want {
				t.Errorf("digest at %d: %+v, %v", at, m, err)
			}
		}
	}
	w.input("last", "red.png")
	if no := r.mustRefuse("GET", "/v2/sync/digest?app="+r.app, nil); no.Code != wire.RefusedQuota || no.Limit != "Snapshots" {
		t.Errorf("the fourth state: %+v", no)
	}
}

// TestEdge enrols an edge, makes signed requests with it, and revokes it.
func TestEdge(t *testing.T) {
	w := newWorld(t, nil)
	w.input("a", "red.png")
	second := w.NewTenant(t, "", "en")
	outside := w.NewTenant(t, "", "en")
	token, _, err := w.Engine.Register.CreateEdge(t.Context(), register.Caller{}, "shop", []string{w.App, second.App})
	if err != nil {
		t.Fatal(err)
	}
	key := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{7}, 32))
	e := &replica{w: w, app: w.App}
	var first feed.EnrolReply
	for i := range 2 { // again, as if the first answer was lost
		var got feed.EnrolReply
		if err := json.Unmarshal(e.must(200, "POST", "/v2/sync/enrol", feed.Enrolment(key, token)).Body, &got); err != nil || got.Edge.Site < 2 {
			t.Fatalf("enrolled %+v, %v", got, err)
		}
		if i == 0 {
			first = got
		} else if !reflect.DeepEqual(got, first) {
			t.Errorf("the second answer is %+v, the first %+v", got, first)
		}
	}
	if res := e.ask("POST", "/v2/sync/enrol", feed.Enrolment(ed25519.NewKeyFromSeed(make([]byte, 32)), token)); res.Status != 401 {
		t.Errorf("another key enrols with the token: %d %s", res.Status, res.Body)
	}
	e.site = log.Writer(first.Edge.Site)
	e.draw()
	skew := time.Duration(0)
	e.sign = func(method, path, query string, body []byte) string {
		return feed.Sign(key, first.Edge.ID, w.Now.Add(skew), method, path, query, body)
	}
	s := wire.Session{Min: wire.Oldest, Max: wire.Protocol, Fold: fold.Version, Schema: 1, Apps: []wire.Position{{App: w.App}, {App: second.App}, {App: outside.App}}}
	o := e.session(&s)
	if o.Grants[0].Do != wire.DoTail || o.Grants[1].Do != wire.DoTail || o.Grants[2].Do != wire.DoRefused {
		t.Errorf("offered %+v", o)
	}
	if k := kinds(e.pull("since=0&vectors=q16")); k != "register derived entries checkpoint end" {
		t.Errorf("an edge pulls %s", k)
	}
	if out := e.mustPush(e.next(&log.ConceptCreate{ID: "e", Name: "e", Language: "en"})); out.Accepted != 1 {
		t.Errorf("an edge pushes %+v", out)
	}
	w.checkUnchanged("what an edge may not", func() {
		m := e.push(e.next(&log.ConceptCreate{ID: "x", Name: "x", Language: "en"}))
		for i, change := range []func(){
			func() { m.App = outside.App },
			func() { m.App, m.Writer = w.App, e.writer+1 },
			func() { m.Writer = e.site + 1 },
			func() { m.Writer, skew = e.writer, 6*time.Minute },
			func() { skew = -6 * time.Minute },
		} {
			change()
			if res := e.ask("POST", "/v2/sync/push", m.Encode()); res.Status != 401 && res.Status != 403 {
				t.Errorf("attack %d = %d", i, res.Status)
			}
		}
		skew = 0
		good := e.sign
		e.sign = func(method, path, query string, body []byte) string {
			return good(method, path, query, append(bytes.Clone(body), 0))
		}
		if res := e.ask("POST", "/v2/sync/push", m.Encode()); res.Status != 401 {
			t.Errorf("a body that was not signed = %d", res.Status)
		}
		e.sign = good
	})
	worker := w.NewKey(t, apitest.Tenant{App: w.App}, auth.All)
	deletedAt := w.Now
	if err := w.Engine.Register.DeleteKey(t.Context(), register.Caller{}, w.App, auth.HashKey(worker)); err != nil {
		t.Fatal(err)
	}
	w.Now = w.Now.Add(time.Hour)
	late := e.push([]log.Op{
		{Dot: log.Dot{Writer: e.writer, Seq: 2}, At: 1, By: auth.ByKey(auth.HashKey(worker)), Body: &log.ConceptCreate{ID: "before", Name: "n", Language: "en"}},
		{Dot: log.Dot{Writer: e.writer, Seq: 3}, At: 2, By: auth.ByKey(auth.HashKey(worker)), Body: &log.ConceptCreate{ID: "after", Name: "n", Language: "en"}},
	})
	for i, op := range []time.Duration{-time.Minute, time.Minute} {
		late.For = append(late.For, wire.Delegation{
			First: uint64(2 + i), Last: uint64(2 + i), Subject: auth.ByKey(auth.HashKey(worker)), Issued: wire.MillisOf(deletedAt.Add(op)),
		})
	}
	reply, err := wire.DecodePushed(e.must(200, "POST", "/v2/sync/push", late.Encode()).Body)
	if err != nil || reply.Accepted != 3 || len(reply.Verdicts) != 1 || reply.Verdicts[0].Seq != 3 || reply.Verdicts[0].Code != uint32(fold.Refused) {
		t.Errorf("on behalf of a deleted key: %+v, %v", reply, err)
	}
	if err := w.Engine.Register.DeleteApp(t.Context(), register.Caller{}, second.App); err != nil {
		t.Fatal(err)
	}
	if o := e.session(&s); o.Grants[0].Do != wire.DoTail || o.Grants[1].Do != wire.DoErase {
		t.Errorf("after an application was deleted: %+v", o.Grants)
	}
	if err := w.Engine.Register.RevokeEdge(t.Context(), register.Caller{}, first.Edge.ID); err != nil {
		t.Fatal(err)
	}
	if o := e.session(&s); o.Grants[0].Do != wire.DoRefused {
		t.Errorf("a revoked edge is offered %+v", o.Grants)
	}
	if no := e.mustRefuse("GET", "/v2/sync/changes?app="+w.App, nil); no.Code != wire.RefusedScope {
		t.Errorf("a revoked edge: %+v", no)
	}
	e.mustRefuse("GET", e.blob(blob.Sum(apitest.Picture("red.png"))), nil)
}

// TestUploadOfCameraRaw checks that an upload may have more bytes than most pictures if it begins as camera raw does.
func TestUploadOfCameraRaw(t *testing.T) {
	w := newWorld(t, nil)
	r := w.join(w.App, w.Key)
	const size = 30_000_000
	r.headers = contentRange(0, 1000, size)
	r.must(202, "PUT", r.blob(blob.Sum([]byte("raw"))), append([]byte("FUJIFILMCCD-RAW "), make([]byte, 984)...))
	if no := r.mustRefuse("PUT", r.blob(blob.Sum([]byte("jpeg"))), append([]byte("\xff\xd8\xff\xe0"), make([]byte, 996)...)); no.Code != wire.RefusedLimit || no.Value != 20_000_000 {
		t.Errorf("a JPEG of %d bytes: %+v", size, no)
	}
	r.headers = contentRange(0, 1000, 64_000_001)
	if no := r.mustRefuse("PUT", r.blob(blob.Sum([]byte("large"))), append([]byte("FUJIFILMCCD-RAW "), make([]byte, 984)...)); no.Code != wire.RefusedLimit {
		t.Errorf("camera raw of 64,000,001 bytes: %+v", no)
	}
}
