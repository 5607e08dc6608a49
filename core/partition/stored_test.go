package partition_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/sightline-dev/sightline/core/kv/memkv"
	"github.com/sightline-dev/sightline/core/partition"
)

// TestKeptBound has a replica keep no more of the log than it may, and the newest of it.
func TestKeptBound(t *testing.T) {
	origin := sealing(t, memkv.New())
	r, err := partition.Open(partition.Options{Store: memkv.New(), App: app, Clock: clock, Epoch: opening(), Replica: &partition.Replica{Keep: 4000}})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 100 {
		submit(t, origin, create(fmt.Sprint(i)))
		pullSealed(t, r, origin)
	}
	b := storedRun(t, r)
	if n := len(b.Entries); n < 10 || n > 40 || b.From+uint64(n) != origin.Log().Head() {
		t.Errorf("%d entries after %d are kept of %d", n, b.From, origin.Log().Head())
	}
	head := origin.Log().Head()
	chain, err := origin.Log().Chain(head)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Pull(t.Context(), partition.Run{Epoch: origin.Log().Epoch(), From: head, To: head, Chain: chain, Stable: head}); err != nil {
		t.Fatal(err)
	}
	if b := storedRun(t, r); len(b.Entries) > 0 {
		t.Errorf("%d entries are kept that are stable", len(b.Entries))
	}
}

// TestKeptUntilListed has a replica take a snapshot of a restored log, which is older than what the replica gave back. Another backup may
// be older than that, too, so the replica keeps the entries of the log of before until that is stable.
func TestKeptUntilListed(t *testing.T) {
	store := memkv.New()
	origin := sealing(t, store)
	image := imageOf(t, store)
	submit(t, origin, create("x"))
	r := openNamed(t, memkv.New(), 1)
	pullSealed(t, r, origin)
	old := r.StoredEpoch()
	p := openRestored(t, image, 2)
	submit(t, p, create("a"))
	x, _ := export(t, p, network)
	at := x.Snapshot.Seq
	submit(t, p, create("b"), create("x"))
	b := storedRun(t, r)
	if err := p.TakeBack(t.Context(), &b, nil); err != nil {
		t.Fatal(err)
	}
	x.Snapshot.Head = p.Log().Head()
	if err := r.Rebase(t.Context(), x.Snapshot); err != nil || r.StoredEpoch() == old {
		t.Fatal(err)
	}
	submit(t, p, create("c"))
	pullSealed(t, r, p)
	hasOlder := func(stable uint64) (older bool) {
		t.Helper()
		c := r.Cursor()
		if _, err := r.Pull(t.Context(), partition.Run{Epoch: c.Epoch, From: c.Seq, To: c.Seq, Chain: c.Chain, Stable: stable}); err != nil {
			t.Fatal(err)
		}
		err := r.EntriesAfter(partition.StoredPlace{}, func(k partition.StoredEntry) bool {
			older = older || k.At.Run == 1
			return true
		})
		if err != nil {
			t.Fatal(err)
		}
		return older
	}
	if !hasOlder(at + 1) {
		t.Error("entries of the log of before are dropped that a backup may not list")
	}
	if hasOlder(x.Snapshot.Head + 1) {
		t.Error("entries are kept that are stable")
	}
}

// keepSealed has a replica keep the log of an origin after an entry for a snapshot, as one run.
func keepSealed(t testing.TB, p, origin *partition.Partition, after uint64) {
	t.Helper()
	before, err := origin.Log().Chain(after)
	if err != nil {
		t.Fatal(err)
	}
	r := run(t, origin, partition.Cursor{Epoch: origin.Log().Epoch(), Seq: after, Chain: before}, 1000)
	r.Seal, r.Stable = origin.Seal(r.To, r.Chain), after
	wrong := before
	wrong[0]++
	if err := p.StoreEntries(&r, wrong, r.To); !errors.Is(err, partition.ErrChain) {
		t.Fatalf("Keep of another log = %v", err)
	}
	if err := p.StoreEntries(&r, before, r.To); err != nil {
		t.Fatal(err)
	}
}
