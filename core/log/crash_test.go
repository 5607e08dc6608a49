//go:build !wasip1

package log_test

import (
	"math/rand/v2"
	"testing"

	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/kv/kvtest"
	"github.com/sightline-dev/sightline/core/kv/pebblekv"
	"github.com/sightline-dev/sightline/core/kv/pebblekv/pebbletest"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/testkit"
)

// power is a disk that loses unsynced data in a power failure.
type power struct{ pebbletest.Disk }

func (p power) Open() (kv.Store, error) { return pebblekv.Open("data", pebblekv.Options{FS: p.Disk}) }

func (p power) Crash(percent int, rng *rand.Rand) kvtest.Crasher { return power{p.Cut(percent, rng)} }

// TestCrashes cuts the power at random moments. After a cut the log is a prefix of the appended entries without gaps. It has every entry up to
// the Head before the cut, and accepts new entries.
func TestCrashes(t *testing.T) {
	for seed := range testkit.Seeds(t, 40, 2000) {
		crash(t, seed, power{pebbletest.New()})
	}
}

func crash(t *testing.T, seed uint64, disk kvtest.Crasher) {
	rng := rand.New(rand.NewPCG(seed, 7))
	next := 1 // sequence number of the next operation
	for cut := range 3 {
		store, err := disk.Open()
		if err != nil {
			t.Fatalf("seed %d, cut %d: %v", seed, cut, err)
		}
		l, err := log.Open(store, settings)
		if err != nil {
			t.Fatalf("seed %d, cut %d: %v", seed, cut, err)
		}
		for i, d := range dotsFrom(t, l, 1) {
			if d.Seq != uint64(i+1) {
				t.Fatalf("seed %d, cut %d: operation %d at place %d", seed, cut, d.Seq, i+1)
			}
		}
		next = int(l.Head()) + 1
		acked := l.Head()
		waits := []func() error{}
		for range rng.IntN(12) {
			n := 1 + rng.IntN(4)
			_, wait, err := l.Append(opsOf(1, next, n), nil)
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
		if l, err = log.Open(store, settings); err != nil || l.Head() < acked || l.Head() >= uint64(next) {
			t.Fatalf("seed %d, cut %d: %v; head %d, acknowledged %d of %d", seed, cut, err, l.Head(), acked, next-1)
		}
		if err := store.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
