package sim

import (
	"runtime/debug"
	"testing"

	"github.com/sightline-dev/sightline/core/testkit"
)

func TestConverge(t *testing.T) { converge(t, Options{}) }

// TestConvergeMemory: a replica that is set back with its memory continues its writer, and loses no operation without listing it.
func TestConvergeMemory(t *testing.T) { converge(t, Options{Memory: true}) }

func converge(t *testing.T, o Options) {
	defer debug.SetGCPercent(debug.SetGCPercent(1600)) // rare collections suffice, since a run leaves little memory in use
	var all Stats
	for seed := range testkit.Seeds(t, 2000, 100_000) {
		s, err := Run(seed, o)
		if err != nil {
			t.Errorf("seed %d: %v", seed, err)
		}
		all.Add(s)
	}
	t.Logf("%+v", all)
}
