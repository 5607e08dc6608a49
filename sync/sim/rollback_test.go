package sim

import (
	"math/rand/v2"
	"testing"

	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/partition"
)

// TestKnownOfEmptyLog: an origin whose disk was rolled back to the first image answers that its log is empty. The simulator no longer
// counts what a replica learned of the later log as known to it.
func TestKnownOfEmptyLog(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 0x51d))
	w := &world{rng: rng, o: Options{Disk: func() Disk { return &Memory{} }}, program: program{Rand: rng}, owedOps: map[log.Dot]*removedOp{}}
	if err := w.open(); err != nil {
		t.Fatal(err)
	}
	r := w.parties[0]
	later := partition.Cursor{Epoch: log.Epoch{9}, Seq: 5}
	for r.known = later; w.failed == nil && r.known == later && w.step(length); {
		continue
	}
	if err := w.close(); w.failed != nil || err != nil {
		t.Fatal(w.failed, err)
	}
	if want := (partition.Cursor{Epoch: w.oracle.epoch, Chain: w.oracle.chains[0]}); r.known != want {
		t.Errorf("after the answer of an empty log the replica knows %+v, want %+v", r.known, want)
	}
}
