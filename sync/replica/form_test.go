package replica_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sightline-dev/sightline/core/fold"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/partition"
	"github.com/sightline-dev/sightline/sync/replica"
)

// TestMalformedOperationIsConflict: a replica has operations that its program wrote before it knew the rules for their form. The origin
// refuses them. The replica lists them as conflicts with their content, and the other operations are in the log.
func TestMalformedOperationIsConflict(t *testing.T) {
	r := newRig(t, replica.Options{})
	r.settle()
	malformed := []log.Body{
		&log.InputCreate{ID: "\x1b[2J", URL: "http://x/1", Labels: []log.Label{{Concept: "cat", Value: log.True}}},
		&log.InputCreate{ID: "b", URL: "javascript:alert(1)"},
		&log.ConceptCreate{ID: "c", Name: "C", Language: "tlh"},
	}
	r.write(create("before"))
	r.write(malformed...)
	r.write(create("after"))
	r.settle()
	r.agree()
	want := []string{"schema: invalid id", "schema: invalid URL", "schema: unknown language"}
	n := 0
	err := r.part.Conflicts(func(c partition.Conflict) bool {
		if n == len(want) || c.Verdict.Code != fold.Refused || c.Verdict.Detail != want[n] || !cmp.Equal(c.Op.Body, malformed[n]) {
			t.Errorf("conflict %d: %+v of %+v", n, c.Verdict, c.Op.Body)
		}
		n++
		return true
	})
	if err != nil || n != len(want) {
		t.Errorf("%d conflicts, %v", n, err)
	}
	v := r.origin.part.View()
	defer v.Close()
	for _, id := range []string{"before", "after"} {
		if _, err := v.InputByID(id); err != nil {
			t.Error(err)
		}
	}
}
