//go:build !wasip1

package partition_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/kv/pebblekv"
	"github.com/sightline-dev/sightline/core/kv/pebblekv/pebbletest"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/testkit"
)

// TestKillReplica cuts the power of a replica while it is written to, pushes, pulls and installs snapshots. After a restart the
// outbox has every acknowledged operation. Cursor, state, undo records and index agree with each other and with the origin's
// log.
func TestKillReplica(t *testing.T) {
	for seed := range testkit.Seeds(t, 64/clonesPerRun, 50_000/clonesPerRun) {
		replicaRun(t, seed)
	}
}

// underway is a running replica, with its acknowledged operations and the number of its calls.
type underway struct {
	*copies
	*testReplica
	acknowledged atomic.Uint64 // position of the last own operation
	did          chan struct{} // receives once for every push, pull and snapshot
}

func replicaRun(t *testing.T, seed uint64) {
	disk := pebbletest.New()
	rng := rand.New(rand.NewPCG(seed, 5))
	w := newCopies(t, rng, 0, seed%2 == 0)
	u := &underway{copies: w, testReplica: w.reopen(&testReplica{store: storeOn(t, disk), by: "key-0", batch: int(seed % 3)}), did: make(chan struct{})}
	stop := make(chan struct{})
	var group sync.WaitGroup
	group.Go(func() { u.writeUntil(newCopiesLike(w, 6, rand.New(rand.NewPCG(seed, 6))), stop) })
	group.Go(func() { u.exchangeUntil(newCopiesLike(w, 7, rand.New(rand.NewPCG(seed, 7))), stop) })
	type clone struct {
		disk         pebbletest.Disk
		acknowledged uint64
		head         uint64 // of the origin
	}
	var clones []clone
	for len(clones) < clonesPerRun && !t.Failed() {
		for range rng.IntN(12) {
			<-u.did
		}
		acknowledged, head := u.acknowledged.Load(), w.origin.Log().Head()
		clones = append(clones, clone{disk.Cut([]int{0, 50, 100}[rng.IntN(3)], rng), acknowledged, head})
	}
	close(stop)
	group.Wait()
	if err := u.testReplica.store.Close(); err != nil {
		t.Fatal(err)
	}
	for i, c := range clones {
		reopened := w.reopen(&testReplica{store: storeOn(t, c.disk), by: "key-0"})
		if last, _ := reopened.Outbox(); last < c.acknowledged {
			t.Errorf("the outbox ends at %d, %d were acknowledged", last, c.acknowledged)
		}
		reopened.check(t, w.origin)
		goOn(w, reopened, c.head)
		if err := reopened.store.Close(); err != nil {
			t.Fatal(err)
		}
		if t.Failed() {
			t.Fatalf("seed %d, clone %d", seed, i)
		}
	}
}

// newCopiesLike returns copies with the same origin that make other choices and have another side.
func newCopiesLike(w *copies, side byte, c chooser) *copies {
	return &copies{tb: w.tb, chooser: c, origin: w.origin, last: w.last, vectors: w.vectors, side: side}
}

func storeOn(t testing.TB, disk pebbletest.Disk) kv.Store {
	t.Helper()
	store, err := pebblekv.Open("data", pebblekv.Options{FS: disk, MemTableBytes: 64 << 10, CacheBytes: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	return store
}

func until(stop chan struct{}) bool {
	select {
	case <-stop:
		return false
	default:
		return true
	}
}

// writeUntil submits random operations until the test stops it.
func (u *underway) writeUntil(w *copies, stop chan struct{}) {
	for until(stop) {
		w.write(u.testReplica.Replica, u.by, &u.testReplica.last)
		last, _ := u.Outbox()
		u.acknowledged.Store(last)
		if w.IntN(4) == 0 {
			if _, err := u.Step(context.Background(), clock()); err != nil {
				u.Error(err)
			}
		}
	}
}

// exchangeUntil writes at the origin, and makes the replica push, pull and install snapshots, until the test stops it.
func (u *underway) exchangeUntil(w *copies, stop chan struct{}) {
	defer close(u.did)
	for until(stop) {
		switch n := w.IntN(20); {
		case n < 3:
			w.write(w.origin, "key", &w.last)
		case n < 10:
			u.push(u, w.origin, 1+w.IntN(9))
		case n < 19:
			w.pull(u.testReplica, w.IntN(20))
		default:
			w.rebase(u.testReplica)
		}
		select {
		case u.did <- struct{}{}:
		default:
		}
	}
}

// goOn pulls the entries that the origin had when the power failed, and writes.
func goOn(w *copies, c *testReplica, head uint64) {
	for c.Cursor().Seq < head {
		w.pull(c, int(min(head-c.Cursor().Seq, 16)))
	}
	c.check(w, w.origin)
	v, err := c.Submit(context.Background(), "key", []log.Body{create("after the crash")}, nil)
	if err != nil || v[0].Code == 0 {
		w.Errorf("Submit after a crash: %+v, %v", v, err)
	}
	c.check(w, w.origin)
	steps(w, c.Replica)
	c.check(w, w.origin)
}
