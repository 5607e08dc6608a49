package feed_test

import (
	"bytes"
	"crypto/ed25519"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/api/apitest"
	"github.com/sightline-dev/sightline/core/auth"
	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/fold"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/log/logtest"
	"github.com/sightline-dev/sightline/core/partition"
	"github.com/sightline-dev/sightline/core/register"
	"github.com/sightline-dev/sightline/core/testkit"
	"github.com/sightline-dev/sightline/sync/feed"
	"github.com/sightline-dev/sightline/sync/wire"
)

// TestHostileReplica: a hostile and an honest replica sync the same application. The origin refuses each attack with the expected
// status. The digests of every application, the logs, the pictures, and the data of the honest replica do not change.
func TestHostileReplica(t *testing.T) {
	w, open := newSealedWorld(t, nil)
	victim := w.NewTenant(t, "", "en")
	w.seal(victim.App)
	open(w.Store)
	w.input("mine", "red.png")
	owner := w.join(victim.App, victim.Key)
	secret := owner.upload(apitest.Picture("blue.png"))
	owner.mustPush(owner.next(&log.InputCreate{ID: "theirs", Blob: secret, ContentType: "image/png"}))
	orphan := owner.upload(apitest.Picture("white.png")) // uploaded; no operation names it yet

	r := w.join(w.App, w.Key)
	friend := w.join(w.App, w.Key)
	good := w.newHonest(w.App, w.NewKey(t, apitest.Tenant{App: w.App}, auth.All))
	good.sync()
	good.write(&log.ConceptCreate{ID: "g", Name: "good", Language: "en"})
	view := good.view()
	good.write(&log.ConceptName{ID: "g", Name: "better"})
	if view == good.view() {
		t.Fatal("the honest replica shows nothing")
	}
	friend.mustPush(friend.next(&log.ConceptCreate{ID: "f", Name: "f", Language: "en"}))
	r.mustPush(r.next(&log.ConceptCreate{ID: "r", Name: "r", Language: "en"}))
	concept := &log.ConceptCreate{ID: "evil", Name: "evil", Language: "en"}
	narrow := "Key " + w.NewKey(t, apitest.Tenant{App: w.App}, auth.InputsAdd|auth.InputsGet)

	twin := &log.ConceptCreate{ID: "again", Name: "again", Language: "en"}
	recorded := r.push(r.next(twin))
	r.must(200, "POST", "/v2/sync/push", recorded.Encode())
	view = good.view()

	// as returns a function that pushes one operation. change forges a part of the request.
	as := func(change func(x *replica, m *wire.Push, op *log.Op)) func() api.Response {
		return func() api.Response {
			x := *r
			op := log.Op{Dot: log.Dot{Writer: r.writer, Seq: r.seq + 1}, At: 1, Body: concept}
			m := wire.Push{App: x.app, Opening: w.partition(x.app).Opening(), Writer: x.writer, Secret: x.secret}
			change(&x, &m, &op)
			if m.Rows == nil {
				m.Rows = log.EncodeRows([]log.Op{op})
			}
			return x.ask("POST", "/v2/sync/push", m.Encode())
		}
	}
	kept := backOf(t, w, w.partition(w.App), 0, w.partition(w.App).Log().Head())
	stolen := backOf(t, w, w.partition(victim.App), 0, w.partition(victim.App).Log().Head())
	// give returns a function that gives the frames of the log back. change forges a part of the request, and of the frame.
	give := func(change func(m *wire.Back, e *wire.Entries)) func() api.Response {
		return func() api.Response {
			m := kept
			m.Opening = w.partition(w.App).Opening()
			e, err := wire.DecodeEntriesFrame(bytes.Clone(m.Frames[0]))
			if err != nil {
				t.Fatal(err)
			}
			change(&m, &e)
			if m.Frames = [][]byte{e.Encode()}; m.App == victim.App {
				m.Frames = stolen.Frames
			}
			return r.ask("POST", "/v2/sync/back", m.Encode())
		}
	}
	forge := func(e *wire.Entries, op log.Op) {
		e.From, e.To, e.Rows = e.To, e.To+1, log.EncodeRows([]log.Op{op})
		e.Before, e.Chain = e.Chain, e.Chain.Next(log.Encode(nil, &op))
	}
	get := func(method, path string, body []byte) func() api.Response {
		return func() api.Response { return r.ask(method, path, body) }
	}
	have := func(hashes ...blob.Hash) []byte { return (&wire.HaveRequest{App: w.App, Hashes: hashes}).Encode() }
	tests := []struct {
		name string
		want int
		do   func() api.Response
	}{
		{"another's application", 403, as(func(x *replica, m *wire.Push, op *log.Op) {
			m.App, m.Opening = victim.App, w.partition(victim.App).Opening()
		})},
		{"an application that never was", 403, as(func(x *replica, m *wire.Push, op *log.Op) { m.App = strings.Repeat("ab", 16) })},
		{"the control partition", 403, as(func(x *replica, m *wire.Push, op *log.Op) { m.App = strings.Repeat("0", 32) })},
		{"a wrong secret", 403, as(func(x *replica, m *wire.Push, op *log.Op) { m.Secret = make([]byte, partition.SecretSize) })},
		{"no secret", 403, as(func(x *replica, m *wire.Push, op *log.Op) { m.Secret = nil })},
		{"a secret with more behind it", 403, as(func(x *replica, m *wire.Push, op *log.Op) { m.Secret = append(bytes.Clone(m.Secret), 0) })},
		{"another's writer", 403, as(func(x *replica, m *wire.Push, op *log.Op) {
			m.Writer, op.Dot.Writer, op.Dot.Seq = friend.writer, friend.writer, 2
		})},
		{"a writer of another application", 403, as(func(x *replica, m *wire.Push, op *log.Op) {
			m.Writer, m.Secret, op.Dot.Writer, op.Dot.Seq = owner.writer, owner.secret, owner.writer, 2
		})},
		{"a secret drawn for another application", 403, as(func(x *replica, m *wire.Push, op *log.Op) {
			m.Writer = partition.WriterOf(catalog.AppID{9}, m.Secret)
			op.Dot.Writer, op.Dot.Seq = m.Writer, 1
		})},
		{"operations of another writer in one's own push", 403, as(func(x *replica, m *wire.Push, op *log.Op) { op.Dot.Writer = friend.writer })},
		{"the origin's site", 403, as(func(x *replica, m *wire.Push, op *log.Op) { m.Writer, op.Dot.Writer = 1, 1 })},
		{"the origin's writer", 403, as(func(x *replica, m *wire.Push, op *log.Op) {
			m.Writer = w.writerOf(w.App)
			op.Dot.Writer, op.Dot.Seq = m.Writer, 1
		})},
		{"a site that nobody has, after missing operations", 409, as(func(x *replica, m *wire.Push, op *log.Op) { m.Writer, op.Dot.Writer = 77, 77 })},
		{"a writer beyond all that are drawn", 403, as(func(x *replica, m *wire.Push, op *log.Op) {
			m.Writer |= 1 << 63
			op.Dot.Writer = m.Writer
		})},
		{"no writer", 403, as(func(x *replica, m *wire.Push, op *log.Op) { m.Writer = 0 })},
		{"a key without every scope", 403, as(func(x *replica, m *wire.Push, op *log.Op) { x.authorization = narrow })},
		{"a key that is none", 401, as(func(x *replica, m *wire.Push, op *log.Op) { x.authorization = "Key " + strings.Repeat("0", 32) })},
		{"no credential", 401, as(func(x *replica, m *wire.Push, op *log.Op) { x.authorization = "" })},
		{"an edge that is none", 401, as(func(x *replica, m *wire.Push, op *log.Op) { x.authorization = "Edge x 0 00" })},
		{"another opening", 409, as(func(x *replica, m *wire.Push, op *log.Op) { m.Opening[3]++ })},
		{"a gap", 409, as(func(x *replica, m *wire.Push, op *log.Op) { op.Dot.Seq += 7 })},
		{"the last sequence of all", 409, as(func(x *replica, m *wire.Push, op *log.Op) { op.Dot.Seq = log.MaxSeq })},
		{"a sequence of more than 32 bits", 400, as(func(x *replica, m *wire.Push, op *log.Op) { op.Dot.Seq = log.MaxSeq + 1 })},
		{"sequence 0", 400, as(func(x *replica, m *wire.Push, op *log.Op) { op.Dot.Seq = 0 })},
		{"another's picture by its hash", 409, as(func(x *replica, m *wire.Push, op *log.Op) {
			op.Body = &log.InputCreate{ID: "stolen", Blob: secret, ContentType: "image/png"}
		})},
		{"what another has sent, by its hash", 409, as(func(x *replica, m *wire.Push, op *log.Op) {
			op.Body = &log.InputCreate{ID: "stolen", Blob: orphan, ContentType: "image/png"}
		})},
		{"a manifest by its hash", 409, as(func(x *replica, m *wire.Push, op *log.Op) {
			op.Body = &log.VersionResult{Version: "v", Code: 21100, Manifest: orphan}
		})},
		{"the operations before it are missing", 409, as(func(x *replica, m *wire.Push, op *log.Op) {
			later := *op
			later.Dot.Seq++
			m.Rows = log.EncodeRows([]log.Op{later})
		})},
		{"operations in another order", 400, as(func(x *replica, m *wire.Push, op *log.Op) {
			later := *op
			later.Dot.Seq++
			m.Rows = log.EncodeRows([]log.Op{later, *op})
		})},
		{"a gap within", 400, as(func(x *replica, m *wire.Push, op *log.Op) {
			later := *op
			later.Dot.Seq += 2
			m.Rows = log.EncodeRows([]log.Op{*op, later})
		})},
		{"what was pushed before, again", 200, get("POST", "/v2/sync/push", recorded.Encode())},
		{"something else by the newest name that the log has", 409, as(func(x *replica, m *wire.Push, op *log.Op) {
			op.Dot.Seq, op.Body = r.seq, &log.InputDeleteAll{Barrier: true}
		})},
		{"what follows another operation than the log has", 409, as(func(x *replica, m *wire.Push, op *log.Op) { m.Before = 5 << 16 })},
		{"something else by an earlier name that the log has", 409, as(func(x *replica, m *wire.Push, op *log.Op) {
			op.Dot.Seq, op.Body = 1, &log.InputDeleteAll{Barrier: true}
		})},
		{"entries that the log has, given back", 200, give(func(m *wire.Back, e *wire.Entries) {})},
		{"entries that the log has, as those of another epoch", 200, give(func(m *wire.Back, e *wire.Entries) { e.Epoch[0]++ })},
		{"forged entries after those of the log", 409, give(func(m *wire.Back, e *wire.Entries) {
			forge(e, log.Op{Dot: log.Dot{Writer: friend.writer, Seq: 2}, At: 1, Body: &log.InputDeleteAll{Barrier: true}})
		})},
		{"forged entries of the origin's writer", 409, give(func(m *wire.Back, e *wire.Entries) {
			forge(e, log.Op{Dot: log.Dot{Writer: w.writerOf(w.App), Seq: 1 << 20}, At: 1, Body: &log.InputDeleteAll{Barrier: true}})
		})},
		{"entries in another order", 409, give(func(m *wire.Back, e *wire.Entries) {
			entries, err := log.DecodeRows(e.Rows, e.From)
			if err != nil {
				t.Fatal(err)
			}
			slices.Reverse(entries)
			e.Rows, e.Chain = logtest.Rows(entries), e.Before
			for i := range entries {
				e.Chain = e.Chain.Next(log.Encode(nil, &entries[i].Op))
			}
		})},
		{"entries without a seal", 409, give(func(m *wire.Back, e *wire.Entries) { e.Seal = nil })},
		{"entries of another's application, given back there", 403, give(func(m *wire.Back, e *wire.Entries) { m.App, m.Opening = victim.App, w.partition(victim.App).Opening() })},
		{"entries of another's application, given back here", 409, give(func(m *wire.Back, e *wire.Entries) {
			var err error
			if *e, err = wire.DecodeEntriesFrame(stolen.Frames[0]); err != nil {
				t.Fatal(err)
			}
		})},
		{"entries for another opening", 409, give(func(m *wire.Back, e *wire.Entries) { m.Opening[7]++ })},
		{"a give back by nobody", 401, func() api.Response {
			x := replica{w: w, app: w.App}
			m := kept
			m.Opening = w.partition(w.App).Opening()
			return x.ask("POST", "/v2/sync/back", m.Encode())
		}},
		{"a give back without end", 413, get("POST", "/v2/sync/back", make([]byte, 8<<20+1))},
		{"changes of another opening", 409, get("GET", "/v2/sync/changes?opening="+strings.Repeat("ab", 16)+"&app="+w.App, nil)},
		{"a snapshot of another opening", 409, get("GET", "/v2/sync/snapshot?opening="+strings.Repeat("ab", 16)+"&app="+w.App, nil)},
		{"another's place in a session", 200, func() api.Response {
			p := w.partition(victim.App)
			s := wire.Session{Min: wire.Oldest, Max: wire.Protocol, Fold: fold.Version, Schema: 1, Apps: []wire.Position{
				{App: victim.App, Epoch: p.Opening(), Seq: 1 << 50},
			}}
			res := r.ask("POST", "/v2/sync/session", s.Encode())
			o, err := wire.DecodeSessionReply(res.Body)
			if err != nil || len(o.Grants) != 1 || o.Grants[0].Do != wire.DoRefused || o.Grants[0].Lacks || o.Grants[0].Opening != (log.Epoch{}) || o.Grants[0].Head != 0 {
				t.Errorf("granted %+v, %v", o.Grants, err)
			}
			if w.partition(victim.App) != p || p.Opening() != w.partition(w.App).Opening() {
				t.Error("another's log was opened again")
			}
			return res
		}},
		{"no operations", 200, as(func(x *replica, m *wire.Push, op *log.Op) { m.Rows = []byte{} })},
		{"a length that nothing has", 400, as(func(x *replica, m *wire.Push, op *log.Op) {
			m.Rows = []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1}
		})},
		{"more operations than a message has", 400, as(func(x *replica, m *wire.Push, op *log.Op) {
			m.Rows = bytes.Repeat(log.EncodeRows([]log.Op{*op}), wire.MaxOps+1)
		})},
		{"a length beyond the body", 400, as(func(x *replica, m *wire.Push, op *log.Op) {
			m.Rows = []byte{0xff, 0xff, 0xff, 0x7f}
		})},
		{"no rows", 400, as(func(x *replica, m *wire.Push, op *log.Op) { m.Rows = []byte{9, 9, 9} })},
		{"an oversized body", 413, func() api.Response { return r.ask("POST", "/v2/sync/push", make([]byte, 8<<20+1)) }},
		{"a body that is no message", 400, func() api.Response { return r.ask("POST", "/v2/sync/push", []byte("{}")) }},
		{"an oversized question", 413, get("POST", "/v2/sync/blobs/have", make([]byte, 1<<20+1))},
		{"an oversized enrolment", 413, get("POST", "/v2/sync/enrol", make([]byte, 4097))},
		{"a query without end", 400, get("GET", "/v2/sync/changes?app="+w.App+"&x="+strings.Repeat("x", 5000), nil)},
		{"more applications than a session has", 400, func() api.Response {
			s := wire.Session{Min: wire.Oldest, Max: wire.Protocol, Fold: fold.Version, Schema: 1, Apps: make([]wire.Position, 4097)}
			return r.ask("POST", "/v2/sync/session", s.Encode())
		}},
		{"a session that needs what nobody knows", 426, func() api.Response {
			s := wire.Session{Min: wire.Oldest, Max: wire.Protocol, Fold: fold.Version, Schema: 1, Require: []string{"everything"}}
			return r.ask("POST", "/v2/sync/session", s.Encode())
		}},
		{"an oversized picture", 413, get("PUT", r.blob(blob.Sum(nil)), make([]byte, 20_000_001))},
		{"a piece of a picture without end", 413, func() api.Response {
			x := *r
			x.headers = contentRange(0, 4, 1<<60)
			return x.ask("PUT", r.blob(blob.Sum([]byte("x"))), []byte("abcd"))
		}},
		{"a piece beyond its own end", 400, func() api.Response {
			x := *r
			x.headers = contentRange(2, 6, 4)
			return x.ask("PUT", r.blob(blob.Sum([]byte("x"))), []byte("abcd"))
		}},
		{"a piece in the middle", 409, func() api.Response {
			x := *r
			x.headers = contentRange(100, 104, 200)
			return x.ask("PUT", r.blob(blob.Sum([]byte("x"))), []byte("abcd"))
		}},
		{"an oversized session", 413, get("POST", "/v2/sync/session", make([]byte, 1<<20+1))},
		{"another's picture", 404, get("GET", r.blob(secret), nil)},
		{"another's upload", 404, get("GET", r.blob(orphan), nil)},
		{"another's picture in their application", 403, get("GET", owner.blob(secret), nil)},
		{"bytes of another hash", 409, get("PUT", r.blob(secret), apitest.Picture("red.png"))},
		{"another's picture as an object", 404, get("GET", "/v2/sync/snapshot/"+secret.String()+"?app="+w.App, nil)},
		{"a chunk of another's snapshot", 404, func() api.Response { return r.ask("GET", "/v2/sync/snapshot/"+w.chunkOf(owner)+"?app="+w.App, nil) }},
		{"a path that is no hash", 404, get("GET", "/v2/sync/blobs/..%2f..%2fetc?app="+w.App, nil)},
		{"a path upwards", 404, get("GET", "/v2/sync/blobs/../../inputs?app="+w.App, nil)},
		{"a path into another's", 404, get("GET", "/v2/sync/blobs/"+victim.App+"/"+secret.String()+"?app="+w.App, nil)},
		{"a hash in capitals", 404, get("GET", "/v2/sync/blobs/"+strings.ToUpper(secret.String())+"?app="+w.App, nil)},
		{"two applications in a query", 403, get("GET", "/v2/sync/changes?app="+victim.App+"&app="+w.App, nil)},
		{"another's application after one's own", 404, get("GET", "/v2/sync/blobs/"+secret.String()+"?app="+w.App+"&app="+victim.App, nil)},
		{"no application", 403, get("GET", "/v2/sync/changes", nil)},
		{"an application in capitals", 403, get("GET", "/v2/sync/changes?app="+strings.ToUpper(victim.App), nil)},
		{"an upload for another", 403, get("PUT", owner.blob(blob.Sum([]byte("x"))), []byte("x"))},
		{"another's changes", 403, get("GET", "/v2/sync/changes?app="+victim.App+"&since=0", nil)},
		{"another's snapshot", 403, get("GET", "/v2/sync/snapshot?app="+victim.App, nil)},
		{"another's digest", 403, get("GET", "/v2/sync/digest?app="+victim.App, nil)},
		{"another's register", 403, get("GET", "/v2/sync/keys?app="+victim.App, nil)},
		{"too many dates", 413, get("POST", "/v2/sync/dates", (&wire.DatesRequest{App: w.App, Names: make([]byte, 80*513)}).Encode())},
		{"half a name of a date", 400, get("POST", "/v2/sync/dates", (&wire.DatesRequest{App: w.App, Names: make([]byte, 81)}).Encode())},
		{"an oversized question for dates", 413, get("POST", "/v2/sync/dates", make([]byte, 64<<10+1))},
		{"another's dates", 403, get("POST", "/v2/sync/dates", (&wire.DatesRequest{App: victim.App, Names: make([]byte, 80)}).Encode())},
		{"too many hashes", 413, get("POST", "/v2/sync/blobs/have", have(make([]blob.Hash, 10_001)...))},
		{"a call that is none", 404, get("GET", "/v2/sync/everything", nil)},
		{"a call that earlier edges make", 404, get("GET", "/v2/sync/releases/stable", nil)},
		{"a method that is none", 405, get("DELETE", "/v2/sync/push", nil)},
		{"a cursor that is none", 400, get("GET", "/v2/sync/changes?app="+w.App+"&since=-1", nil)},
		{"an epoch that is none", 400, get("GET", "/v2/sync/changes?app="+w.App+"&epoch=zz", nil)},
		{"an entry that is none", 400, get("GET", "/v2/sync/digest?app="+w.App+"&at=../..", nil)},
		{"an enrolment without a token", 400, get("POST", "/v2/sync/enrol", []byte(`{}`))},
		{"an enrolment with a token that is none", 401, get("POST", "/v2/sync/enrol", feed.Enrolment(ed25519.NewKeyFromSeed(make([]byte, 32)), "guess"))},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w.checkUnchanged(tt.name, func() {
				if res := tt.do(); res.Status != tt.want {
					t.Errorf("status %d, want %d: %.300q", res.Status, tt.want, res.Body)
				}
			})
			if good.view() != view {
				t.Error("the honest replica shows something else")
			}
		})
	}
	t.Run("another application's pictures are not listed", func(t *testing.T) {
		had, err := wire.DecodeHaveReply(r.must(200, "POST", "/v2/sync/blobs/have", have(secret, orphan)).Body)
		if err != nil || len(had.Hashes)+len(had.Partial) != 0 {
			t.Errorf("have = %+v, %v", had, err)
		}
	})
	if out := r.mustPush(r.next(concept)); out.Accepted != 3 {
		t.Errorf("after all of that an honest push has %+v", out)
	}
}

// writerOf returns the writer of an application's first entry, which the origin wrote.
func (w *world) writerOf(app string) (writer log.Writer) {
	w.t.Helper()
	err := w.partition(app).Log().Read(1, func(e log.Entry) bool {
		writer = e.Op.Dot.Writer
		return false
	})
	if err != nil || writer.IsSite() {
		w.t.Fatalf("the first entry is by writer %v, %v", writer, err)
	}
	return writer
}

// TestErrorsAreJSONByDefault: without wire.ContentType in Accept, errors are JSON, as in the rest of the API.
func TestErrorsAreJSONByDefault(t *testing.T) {
	w := newWorld(t, nil)
	r := w.join(w.App, w.Key)
	r.headers = map[string]string{"Accept": "*/*"}
	for path, want := range map[string]string{
		"/v2/sync/changes?app=" + strings.Repeat("ab", 16): `{"status":{"code":11007,"description":"API key has insufficient scopes","details":`,
		"/v2/sync/changes?app=" + w.App + "&since=x":       `{"status":{"code":11102,"description":"Invalid request","details":`,
		"/v2/sync/nothing": `{"status":{"code":11101,"description":"Resource does not exist","details":`,
	} {
		if res := r.ask("GET", path, nil); !bytes.HasPrefix(res.Body, []byte(want)) || !strings.HasPrefix(res.ContentType, "application/json") {
			t.Errorf("GET %s = %d %s", path, res.Status, res.Body)
		}
	}
}

// TestDeletedApplication: after an application is deleted, the origin refuses its replicas as gone, and deletes their uploads. A caller without
// a credential gets the same answer as for an application that never was.
func TestDeletedApplication(t *testing.T) {
	w := newWorld(t, nil)
	w.input("a", "red.png")
	r := w.join(w.App, w.Key)
	sent := r.upload([]byte("sent, and nothing names it"))
	if err := w.Engine.Register.DeleteApp(t.Context(), register.Caller{}, w.App); err != nil {
		t.Fatal(err)
	}
	for _, ask := range [][2]string{
		{"GET", "/v2/sync/changes?app=" + w.App + "&since=0&live=stream"},
		{"GET", "/v2/sync/snapshot?app=" + w.App},
		{"GET", "/v2/sync/keys?app=" + w.App},
	} {
		if no := r.mustRefuse(ask[0], ask[1], nil); no.Code != wire.RefusedGone {
			t.Errorf("%s = %+v", ask[1], no)
		}
	}
	s := wire.Session{Min: wire.Oldest, Max: wire.Protocol, Fold: fold.Version, Schema: 1, Apps: []wire.Position{{App: r.app}}}
	if no := r.mustRefuse("POST", "/v2/sync/session", s.Encode()); no.Code != wire.RefusedGone {
		t.Errorf("session = %+v", no)
	}
	for _, credential := range []string{"Bearer none", "Key " + strings.Repeat("0", 32), "Edge " + strings.Repeat("0", 32) + " 0 00"} {
		stranger := &replica{w: w, app: w.App, authorization: credential}
		if no := stranger.mustRefuse("GET", "/v2/sync/changes?app="+w.App, nil); no.Code != wire.RefusedGone {
			t.Errorf("with %s: %+v", credential, no)
		}
	}
	stranger := &replica{w: w, app: w.App}
	never := strings.Repeat("ab", 16)
	for _, credential := range []string{"", " "} {
		stranger.authorization = credential
		for _, path := range []string{"/changes?since=0&app=", "/snapshot?app=", "/digest?app=", "/keys?app=", "/blobs/" + sent.String() + "?app="} {
			got, want := stranger.ask("GET", "/v2/sync"+path+w.App, nil), stranger.ask("GET", "/v2/sync"+path+never, nil)
			if got.Status != 401 || shape(got, blob.Hash{}) != shape(want, blob.Hash{}) {
				t.Errorf("GET %s without a credential = %d %s, and for an application that never was %d %s", path, got.Status, got.Body, want.Status, want.Body)
			}
		}
		got := stranger.ask("POST", "/v2/sync/session", s.Encode())
		s.Apps[0].App = never
		if want := stranger.ask("POST", "/v2/sync/session", s.Encode()); got.Status != 401 || shape(got, blob.Hash{}) != shape(want, blob.Hash{}) {
			t.Errorf("a session without a credential = %d %s, and for an application that never was %d %s", got.Status, got.Body, want.Status, want.Body)
		}
		s.Apps[0].App = w.App
	}
	w.Step(t, time.Second)
	if no := r.mustRefuse("GET", "/v2/sync/changes?app="+w.App, nil); no.Code != wire.RefusedGone {
		t.Errorf("once it is purged: %+v", no)
	}
	if ok, err := w.Blobs.Has(t.Context(), sent); !ok || err != nil {
		t.Fatalf("what was sent has gone already, so this test proves nothing: %v", err)
	}
	if err := w.feed.Step(t.Context()); err != nil {
		t.Fatal(err)
	}
	if ok, err := w.Blobs.Has(t.Context(), sent); ok || err != nil {
		t.Errorf("what was sent for a deleted application is kept: %v", err)
	}
}

// TestQuota: a replica over a quota gets a refusal with a wait. After the wait it may continue.
func TestQuota(t *testing.T) {
	w := newWorld(t, func(o *feed.Options) { o.Limits = feed.Limits{OpsRate: 2, BlobBytes: 100, Snapshots: 2} })
	r := w.join(w.App, w.Key)
	var no *wire.Refusal
	pushes := 0
	for ; pushes < 100 && no == nil; pushes++ {
		m := r.push(r.next(&log.ConceptCreate{ID: fmt.Sprint(r.seq), Name: "n", Language: "en"}))
		if res := r.ask("POST", "/v2/sync/push", m.Encode()); res.Status != 200 {
			got, err := wire.DecodeRefusal(res.Body)
			if err != nil || res.Status != 429 {
				t.Fatalf("%d %s", res.Status, res.Body)
			}
			no = &got
		}
	}
	if no == nil || no.Code != wire.RefusedQuota || no.Limit != "OpsRate" || no.WaitMillis == 0 || pushes < 20 {
		t.Fatalf("after %d pushes: %+v", pushes, no)
	}
	w.Now = w.Now.Add(time.Duration(no.WaitMillis) * time.Millisecond)
	r.seq--
	r.mustPush(r.next(&log.ConceptCreate{ID: "late", Name: "n", Language: "en"}))

	r.upload(make([]byte, 101)) // the first upload passes, whatever its size
	if no := r.mustRefuse("PUT", r.blob(blob.Sum([]byte("x"))), []byte("x")); no.Code != wire.RefusedQuota {
		t.Errorf("more pictures: %+v", no)
	}
	for i := range 4 {
		w.Now = w.Now.Add(time.Minute)
		r.mustPush(r.next(&log.ConceptCreate{ID: fmt.Sprint("s", i), Name: "n", Language: "en"}))
		if res := r.ask("GET", "/v2/sync/snapshot?app="+r.app, nil); (res.Status == 200) != (i < 2) {
			t.Errorf("snapshot %d = %d", i, res.Status)
		}
	}
}

// TestRandomRequests sends random requests. Every answer has an expected status, and only honest pushes change anything.
func TestRandomRequests(t *testing.T) {
	w := newWorld(t, nil)
	w.input("a", "red.png")
	r := w.join(w.App, w.Key)
	for seed := range testkit.Seeds(t, 3, 30) {
		rng := rand.New(rand.NewPCG(seed, 1))
		w.checkUnchanged(fmt.Sprintf("seed %d", seed), func() {
			for range 200 {
				method := []string{"GET", "POST", "PUT", "HEAD", "OPTIONS", "PATCH"}[rng.IntN(6)]
				path := []string{"/session", "/changes", "/push", "/back", "/snapshot", "/digest", "/blobs/have", "/blobs/" + strings.Repeat("a", 64), "/keys", "/enrol", "", "//"}[rng.IntN(12)]
				body := make([]byte, rng.IntN(60))
				for i := range body {
					body[i] = byte(rng.Uint32())
				}
				opening := []string{"", fmt.Sprintf("&opening=%x", w.partition(w.App).Opening()), "&opening=" + strings.Repeat("a", 31+rng.IntN(3))}[rng.IntN(3)]
				r.headers = map[string]string{"Content-Range": fmt.Sprintf("bytes %d-%d/%d", rng.IntN(4), rng.IntN(60), 100+rng.IntN(60)), "Range": "bytes=5-1"}
				res := r.ask(method, "/v2/sync"+path+"?app="+w.App+"&since="+fmt.Sprint(rng.IntN(9))+opening, body)
				if res.Status < 200 || res.Status >= 500 {
					t.Errorf("%s %s = %d %s", method, path, res.Status, res.Body)
				}
			}
		})
	}
}

func FuzzServe(f *testing.F) {
	w := newWorld(f, func(o *feed.Options) { o.Limits.OpsRate = 1 << 40 })
	r := w.join(w.App, w.Key)
	session := wire.Session{Min: wire.Oldest, Max: wire.Protocol, Fold: fold.Version, Schema: 1, Apps: []wire.Position{{App: w.App}}}
	push := r.push(r.next(&log.ConceptCreate{ID: "a", Name: "a", Language: "en"}))
	have := wire.HaveRequest{App: w.App, Hashes: make([]blob.Hash, 2)}
	f.Add("POST", "/session", "", session.Encode())
	f.Add("POST", "/push", "", push.Encode())
	f.Add("POST", "/blobs/have", "", have.Encode())
	f.Add("POST", "/back", "", (&wire.Back{App: w.App, Opening: push.Opening, Frames: backOf(f, w, w.partition(w.App), 0, w.partition(w.App).Log().Head()).Frames}).Encode())
	f.Add("GET", "/changes", "since=0&live=poll&vectors=q16", []byte(nil))
	f.Add("GET", "/snapshot", "vectors=q16", []byte(nil))
	f.Add("GET", "/digest", "at=1", []byte(nil))
	f.Add("PUT", "/blobs/"+blob.Sum([]byte("x")).String(), "app=x", []byte("x"))
	f.Fuzz(func(t *testing.T, method, path, query string, body []byte) {
		r.w.t = t
		res := r.ask(method, "/v2/sync"+path+"?app="+w.App+"&"+query, body)
		if res.Status < 200 || res.Status >= 500 {
			t.Errorf("%s %s?%s = %d %s", method, path, query, res.Status, res.Body)
		}
	})
}

// chunkOf returns the hash of a chunk of an application's snapshot. The origin keeps that snapshot open.
func (w *world) chunkOf(r *replica) string {
	w.t.Helper()
	m, err := wire.DecodeManifest(r.must(200, "GET", "/v2/sync/snapshot?app="+r.app, nil).Body)
	if err != nil || len(m.Chunks) == 0 {
		w.t.Fatalf("%d chunks, %v", len(m.Chunks), err)
	}
	r.must(200, "GET", "/v2/sync/snapshot/"+m.Chunks[0].Hash.String()+"?app="+r.app, nil)
	return m.Chunks[0].Hash.String()
}
