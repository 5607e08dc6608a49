package replica_test

import (
	"fmt"
	"testing"

	"github.com/sightline-dev/sightline/core/auth"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/partition"
	"github.com/sightline-dev/sightline/sync/replica"
	"github.com/sightline-dev/sightline/sync/wire"
)

// TestTokens: a push names the token of each operation that was submitted with one: after a crash, after a lost answer, and again after
// the origin was restored from a backup without the operations.
func TestTokens(t *testing.T) {
	r := newRig(t, replica.Options{})
	r.origin.submit(create("a"))
	r.settle()
	r.origin.stable = 1 // the copy stores no later entries
	backup := copyOf(t, r.origin.store)
	n := 0
	ask := func(by, client string, generation uint64) {
		t.Helper()
		n++
		caller := partition.Caller{By: by, Token: partition.Token{Client: client, Generation: generation}}
		if _, _, err := r.part.SubmitSpan(t.Context(), caller, []log.Body{create(fmt.Sprint(n))}, nil); err != nil {
			t.Fatal(err)
		}
	}
	ask(auth.ByToken, "c", 3)
	ask(auth.ByToken, "c", 3)
	ask(auth.ByToken, "c", 7)
	ask("key", "", 0)
	ask(auth.ByToken, "", 0) // as an earlier version stored it
	ask(auth.ByToken, "c", 7)
	ask(auth.ByToken, "d", 7)
	want := "[{1 2 c 3} {3 3 c 7} {6 6 c 7} {7 7 d 7}]"
	var tokens []string
	r.origin.lie = func(p *wire.Push) *wire.Pushed {
		tokens = append(tokens, fmt.Sprint(p.Tokens))
		return nil
	}
	lost := false
	r.wire = func(a *replica.Ask, _ *replica.Answer) bool {
		if a.Path != "/v2/sync/push" || lost {
			return true
		}
		lost = true
		return false
	}
	r.crash()
	r.step(replica.LocalWrite{})
	r.settle()
	if len(tokens) == 0 || tokens[0] != want {
		t.Fatalf("pushes say %v, first want %s", tokens, want)
	}
	tokens = nil
	r.origin.restore(backup, log.Epoch{77})
	r.run(r.isSettled, 200)
	if len(tokens) == 0 || tokens[0] != want {
		t.Errorf("to the origin of before, pushes say %v, first want %s", tokens, want)
	}
}
