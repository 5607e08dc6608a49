//go:build !wasip1

package sim

import (
	"math/rand/v2"
	"testing"

	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/kv/journal/journaltest"
	"github.com/sightline-dev/sightline/core/kv/memkv"
	"github.com/sightline-dev/sightline/core/kv/pebblekv"
	"github.com/sightline-dev/sightline/core/kv/pebblekv/pebbletest"
	"github.com/sightline-dev/sightline/core/testkit"
)

// onPebble is a disk with Pebble's files. A power cut keeps or loses each unsynced block.
type onPebble struct {
	disk pebbletest.Disk
	open kv.Store
}

// Open implements [Disk].
func (d *onPebble) Open() (store kv.Store, err error) {
	d.open, err = pebblekv.Open("data", pebblekv.Options{FS: d.disk, MemTableBytes: 64 << 10, CacheBytes: 1 << 20})
	return d.open, err
}

// Kill implements [Disk]. It reports false, since nothing else can open the files of an open store.
func (d *onPebble) Kill() (Disk, bool) { return nil, false }

// Cut implements [Disk]. It closes the store, which writes only to the old disk, to end its threads.
func (d *onPebble) Cut(percent int, rng *rand.Rand) (Disk, error) {
	return &onPebble{disk: d.disk.Cut(percent, rng)}, d.open.Close()
}

// TestConvergePebble runs the schedules of TestConverge with the stores of a server.
func TestConvergePebble(t *testing.T) {
	var all Stats
	for seed := range testkit.Seeds(t, 20, 1000) {
		s, err := Run(seed, Options{Disk: func() Disk { return &onPebble{disk: pebbletest.New()} }})
		if err != nil {
			t.Errorf("seed %d: %v", seed, err)
		}
		all.Add(s)
	}
	t.Logf("%+v", all)
}

// onFiles is a disk with the journal that browsers use. A power cut can truncate it at any byte.
type onFiles struct{ disk *journaltest.Disk }

// Open implements [Disk].
func (d onFiles) Open() (kv.Store, error) {
	return memkv.Open(memkv.Options{Files: &memkv.Files{Disk: d.disk, Pair: [2]int{0, 1}}})
}

// Kill implements [Disk].
func (d onFiles) Kill() (Disk, bool) { return d, true }

// Cut implements [Disk].
func (d onFiles) Cut(percent int, rng *rand.Rand) (Disk, error) {
	return onFiles{d.disk.Crash(percent, rng)}, nil
}

// TestConvergeFiles runs the schedules of TestConverge with the stores of a browser.
func TestConvergeFiles(t *testing.T) {
	var all Stats
	for seed := range testkit.Seeds(t, 100, 5000) {
		s, err := Run(seed, Options{Disk: func() Disk { return onFiles{journaltest.NewDisk()} }})
		if err != nil {
			t.Errorf("seed %d: %v", seed, err)
		}
		all.Add(s)
	}
	t.Logf("%+v", all)
}
