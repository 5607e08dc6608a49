package feed_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/api/apitest"
	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/fold"
	"github.com/sightline-dev/sightline/core/kv/memkv"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/partition"
	"github.com/sightline-dev/sightline/sync/feed"
	"github.com/sightline-dev/sightline/sync/wire"
)

// world is an origin: an engine with a store in memory, and a feed.
type world struct {
	*apitest.World
	t       testing.TB
	feed    *feed.Feed
	options feed.Options // of feed
	drawn   int          // number of writers that replicas have drawn
}

// newWorld returns an origin. change may change the options of the feed; nil changes none.
func newWorld(t testing.TB, change func(*feed.Options)) *world {
	t.Helper()
	w := &world{World: apitest.NewWorld(t, memkv.New(), apitest.Tiny(t), nil, nil), t: t}
	o := feed.Options{
		Engine: w.Engine, Register: w.Engine.Register, Blobs: w.Blobs, Pinner: w.Hosted, Clock: func() time.Time { return w.Now },
		Run: func(_ context.Context, jobs []api.Job) ([]api.Result, error) {
			var results []api.Result
			for _, j := range jobs {
				results = append(results, w.RunJob(j))
			}
			return results, nil
		},
	}
	if change != nil {
		change(&o)
	}
	var err error
	if w.feed, err = feed.New(o); err != nil {
		t.Fatal(err)
	}
	w.options = o
	t.Cleanup(func() {
		if err := w.feed.Close(); err != nil {
			t.Error(err)
		}
	})
	return w
}

// refeed replaces the feed by one with changed options.
func (w *world) refeed(change func(*feed.Options)) {
	w.t.Helper()
	change(&w.options)
	err := w.feed.Close()
	if err == nil {
		w.feed, err = feed.New(w.options)
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

// replica is a client of the origin.
type replica struct {
	w             *world
	app           string
	authorization string
	writer        log.Writer
	secret        []byte     // of writer
	edge          string     // id of the edge; empty: no edge
	site          log.Writer // site of the edge, which one of version 0.1.0 wrote as
	seq           uint64     // sequence number of its newest operation
	headers       map[string]string
	memory        api.Memory // of the answers; nil: unlimited
	openSession   string     // token of an account's session, which listen sends; empty: none
	sign          func(method, path, query string, body []byte) string
}

// join begins a session with a key.
func (w *world) join(app, key string) *replica {
	w.t.Helper()
	r := &replica{w: w, app: app, authorization: "Key " + key}
	r.session(&wire.Session{Min: wire.Oldest, Max: wire.Protocol, Fold: fold.Version, Schema: 1, Apps: []wire.Position{{App: app}}})
	r.draw()
	return r
}

// draw draws a writer, as a process does that opens a replica.
func (r *replica) draw() {
	r.w.t.Helper()
	id, err := catalog.ParseAppID(r.app)
	if err != nil {
		r.w.t.Fatal(err)
	}
	r.w.drawn++
	sum := sha256.Sum256(fmt.Append(nil, r.w.drawn))
	r.secret, r.seq = sum[:partition.SecretSize], 0
	r.writer = partition.WriterOf(id, r.secret)
}

// ask sends one request.
func (r *replica) ask(method, path string, body []byte) api.Response {
	path, query, _ := strings.Cut(path, "?")
	req := api.Request{Method: method, Path: path, Query: query, Authorization: r.authorization, Body: body, Memory: r.memory}
	if r.sign != nil {
		req.Authorization = r.sign(method, path, query, body)
	}
	req.Header = func(name string) string {
		if v, ok := r.headers[name]; ok {
			return v
		}
		return header(name)
	}
	res := r.w.feed.Serve(context.Background(), &req)
	if res.Stream != nil {
		var b bytes.Buffer
		if err := res.Stream(&b); err != nil {
			r.w.t.Fatalf("%s %s: %v", method, path, err)
		}
		res.Body = b.Bytes()
	}
	return res
}

// header has the fields that each request of a replica has.
func header(name string) string {
	switch name {
	case "Accept":
		return wire.ContentType
	case "Sync-Protocol":
		return fmt.Sprint(wire.Protocol)
	}
	return ""
}

// must sends a request, and fails the test unless the answer has this status.
func (r *replica) must(status int, method, path string, body []byte) api.Response {
	r.w.t.Helper()
	res := r.ask(method, path, body)
	if res.Status != status {
		why := string(res.Body)
		if refusal, err := wire.DecodeRefusal(res.Body); err == nil {
			why = fmt.Sprintf("%d %s", refusal.Code, refusal.Detail)
		}
		r.w.t.Fatalf("%s %s = %d, want %d: %s", method, path, res.Status, status, why)
	}
	return res
}

func (r *replica) session(m *wire.Session) wire.SessionReply {
	r.w.t.Helper()
	o, err := wire.DecodeSessionReply(r.must(200, "POST", "/v2/sync/session", m.Encode()).Body)
	if err != nil {
		r.w.t.Fatal(err)
	}
	return o
}

// mustRefuse sends a request and returns its refusal.
func (r *replica) mustRefuse(method, path string, body []byte) *wire.Refusal {
	r.w.t.Helper()
	res := r.ask(method, path, body)
	if res.Status < 400 || res.ContentType != wire.ContentType {
		r.w.t.Fatalf("%s %s = %d %s, want a refusal: %s", method, path, res.Status, res.ContentType, res.Body)
	}
	m, err := wire.DecodeRefusal(res.Body)
	if err != nil || m.Status() != res.Status {
		r.w.t.Fatalf("%s %s = %d with a refusal of %d, %v", method, path, res.Status, m.Status(), err)
	}
	return &m
}

// frames splits an answer of changes into frames.
func frames(t testing.TB, stream []byte) []wire.Frame {
	t.Helper()
	var in wire.Reader
	_, _ = in.Write(stream)
	var out []wire.Frame
	for {
		f, ok, err := in.Next()
		if err != nil {
			t.Fatal(err)
		}
		if !ok {
			break
		}
		out = append(out, f)
	}
	if !in.Idle() {
		t.Fatal("the stream ends within a frame")
	}
	return out
}

// at returns a query for the changes after an entry of the log.
func (r *replica) at(seq uint64) string {
	r.w.t.Helper()
	p := r.w.partition(r.app)
	chain, err := p.Log().Chain(seq)
	if err != nil {
		r.w.t.Fatal(err)
	}
	if seq == 0 {
		return fmt.Sprintf("opening=%x&since=0", p.Opening())
	}
	return fmt.Sprintf("opening=%x&since=%d&epoch=%x&chain=%x", p.Opening(), seq, p.Log().EpochOf(seq).Epoch, chain)
}

// pull requests changes and returns their frames.
func (r *replica) pull(query string) []wire.Frame {
	r.w.t.Helper()
	return frames(r.w.t, r.must(200, "GET", "/v2/sync/changes?app="+r.app+"&"+query, nil).Body)
}

// next returns bodies as the replica's next operations.
func (r *replica) next(bodies ...log.Body) []log.Op {
	ops := make([]log.Op, len(bodies))
	for i, b := range bodies {
		r.seq++
		ops[i] = log.Op{Dot: log.Dot{Writer: r.writer, Seq: r.seq}, At: log.HLC(r.w.Now.UnixMilli()) << 16, By: "test", Body: b}
	}
	return ops
}

func (r *replica) push(ops []log.Op) wire.Push {
	return wire.Push{App: r.app, Opening: r.w.partition(r.app).Opening(), Writer: r.writer, Secret: r.secret, Rows: log.EncodeRows(ops)}
}

// mustPush pushes operations, and fails the test unless the answer is 200.
func (r *replica) mustPush(ops []log.Op) wire.Pushed {
	r.w.t.Helper()
	m := r.push(ops)
	out, err := wire.DecodePushed(r.must(200, "POST", "/v2/sync/push", m.Encode()).Body)
	if err != nil {
		r.w.t.Fatal(err)
	}
	return out
}

// upload sends a picture in one request.
func (r *replica) upload(data []byte) blob.Hash {
	r.w.t.Helper()
	h := blob.Sum(data)
	if res := r.ask("PUT", r.blob(h), data); res.Status != 201 && res.Status != 200 {
		r.w.t.Fatalf("PUT = %d %s", res.Status, res.Body)
	}
	return h
}

func (r *replica) blob(h blob.Hash) string { return "/v2/sync/blobs/" + h.String() + "?app=" + r.app }

func (w *world) partition(app string) *partition.Origin {
	w.t.Helper()
	p, err := w.Engine.Origin(app)
	if err != nil {
		w.t.Fatal(err)
	}
	return p
}

// later lets a time pass, and the host calls the feed's Step.
func (w *world) later(d time.Duration) {
	w.t.Helper()
	w.Now = w.Now.Add(d)
	if err := w.feed.Step(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
}

// input creates an input by a call of the API, and lets the background fetch its picture.
func (w *world) input(id, picture string) {
	w.t.Helper()
	res := w.Serve(w.t, api.Request{Method: "POST", Path: "/v2/inputs", Body: fmt.Appendf(nil,
		`{"inputs":[{"id":%q,"data":{"image":{"url":"http://pictures.test/%s?%s"}}}]}`, id, picture, id)})
	if res.Status != 200 {
		w.t.Fatalf("POST inputs = %d %s", res.Status, res.Body)
	}
	w.Step(w.t, time.Second)
}

// everything returns a digest of all states, logs and pictures of the origin.
func (w *world) everything() string {
	w.t.Helper()
	var b strings.Builder
	apps, err := w.Engine.Register.Apps()
	if err != nil {
		w.t.Fatal(err)
	}
	for _, app := range apps {
		id, err := catalog.ParseAppID(app.ID)
		if err != nil {
			w.t.Fatal(err)
		}
		head := w.partition(app.ID).Log().Head() // opens the log, which may write to the store
		sum, err := fold.Digest(w.Store, id)
		fmt.Fprintf(&b, "%s %x %v head %d\n", app.ID, sum, err, head)
	}
	err = w.Blobs.Each(context.Background(), blob.Hash{}, func(h blob.Hash) error {
		fmt.Fprintln(&b, "blob", h)
		return nil
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return b.String()
}

// checkUnchanged fails the test if do changes the origin.
func (w *world) checkUnchanged(action string, do func()) {
	w.t.Helper()
	before := w.everything()
	do()
	if after := w.everything(); after != before {
		w.t.Errorf("%s has changed the origin from\n%s to\n%s", action, before, after)
	}
}
