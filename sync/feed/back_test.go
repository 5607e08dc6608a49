package feed_test

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/kv/memkv"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/partition"
	"github.com/sightline-dev/sightline/sync/feed"
	"github.com/sightline-dev/sightline/sync/wire"
)

// TestBackFetched has an origin whose disk was set back take back an input with an address, and the picture that it was fetched from there.
// The origin has written since. The picture is listed while it is lost, and analysed with the input's crop when a replica brings
// it.
func TestBackFetched(t *testing.T) {
	const ofInput, ofConcept = `{"inputs":[{"data":{"image":{"url":"http://pictures.test/red.png?%d"}}}]}`, `{"concepts":[{"id":"concept-%d"}]}`
	for _, x := range []struct {
		name, path, body string
		apart, lost      bool
	}{
		{"concepts", "/v2/concepts", ofConcept, true, true},
		{"inputs", "/v2/inputs", ofInput, true, true},
		{"in one run", "/v2/inputs", ofInput, false, false},
	} {
		t.Run(x.name, func(t *testing.T) {
			w, open := newSealedWorld(t)
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
			runs := []wire.Back{backOf(t, w, p, first, created), backOf(t, w, p, created, last)}
			if !x.apart {
				runs = []wire.Back{backOf(t, w, p, first, last)}
			}
			entries, err := wire.DecodeEntries(runs[len(runs)-1].Block, runs[len(runs)-1].From)
			if err != nil {
				t.Fatal(err)
			}
			fetched := entries[len(entries)-1].Op.Body.(*log.InputFetched)
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
			proof := runs[len(runs)-1]
			proof.Present, proof.Epoch = true, p.Log().Epoch()
			if got := r.mustRefuse("POST", "/v2/sync/back", proof.Encode()); got.Code != wire.RefusedEpoch {
				t.Fatalf("refused with %d %s", got.Code, got.Detail)
			}
			give := func(want int) {
				t.Helper()
				for _, run := range runs {
					run.Epoch = p.Log().Epoch()
					r.must(200, "POST", "/v2/sync/back", run.Encode())
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
			}
			r.upload(picture)
			give(0)
			v := p.View()
			defer v.Close()
			in, err := v.InputByID("a")
			if err != nil || in.Blob != fetched.Blob || in.Blob != blob.Sum(picture) {
				t.Fatalf("input %+v, %v", in, err)
			}
			base, err := w.Engine.Serving(v.Reader)
			if err != nil {
				t.Fatal(err)
			}
			if d, err := v.DerivedOf(base, in.Blob, in.Crop); err != nil || len(d.Print) == 0 {
				t.Errorf("the picture is not analysed with crop %v: %v", in.Crop, err)
			}
		})
	}
}

// newSealedWorld returns a world whose log has seals, and a function by which an origin continues from an image of its store.
func newSealedWorld(t *testing.T) (w *world, open func(kv.Store) *partition.Partition) {
	t.Helper()
	var o feed.Options
	w = newWorld(t, func(of *feed.Options) { o = *of })
	app, err := catalog.ParseAppID(w.App)
	if err != nil {
		t.Fatal(err)
	}
	var seal kv.Batch
	seal.Put(app.LocalKey("seal"), make([]byte, 32))
	if err := w.Store.Apply(&seal); err != nil {
		t.Fatal(err)
	}
	return w, func(store kv.Store) *partition.Partition {
		w.Open(t, store)
		o.Engine, o.Register, o.Pinner = w.Engine, w.Engine.Register, w.Hosted
		err := w.feed.Close()
		if err == nil {
			w.feed, err = feed.New(o)
		}
		p, failed := w.Engine.Partition(w.App)
		if err != nil || failed != nil {
			t.Fatal(err, failed)
		}
		return p
	}
}

// TestRolledBackPlace has a replica name its place in the log whenever it pulls, takes a snapshot or pushes. An origin that lacks the
// place, and has sealed it, knows by that that its disk was rolled back. Another seal proves nothing, and a malformed one is an error.
func TestRolledBackPlace(t *testing.T) {
	for _, call := range []string{"changes", "snapshot", "push"} {
		t.Run(call, func(t *testing.T) {
			w, open := newSealedWorld(t)
			p := open(w.Store)
			write := func(id string) {
				t.Helper()
				if res := w.Serve(t, api.Request{Method: "POST", Path: "/v2/concepts", Body: []byte(`{"concepts":[{"id":"` + id + `"}]}`)}); res.Status != 200 {
					t.Fatalf("POST concepts = %d %s", res.Status, res.Body)
				}
			}
			write("before")
			image := copyOf(t, w.Store)
			write("lost")
			head := p.Log().Head()
			chain, err := p.Log().Chain(head)
			if err != nil {
				t.Fatal(err)
			}
			seal := p.Seal(head, chain)
			p = open(image)
			epoch := p.Log().Epoch()
			r := w.join(w.App, w.Key)
			ask := func(chain, seal []byte) api.Response {
				if call == "push" {
					m := r.push([]log.Op{{Dot: log.Dot{Writer: r.writer, Seq: 1}, Body: &log.ConceptCreate{ID: "mine", Name: "mine"}}})
					m.Base, m.Chain, m.Seal = head, log.Chain(chain), seal
					return r.ask("POST", "/v2/sync/push", m.Encode())
				}
				return r.ask("GET", fmt.Sprintf("/v2/sync/%s?app=%s&epoch=%x&since=%d&chain=%x&seal=%x&live=0&vectors=none", call, w.App, epoch, head, chain, seal), nil)
			}
			if call != "push" {
				r.must(400, "GET", fmt.Sprintf("/v2/sync/%s?app=%s&epoch=%x&since=%d&chain=%x&seal=some&vectors=none", call, w.App, epoch, head, chain), nil)
			}
			forged := bytes.Clone(seal)
			forged[0]++
			if ask(chain[:], forged); p.Log().Epoch() != epoch {
				t.Fatal("a forged seal proves a rollback")
			}
			res := ask(chain[:], seal)
			refusal, err := wire.DecodeRefusal(res.Body)
			if err != nil || refusal.Code != wire.RefusedEpoch || refusal.Epoch == epoch || refusal.Epoch != p.Log().Epoch() {
				t.Errorf("answer %d %+v, %v; the log has epoch %x", res.Status, refusal, err, p.Log().Epoch())
			}
		})
	}
}

// TestBackRefused gives back malformed entries, entries of another log, and entries to a log that was never restored.
func TestBackRefused(t *testing.T) {
	w, open := newSealedWorld(t)
	p := open(w.Store)
	r := w.join(w.App, w.Key)
	r.mustPush([]log.Op{{Dot: log.Dot{Writer: r.writer, Seq: 1}, Body: &log.ConceptCreate{ID: "mine", Name: "mine"}}})
	good := backOf(t, w, p, 0, p.Log().Head())
	good.Epoch = p.Log().Epoch()
	for name, x := range map[string]struct {
		change func(m *wire.Back)
		status int
		code   wire.RefusalCode
	}{
		"another epoch":       {func(m *wire.Back) { m.Epoch[0]++ }, 409, wire.RefusedEpoch},
		"another application": {func(m *wire.Back) { m.App = "00000000000000000000000000000001" }, 403, wire.RefusedScope},
		"malformed entries":   {func(m *wire.Back) { m.Block = []byte("entries") }, 400, 0},
		"not restored":        {func(*wire.Back) {}, 409, wire.RefusedEpoch},
	} {
		m := good
		x.change(&m)
		res := r.ask("POST", "/v2/sync/back", m.Encode())
		refusal, err := wire.DecodeRefusal(res.Body)
		if res.Status != x.status || x.code != 0 && (err != nil || refusal.Code != x.code) {
			t.Errorf("%s: %d %s, %+v", name, res.Status, res.Body, refusal)
		}
	}
	r.must(400, "POST", "/v2/sync/back", []byte("back"))
}

// copyOf is an image of a store.
func copyOf(t *testing.T, store kv.Store) kv.Store {
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

// backOf is a run of the log's entries as a replica keeps it.
func backOf(t *testing.T, w *world, p *partition.Partition, from, to uint64) wire.Back {
	t.Helper()
	var entries []log.Entry
	err := p.Log().Read(from+1, func(e log.Entry) bool {
		entries = append(entries, e)
		return e.Seq < to
	})
	before, failed := p.Log().Chain(from)
	if err != nil || failed != nil {
		t.Fatal(err, failed)
	}
	at, err := p.Log().Chain(to)
	if err != nil {
		t.Fatal(err)
	}
	return wire.Back{App: w.App, From: from, Chain: before, Block: wire.EncodeEntries(entries), Seal: p.Seal(to, at)}
}
