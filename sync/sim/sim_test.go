package sim

import (
	"runtime/debug"
	"testing"

	"github.com/sightline-dev/sightline/core/testkit"
)

func TestConverge(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(1600)) // rare collections suffice, since a run leaves little memory in use
	var all Stats
	for seed := range testkit.Seeds(t, 2000, 100_000) {
		s, err := Run(seed, Options{})
		if err != nil {
			t.Errorf("seed %d: %v", seed, err)
		}
		all.Add(s)
	}
	t.Logf("%+v", all)
}
