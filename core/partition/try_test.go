package partition_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sightline-dev/sightline/core/fold"
	"github.com/sightline-dev/sightline/core/kv/kvtest"
	"github.com/sightline-dev/sightline/core/kv/memkv"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/partition"
)

// TestTry checks that Try returns the verdicts that Submit returns for the same operations, and changes nothing.
func TestTry(t *testing.T) {
	origin := open(t, kvtest.OrLate(t, memkv.New()))
	verdicts := submit(t, origin, create("one"), &log.InputCreate{ID: "lost", URL: "http://x/lost"})
	submit(t, origin, &log.InputFetched{Input: verdicts[1].Dot, Code: 30002})
	a := openReplica(t, kvtest.OrLate(t, memkv.New()))
	a.pull(t, origin, 9)
	submit(t, a.Replica, create("mine"))
	before := digest(t, a.store)
	bodies := []log.Body{
		create("one"), create("new"), create("new"), create("mine"), create("lost"), create("lost"),
		&log.InputLabels{Input: log.Dot{Writer: 9, Seq: 9}}, &log.InputDelete{Input: verdicts[0].Dot}, create("one"),
	}
	for _, some := range [][]log.Body{bodies[:1], bodies[1:4], bodies} {
		got, err := a.Try("key", some)
		if err != nil {
			t.Fatal(err)
		}
		if last, _ := a.Outbox(); last != 1 || digest(t, a.store) != before {
			t.Fatalf("something was submitted: %d operations", last)
		}
		if len(some) < len(bodies) {
			continue
		}
		submitted, span, err := a.SubmitSpan(t.Context(), partition.Caller{By: "key"}, some, nil)
		if err != nil {
			t.Fatal(err)
		}
		for i := range submitted { // an operation that is only tried has a name of no writer
			if d := &submitted[i].Dot; d.Writer == span.Writer && d.Seq >= span.First {
				*d = log.Dot{Writer: got[i].Dot.Writer, Seq: d.Seq + 1 - span.First}
				if d.Writer >= 1<<62 {
					t.Errorf("an operation was tried as %v", *d)
				}
			}
		}
		if diff := cmp.Diff(submitted, got); diff != "" {
			t.Errorf("verdicts (-submitted +tried):\n%s", diff)
		}
		var codes []fold.Code
		for _, v := range got {
			codes = append(codes, v.Code)
		}
		want := []fold.Code{fold.Duplicate, fold.OK, fold.Duplicate, fold.Duplicate, fold.OK, fold.Duplicate, fold.Gone, fold.OK, fold.OK}
		if !slices.Equal(codes, want) {
			t.Errorf("verdicts %v, want %v", codes, want)
		}
	}
	a.check(t, origin)
	if v, err := openReplica(t, kvtest.OrLate(t, memkv.New())).Try("key", bodies[:2]); len(v) != 2 || v[0].Code != fold.OK || err != nil {
		t.Errorf("before the first contact: %v, %v", v, err)
	}
}
