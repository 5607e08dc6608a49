package replica_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/partition"
	"github.com/sightline-dev/sightline/sync/replica"
	"github.com/sightline-dev/sightline/sync/wire"
)

// TestNewReplicaTakesState: if the log is trimmed, a new replica downloads a snapshot with a
// request per chunk. The snapshot contains no deleted inputs.
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

// TestSnapshotContinues: after lost answers and restarts, the download of a snapshot continues with the missing chunks.
func TestSnapshotContinues(t *testing.T) {
	r := newRig(t, replica.Options{})
	var bodies []log.Body
	for i := range 4000 {
		bodies = append(bodies, create(fmt.Sprintf("%0200d", i)))
	}
	for at := 0; at < len(bodies); at += 500 {
		r.origin.submit(bodies[at : at+500]...)
	}
	if n := r.interruptDownloads(t); n > 0 {
		t.Errorf("%d pieces were placed, and there are no derived records", n)
	}
}

// TestPlacedSnapshotContinues does the same for a snapshot of mostly derived records. The machine stores these as they arrive.
func TestPlacedSnapshotContinues(t *testing.T) {
	r := newRig(t, replica.Options{Wants: wire.Wants{Vectors: wire.VectorsQ16}})
	r.derives(4, 300)
	if r.interruptDownloads(t) == 0 {
		t.Error("no piece was placed")
	}
	r.hasDerived(1500)
}

// TestHostSnapshotContinues does the same for a snapshot whose chunks the host stores and which it installs.
func TestHostSnapshotContinues(t *testing.T) {
	r := newRig(t, replica.Options{Wants: wire.Wants{Vectors: wire.VectorsQ16}, NativeSnapshots: true})
	r.derives(2, 3000)
	if r.interruptDownloads(t) == 0 {
		t.Error("no piece was placed")
	}
	if r.installs != 1 {
		t.Errorf("the host took %d snapshots, want 1", r.installs)
	}
	r.hasDerived(700)
	r.origin.submit(create("after"))
	r.settle()
	r.agree()
}

// TestMachineInstallsSmallSnapshot: the machine itself installs a small snapshot, and one that replaces another state.
func TestMachineInstallsSmallSnapshot(t *testing.T) {
	r := newRig(t, replica.Options{Wants: wire.Wants{Vectors: wire.VectorsQ16}, NativeSnapshots: true})
	r.derives(1, 3)
	r.trim()
	r.settle()
	r.derives(2, 3000)
	r.trim()
	r.settle()
	r.agree()
	if n := r.status().Rebases; r.installs != 0 || n != 2 {
		t.Errorf("the host took %d snapshots, the machine %d; want 0 and 2", r.installs, n)
	}
	r.hasDerived(700)
}

// TestHostRejectsIncompleteSnapshot: ApplySnapshot rejects a snapshot with missing chunks and changes nothing. If a chunk that the host
// reported as stored does not exist, the machine fetches it again.
func TestHostRejectsIncompleteSnapshot(t *testing.T) {
	r := newRig(t, replica.Options{Wants: wire.Wants{Vectors: wire.VectorsQ16}, NativeSnapshots: true})
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
	r.run(func() bool { return r.status().ChunksDone > 1 }, 100)
	o := replica.Options{App: app, Partition: r.part, Store: r.store}
	if err := replica.ApplySnapshot(context.Background(), o, manifest); !errors.Is(err, blob.ErrNotFound) {
		t.Errorf("a snapshot whose pieces are missing: %v", err)
	}
	if c := r.part.Cursor(); c != (partition.Cursor{}) {
		t.Errorf("the cursor is %v", c)
	}
	if err := replica.ApplySnapshot(context.Background(), o, manifest[:len(manifest)-1]); !errors.Is(err, wire.ErrFormat) {
		t.Errorf("half a manifest: %v", err)
	}
	r.settle()
	r.agree()
	if r.lies != 0 || r.installs != 1 {
		t.Errorf("%d pieces are still to be said to be what they are not; the host took %d snapshots", r.lies, r.installs)
	}
}

// derives creates times × 400 inputs at the origin, with values values in each derived record.
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

// hasDerived checks that the replica has the right derived record for the first input with an ordinal of at least ord.
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

// trim deletes all entries of the origin's log, so that a new replica needs a snapshot.
func (r *rig) trim() {
	r.Helper()
	if err := r.origin.part.Log().Trim(r.origin.part.Log().Head() + 1); err != nil {
		r.Fatal(err)
	}
}

// interruptDownloads interrupts the download of the origin's snapshot repeatedly. It returns the maximum number of chunks stored in place.
func (r *rig) interruptDownloads(t *testing.T) (placed int) {
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
	done, concurrent := 0, 0
	for range 12 {
		r.run(func() bool {
			coming := 0
			for i := range r.requests {
				if strings.HasPrefix(r.requests[i].Path, "/v2/sync/snapshot/") {
					coming++
				}
			}
			concurrent = max(concurrent, coming)
			return r.status().ChunksDone > done || r.isSettled()
		}, 100)
		done = max(done, r.status().ChunksDone)
		placed = max(placed, r.countLocal("placed"))
		r.disk.durable = len(r.disk.batches) // a restart that loses nothing
		r.crash()
	}
	r.settle()
	r.agree()
	if len(pieces) < 3 {
		t.Fatalf("the snapshot had %d pieces", len(pieces))
	}
	if concurrent != 2 {
		t.Errorf("%d pieces were on their way at once, want 2", concurrent)
	}
	for name, n := range pieces {
		if n > 1 {
			t.Errorf("piece %s came %d times", name, n)
		}
	}
	for _, kind := range []string{"chunk", "placed"} {
		if n := r.countLocal(kind); n > 0 {
			t.Errorf("%d pieces are left over", n)
		}
	}
	return placed
}

// countLocal counts the replica's local keys of a kind: "chunk" or "placed".
func (r *rig) countLocal(kind string) (n int) {
	r.Helper()
	err := r.store.Scan(app.LocalKey("sync/"+kind+"/"), app.LocalKey("sync/"+kind+"0"), func(_, _ []byte) bool {
		n++
		return true
	})
	if err != nil {
		r.Error(err)
	}
	return n
}
