package sim

import (
	"reflect"
	"runtime/debug"
	"testing"

	"github.com/sightline-dev/sightline/core/api/apitest"
	"github.com/sightline-dev/sightline/core/testkit"
)

// TestCluster: three nodes keep all promises of a cluster through faults, and have equal states afterwards.
func TestCluster(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(800))
	from, err := NewTemplate(apitest.Tiny(t))
	if err != nil {
		t.Fatal(err)
	}
	var all Stats
	for seed := range testkit.Seeds(t, 1000, 100_000) {
		s, err := Run(seed, from)
		if err != nil {
			t.Errorf("seed %d: %v", seed, err)
		}
		all.Add(s)
	}
	t.Logf("%+v", all)
}

// TestSeedRepeatsSchedule: a seed always has the same schedule.
func TestSeedRepeatsSchedule(t *testing.T) {
	from, err := NewTemplate(apitest.Tiny(t))
	if err != nil {
		t.Fatal(err)
	}
	for seed := range uint64(5) {
		first, err := run(seed, from)
		if err != nil {
			t.Fatal(err)
		}
		again, err := run(seed, from)
		if err != nil || !reflect.DeepEqual(again.etcd, first.etcd) {
			t.Errorf("seed %d: %+v, and again %+v: %v", seed, first.stats, again.stats, err)
		}
	}
}
