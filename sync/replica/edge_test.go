package replica_test

import (
	"bytes"
	"fmt"
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

// full wraps a store, and rejects writes as a full disk does.
type full struct {
	kv.Store
	is   bool // reject all writes
	low  bool // report that there is room for deletions only
	log  bool // reject synced writes
	took int  // number of applied batches
}

func (f *full) err() error {
	if f.is {
		return kv.ErrFull
	}
	return nil
}

func (f *full) Room() error {
	if f.low {
		return kv.ErrFull
	}
	return f.err()
}

func (f *full) Apply(b *kv.Batch) error {
	if err := f.err(); err != nil {
		return err
	}
	f.took++
	return f.Store.Apply(b)
}

func (f *full) Commit(b *kv.Batch) (func() error, error) {
	if err := f.err(); err != nil || f.log {
		return nil, kv.ErrFull
	}
	return f.Store.Commit(b)
}

// TestFull: a disk without space stops the pull. Reads continue. With space the pull continues by itself.
func TestFull(t *testing.T) {
	r := newRig(t, replica.Options{})
	r.settle()
	f := &full{Store: r.store}
	r.over = func(s kv.Store) kv.Store { f.Store = s; return f }
	r.crash()
	f.is = true
	r.origin.submit(create("a"))
	r.run(func() bool { return strings.Contains(r.status().Problem, kv.ErrFull.Error()) }, 20)
	if s := r.status(); s.Cursor != 0 || s.Head != 1 || s.Phase == replica.Current {
		t.Errorf("%+v", s)
	}
	f.is = false
	r.settle()
	r.agree()
}

// TestLowDiskPullsOnlyDeletions: while the disk is nearly full, the replica pulls only deletions and fetches no snapshots or pictures, but
// it pushes its operations. Once there is room, it pulls the rest.
func TestLowDiskPullsOnlyDeletions(t *testing.T) {
	r := newRig(t, replica.Options{Wants: wire.Wants{Blobs: wire.BlobsFull}})
	f := &full{}
	r.over = func(s kv.Store) kv.Store { f.Store = s; return f }
	r.crash()
	r.origin.submit(create("a"))
	r.settle()
	r.write(create("mine"))
	f.low = true
	took := f.took
	problem := func() bool { return strings.Contains(r.status().Problem, "the disk is full: ") }
	away := r.picture(20)
	r.origin.blobs[away.Blob], _ = r.blobs.Get(t.Context(), away.Blob)
	if err := r.blobs.Delete(t.Context(), away.Blob); err != nil {
		t.Fatal(err)
	}
	r.origin.submit(create("b"), away)
	r.run(func() bool { return problem() && r.status().Accepted == 1 }, 40)
	if s := r.status(); s.Cursor != 1 || s.Head < 3 || s.Phase != replica.Pulling || f.took != took {
		t.Errorf("%d batches, %+v", f.took-took, s)
	}
	lastHeard := r.status().Heard
	r.run(func() bool { return r.status().Heard.After(lastHeard) }, 40) // contact with the origin continues, so keys stay verified
	r.effects = nil
	r.step(replica.BlobWanted{Blob: away.Blob})
	if want := replica.Effect(replica.BlobReady{Blob: away.Blob, Err: kv.ErrFull}); !slices.Contains(r.effects, want) {
		t.Errorf("effects %v, want %v", r.effects, want)
	}
	if err := r.origin.part.Log().Trim(r.origin.part.Log().Head() + 1); err != nil { // a snapshot is needed
		t.Fatal(err)
	}
	requests := r.origin.got["snapshot"]
	r.run(func() bool { return problem() && r.status().Phase == replica.Rebasing }, 40)
	if s := r.status(); s.Cursor != 1 || f.took != took || r.origin.got["snapshot"] > requests+1 {
		t.Errorf("%d batches, %d requests, %+v", f.took-took, r.origin.got["snapshot"]-requests, s)
	}
	f.low = false
	r.settle()
	r.agree()
	if has, err := r.blobs.Has(t.Context(), away.Blob); !has || err != nil {
		t.Errorf("the picture is here: %v, %v", has, err)
	}
}

// TestFullDiskPullsDeletions: a replica pulls deletions however full the disk is, since they make room.
func TestFullDiskPullsDeletions(t *testing.T) {
	r := newRig(t, replica.Options{})
	f := &full{}
	r.over = func(s kv.Store) kv.Store { f.Store = s; return f }
	r.crash()
	made := r.origin.submit(create("a"), create("b"))
	r.settle()
	f.low = true
	r.origin.submit(&log.InputDelete{Input: made[0].Dot})
	r.write(&log.InputDelete{Input: made[1].Dot})
	r.settle()
	r.agree()
}

// TestFullUnsynced: if the disk has no room for a sync, the replica keeps working. It syncs the pulled entries once there is room.
func TestFullUnsynced(t *testing.T) {
	r := newRig(t, replica.Options{})
	f := &full{}
	r.over = func(s kv.Store) kv.Store { f.Store = s; return f }
	r.crash()
	r.settle()
	f.log = true
	r.origin.submit(create("a"))
	r.settle()
	r.step(replica.Stop{})
	if r.disk.durable == len(r.disk.batches) {
		t.Error("nothing was left unsynced")
	}
	f.log = false
	r.step(replica.Begin{})
	r.settle()
	r.step(replica.Stop{})
	if r.disk.durable != len(r.disk.batches) {
		t.Errorf("%d of %d batches are durable", r.disk.durable, len(r.disk.batches))
	}
}

// TestUnknownAnswersAreIgnored: the machine ignores answers to cancelled or unknown requests.
func TestUnknownAnswersAreIgnored(t *testing.T) {
	r := newRig(t, replica.Options{})
	r.settle()
	for len(r.requests) == 0 {
		r.sleep()
	}
	old := r.requests[0]
	late := r.origin.answer(&old)
	r.step(replica.Offline{})
	before := r.status()
	for _, x := range []replica.Answer{late, {ID: 0, Status: 200}, {ID: 1 << 60, Status: 410}, {}} {
		r.step(x)
	}
	if after := r.status(); after != before {
		t.Errorf("%+v became %+v", before, after)
	}
}

// TestPushRefusals: after each kind of refused push, all operations still reach the log.
func TestPushRefusals(t *testing.T) {
	for name, refuse := range map[string]func(r *rig, a *replica.Ask, n int) *wire.Refusal{
		"too large": func(_ *rig, a *replica.Ask, _ int) *wire.Refusal {
			p, _ := wire.DecodePush(a.Body)
			if ops, _ := wire.DecodeOps(p.Rows); len(ops) > 3 {
				return &wire.Refusal{Code: wire.RefusedLimit, Limit: "PushOps", Value: 3}
			}
			return nil
		},
		"sequence": func(r *rig, a *replica.Ask, n int) *wire.Refusal {
			p, _ := wire.DecodePush(a.Body)
			if has, _ := r.origin.part.Names(p.Writer); n < 3 {
				return &wire.Refusal{Code: wire.RefusedSequence, Accepted: has.Last()}
			}
			return nil
		},
		"sequence from before": func(r *rig, _ *replica.Ask, n int) *wire.Refusal {
			if n == 0 {
				return &wire.Refusal{Code: wire.RefusedSequence, Accepted: 99}
			}
			return nil
		},
		"epoch": func(_ *rig, _ *replica.Ask, n int) *wire.Refusal {
			if n < 2 {
				return &wire.Refusal{Code: wire.RefusedEpoch}
			}
			return nil
		},
		"pictures": func(_ *rig, _ *replica.Ask, n int) *wire.Refusal {
			if n < 2 {
				return &wire.Refusal{Code: wire.RefusedBlobs}
			}
			return nil
		},
		"writer": func(_ *rig, _ *replica.Ask, n int) *wire.Refusal {
			if n < 2 {
				return &wire.Refusal{Code: wire.RefusedWriter}
			}
			return nil
		},
		"gaps": func(_ *rig, _ *replica.Ask, n int) *wire.Refusal {
			if n < 2 {
				return &wire.Refusal{Code: wire.RefusedLimit, Limit: wire.LimitGaps}
			}
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, replica.Options{})
			n := 0
			r.settle()
			r.instead = func(a *replica.Ask) *wire.Refusal {
				if a.Path != "/v2/sync/push" {
					return nil
				}
				n++
				return refuse(r, a, n-1)
			}
			var bodies []log.Body
			for i := range 10 {
				bodies = append(bodies, create(fmt.Sprint("m", i)))
			}
			r.write(append(bodies, r.picture(10))...)
			r.settle()
			r.agree()
			if n < 2 {
				t.Errorf("%d pushes", n)
			}
		})
	}
}

// TestUploadRefusals: a picture that the origin rejects, or that the replica lost, delays no other
// uploads or operations.
func TestUploadRefusals(t *testing.T) {
	r := newRig(t, replica.Options{})
	r.settle()
	large, lost, good := r.picture(5000), r.picture(100), r.picture(200)
	if err := r.blobs.Delete(t.Context(), lost.Blob); err != nil {
		t.Fatal(err)
	}
	r.origin.lax = true
	r.instead = func(a *replica.Ask) *wire.Refusal {
		if a.Method == "PUT" && strings.HasSuffix(a.Path, large.Blob.String()) {
			return &wire.Refusal{Code: wire.RefusedLimit, Detail: "too large"}
		}
		return nil
	}
	r.write(large, lost, good)
	r.settle()
	if _, ok := r.origin.blobs[good.Blob]; !ok || len(r.origin.blobs) != 1 {
		t.Errorf("the origin has %d pictures", len(r.origin.blobs))
	}
}

// TestSnapshotForged: the replica rejects a snapshot that does not match its manifest, and fetches a valid
// one later.
func TestSnapshotForged(t *testing.T) {
	for name, forge := range map[string]func(m *wire.Manifest){
		"application": func(m *wire.Manifest) { m.App = catalog.AppID{5}.String() },
		"rules":       func(m *wire.Manifest) { m.Fold = 99 },
		"digest":      func(m *wire.Manifest) { m.Digest[0]++ },
		"entry":       func(m *wire.Manifest) { m.Seq++ },
		"a piece":     func(m *wire.Manifest) { m.Chunks[0].Hash[0]++ },
		"size":        func(m *wire.Manifest) { m.Chunks[0].Size = 1 << 40 },
		"no pieces":   func(m *wire.Manifest) { m.Chunks = nil },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, replica.Options{})
			r.origin.submit(create("a"), create("b"))
			if err := r.origin.part.Log().Trim(3); err != nil {
				t.Fatal(err)
			}
			on := true
			r.wire = func(a *replica.Ask, x *replica.Answer) bool {
				if on {
					edit(a, x, "snapshot", wire.DecodeManifest, forge)
				}
				return true
			}
			r.turns(40)
			r.run(func() bool { return r.status().Problem != "" }, 10)
			if s := r.status(); s.Cursor != 0 {
				t.Errorf("%+v", s)
			}
			on = false
			r.write(create("mine"))
			r.settle()
			r.agree()
		})
	}
}

// TestSnapshotSuperseded: if the origin no longer has a snapshot, the replica takes the newest.
func TestSnapshotSuperseded(t *testing.T) {
	r := newRig(t, replica.Options{})
	dot := r.origin.submit(create("a"), &log.ModelCreate{ID: "m", Version: "v"})[1].Dot
	data := bytes.Repeat([]byte("manifest"), 10)
	hash := blob.Sum(data)
	r.origin.submit(&log.VersionTrain{Model: dot, Version: "t"})
	_, err := r.origin.part.Submit(t.Context(), "", []log.Body{
		&log.VersionResult{Model: dot, Version: "t", Lease: r.origin.part.Log().Head(), Train: log.Dot{Writer: dot.Writer, Seq: dot.Seq + 1}, Code: 21100, Manifest: hash},
	}, func(b *kv.Batch) { catalog.PutObject(b, app, data) })
	if err != nil {
		t.Fatal(err)
	}
	if err := r.origin.part.Log().Trim(r.origin.part.Log().Head() + 1); err != nil {
		t.Fatal(err)
	}
	refusals := 2
	r.instead = func(a *replica.Ask) *wire.Refusal {
		if strings.HasPrefix(a.Path, "/v2/sync/snapshot/") && refusals > 0 {
			refusals--
			r.origin.submit(create(fmt.Sprint("later", refusals)))
			return &wire.Refusal{Code: wire.RefusedUnknown}
		}
		return nil
	}
	r.settle()
	r.agree()
	if got, err := catalog.Read(r.store, app).Object(hash); err != nil || !bytes.Equal(got, data) {
		t.Errorf("the version's manifest: %d bytes, %v", len(got), err)
	}
}

// TestAuditFinds: an audit finds every difference, of one key and of many. New entries that the origin has when it gets the request only
// delay the audit. Later ones do not.
func TestAuditFinds(t *testing.T) {
	damage := func(r *rig, n int) {
		var b kv.Batch
		lo, hi := app.Range()
		err := r.store.Scan(lo, hi, func(key, _ []byte) bool {
			if k := key[len(lo):]; n > 0 && k[0] == 'I' {
				b.Delete(key)
				n--
			}
			return true
		})
		if err == nil {
			err = r.store.Apply(&b)
		}
		if err != nil || n > 0 {
			r.Fatal("nothing to damage", err)
		}
	}
	for _, n := range []int{1, 40, 600} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			r := newRig(t, replica.Options{Audit: 10 * time.Minute})
			var bodies []log.Body
			for i := range 700 {
				bodies = append(bodies, create(fmt.Sprint("i", i)))
			}
			r.origin.runs = 500
			r.origin.submit(bodies...)
			r.settle()
			r.origin.manifest(0) // of a snapshot that lacks what follows
			r.origin.old = true
			damage(r, n)
			moves := 3
			r.instead = func(a *replica.Ask) *wire.Refusal {
				if a.Path == "/v2/sync/digest" && moves > 0 {
					moves--
					r.origin.submit(create(fmt.Sprint("moved", moves)))
				}
				return nil
			}
			r.wire = func(a *replica.Ask, _ *replica.Answer) bool {
				if a.Path == "/v2/sync/digest" && moves == 0 { // after the answer was made
					r.origin.submit(create("later"))
				}
				return true
			}
			r.run(func() bool { return r.status().Differences > 0 }, 3000)
			if s := r.status(); moves > 0 || s.Audited != r.clock || s.Problem != "audit: the state differs from the origin's; downloading a snapshot" {
				t.Errorf("a difference is reported as %+v", s)
			}
			for at := r.status().Cursor; r.status().Problem != "" || !r.isSettled(); at = r.status().Cursor {
				if r.run(func() bool { return r.status().Cursor != at || r.isSettled() }, 3000); r.status().Cursor < at {
					t.Fatalf("the cursor went back from %d to %d", at, r.status().Cursor)
				}
			}
			r.agree()
			if s := r.status(); s.Differences != 1 || s.Rebases != 1 {
				t.Errorf("%d damaged: %d differences, %d snapshots", n, s.Differences, s.Rebases)
			}
		})
	}
}

// TestAuditLies: an origin sends digests of another state. The replica takes a snapshot for each. Once the answers are right again, an
// audit finds no difference.
func TestAuditLies(t *testing.T) {
	r := newRig(t, replica.Options{Audit: 10 * time.Minute})
	r.origin.submit(create("a"), create("b"))
	r.settle()
	lies := true
	r.wire = func(a *replica.Ask, x *replica.Answer) bool {
		if lies {
			edit(a, x, "digest", wire.DecodeDigest, func(m *wire.Digest) { m.Digest[0]++ })
		}
		return true
	}
	r.machine.Audit()
	r.turns(400)
	before := r.status()
	if before.Differences == 0 || before.Rebases != before.Differences {
		t.Errorf("%d differences, %d snapshots", before.Differences, before.Rebases)
	}
	lies = false
	r.machine.Audit()
	r.run(func() bool { return r.isSettled() && r.status().Audited.After(before.Audited) }, 2000)
	if s := r.status(); s.Differences != before.Differences {
		t.Errorf("%d differences of the same states", s.Differences-before.Differences)
	}
	r.agree()
}

// TestBlobWantedTwice: every BlobWanted gets an answer. Two for the same remote picture cause one request.
func TestBlobWantedTwice(t *testing.T) {
	r := newRig(t, replica.Options{})
	r.settle()
	local := r.picture(10)
	r.step(replica.BlobWanted{Blob: local.Blob})
	if !slices.Contains(r.effects, replica.Effect(replica.BlobReady{Blob: local.Blob})) {
		t.Error("a picture that is here is not told of")
	}
	away := r.picture(20)
	r.origin.blobs[away.Blob], _ = r.blobs.Get(t.Context(), away.Blob)
	if err := r.blobs.Delete(t.Context(), away.Blob); err != nil {
		t.Fatal(err)
	}
	r.effects = nil
	r.step(replica.BlobWanted{Blob: away.Blob})
	r.step(replica.BlobWanted{Blob: away.Blob})
	r.run(func() bool { return slices.Contains(r.effects, replica.Effect(replica.BlobReady{Blob: away.Blob})) }, 20)
	if n := r.origin.got["blobs"]; n != 1 {
		t.Errorf("%d requests for one picture", n)
	}
	fresh := newRig(t, replica.Options{})
	fresh.step(replica.BlobWanted{})
	if len(fresh.effects) == 0 {
		t.Error("no answer about no picture")
	}
}

// TestUnknownFrames: the replica skips an unknown frame whose type is optional. Any other unknown frame
// ends the stream.
func TestUnknownFrames(t *testing.T) {
	r := newRig(t, replica.Options{})
	r.wire = func(a *replica.Ask, x *replica.Answer) bool {
		if a.Path == "/v2/sync/changes" {
			x.Body = append(wire.AppendFrame(nil, wire.Optional+3, []byte("news")), x.Body...)
		}
		return true
	}
	r.origin.submit(create("a"))
	r.settle()
	r.wire = func(a *replica.Ask, x *replica.Answer) bool {
		if a.Path == "/v2/sync/changes" {
			x.Body = append(wire.AppendFrame(nil, wire.Optional-1, []byte("news")), x.Body...)
		}
		return true
	}
	r.origin.submit(create("b"))
	r.run(func() bool { return r.status().Problem != "" }, 20)
	if s := r.status(); s.Cursor != 1 {
		t.Errorf("%+v", s)
	}
}

// TestHeaders: each request asks for answers of the protocol, its headers contain only characters that HTTP allows, and the secret of a writer
// is only in the bodies of pushes.
func TestHeaders(t *testing.T) {
	r := newRig(t, replica.Options{})
	var asks []replica.Ask
	r.lose = func(a *replica.Ask) bool {
		asks = append(asks, *a)
		return false
	}
	r.settle()
	secret := r.part.Secret(r.write(r.picture(10))[0].Writer)
	r.settle()
	shown := 0
	for _, a := range asks {
		for _, f := range a.Header {
			if strings.ContainsAny(f.Name+f.Value, "\r\n") {
				t.Errorf("header %q: %q", f.Name, f.Value)
			}
		}
		if !slices.Contains(a.Header, api.Field{Name: "Accept", Value: wire.ContentType}) {
			t.Errorf("%s %s has the headers %v", a.Method, a.Path, a.Header)
		}
		switch shows := bytes.Contains(a.Body, secret); {
		case shows && a.Path != "/v2/sync/push":
			t.Errorf("%s %s shows the secret", a.Method, a.Path)
		case shows:
			shown++
		}
	}
	if len(asks) < 5 || shown != 1 || len(secret) != partition.SecretSize {
		t.Errorf("%d requests, of which %d show the secret %x", len(asks), shown, secret)
	}
}
