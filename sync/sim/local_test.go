package sim

import (
	"runtime/debug"
	"testing"

	"github.com/sightline-dev/sightline/core/testkit"
)

// TestLocalOnly has the application become local only amid faults.
func TestLocalOnly(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(1600)) // a run leaves little behind
	var all Stats
	for seed := range testkit.Seeds(t, 200, 10_000) {
		s, err := Run(seed, Options{LocalOnly: true})
		if err != nil {
			t.Errorf("seed %d: %v", seed, err)
		}
		all.Add(s)
	}
	t.Logf("%+v", all)
}
