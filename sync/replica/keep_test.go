package replica_test

import (
	"slices"
	"testing"
	"time"

	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/sync/replica"
	"github.com/sightline-dev/sightline/sync/wire"
)

// powerless restarts the replica offline, with only the synced data.
func (r *rig) powerless() {
	r.Helper()
	r.disk = &disk{batches: slices.Clone(r.disk.batches[:r.disk.durable]), durable: r.disk.durable}
	r.start()
	r.step(replica.Offline{})
}

// TestPulledEntriesSurvivePowerCut: after a power cut, a replica still has all pulled entries if it had caught up, had gone offline, or had
// pulled them more than a second before.
func TestPulledEntriesSurvivePowerCut(t *testing.T) {
	for _, live := range []replica.Live{replica.Stream, replica.Poll} {
		t.Run(live.String(), func(t *testing.T) {
			r := newRig(t, replica.Options{Live: live, Wants: wire.Wants{Blobs: wire.BlobsFull}})
			checkInputs := func(want ...string) {
				t.Helper()
				cursor := r.status().Cursor
				r.powerless()
				if got := inputs(t, r.store); !slices.Equal(got, want) || r.status().Cursor != cursor {
					t.Fatalf("inputs %v to entry %d after the crash, want %v to %d", got, r.status().Cursor, want, cursor)
				}
				r.step(replica.Online{})
				r.settle()
			}
			pulled := func(want uint64) func() bool {
				return func() bool { return r.status().Cursor == want }
			}
			r.origin.submit(create("a"), create("b"))
			r.settle()
			checkInputs("a", "b")

			r.origin.submit(create("c"))
			r.run(pulled(r.origin.part.Log().Head()), 100)
			r.step(replica.Offline{})
			checkInputs("a", "b", "c")

			synced := r.disk.syncs
			for i := range 20 { // the replica does not sync each of these runs
				r.origin.submit(&log.InputDelete{Input: log.Dot{Writer: 99, Seq: uint64(i)}})
				r.run(pulled(r.origin.part.Log().Head()), 100)
			}
			if r.disk.syncs > synced+2 {
				t.Errorf("%d syncs of 20 runs", r.disk.syncs-synced)
			}
			r.origin.submit(create("d"))
			r.run(pulled(r.origin.part.Log().Head()), 100)
			before := r.clock
			r.run(func() bool { return r.clock.After(before.Add(time.Second)) }, 100)
			checkInputs("a", "b", "c", "d")
		})
	}
}

// TestInstalledSnapshotSurvivesPowerCut: after a power cut, a replica still has an installed snapshot.
func TestInstalledSnapshotSurvivesPowerCut(t *testing.T) {
	r := newRig(t, replica.Options{})
	r.origin.submit(create("a"), create("b"))
	if err := r.origin.part.Log().Trim(r.origin.part.Log().Head() + 1); err != nil {
		t.Fatal(err)
	}
	r.settle()
	if r.status().Rebases != 1 {
		t.Fatalf("%d snapshots were taken, want 1", r.status().Rebases)
	}
	r.powerless()
	if got := inputs(t, r.store); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("inputs %v after the crash", got)
	}
}
