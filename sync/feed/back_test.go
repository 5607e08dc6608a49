package feed_test

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/api/apitest"
	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/fold"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/kv/memkv"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/log/logtest"
	"github.com/sightline-dev/sightline/core/partition"
	"github.com/sightline-dev/sightline/sync/feed"
	"github.com/sightline-dev/sightline/sync/wire"
)

// TestReturnedInputWithURL has an origin whose disk was set back take back an input with an address, and the picture that it was fetched
// from there. The origin has written since. The picture is listed while it is lost, and analysed with the input's crop when a replica
// brings it.
func TestReturnedInputWithURL(t *testing.T) {
	const ofInput, ofConcept = `{"inputs":[{"data":{"image":{"url":"http://pictures.test/red.png?%d"}}}]}`, `{"concepts":[{"id":"concept-%d"}]}`
	for _, x := range []struct {
		name, path, body string
		apart, lost      bool
	}{
		{"concepts", "/v2/concepts", ofConcept, true, true},
		{"inputs", "/v2/inputs", ofInput, true, true},
		{"in one request", "/v2/inputs", ofInput, false, false},
	} {
		t.Run(x.name, func(t *testing.T) {
			w, open := newSealedWorld(t, nil)
			ask := func(path, body string) {
				t.Helper()
				if res := w.Serve(t, api.Request{Method: "POST", Path: path, Body: []byte(body)}); res.Status != 200 {
					t.Fatalf("POST %s = %d %s", path, res.Status, res.Body)
				}
			}
			p := open(w.Store)
			ask("/v2/concepts", `{"concepts":[{"id":"before"}]}`)
			image := copyOf(t, w.Store)
			first := p.Log().Head()
			ask("/v2/inputs", `{"inputs":[{"id":"a","data":{"image":{"url":"http://pictures.test/half.png","crop":[0,0,0.5,1]}}}]}`)
			created := p.Log().Head()
			w.Step(t, 0)
			last := p.Log().Head()
			requests := []wire.Back{backOf(t, w, p, first, created), backOf(t, w, p, created, last)}
			if !x.apart {
				requests = []wire.Back{backOf(t, w, p, first, last)}
			}
			fetched := lastOf(t, p).Body.(*log.InputFetched)
			picture, err := w.Blobs.Get(t.Context(), fetched.Blob)
			if err == nil && x.lost {
				err = w.Blobs.Delete(t.Context(), fetched.Blob)
			}
			if err != nil {
				t.Fatal(err)
			}

			p = open(image)
			for i := 0; p.Log().Head() <= last; i++ {
				ask(x.path, fmt.Sprintf(x.body, i))
			}
			r := &replica{w: w, app: w.App, authorization: "Key " + w.Key}
			give := func(want int) {
				t.Helper()
				for i := range requests {
					requests[i].Opening = p.Opening()
					r.mustBack(&requests[i])
				}
				listed := 0
				if err := p.Conflicts(func(c partition.Conflict) bool {
					if _, ok := c.Op.Body.(*log.InputFetched); ok {
						listed++
					}
					return true
				}); err != nil || listed != want {
					t.Errorf("%d pictures are listed, want %d; %v", listed, want, err)
				}
			}
			if x.lost {
				give(1)
				give(1)
			}
			r.upload(picture)
			give(0)
			v := p.View()
			defer v.Close()
			in, err := v.InputByID("a")
			if err != nil || in.Blob != fetched.Blob || in.Blob != blob.Sum(picture) {
				t.Fatalf("input %+v, %v", in, err)
			}
			base, err := w.Engine.ServingBase(v.Reader)
			if err != nil {
				t.Fatal(err)
			}
			if d, err := v.DerivedOf(base, in.Blob, in.Crop); err != nil || len(d.Fingerprint) == 0 {
				t.Errorf("the picture is not analysed with crop %v: %v", in.Crop, err)
			}
		})
	}
}

// newSealedWorld returns a world whose logs have seals, and a function by which an origin continues from an image of its store. change is as in
// newWorld; nil changes nothing.
func newSealedWorld(t testing.TB, change func(*feed.Options)) (w *world, open func(kv.Store) *partition.Origin) {
	t.Helper()
	w = newWorld(t, change)
	w.seal(w.App)
	return w, func(store kv.Store) *partition.Origin {
		t.Helper()
		w.Open(t, store)
		w.refeed(func(o *feed.Options) { o.Engine, o.Register, o.Pinner = w.Engine, w.Engine.Register, w.Hosted })
		return w.partition(w.App)
	}
}

// seal gives the log of an application a key of seals, which counts when the origin is opened again.
func (w *world) seal(app string) {
	w.t.Helper()
	id, err := catalog.ParseAppID(app)
	if err != nil {
		w.t.Fatal(err)
	}
	var b kv.Batch
	b.Put(id.LocalKey("seal"), append(id[:], id[:]...))
	if err := w.Store.Apply(&b); err != nil {
		w.t.Fatal(err)
	}
}

// TestReturnedFramesOfSeveralOpenings gives the frames of several openings back to a log that was set back, in one request, twice. The log
// then has each operation once and the state of before, and nothing is listed. Entries written since then stay.
func TestReturnedFramesOfSeveralOpenings(t *testing.T) {
	w, open := newSealedWorld(t, func(o *feed.Options) {
		o.Spend = func(string, string, int64) (int64, error) { t.Error("a call was counted"); return 0, nil }
	})
	p := open(w.Store)
	w.submit(p, concepts(3)...)
	image := copyOf(t, w.Store)
	first := p.Log().Head()
	back := wire.Back{App: w.App}
	names := map[log.Dot]bool{}
	for i, n := range []int{wire.MaxOps, 1, 7} { // a full frame, and an opening of a single entry
		from := p.Log().Head()
		for j := range n {
			w.submit(p, &log.ConceptCreate{ID: fmt.Sprint("lost", i, "-", j), Name: "n", Language: "en"})
		}
		back.Frames = append(back.Frames, backOf(t, w, p, from, p.Log().Head()).Frames...)
		if err := p.Log().Read(from+1, func(e log.Entry) bool {
			names[e.Op.Dot] = true
			return true
		}); err != nil {
			t.Fatal(err)
		}
		p = open(w.Store)
	}
	last, state := first+uint64(len(names)), w.tables()

	p = open(image)
	back.Opening = p.Opening()
	r := w.join(w.App, w.Key)
	for range 2 {
		if got := r.mustBack(&back); got.To != last || p.Log().Head() != last {
			t.Fatalf("took entries up to %d back, and the log has %d; want %d", got.To, p.Log().Head(), last)
		}
		if err := p.Conflicts(func(c partition.Conflict) bool {
			t.Errorf("listed: %+v", c)
			return true
		}); err != nil {
			t.Fatal(err)
		}
		if w.tables() != state {
			t.Error("the state is another")
		}
	}
	if err := p.Log().Read(first+1, func(e log.Entry) bool {
		if !names[e.Op.Dot] {
			t.Errorf("entry %d is %v", e.Seq, e.Op.Dot)
		}
		delete(names, e.Op.Dot)
		return true
	}); err != nil || len(names) > 0 {
		t.Errorf("the log lacks %d operations, %v", len(names), err)
	}
	if got := p.Log().EpochOf(last).Epoch; got != p.Opening() {
		t.Errorf("the entries are of epoch %x, want that of the opening, %x", got, p.Opening())
	}
	w.submit(p, &log.ConceptName{ID: "lost0-0", Name: "later"})
	r.mustBack(&back)
	if got := lastOf(t, p); p.Log().Head() != last+1 {
		t.Errorf("the log ends with %+v at %d", got, p.Log().Head())
	}
}

// TestInvalidReturnedEntries gives back malformed entries, forged ones, and those of other logs. The origin takes nothing, also of good
// frames before a bad one.
func TestInvalidReturnedEntries(t *testing.T) {
	analysed := 0
	w, open := newSealedWorld(t, func(o *feed.Options) {
		run := o.Run
		o.Run = func(ctx context.Context, jobs []api.Job) ([]api.Result, error) {
			analysed += len(jobs)
			return run(ctx, jobs)
		}
	})
	other := w.NewTenant(t, "", "en")
	w.seal(other.App)
	p := open(w.Store)
	foreign := w.join(other.App, other.Key)
	foreign.mustPush(foreign.next(concepts(2)...))
	theirs := backOf(t, w, w.partition(other.App), 0, w.partition(other.App).Log().Head())
	image := copyOf(t, w.Store)
	first := p.Log().Head()
	r := w.join(w.App, w.Key)
	r.mustPush(r.next(concepts(2)...))
	second := p.Log().Head()
	red := apitest.Picture("red.png")
	r.mustPush(r.next(&log.InputCreate{ID: "lost", Blob: r.upload(red), ContentType: "image/png"}))
	good := backOf(t, w, p, first, second)
	good.Frames = append(good.Frames, backOf(t, w, p, second, p.Log().Head()).Frames...)
	another := copyOf(t, w.Store) // of another log, which has another key

	p = open(image)
	good.Opening = p.Opening()
	r.upload(red)
	analysed = 0
	last := func(change func(e *wire.Entries)) func(m *wire.Back) {
		return func(m *wire.Back) {
			e, err := wire.DecodeEntriesFrame(m.Frames[1])
			if err != nil {
				t.Fatal(err)
			}
			change(&e)
			m.Frames[1] = e.Encode()
		}
	}
	forged := func(m *wire.Back, body log.Body) {
		last(func(e *wire.Entries) {
			entries, err := log.DecodeRows(e.Rows, e.From)
			if err != nil {
				t.Fatal(err)
			}
			entries[0].Op.Body = body
			e.Rows = logtest.Rows(entries)
			e.Chain = e.Before.Next(log.Encode(nil, &entries[0].Op))
		})(m)
	}
	for name, x := range map[string]struct {
		change func(m *wire.Back)
		status int
		code   wire.RefusalCode
	}{
		"another opening":        {func(m *wire.Back) { m.Opening[0]++ }, 409, wire.RefusedEpoch},
		"no opening":             {func(m *wire.Back) { m.Opening = log.Epoch{} }, 409, wire.RefusedEpoch},
		"another application":    {func(m *wire.Back) { m.App = other.App }, 403, wire.RefusedScope},
		"no application":         {func(m *wire.Back) { m.App = "" }, 403, wire.RefusedScope},
		"entries of another log": {func(m *wire.Back) { m.Frames[1] = theirs.Frames[0] }, 409, wire.RefusedContent},
		"no seal":                {last(func(e *wire.Entries) { e.Seal = nil }), 409, wire.RefusedContent},
		"another seal":           {last(func(e *wire.Entries) { e.Seal[5]++ }), 409, wire.RefusedContent},
		"half a seal":            {last(func(e *wire.Entries) { e.Seal = e.Seal[:16] }), 409, wire.RefusedContent},
		"another chain":          {last(func(e *wire.Entries) { e.Chain[3]++ }), 409, wire.RefusedContent},
		"another chain before":   {last(func(e *wire.Entries) { e.Before[3]++ }), 409, wire.RefusedContent},
		"other places":           {last(func(e *wire.Entries) { e.From++; e.To++ }), 409, wire.RefusedContent},
		"another operation":      {func(m *wire.Back) { forged(m, &log.InputDeleteAll{Barrier: true}) }, 409, wire.RefusedContent},
		"an operation of a picture": {func(m *wire.Back) {
			forged(m, &log.InputCreate{ID: "x", Blob: blob.Sum(red), ContentType: "image/png"})
		}, 409, wire.RefusedContent},
		"no entries":                   {last(func(e *wire.Entries) { e.To, e.Rows, e.Chain = e.From, nil, e.Before; e.Seal[0]++ }), 409, wire.RefusedContent},
		"fewer entries":                {last(func(e *wire.Entries) { e.To++ }), 400, wire.RefusedFormat},
		"more entries":                 {last(func(e *wire.Entries) { e.From++ }), 400, wire.RefusedFormat},
		"a negative number of entries": {last(func(e *wire.Entries) { e.From, e.To = e.To, e.From }), 400, wire.RefusedFormat},
		"malformed rows":               {last(func(e *wire.Entries) { e.Rows = []byte("rows") }), 400, wire.RefusedFormat},
		"too many rows": {last(func(e *wire.Entries) {
			e.Rows = bytes.Repeat(e.Rows, wire.MaxOps+1)
			e.To = e.From + wire.MaxOps + 1
		}), 400, wire.RefusedFormat},
		"too many entries": {last(func(e *wire.Entries) {
			e.Rows = bytes.Repeat(e.Rows, wire.MaxOps)
			e.To = e.From + wire.MaxOps
		}), 413, wire.RefusedLimit},
		"malformed entries": {func(m *wire.Back) { m.Frames[1] = []byte("entries") }, 400, wire.RefusedFormat},
		"no frames":         {func(m *wire.Back) { m.Frames = nil }, 400, wire.RefusedFormat},
		"too many frames":   {func(m *wire.Back) { m.Frames = slices.Repeat(m.Frames, wire.MaxFrames/2+1) }, 400, wire.RefusedFormat},
	} {
		t.Run(name, func(t *testing.T) {
			m := good
			m.Frames = []([]byte){bytes.Clone(good.Frames[0]), bytes.Clone(good.Frames[1])}
			if x.change(&m); x.code == wire.RefusedLimit {
				m.Frames = append(m.Frames, m.Frames[1])
			}
			w.checkUnchanged(name, func() {
				if got := r.mustRefuse("POST", "/v2/sync/back", m.Encode()); got.Status() != x.status || got.Code != x.code {
					t.Errorf("refused with %+v", got)
				} else if got.Code == wire.RefusedEpoch && got.Epoch != p.Opening() {
					t.Errorf("the refusal has opening %x, want %x", got.Epoch, p.Opening())
				}
			})
			if err := p.Conflicts(func(c partition.Conflict) bool { t.Errorf("listed: %+v", c); return true }); err != nil {
				t.Error(err)
			}
		})
	}
	r.must(400, "POST", "/v2/sync/back", []byte("back"))
	r.must(413, "POST", "/v2/sync/back", make([]byte, 8<<20+1))
	if analysed > 0 {
		t.Errorf("%d pictures of refused frames were analysed", analysed)
	}
	r.mustBack(&good)
	if _, err := w.Input("lost"); err != nil || analysed != 1 {
		t.Errorf("the frames as they came: %v, %d pictures were analysed", err, analysed)
	}

	id, err := catalog.ParseAppID(w.App)
	if err != nil {
		t.Fatal(err)
	}
	var b kv.Batch
	b.Put(id.LocalKey("seal"), make([]byte, 32))
	if err := another.Apply(&b); err != nil {
		t.Fatal(err)
	}
	p = open(another)
	good.Opening = p.Opening()
	w.checkUnchanged("frames of a log with another key", func() {
		if got := r.mustRefuse("POST", "/v2/sync/back", good.Encode()); got.Code != wire.RefusedContent {
			t.Errorf("refused with %+v", got)
		}
	})
}

// TestReturnedEntriesWithoutKey: a log without a key has no seals, and takes nothing back.
func TestReturnedEntriesWithoutKey(t *testing.T) {
	w := newWorld(t, nil)
	p := w.partition(w.App)
	r := w.join(w.App, w.Key)
	ops := r.next(concepts(1)...)
	e := wire.Entries{Epoch: p.Opening(), From: 7, To: 8, Rows: log.EncodeRows(ops), Chain: log.Chain{}.Next(log.Encode(nil, &ops[0]))}
	for _, seal := range [][]byte{nil, {}, make([]byte, 32)} {
		e.Seal = seal
		m := wire.Back{App: w.App, Opening: p.Opening(), Frames: [][]byte{e.Encode()}}
		w.checkUnchanged("a forged frame", func() {
			if no := r.mustRefuse("POST", "/v2/sync/back", m.Encode()); no.Code != wire.RefusedContent {
				t.Errorf("with seal %x: refused with %+v", seal, no)
			}
		})
	}
}

// TestReturnedEntriesCountAgainstRate: entries that a replica gives back count against its rate of operations, and as no calls. Over the
// rate the origin takes nothing.
func TestReturnedEntriesCountAgainstRate(t *testing.T) {
	w, open := newSealedWorld(t, func(o *feed.Options) {
		o.Limits.OpsRate = 2 // eight a second for an application, 80 at once
		o.Spend = func(string, string, int64) (int64, error) { t.Error("a call was counted"); return 0, nil }
	})
	p := open(w.Store)
	image := copyOf(t, w.Store)
	first := p.Log().Head()
	w.submit(p, concepts(100)...)
	good := backOf(t, w, p, first, p.Log().Head())
	p = open(image)
	good.Opening = p.Opening()
	r := &replica{w: w, app: w.App, authorization: "Key " + w.Key}
	r.mustBack(&good)
	w.checkUnchanged("a Back over the rate", func() {
		if no := r.mustRefuse("POST", "/v2/sync/back", good.Encode()); no.Code != wire.RefusedQuota || no.Limit != "OpsRate" || no.WaitMillis == 0 {
			t.Errorf("refused with %+v", no)
		}
	})
}

// mustBack gives frames back, and fails the test unless the answer is 200.
func (r *replica) mustBack(m *wire.Back) wire.TakenBack {
	r.w.t.Helper()
	out, err := wire.DecodeTakenBack(r.must(200, "POST", "/v2/sync/back", m.Encode()).Body)
	if err != nil || out.Opening != m.Opening {
		r.w.t.Fatalf("%+v, %v", out, err)
	}
	return out
}

// submit appends operations of the origin to the log.
func (w *world) submit(p *partition.Origin, bodies ...log.Body) {
	w.t.Helper()
	verdicts, err := p.Submit(w.t.Context(), "", bodies, nil)
	for _, v := range verdicts {
		if err == nil && v.Code != fold.OK && v.Code != fold.Superseded {
			err = fmt.Errorf("verdict %+v", v)
		}
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

// tables returns the state of the world's application without its header, which has the place in the log.
func (w *world) tables() string {
	w.t.Helper()
	id, err := catalog.ParseAppID(w.App)
	if err != nil {
		w.t.Fatal(err)
	}
	var b bytes.Buffer
	err = catalog.Read(w.Store, id).StateTables(func(key, value []byte) bool {
		if key[0] != 'c' {
			fmt.Fprintf(&b, "%x %x\n", key, value)
		}
		return true
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return b.String()
}

// lastOf returns the last operation of a log.
func lastOf(t testing.TB, p *partition.Origin) (op log.Op) {
	t.Helper()
	if err := p.Log().Read(p.Log().Head(), func(e log.Entry) bool { op = e.Op; return true }); err != nil {
		t.Fatal(err)
	}
	return op
}

// copyOf is an image of a store.
func copyOf(t testing.TB, store kv.Store) kv.Store {
	t.Helper()
	var b kv.Batch
	err := store.Scan(nil, nil, func(key, value []byte) bool {
		b.Put(bytes.Clone(key), bytes.Clone(value))
		return true
	})
	out := memkv.New()
	if err == nil {
		err = out.Apply(&b)
	}
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// backOf returns a run of the log's entries as a replica keeps it, in one frame. The caller sets the opening.
func backOf(t testing.TB, w *world, p *partition.Origin, from, to uint64) wire.Back {
	t.Helper()
	e := wire.Entries{Epoch: p.Log().EpochOf(to).Epoch, From: from, To: to}
	var entries []log.Entry
	err := p.Log().Read(from+1, func(e log.Entry) bool {
		entries = append(entries, e)
		return e.Seq < to
	})
	if err == nil {
		e.Rows = logtest.Rows(entries)
		e.Before, err = p.Log().Chain(from)
	}
	if err == nil {
		e.Chain, err = p.Log().Chain(to)
	}
	if err != nil {
		t.Fatal(err)
	}
	e.Seal = p.Seal(to, e.Chain)
	return wire.Back{App: w.App, Frames: [][]byte{e.Encode()}}
}
