//go:build !wasip1

package partition_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/sightline-dev/sightline/core/kv/pebblekv"
	"github.com/sightline-dev/sightline/core/kv/pebblekv/pebbletest"
	"github.com/sightline-dev/sightline/core/partition"
	"github.com/sightline-dev/sightline/core/testkit"
)

// TestKillTrim cuts the power of a partition whose log is trimmed all the time. After a restart the state includes every
// acknowledged operation, although its log entry was deleted, and equals the state of one moment.
func TestKillTrim(t *testing.T) {
	for seed := range testkit.Seeds(t, 12, 2000) {
		trimRun(t, seed)
	}
}

func openTrimming(t *testing.T, fs vfs.FS, c *ticking) (*pebblekv.Store, *partition.Origin) {
	t.Helper()
	store, err := pebblekv.Open("data", pebblekv.Options{FS: fs, MemTableBytes: 64 << 10, CacheBytes: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	return store, openRetaining(t, store, opening(), c, partition.Retention{Entries: 8, Age: time.Hour, MaxOffline: 2 * time.Hour})
}

func trimRun(t *testing.T, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 5))
	c := &ticking{at: clock()}
	disk := pebbletest.New()
	store, p := openTrimming(t, disk, c)
	input := submit(t, p, create("a"))[0].Dot
	states := map[uint64][32]byte{} // by the last entry
	type clone struct {
		fs    pebbletest.Disk
		acked uint64
	}
	var clones []clone
	for range 120 {
		c.at = c.at.Add(time.Duration(rng.IntN(20)) * time.Minute)
		submit(t, p, flip(input, 1+rng.IntN(4))...)
		states[p.Log().Head()] = digest(t, store)
		step(t, p, c.at)
		states[p.Log().Head()] = digest(t, store)
		if rng.IntN(10) == 0 {
			clones = append(clones, clone{disk.Cut([]int{0, 50, 100}[rng.IntN(3)], rng), p.Log().Head()})
		}
	}
	if f := p.Log().Floor(); f+9 < p.Log().Head() {
		t.Errorf("seed %d: the log goes from %d to %d, want 9 entries", seed, f, p.Log().Head())
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	for i, x := range clones {
		store, p := openTrimming(t, x.fs, c)
		if head := p.Log().Head(); head < x.acked || states[head] != digest(t, store) {
			t.Errorf("seed %d, clone %d: the log ends at %d of %d, and the state is none of then: %v", seed, i, head, x.acked, states[head] == [32]byte{})
		}
		submit(t, p, flip(input, 1)...)
		step(t, p, c.at)
		if err := store.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
