package logtest

import (
	"iter"
	"math/rand/v2"
	"testing"

	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/kv/kvtest"
	"github.com/sightline-dev/sightline/core/log"
)

// Crashes tests a log whose disk loses its power at random moments, once for each seed. blank returns an empty disk, and open opens the log
// on a store. After a crash the log must be a prefix of the appended entries without gaps. It must contain every entry up to the Head
// before the crash, and accept new entries.
func Crashes(t *testing.T, seeds iter.Seq[uint64], blank func() kvtest.Crasher, open func(kv.Store) (log.Log, error)) {
	for seed := range seeds {
		crashes(t, seed, blank(), open)
	}
}

func crashes(t *testing.T, seed uint64, disk kvtest.Crasher, open func(kv.Store) (log.Log, error)) {
	rng := rand.New(rand.NewPCG(seed, 7))
	next := 1 // sequence number of the next operation
	for cut := range 3 {
		store, err := disk.Open()
		if err != nil {
			t.Fatalf("seed %d, cut %d: %v", seed, cut, err)
		}
		l, err := open(store)
		if err != nil {
			t.Fatalf("seed %d, cut %d: %v", seed, cut, err)
		}
		for i, d := range Read(t, l, 1) {
			if d.Seq != uint64(i+1) {
				t.Fatalf("seed %d, cut %d: operation %d at place %d", seed, cut, d.Seq, i+1)
			}
		}
		next = int(l.Head()) + 1
		acked := l.Head()
		waits := []func() error{}
		for range rng.IntN(12) {
			n := 1 + rng.IntN(4)
			_, wait, err := l.Append(Ops(1, next, n), nil)
			if err != nil {
				t.Fatal(err)
			}
			next += n
			waits = append(waits, wait)
			for len(waits) > 0 && rng.IntN(3) > 0 {
				if err := waits[0](); err != nil {
					t.Fatal(err)
				}
				waits = waits[1:]
			}
			acked = l.Head()
		}
		crashed := disk.Crash([]int{0, 50, 100}[rng.IntN(3)], rng)
		for _, wait := range waits {
			if err := wait(); err != nil {
				t.Fatal(err)
			}
		}
		if err := store.Close(); err != nil {
			t.Fatal(err)
		}
		disk = crashed
		if store, err = disk.Open(); err != nil {
			t.Fatalf("seed %d, cut %d: %v", seed, cut, err)
		}
		if l, err = open(store); err != nil || l.Head() < acked || l.Head() >= uint64(next) {
			t.Fatalf("seed %d, cut %d: %v; head %d, acknowledged %d of %d", seed, cut, err, l.Head(), acked, next-1)
		}
		if err := store.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
