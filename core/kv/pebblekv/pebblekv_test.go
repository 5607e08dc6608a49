//go:build !wasip1

package pebblekv

import (
	"math/rand/v2"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/kv/kvtest"
	"github.com/sightline-dev/sightline/core/kv/pebblekv/pebbletest"
	"github.com/sightline-dev/sightline/core/testkit"
)

const folder = "data/store"

// small returns options with which a short session flushes and compacts.
func small(fsys vfs.FS) Options {
	return Options{FS: fsys, CacheBytes: 1 << 20, MemTableBytes: 64 << 10}
}

func open(t testing.TB, o Options) *Store {
	t.Helper()
	s, err := Open(folder, o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestStore(t *testing.T) {
	kvtest.Store(t, func(t testing.TB) kv.Store { return open(t, small(vfs.NewMem())) })
}

// power is a disk in memory whose power can fail.
type power struct{ pebbletest.Disk }

func (p power) Open() (kv.Store, error) { return Open(folder, small(p.Disk)) }

func (p power) Crash(percent int, rng *rand.Rand) kvtest.Crasher { return power{p.Cut(percent, rng)} }

func TestCrashes(t *testing.T) {
	kvtest.Crashes(t, testkit.Seeds(t, 100, 2000), func() kvtest.Crasher { return power{pebbletest.New()} })
}

func TestCommitNothing(t *testing.T) {
	kvtest.CommitNothing(t, func() kvtest.Crasher { return power{pebbletest.New()} })
}

func TestCommitOrder(t *testing.T) {
	kvtest.CommitOrder(t, testkit.Seeds(t, 20, 200), func() kvtest.Crasher { return power{pebbletest.New()} })
}
