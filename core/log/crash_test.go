//go:build !wasip1

package log_test

import (
	"math/rand/v2"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/kv/kvtest"
	"github.com/sightline-dev/sightline/core/kv/pebblekv"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/log/logtest"
	"github.com/sightline-dev/sightline/core/proof"
)

// power is Pebble's file system in memory, which can lose what was not synced.
type power struct{ *vfs.MemFS }

func (p power) Open() (kv.Store, error) { return pebblekv.Open("data", pebblekv.Options{FS: p.MemFS}) }

func (p power) Crash(percent int, rng *rand.Rand) kvtest.Crasher {
	return power{p.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: percent, RNG: rng})}
}

func TestCrashes(t *testing.T) {
	logtest.Crashes(t, proof.Seeds(t, 40, 2000),
		func() kvtest.Crasher { return power{vfs.NewCrashableMem()} },
		func(s kv.Store) (log.Log, error) { return log.Open(s, settings) })
}
