package replica_test

import (
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
