package replica_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/sync/replica"
	"github.com/sightline-dev/sightline/sync/wire"
)

// TestAPIStatus compares APIStatus with the machine's status, from a write to its confirmation.
func TestAPIStatus(t *testing.T) {
	at := time.Date(2026, 2, 3, 4, 5, 6, 0, time.UTC)
	s := replica.Status{
		Phase: replica.Pulling, Cursor: 4, Head: 9, Contact: at, AsOf: at.Add(-time.Second), Issued: 7, Accepted: 6, Folded: 5,
		Denied: "the key was deleted", Problem: "no route", Limit: wire.LimitCalls, Retry: at.Add(time.Minute),
	}
	want := api.SyncStatus{
		Origin: "https://origin.example", Phase: "pulling", Head: 9, Contact: at, AsOf: at.Add(-time.Second), Accepted: 6, Folded: 5,
		Denied: "the key was deleted", Problem: "no route", Limit: wire.LimitCalls, Retry: at.Add(time.Minute),
	}
	if diff := cmp.Diff(want, s.APIStatus("https://origin.example")); diff != "" {
		t.Errorf("Standing (-want +got):\n%s", diff)
	}

	r := newRig(t, replica.Options{})
	r.settle()
	r.write(create("a"), create("b"))
	waits := func() [2]uint64 { // queued, sent
		s := r.status()
		x := s.APIStatus("")
		return [2]uint64{s.Issued - x.Accepted, x.Accepted - x.Folded}
	}
	if got := waits(); got != [2]uint64{2, 0} {
		t.Errorf("after a write %v wait", got)
	}
	seen := [2]uint64{2, 0}
	r.run(func() bool {
		got := waits()
		if got[0] > seen[0] || got[0]+got[1] > seen[0]+seen[1] {
			t.Errorf("%v wait after %v", got, seen)
		}
		seen = got
		return got == [2]uint64{}
	}, 200)
	r.settle()
	r.agree()
}
