package replica_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

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

// TestSettledSyncEnds: a replica that syncs once makes no more requests when it is settled.
func TestSettledSyncEnds(t *testing.T) {
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
	if len(r.requests) > 0 || r.total != before {
		t.Errorf("after all was done it asked %d times more", r.total-before)
	}
}

// TestCursorMovesWithData checks that after any crash the cursor agrees with the state, and that acknowledged operations are
// still stored.
func TestCursorMovesWithData(t *testing.T) {
	r := newRig(t, replica.Options{})
	for i := range 60 {
		r.origin.submit(create(fmt.Sprint("o", i)))
		if i%3 == 0 {
			r.write(create(fmt.Sprint("r", i)))
		}
		issued := r.status().Issued
		for range r.rng.IntN(6) {
			if len(r.requests) == 0 {
				break
			}
			r.deliver(0)
		}
		if i%4 == 0 {
			r.crash()
			if got := r.status().Issued; got < issued {
				t.Fatalf("a crash took operations %d to %d back", got+1, issued)
			}
			checkFolded(t, r)
		}
	}
	r.settle()
	r.agree()
}

// checkFolded checks that the confirmed state is at the entry of the cursor.
func checkFolded(t *testing.T, r *rig) {
	t.Helper()
	h := uint64(0)
	err := r.part.ReadConfirmed(func(k kv.Reader) error {
		header, err := catalog.Read(k, app).Header()
		h = header.Seq
		return err
	})
	if at := r.status().Cursor; err != nil || h != at {
		t.Fatalf("the state is of entry %d and the cursor says %d: %v", h, at, err)
	}
}

// damage changes the ID in one record of an input.
func damage(t *testing.T, r *rig, id string) {
	t.Helper()
	var b kv.Batch
	lo, hi := app.Range()
	err := r.store.Scan(append(slices.Clone(lo), 'i'), hi, func(key, value []byte) bool {
		if catalog.IsStateKey(key[len(lo):]) && bytes.Contains(value, []byte(id)) && b.Len() == 0 {
			b.Put(key, bytes.Replace(value, []byte(id), []byte("j"+id[1:]), 1))
		}
		return true
	})
	if err == nil {
		err = r.store.Apply(&b)
	}
	if err != nil || b.Len() == 0 {
		t.Fatalf("nothing was damaged: %v", err)
	}
}

// TestAuditReplaces: an audit finds a key that differs from the origin's, and a snapshot replaces the state. Operations in the outbox stay
// there.
func TestAuditReplaces(t *testing.T) {
	r := newRig(t, replica.Options{Audit: time.Hour})
	var bodies []log.Body
	for i := range 400 {
		bodies = append(bodies, create(fmt.Sprint("i", i)))
	}
	r.origin.submit(bodies...)
	r.settle()
	push := false
	r.lose = func(a *replica.Ask) bool { return !push && a.Path == "/v2/sync/push" }
	r.write(create("mine"))

	damage(t, r, "i123")
	r.machine.Audit()
	r.run(func() bool { return r.status().Differences > 0 }, 400)
	r.run(func() bool { return r.status().Phase == replica.Current }, 400)
	r.agree()
	if s := r.status(); s.Differences != 1 || s.Rebases != 1 {
		t.Errorf("after the snapshot: %+v", s)
	}
	if s := r.status(); s.Pending() != 1 || !slices.Contains(inputs(t, r.store), "mine") {
		t.Errorf("the outbox was dropped: %+v", s)
	}
	push = true
	r.settle()
	r.agree()
}

// TestSnapshotOfAuditOutlivesSessions: an audit found a difference, and the connection is lost while the snapshot is on its way. The next session
// continues the snapshot. The replica pulls no entry before it, so the cursor never goes back.
func TestSnapshotOfAuditOutlivesSessions(t *testing.T) {
	r := newRig(t, replica.Options{Audit: time.Hour})
	r.origin.submit(create("i1"), create("i2"))
	r.settle()
	damage(t, r, "i1")
	lost := 0
	r.lose = func(a *replica.Ask) bool {
		if lost < 3 && strings.HasPrefix(a.Path, "/v2/sync/snapshot/") {
			lost++
			r.origin.submit(create(fmt.Sprint("later", lost)))
			return true
		}
		return false
	}
	r.machine.Audit()
	last := uint64(0)
	r.run(func() bool {
		at := r.status().Cursor
		if at < last {
			t.Errorf("the cursor goes back from %d to %d", last, at)
		}
		last = at
		return r.status().Rebases > 0
	}, 2000)
	r.settle()
	r.agree()
	if lost == 0 {
		t.Error("no snapshot was requested")
	}
}

// TestPullNeverWaitsForPush uses an origin that accepts no push. The replica still pulls everything. Its own operations stay
// visible and are reported as queued.
func TestPullNeverWaitsForPush(t *testing.T) {
	for _, status := range []int{0, 401, 403, 413, 429, 500, 503} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			r := newRig(t, replica.Options{})
			r.origin.refuse = map[string]int{"push": status}
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

// TestPushAgain: answers to pushes are lost, so the replica pushes its operations again. Each
// is in the log once, in order.
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
	var mine []log.Dot
	for i := range 10 {
		mine = append(mine, r.write(create(fmt.Sprint("m", i)))...)
	}
	r.settle()
	next := map[log.Writer]uint64{}
	err := r.origin.part.Log().Read(1, func(e log.Entry) bool {
		if next[e.Op.Dot.Writer]++; next[e.Op.Dot.Writer] != e.Op.Dot.Seq {
			t.Errorf("entry %d is operation %v, want %d", e.Seq, e.Op.Dot, next[e.Op.Dot.Writer])
		}
		return true
	})
	if err != nil || lost != 2 || next[mine[0].Writer] != 10 {
		t.Errorf("lost %d, in the log %v: %v", lost, next, err)
	}
	if r.origin.got["push"] > 30 {
		t.Errorf("%d pushes", r.origin.got["push"])
	}
}

// TestReplicaOfUnsealedLogAfterRestore: the operator restores the origin from a backup that lacks acknowledged operations. Its log has no
// seals, so replicas keep no entries. The replica takes the origin's state, and pushes its own operations again.
func TestReplicaOfUnsealedLogAfterRestore(t *testing.T) {
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
	r.run(r.isSettled, 200)
	r.agree()
	if got := inputs(t, r.store); !slices.Equal(got, []string{"a", "b", "c"}) {
		t.Errorf("inputs %v", got)
	}
	if n := r.status().Rebases; n != 1 {
		t.Errorf("%d rebases", n)
	}
}

// TestForeignDataIsRefused checks that a replica refuses data of another application, another log or newer rules, and changes nothing.
func TestForeignDataIsRefused(t *testing.T) {
	other := catalog.AppID{2}.String()
	for name, forge := range map[string]func(a *replica.Ask, x *replica.Answer){
		"grant of another application": func(a *replica.Ask, x *replica.Answer) {
			edit(a, x, "session", wire.DecodeSessionReply, func(m *wire.SessionReply) { m.Grants[0].App = other })
		},
		"no grant": func(a *replica.Ask, x *replica.Answer) {
			edit(a, x, "session", wire.DecodeSessionReply, func(m *wire.SessionReply) { m.Grants = nil })
		},
		"protocol": func(a *replica.Ask, x *replica.Answer) {
			edit(a, x, "session", wire.DecodeSessionReply, func(m *wire.SessionReply) { m.Protocol = 99 })
		},
		"gap": func(a *replica.Ask, x *replica.Answer) {
			editEntries(a, x, func(m *wire.Entries) { m.From, m.To = m.From+1, m.To+1 })
		},
		"another chain": func(a *replica.Ask, x *replica.Answer) {
			editEntries(a, x, func(m *wire.Entries) { m.Chain[0]++ })
		},
		"an entry is missing": func(a *replica.Ask, x *replica.Answer) {
			editEntries(a, x, func(m *wire.Entries) { m.Rows = log.EncodeRows(nil) })
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
			r.turns(30)
			if s := r.status(); s.Cursor != 0 || s.Problem == "" || s.Phase == replica.Current {
				t.Errorf("%+v", s)
			}
			on = false
			r.settle()
			r.agree()
		})
	}
}

// TestForgedEpoch: the epoch in entries or in a snapshot is false. The chain shows that they belong to the log, so the replica takes them, and the
// log lacks its place. Once the answers are right it takes a snapshot. It loses nothing and gives nothing to the log that this has.
func TestForgedEpoch(t *testing.T) {
	for _, name := range []string{"changes", "snapshot"} {
		r := newSealedRig(t)
		r.origin.submit(create("a"), create("b"))
		if name == "snapshot" {
			r.trim()
		}
		on := true
		r.wire = func(a *replica.Ask, x *replica.Answer) bool {
			if on {
				editEntries(a, x, func(m *wire.Entries) { m.Epoch = log.Epoch{1} })
				edit(a, x, "snapshot", wire.DecodeManifest, func(m *wire.Manifest) { m.Epoch = log.Epoch{1} })
			}
			return true
		}
		r.run(func() bool { return r.status().Epoch == log.Epoch{1} }, 20)
		on = false
		r.write(create("mine"))
		head := r.origin.part.Log().Head()
		r.settle()
		r.agree()
		if got := inputs(t, r.store); !slices.Equal(got, []string{"a", "b", "mine"}) || r.origin.part.Log().Head() != head+1 {
			t.Errorf("%s: inputs %v, %d more entries", name, got, r.origin.part.Log().Head()-head)
		}
	}
}

// edit applies change to the decoded body of x if x is a successful answer to a request of this name.
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

// TestPicturesGoBeforeOperations: the replica uploads a picture in parts before it pushes the operation that
// names it. It uploads no picture that the origin has. A lost answer costs one part at most.
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
	second := *first
	second.Hosted[0]++
	r.write(&second)
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

// TestPictureDownloads: with BlobsLazy, a replica downloads a picture when the host wants it; with BlobsFull, it downloads all. It verifies
// each, and reports an error for one that the origin lacks.
func TestPictureDownloads(t *testing.T) {
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
			r.step(replica.BlobWanted{Blob: pictures[2].Blob})
			r.run(func() bool {
				return slices.Contains(r.effects, replica.Effect(replica.BlobReady{Blob: pictures[2].Blob}))
			}, 50)
			if got, err := r.blobs.Get(t.Context(), pictures[2].Blob); err != nil || !bytes.Equal(got, r.origin.blobs[pictures[2].Blob]) {
				t.Errorf("picture of %d bytes, %v", len(got), err)
			}
			r.effects = nil
			missing := pictures[0].Blob
			missing[5]++
			r.step(replica.BlobWanted{Blob: missing})
			r.run(func() bool {
				return slices.ContainsFunc(r.effects, func(e replica.Effect) bool {
					g, ok := e.(replica.BlobReady)
					return ok && g.Blob == missing && g.Err != nil
				})
			}, 50)
		})
	}
}

// TestDownloadContinues: an interrupted download of a picture continues at the same byte.
func TestDownloadContinues(t *testing.T) {
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
	r.step(replica.BlobWanted{Blob: in.Blob})
	r.run(func() bool {
		return len(r.effects) > 0 && slices.Contains(r.effects, replica.Effect(replica.BlobReady{Blob: in.Blob}))
	}, 50)
	if got != len(data) {
		t.Errorf("%d bytes came of %d", got, len(data))
	}
}

// TestObjects: the manifest of a version arrives with the version, in both directions.
func TestObjects(t *testing.T) {
	r := newRig(t, replica.Options{})
	r.settle()
	trained := func(at string, put func(also func(*kv.Batch), bodies ...log.Body) []log.Dot) {
		data := bytes.Repeat([]byte(at), 500)
		var hash [32]byte
		model := put(func(b *kv.Batch) { hash = catalog.PutObject(b, app, data) }, &log.ModelCreate{ID: "m" + at, Name: at, Version: "v" + at})[0]
		put(nil, &log.VersionTrain{Model: model, Version: "t" + at})
		put(func(b *kv.Batch) { catalog.PutObject(b, app, data) },
			&log.VersionResult{Model: model, Version: "t" + at, Lease: 0, Code: 21100, Manifest: hash})
	}
	trained("o", func(also func(*kv.Batch), bodies ...log.Body) []log.Dot {
		_, span, err := r.origin.part.SubmitSpan(t.Context(), partition.Caller{}, bodies, also)
		if err != nil {
			t.Fatal(err)
		}
		return []log.Dot{{Writer: span.Writer, Seq: span.First}}
	})
	r.settle()
	trained("r", r.writeWith)
	r.step(replica.LocalWrite{})
	r.settle()
	r.agree()
	n := 0
	for _, store := range []kv.Store{r.store, r.origin.store} {
		for _, at := range []string{"o", "r"} {
			data := bytes.Repeat([]byte(at), 500)
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

// TestDerived: derived records arrive with their entries if the replica wants vectors, and otherwise not.
func TestDerived(t *testing.T) {
	for _, wants := range []wire.Vectors{wire.VectorsNone, wire.VectorsQ16} {
		r := newRig(t, replica.Options{Wants: wire.Wants{Vectors: wants}})
		in := r.picture(10)
		r.origin.submit(in)
		r.settle()
		x, err := catalog.Read(r.store, app).DerivedOf(r.origin.base, in.Blob, in.Crop)
		if exists := err == nil && bytes.Equal(x.Embedding, derivedOf(in.Blob).Embedding); exists != (wants == wire.VectorsQ16) {
			t.Errorf("wants %d: there is a derived record: %v, %v", wants, exists, err)
		}
	}
}

// TestOperationStates: an operation is queued until the origin acknowledges it, sent until it is in the
// pulled log, and then confirmed. If the acknowledgement was false, the operation is queued again.
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
		return r.isSettled()
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
		return &wire.Pushed{Opening: p.Opening, Accepted: 2, Head: l.Head()}
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
		return r.isSettled()
	}, 300)
	if want := []replica.State{replica.Queued, replica.Sent, replica.Queued, replica.Sent, replica.Confirmed}; !slices.Equal(seen, want) {
		t.Errorf("states %v, want %v", seen, want)
	}
}
