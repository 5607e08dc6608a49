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
	"github.com/sightline-dev/sightline/core/log/logtest"
	"github.com/sightline-dev/sightline/core/testkit"
)

// power is a disk that loses unsynced data in a power failure.
type power struct{ pebbletest.Disk }

func (p power) Open() (kv.Store, error) { return pebblekv.Open("data", pebblekv.Options{FS: p.Disk}) }

func (p power) Crash(percent int, rng *rand.Rand) kvtest.Crasher { return power{p.Cut(percent, rng)} }

func TestCrashes(t *testing.T) {
	logtest.Crashes(t, testkit.Seeds(t, 40, 2000),
		func() kvtest.Crasher { return power{pebbletest.New()} },
		func(s kv.Store) (log.Log, error) { return log.Open(s, settings) })
}
