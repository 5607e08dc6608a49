package api_test

import (
	"testing"

	"github.com/sightline-dev/sightline/core/api/apitest"
	"github.com/sightline-dev/sightline/core/api/apitest/program"
	"github.com/sightline-dev/sightline/core/kv/memkv"
	"github.com/sightline-dev/sightline/core/testkit"
)

// TestPrograms runs random programs of calls on inputs against the engine and against the reference model. Every answer must agree.
// Sometimes the program is killed and restarted on the same store. A replica could push each operation of the log.
func TestPrograms(t *testing.T) {
	set := apitest.Tiny(t)
	for seed := range testkit.Seeds(t, 2_000, 200_000) {
		w := apitest.NewWorld(t, memkv.New(), set, nil, nil)
		p := program.New(t, w, seed)
		for range 12 {
			p.Step()
			if t.Failed() {
				t.Fatalf("seed %d, the program so far:\n%s", seed, p.Trace())
			}
		}
		w.CheckForms(t)
	}
}
