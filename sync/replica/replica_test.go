package replica_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/partition"
	"github.com/sightline-dev/sightline/sync/replica"
	"github.com/sightline-dev/sightline/sync/wire"
)

func bytesReader(b []byte) io.Reader { return bytes.NewReader(b) }

func TestBothWays(t *testing.T) {
	for _, live := range []replica.Live{replica.Stream, replica.Poll, replica.Once} {
		t.Run(live.String(), func(t *testing.T) {
			r := newRig(t, replica.Options{Live: live})
			r.origin.submit(create("a"), create("b"), create("c"), create("d"))
			r.settle()
			r.write(create("e"), create("f"))
			r.settle()
			r.agree()
			if got := inputs(t, r.store); !slices.Equal(got, []string{"a", "b", "c", "d", "e", "f"}) {
				t.Errorf("inputs %v", got)
			}
		})
	}
}

// TestOnceEnds: a replica that is asked to sync once wants nothing more when all is done.
func TestOnceEnds(t *testing.T) {
	r := newRig(t, replica.Options{Live: replica.Once})
	r.origin.submit(create("a"))
	r.settle()
	r.write(create("b"))
	r.settle()
	before := r.total
	for range 20 {
		r.clock = r.clock.Add(time.Minute)
		r.step(replica.Wake{})
	}
	if len(r.asks) > 0 || r.total != before {
		t.Errorf("after all was done it asked %d times more", r.total-before)
	}
}

// TestCursorMovesWithData checks that after any crash the cursor agrees with the state, and that acknowledged operations are
// still stored.
func TestCursorMovesWithData(t *testing.T) {
	r := newRig(t, replica.Options{})
	r.run(func() bool { return r.status().Site != 0 }, 10)
	for i := range 60 {
		r.origin.submit(create(fmt.Sprint("o", i)))
		if i%3 == 0 {
			r.write(create(fmt.Sprint("r", i)))
		}
		issued := r.status().Issued
		for range r.rng.IntN(6) {
			if len(r.asks) == 0 {
				break
			}
			r.deliver(0)
		}
		if i%4 == 0 {
			r.crash()
			if got := r.status().Issued; got < issued {
				t.Fatalf("a crash took operations %d to %d back", got+1, issued)
			}
			folded(t, r)
		}
	}
	r.settle()
	r.agree()
}

// folded holds the confirmed state to a fold of the origin's log up to the cursor: equal digests.
func folded(t *testing.T, r *rig) {
	t.Helper()
	h := uint64(0)
	err := r.part.Confirmed(func(k kv.Reader) error {
		header, err := catalog.Read(k, app).Header()
		h = header.Seq
		return err
	})
	if at := r.status().Cursor; err != nil || h != at {
		t.Fatalf("the state is of entry %d and the cursor says %d: %v", h, at, err)
	}
}

// TestNewReplicaTakesState: behind the log's floor the state comes, in as many requests
// as there are pieces, not things; nothing that was deleted comes at all.
func TestNewReplicaTakesState(t *testing.T) {
	r := newRig(t, replica.Options{})
	var bodies []log.Body
	for i := range 300 {
		bodies = append(bodies, create(fmt.Sprint("i", i)))
	}
	r.origin.submit(bodies...)
	r.origin.submit(&log.InputDeleteAll{})
	r.origin.submit(create("x"), create("y"))
	if err := r.origin.part.Log().Trim(r.origin.part.Log().Head() + 1); err != nil {
		t.Fatal(err)
	}
	r.settle()
	r.agree()
	if r.total > 8 || r.origin.got["snapshot"] < 2 {
		t.Errorf("%d requests, %v", r.total, r.origin.got)
	}
	if n := r.status().Rebases; n != 1 {
		t.Errorf("%d rebases, want 1", n)
	}
}

// TestRebaseGoesOn: a snapshot whose download is interrupted, by lost answers and by restarts, continues with the missing pieces.
func TestRebaseGoesOn(t *testing.T) {
	r := newRig(t, replica.Options{})
	var bodies []log.Body
	for i := range 4000 {
		bodies = append(bodies, create(fmt.Sprintf("%0200d", i)))
	}
	for at := 0; at < len(bodies); at += 500 {
		r.origin.submit(bodies[at : at+500]...)
	}
	if n := r.goesOn(t); n > 0 {
		t.Errorf("%d pieces were placed, and there are no derived records", n)
	}
}

// TestPlacedGoesOn: likewise one of which most is derived records, that go where they belong as they come.
func TestPlacedGoesOn(t *testing.T) {
	r := newRig(t, replica.Options{Wants: wire.Wants{Vectors: wire.VectorsQ16}})
	r.derives(4, 300)
	if r.goesOn(t) == 0 {
		t.Error("no piece was placed")
	}
	r.hasDerived(1500)
}

// TestTakenGoesOn: likewise one that the host takes, which places its pieces too.
func TestTakenGoesOn(t *testing.T) {
	r := newRig(t, replica.Options{Wants: wire.Wants{Vectors: wire.VectorsQ16}, Takes: true})
	r.derives(2, 3000)
	if r.goesOn(t) == 0 {
		t.Error("no piece was placed")
	}
	if r.taken != 1 {
		t.Errorf("the host took %d snapshots, want 1", r.taken)
	}
	r.hasDerived(700)
	r.origin.submit(create("after"))
	r.settle()
	r.agree()
}

// TestTakenSmall: the machine itself installs a small snapshot, and one that replaces another state.
func TestTakenSmall(t *testing.T) {
	r := newRig(t, replica.Options{Wants: wire.Wants{Vectors: wire.VectorsQ16}, Takes: true})
	r.derives(1, 3)
	r.trim()
	r.settle()
	r.derives(2, 3000)
	r.trim()
	r.settle()
	r.agree()
	if n := r.status().Rebases; r.taken != 0 || n != 2 {
		t.Errorf("the host took %d snapshots, the machine %d; want 0 and 2", r.taken, n)
	}
	r.hasDerived(700)
}

// TestTakenPart: a snapshot of which pieces are missing is refused, and leaves nothing; a piece that is not where the host has put
// it comes again.
func TestTakenPart(t *testing.T) {
	r := newRig(t, replica.Options{Wants: wire.Wants{Vectors: wire.VectorsQ16}, Takes: true})
	r.derives(2, 3000)
	r.trim()
	r.lies = 2
	var manifest []byte
	r.wire = func(a *replica.Ask, x *replica.Answer) bool {
		if a.Path == "/v2/sync/snapshot" {
			manifest = x.Body
		}
		return true
	}
	r.run(func() bool { return r.status().PiecesDone > 1 }, 100)
	o := replica.Options{App: app, Partition: r.part, Store: r.store}
	if err := replica.TakeSnapshot(context.Background(), o, manifest); !errors.Is(err, blob.ErrNotFound) {
		t.Errorf("a snapshot whose pieces are missing: %v", err)
	}
	if c := r.part.Cursor(); c != (partition.Cursor{}) {
		t.Errorf("the cursor is %v", c)
	}
	if err := replica.TakeSnapshot(context.Background(), o, manifest[:len(manifest)-1]); !errors.Is(err, wire.ErrFormat) {
		t.Errorf("half a manifest: %v", err)
	}
	r.settle()
	r.agree()
	if r.lies != 0 || r.taken != 1 {
		t.Errorf("%d pieces are still to be said to be what they are not; the host took %d snapshots", r.lies, r.taken)
	}
}

// derives has the origin make so many times 400 inputs, whose derived records have so many values.
func (r *rig) derives(times, values int) {
	r.Helper()
	for range times {
		var bodies []log.Body
		var large kv.Batch
		for range 400 {
			in := r.picture(10)
			d := derivedOf(in.Blob)
			d.Values = make([]float32, values)
			catalog.PutDerived(&large, app, r.origin.base, in.Blob, in.Crop, d)
			bodies = append(bodies, in)
		}
		r.origin.submit(bodies...)
		if err := r.origin.store.Apply(&large); err != nil {
			r.Fatal(err)
		}
	}
}

// hasDerived holds the replica to the derived record of an input.
func (r *rig) hasDerived(ord uint32) {
	r.Helper()
	var in catalog.Input
	if err := catalog.Read(r.store, app).Inputs(ord, func(x catalog.Input) bool { in = x; return false }); err != nil {
		r.Fatal(err)
	}
	if x, err := catalog.Read(r.store, app).DerivedOf(r.origin.base, in.Blob, in.Crop); err != nil || !bytes.Equal(x.Embedding, derivedOf(in.Blob).Embedding) {
		r.Errorf("the derived record of input %d: %v", in.Ord, err)
	}
}

// trim has the origin's log lead on from nothing.
func (r *rig) trim() {
	r.Helper()
	if err := r.origin.part.Log().Trim(r.origin.part.Log().Head() + 1); err != nil {
		r.Fatal(err)
	}
}

// goesOn interrupts the download of the origin's snapshot again and again, and returns the maximum number of placed pieces.
func (r *rig) goesOn(t *testing.T) (placed int) {
	t.Helper()
	r.trim()
	pieces := map[string]int{}
	r.wire = func(a *replica.Ask, x *replica.Answer) bool {
		if name, ok := strings.CutPrefix(a.Path, "/v2/sync/snapshot/"); ok && r.rng.IntN(2) == 0 {
			pieces[name]++
			return true
		}
		return !strings.HasPrefix(a.Path, "/v2/sync/snapshot/")
	}
	done, beside := 0, 0
	for range 12 {
		r.run(func() bool {
			coming := 0
			for i := range r.asks {
				if strings.HasPrefix(r.asks[i].Path, "/v2/sync/snapshot/") {
					coming++
				}
			}
			beside = max(beside, coming)
			return r.status().PiecesDone > done || r.settled()
		}, 100)
		done = max(done, r.status().PiecesDone)
		placed = max(placed, r.holdsOf("placed"))
		r.disk.durable = len(r.disk.batches) // a restart in order
		r.crash()
	}
	r.settle()
	r.agree()
	if len(pieces) < 3 {
		t.Fatalf("the snapshot had %d pieces", len(pieces))
	}
	if beside != 2 {
		t.Errorf("%d pieces were on their way at once, want 2", beside)
	}
	for name, n := range pieces {
		if n > 1 {
			t.Errorf("piece %s came %d times", name, n)
		}
	}
	for _, what := range []string{"chunk", "placed"} {
		if n := r.holdsOf(what); n > 0 {
			t.Errorf("%d pieces are left over", n)
		}
	}
	return placed
}

// holdsOf counts the notes of pieces.
func (r *rig) holdsOf(what string) (n int) {
	r.Helper()
	err := r.store.Scan(app.LocalKey("sync/"+what+"/"), app.LocalKey("sync/"+what+"0"), func(_, _ []byte) bool {
		n++
		return true
	})
	if err != nil {
		r.Error(err)
	}
	return n
}

// TestAuditRepairs: a state that differs from the origin's in a few keys is found and repaired
// with the leaves that differ, while operations wait in the outbox, which stay.
func TestAuditRepairs(t *testing.T) {
	r := newRig(t, replica.Options{Audit: time.Hour})
	var bodies []log.Body
	for i := range 400 {
		bodies = append(bodies, create(fmt.Sprint("i", i)))
	}
	r.origin.submit(bodies...)
	r.settle()
	push := true
	r.lose = func(a *replica.Ask) bool { return !push && a.Path == "/v2/sync/push" }
	push = false
	r.write(create("mine"))

	var b kv.Batch // bits rot in the record of one input, and a label's concept is missing
	var rotten []byte
	lo, hi := app.Range()
	err := r.store.Scan(append(slices.Clone(lo), 'i'), hi, func(key, value []byte) bool {
		if catalog.StateTable(key[len(lo):]) && bytes.Contains(value, []byte("i123")) && rotten == nil {
			rotten = slices.Clone(key)
			b.Put(key, bytes.Replace(value, []byte("i123"), []byte("j123"), 1))
		}
		return true
	})
	if err == nil {
		err = r.store.Apply(&b)
	}
	if err != nil || rotten == nil {
		t.Fatalf("nothing was damaged: %v", err)
	}
	r.machine.Audit()
	sent := r.origin.sent
	r.run(func() bool { return r.status().Repairs > 0 }, 400)
	r.agree()
	s := r.status()
	if s.Rebases != 0 || s.Repairs > 3 {
		t.Errorf("%d keys repaired, %d rebases", s.Repairs, s.Rebases)
	}
	if s.Pending() != 1 || !slices.Contains(inputs(t, r.store), "mine") {
		t.Errorf("the outbox was dropped: %+v", s)
	}
	if n := r.origin.sent - sent; n > 64<<10 {
		t.Errorf("%d bytes for one key", n)
	}
	push = true
	r.settle()
	r.agree()
}

// TestPullNeverWaitsForPush uses an origin that accepts no push. The replica still pulls everything. Its own operations stay
// visible and are reported as queued.
func TestPullNeverWaitsForPush(t *testing.T) {
	for _, status := range []int{0, 401, 403, 413, 429, 500, 503} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			r := newRig(t, replica.Options{})
			r.origin.refuse = map[string]int{"push": status}
			r.run(func() bool { return r.status().Site != 0 }, 10)
			r.write(create("mine"))
			for i := range 20 {
				r.origin.submit(create(fmt.Sprint("o", i)))
			}
			r.run(func() bool { return r.status().Cursor >= 20 }, 200)
			if s := r.status(); s.Of(1) == replica.Sent {
				t.Error("told to be sent")
			}
			if !slices.Contains(inputs(t, r.store), "mine") {
				t.Error("our own input is not shown")
			}
		})
	}
}

// TestPushAgain: answers to pushes are lost, so operations go again; each is in the
// log once, in its order.
func TestPushAgain(t *testing.T) {
	r := newRig(t, replica.Options{})
	lost := 0
	r.wire = func(a *replica.Ask, _ *replica.Answer) bool {
		if a.Path == "/v2/sync/push" && lost < 2 {
			lost++
			return false
		}
		return true
	}
	r.run(func() bool { return r.status().Site != 0 }, 10)
	for i := range 10 {
		r.write(create(fmt.Sprint("m", i)))
	}
	r.settle()
	next := map[log.Site]uint64{}
	err := r.origin.part.Log().Read(1, func(e log.Entry) bool {
		if next[e.Op.Dot.Site]++; next[e.Op.Dot.Site] != e.Op.Dot.Seq {
			t.Errorf("entry %d is operation %v, want %d", e.Seq, e.Op.Dot, next[e.Op.Dot.Site])
		}
		return true
	})
	if err != nil || lost != 2 || next[r.status().Site] != 10 {
		t.Errorf("lost %d, in the log %v: %v", lost, next, err)
	}
	if r.origin.got["push"] > 30 {
		t.Errorf("%d pushes", r.origin.got["push"])
	}
}

// TestAnotherEpoch: the origin is restored from a copy that lacks what it had
// acknowledged. The replica notices, takes its state, and offers again what that lost.
func TestAnotherEpoch(t *testing.T) {
	r := newRig(t, replica.Options{})
	r.origin.submit(create("a"))
	r.settle()
	r.origin.stable = 1 // the copy stores no later entries
	backup := copyOf(t, r.origin.store)
	r.write(create("b"), create("c"))
	r.settle()
	r.origin.submit(create("lost"))
	r.settle()
	if s := r.status(); s.Of(2) != replica.Confirmed {
		t.Fatalf("operation 2 is %v", s.Of(2))
	}
	r.origin.restore(backup, log.Epoch{77})
	r.run(func() bool { return r.settled() && r.status().Epoch == log.Epoch{77} }, 200)
	r.agree()
	if got := inputs(t, r.store); !slices.Equal(got, []string{"a", "b", "c"}) {
		t.Errorf("inputs %v", got)
	}
	if n := r.status().Rebases; n != 1 {
		t.Errorf("%d rebases", n)
	}
}

// TestForeignIsRefused checks that a replica refuses data of another application, another log or newer rules, and changes
// nothing.
func TestForeignIsRefused(t *testing.T) {
	other := catalog.AppID{2}.String()
	for name, forge := range map[string]func(a *replica.Ask, x *replica.Answer){
		"grant of another application": func(a *replica.Ask, x *replica.Answer) {
			edit(a, x, "session", wire.DecodeOffered, func(m *wire.Offered) { m.Grants[0].App = other })
		},
		"no grant": func(a *replica.Ask, x *replica.Answer) {
			edit(a, x, "session", wire.DecodeOffered, func(m *wire.Offered) { m.Grants = nil })
		},
		"protocol": func(a *replica.Ask, x *replica.Answer) {
			edit(a, x, "session", wire.DecodeOffered, func(m *wire.Offered) { m.Protocol = 99 })
		},
		"secret that breaks a header": func(a *replica.Ask, x *replica.Answer) {
			edit(a, x, "session", wire.DecodeOffered, func(m *wire.Offered) { m.Secret = []byte("a\r\nb") })
		},
		"entries of another epoch": func(a *replica.Ask, x *replica.Answer) {
			editEntries(a, x, func(m *wire.Entries) { m.Epoch = log.Epoch{1} })
		},
		"gap": func(a *replica.Ask, x *replica.Answer) {
			editEntries(a, x, func(m *wire.Entries) { m.From, m.To = m.From+1, m.To+1 })
		},
		"another chain": func(a *replica.Ask, x *replica.Answer) {
			editEntries(a, x, func(m *wire.Entries) { m.Chain[0]++ })
		},
		"an entry is missing": func(a *replica.Ask, x *replica.Answer) {
			editEntries(a, x, func(m *wire.Entries) { m.Block = wire.EncodeOps(nil) })
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, replica.Options{})
			on := true
			r.wire = func(a *replica.Ask, x *replica.Answer) bool {
				if on {
					forge(a, x)
				}
				return !on || !strings.HasPrefix(a.Path, "/v2/sync/snapshot")
			}
			r.origin.submit(create("a"), create("b"))
			for range 30 {
				if len(r.asks) > 0 {
					r.deliver(0)
				} else {
					r.clock = r.wake
					r.step(replica.Wake{})
				}
			}
			if s := r.status(); s.Cursor != 0 || s.Problem == "" || s.Phase == replica.Current {
				t.Errorf("%+v", s)
			}
			on = false
			r.settle()
			r.agree()
		})
	}
}

// edit changes an answer to requests of one name.
func edit[M any, P interface {
	*M
	Encode() []byte
}](a *replica.Ask, x *replica.Answer, name string, decode func([]byte) (M, error), change func(P),
) {
	if a.Path != "/v2/sync/"+name || x.Status != 200 {
		return
	}
	m, err := decode(slices.Clone(x.Body))
	if err != nil {
		panic(err)
	}
	change(&m)
	x.Body = P(&m).Encode()
}

func editEntries(a *replica.Ask, x *replica.Answer, change func(m *wire.Entries)) {
	if a.Path != "/v2/sync/changes" {
		return
	}
	var in wire.Reader
	_, _ = in.Write(x.Body)
	var out []byte
	for {
		f, ok, err := in.Next()
		if err != nil || !ok {
			break
		}
		if f.Type == wire.TypeEntries {
			m, err := wire.DecodeEntriesFrame(f.Body)
			if err != nil {
				panic(err)
			}
			change(&m)
			f.Body = m.Encode()
		}
		out = wire.AppendFrame(out, f.Type, f.Body)
	}
	x.Body = out
}

// TestSiteIsLeasedOnce: a site is leased once and kept over restarts, and only its secret proves it.
func TestSiteIsLeasedOnce(t *testing.T) {
	r := newRig(t, replica.Options{})
	r.write0(t)
	r.run(func() bool { return r.status().Site != 0 }, 10)
	r.settle()
	site := r.status().Site
	for range 3 {
		r.crash()
		r.write(create(fmt.Sprint("x", r.rng.Uint64())))
		r.settle()
	}
	if r.status().Site != site || r.origin.sites != site {
		t.Errorf("site %d became %d, %d were leased", site, r.status().Site, r.origin.sites-1)
	}
}

// write0 shows that nothing can be written before there is a site.
func (r *rig) write0(t *testing.T) {
	t.Helper()
	if _, err := r.part.Submit(t.Context(), "key", []log.Body{create("early")}, nil); err == nil {
		t.Error("a replica without a site has taken an operation")
	}
}

// TestPicturesGoBeforeOperations: a picture goes up before the operation that names it, once, in
// pieces; one that the origin has does not go at all; a cut costs one piece at most.
func TestPicturesGoBeforeOperations(t *testing.T) {
	const size = 3<<20 + 12345
	r := newRig(t, replica.Options{})
	r.settle()
	cut := 2
	r.wire = func(a *replica.Ask, _ *replica.Answer) bool {
		if a.Method == "PUT" && cut > 0 {
			cut--
			return false
		}
		return true
	}
	first := r.picture(size)
	r.write(first)
	r.settle()
	if got := r.origin.putBytes; got < size || got > size+3<<20 {
		t.Errorf("%d bytes were sent of %d, with two cuts", got, size)
	}
	r.origin.putBytes = 0
	again := *first
	again.Hosted[0]++
	r.write(&again)
	r.settle()
	if got := r.origin.putBytes; got != 0 {
		t.Errorf("%d bytes were sent of a picture that the origin had", got)
	}
	small := 0
	var bodies []log.Body
	for range 30 {
		n := 1 + r.rng.IntN(5000)
		small += n
		bodies = append(bodies, r.picture(n))
	}
	r.write(bodies...)
	r.settle()
	if got := r.origin.putBytes; got != small {
		t.Errorf("%d bytes were sent of %d new ones", got, small)
	}
	r.agree()
}

// TestPicturesDown: lazily when one is asked for, eagerly all of them, checked, and from where
// a cut left off.
func TestPicturesDown(t *testing.T) {
	for _, wants := range []wire.Blobs{wire.BlobsLazy, wire.BlobsFull} {
		t.Run(fmt.Sprint(wants), func(t *testing.T) {
			r := newRig(t, replica.Options{Wants: wire.Wants{Blobs: wants}})
			var pictures []*log.InputCreate
			for i := range 5 {
				in := r.picture(1000 + i)
				r.origin.blobs[in.Blob], _ = r.blobs.Get(t.Context(), in.Blob)
				if err := r.blobs.Delete(t.Context(), in.Blob); err != nil {
					t.Fatal(err)
				}
				r.origin.submit(in)
				pictures = append(pictures, in)
			}
			bad := true
			r.wire = func(a *replica.Ask, x *replica.Answer) bool {
				if strings.HasPrefix(a.Path, "/v2/sync/blobs/") && bad && len(x.Body) > 10 {
					bad = false
					x.Body = slices.Clone(x.Body)
					x.Body[3]++
				}
				return true
			}
			r.settle()
			has, err := r.blobs.Has(t.Context(), pictures[2].Blob)
			if err != nil || has != (wants == wire.BlobsFull) {
				t.Fatalf("the picture is here: %v, %v", has, err)
			}
			r.step(replica.Need{Blob: pictures[2].Blob})
			r.run(func() bool { return slices.Contains(r.effects, replica.Effect(replica.Got{Blob: pictures[2].Blob})) }, 50)
			if got, err := r.blobs.Get(t.Context(), pictures[2].Blob); err != nil || !bytes.Equal(got, r.origin.blobs[pictures[2].Blob]) {
				t.Errorf("picture of %d bytes, %v", len(got), err)
			}
			r.effects = nil
			missing := pictures[0].Blob
			missing[5]++
			r.step(replica.Need{Blob: missing})
			r.run(func() bool {
				return slices.ContainsFunc(r.effects, func(e replica.Effect) bool {
					g, ok := e.(replica.Got)
					return ok && g.Blob == missing && g.Err != nil
				})
			}, 50)
		})
	}
}

// TestDownloadGoesOn: an interrupted download of a picture continues at the same byte.
func TestDownloadGoesOn(t *testing.T) {
	r := newRig(t, replica.Options{})
	in := r.picture(100_000)
	data, _ := r.blobs.Get(t.Context(), in.Blob)
	r.origin.blobs[in.Blob] = data
	if err := r.blobs.Delete(t.Context(), in.Blob); err != nil {
		t.Fatal(err)
	}
	r.settle()
	got := 0
	r.wire = func(a *replica.Ask, x *replica.Answer) bool {
		if strings.HasPrefix(a.Path, "/v2/sync/blobs/") {
			if len(x.Body) > 20_000 {
				x.Body, x.Err = x.Body[:20_000], errors.New("cut")
			}
			got += len(x.Body)
		}
		return true
	}
	r.step(replica.Need{Blob: in.Blob})
	r.run(func() bool {
		return len(r.effects) > 0 && slices.Contains(r.effects, replica.Effect(replica.Got{Blob: in.Blob}))
	}, 50)
	if got != len(data) {
		t.Errorf("%d bytes came of %d", got, len(data))
	}
}

// TestObjects: the manifest of a version is there before the version is, both ways.
func TestObjects(t *testing.T) {
	r := newRig(t, replica.Options{})
	r.settle()
	trained := func(site string, put func(also func(*kv.Batch), bodies ...log.Body), dot log.Dot) {
		data := bytes.Repeat([]byte(site), 500)
		var hash [32]byte
		put(func(b *kv.Batch) { hash = catalog.PutObject(b, app, data) }, &log.ModelCreate{ID: "m" + site, Name: site, Version: "v" + site})
		put(nil, &log.VersionTrain{Model: dot, Version: "t" + site})
		put(func(b *kv.Batch) { catalog.PutObject(b, app, data) },
			&log.VersionResult{Model: dot, Version: "t" + site, Lease: 0, Code: 21100, Manifest: hash})
	}
	trained("o", func(also func(*kv.Batch), bodies ...log.Body) {
		if _, err := r.origin.part.Submit(t.Context(), "", bodies, also); err != nil {
			t.Fatal(err)
		}
	}, log.Dot{Site: 1, Seq: 1})
	r.settle()
	trained("r", func(also func(*kv.Batch), bodies ...log.Body) {
		r.writeBeside(also, bodies...)
	}, log.Dot{Site: r.status().Site, Seq: 1})
	r.step(replica.Local{})
	r.settle()
	r.agree()
	n := 0
	for _, store := range []kv.Store{r.store, r.origin.store} {
		for _, site := range []string{"o", "r"} {
			data := bytes.Repeat([]byte(site), 500)
			var b kv.Batch
			hash := catalog.PutObject(&b, app, data)
			if got, err := catalog.Read(store, app).Object(hash); err == nil && bytes.Equal(got, data) {
				n++
			}
		}
	}
	if n != 4 {
		t.Errorf("%d of 4 objects are where they belong", n)
	}
}

// TestDerived: derived records come with the entries that need them, where they are wanted.
func TestDerived(t *testing.T) {
	for _, wants := range []wire.Vectors{wire.VectorsNone, wire.VectorsQ16} {
		r := newRig(t, replica.Options{Wants: wire.Wants{Vectors: wants}})
		in := r.picture(10)
		r.origin.submit(in)
		r.settle()
		x, err := catalog.Read(r.store, app).DerivedOf(r.origin.base, in.Blob, in.Crop)
		if there := err == nil && bytes.Equal(x.Embedding, derivedOf(in.Blob).Embedding); there != (wants == wire.VectorsQ16) {
			t.Errorf("wants %d: there is a derived record: %v, %v", wants, there, err)
		}
	}
}

// TestPurgeForgets: a replica is told to forget what is not for it, and then asks nothing more.
func TestPurgeForgets(t *testing.T) {
	for do, keep := range map[wire.Do]bool{wire.DoErase: false, wire.DoRefused: true} {
		r := newRig(t, replica.Options{})
		r.settle()
		r.write(create("a"))
		r.settle()
		r.origin.do = do
		r.step(replica.Stop{})
		r.step(replica.Begin{})
		r.run(func() bool { return r.status().Phase == replica.Purged }, 20)
		var purge replica.Purge
		for _, e := range r.effects {
			if p, ok := e.(replica.Purge); ok {
				purge = p
			}
		}
		if purge.Why == "" || purge.KeepOutbox != keep {
			t.Errorf("do %d: %+v", do, purge)
		}
		r.clock = r.clock.Add(24 * time.Hour)
		for _, e := range []replica.Event{replica.Wake{}, replica.Local{}, replica.Online{}, replica.Begin{}} {
			r.step(e)
		}
		if len(r.asks) > 0 {
			t.Errorf("do %d: it goes on asking", do)
		}
	}
}

// TestPurgeNeedsTheOrigin: a proxy's answer empties nothing.
func TestPurgeNeedsTheOrigin(t *testing.T) {
	r := newRig(t, replica.Options{})
	r.settle()
	r.wire = func(_ *replica.Ask, x *replica.Answer) bool {
		x.Status, x.Header, x.Body = 410, []api.Field{{Name: "Content-Type", Value: "text/html"}}, []byte("gone")
		return true
	}
	for range 20 {
		if len(r.asks) > 0 {
			r.deliver(0)
		} else {
			r.clock = r.wake
			r.step(replica.Wake{})
		}
	}
	if r.status().Phase == replica.Purged {
		t.Error("an answer that is not the origin's emptied the replica")
	}
}

// TestPurgeByRefusal: the origin's own word does, on a stream and as an answer.
func TestPurgeByRefusal(t *testing.T) {
	refusal := wire.Refusal{Code: wire.RefusedGone, Detail: "deleted"}
	end := wire.End{Why: wire.WhyGone, Detail: "deleted"}
	for _, x := range []replica.Answer{
		{Status: 410, Header: []api.Field{{Name: "content-type", Value: wire.ContentType + "; v=1"}}, Body: refusal.Encode()},
		{Status: 200, Body: wire.AppendFrame(nil, wire.TypeEnd, end.Encode())},
	} {
		r := newRig(t, replica.Options{})
		r.settle()
		r.wire = func(a *replica.Ask, answer *replica.Answer) bool {
			if a.Path == "/v2/sync/changes" {
				x.ID = answer.ID
				*answer = x
			}
			return true
		}
		r.run(func() bool { return r.status().Phase == replica.Purged }, 20)
	}
}

// TestOperationStates: an operation is queued until the origin says that it has it, sent until the
// log brings it back, and then confirmed; an origin that lies has it queued again.
func TestOperationStates(t *testing.T) {
	r := newRig(t, replica.Options{})
	r.settle()
	r.write(create("a"))
	var seen []replica.State
	note := func() {
		s := r.status()
		if of := s.Of(1); len(seen) == 0 || seen[len(seen)-1] != of {
			seen = append(seen, of)
		}
	}
	note()
	r.run(func() bool {
		note()
		return r.settled()
	}, 100)
	if want := []replica.State{replica.Queued, replica.Sent, replica.Confirmed}; !slices.Equal(seen, want) {
		t.Errorf("states %v, want %v", seen, want)
	}

	lie := true
	r.origin.lie = func(p *wire.Push) *wire.Pushed {
		if !lie {
			return nil
		}
		lie = false
		l := r.origin.part.Log()
		return &wire.Pushed{Epoch: l.Epoch(), Accepted: 2, Runs: []wire.Run{{First: 2, Seq: l.Head() + 1, Count: 1}}, Head: l.Head()}
	}
	r.write(create("b"))
	seen = nil
	r.run(func() bool {
		s := r.status()
		if of := s.Of(2); len(seen) == 0 || seen[len(seen)-1] != of {
			seen = append(seen, of)
		}
		if s.Of(2) == replica.Sent && s.Cursor == r.origin.part.Log().Head() {
			r.origin.submit(create(fmt.Sprint("z", r.total)))
		}
		return r.settled()
	}, 300)
	if want := []replica.State{replica.Queued, replica.Sent, replica.Queued, replica.Sent, replica.Confirmed}; !slices.Equal(seen, want) {
		t.Errorf("states %v, want %v", seen, want)
	}
}
