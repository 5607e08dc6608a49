package replica_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/sightline-dev/sightline/sync/replica"
)

// TestWriteBesideARollback: a replica whose disk was rolled back writes while its session is answered. Its new write has the sequence of
// one that the origin has from before, and reaches the origin all the same.
func TestWriteBesideARollback(t *testing.T) {
	r := newRig(t, replica.Options{})
	r.settle()
	r.write(create("a"))
	r.settle()
	image := &disk{batches: slices.Clone(r.disk.batches), durable: len(r.disk.batches)}
	r.write(create("before"))
	r.settle()
	r.disk = image
	r.asks = nil
	r.start()
	wrote := false
	r.wire = func(a *replica.Ask, _ *replica.Answer) bool {
		if a.Path == "/v2/sync/session" && !wrote {
			wrote = true
			r.write(create("after"))
		}
		return true
	}
	r.step(replica.Begin{})
	r.run(func() bool { return r.settled() && wrote }, 200)
	r.agree()
	if ids := inputs(t, r.origin.store); !slices.Contains(ids, "before") || !slices.Contains(ids, "after") {
		t.Errorf("the origin has the inputs %v, want those before and after the rollback", ids)
	}
}

// TestRolledBackWithMemory rolls a replica back together with its memory, as a snapshot of a virtual machine does: the session
// and the life are those of before. The origin has operations that the replica issues again. Every write of both
// histories reaches the origin, and the replica reports the rollback.
func TestRolledBackWithMemory(t *testing.T) {
	for writes := 1; writes <= 4; writes++ {
		r := newRig(t, replica.Options{})
		r.settle()
		r.write(create("a"))
		r.settle()
		// The twin is the replica after the snapshot, and r what the snapshot has.
		twin := &rig{
			TB: t, rng: r.rng, clock: r.clock, options: r.options, origin: r.origin, blobs: r.blobs,
			disk: &disk{batches: slices.Clone(r.disk.batches), durable: len(r.disk.batches)},
		}
		twin.start()
		twin.settle()
		twin.write(create("old-1"))
		twin.write(create("old-2"))
		twin.settle()
		want := []string{"a", "old-1", "old-2"}
		for _, a := range slices.Clone(r.asks) {
			r.step(replica.Answer{ID: a.ID, Err: errors.New("connection reset")})
		}
		r.asks = nil
		for n := range writes {
			id := fmt.Sprint("new-", n)
			want = append(want, id)
			r.write(create(id))
		}
		r.run(r.settled, 200)
		r.agree()
		got := inputs(t, r.origin.store)
		slices.Sort(got)
		if slices.Sort(want); !slices.Equal(got, want) {
			t.Errorf("%d writes: the origin has the inputs %v, want %v", writes, got, want)
		}
		if s := r.status(); s.Renewed == "" {
			t.Errorf("%d writes: the rollback is not reported: %+v", writes, s)
		}
	}
}
