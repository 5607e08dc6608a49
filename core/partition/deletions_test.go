package partition_test

import (
	"testing"

	"github.com/sightline-dev/sightline/core/kv/kvtest"
	"github.com/sightline-dev/sightline/core/kv/memkv"
	"github.com/sightline-dev/sightline/core/log"
)

// TestReplicaKnowsRecentDeletions checks that a replica knows the deletion of an input once it pulled it, for a limited number of entries.
func TestReplicaKnowsRecentDeletions(t *testing.T) {
	origin := open(t, kvtest.OrLate(t, memkv.New()))
	a := openReplica(t, kvtest.OrLate(t, memkv.New()))
	checkDeletion := func(id string, want uint64) {
		t.Helper()
		by, known, err := a.LastDeletion(id)
		if err != nil || known != (want > 0) || by.Seq != want {
			t.Errorf("%q was deleted at %d, %t, %v, want %d", id, by.Seq, known, err, want)
		}
	}
	fill := func(n int) {
		t.Helper()
		for n > 0 {
			var bodies []log.Body
			for range min(n, 500) {
				bodies = append(bodies, &log.InputDelete{Input: log.Dot{Writer: 9, Seq: 9}})
			}
			submit(t, origin, bodies...)
			n -= len(bodies)
		}
		a.pull(t, origin, 1<<20)
	}
	verdicts := submit(t, origin, create("a"), create("b"), create("c")) // 1 2 3
	submit(t, origin, &log.InputDelete{Input: verdicts[0].Dot}, &log.InputDelete{Input: verdicts[1].Dot})
	a.pull(t, origin, 9)
	checkDeletion("a", 4)
	checkDeletion("b", 5)
	checkDeletion("c", 0)
	recreated := submit(t, origin, create("a"))[0].Dot // 6
	fill(4000)
	submit(t, origin, &log.InputDelete{Input: recreated}) // 4007
	a.pull(t, origin, 9)
	checkDeletion("a", 4007)
	checkDeletion("b", 5)
	fill(200)
	submit(t, origin, &log.InputDelete{Input: verdicts[2].Dot}) // 4208
	a.pull(t, origin, 9)
	checkDeletion("a", 4007)
	checkDeletion("b", 0)
	checkDeletion("c", 4208)
	submit(t, origin, &log.InputDeleteAll{})
	a.pull(t, origin, 9)
	checkDeletion("a", 0)
	checkDeletion("c", 0)
}
