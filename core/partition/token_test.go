package partition_test

import (
	"bytes"
	"testing"

	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/kv/memkv"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/partition"
)

// submitWithToken writes inputs as a caller with a token does.
func submitWithToken(t *testing.T, p *partition.Partition, token partition.Token, ids ...string) {
	t.Helper()
	bodies := make([]log.Body, len(ids))
	for i, id := range ids {
		bodies[i] = create(id)
	}
	if _, _, err := p.SubmitSpan(t.Context(), partition.Caller{By: "token", Token: token}, bodies, nil); err != nil {
		t.Fatal(err)
	}
}

// tokensOf are the tokens of a replica's operations 1 to n.
func tokensOf(t *testing.T, c *testReplica, n uint64) (all []partition.Token) {
	t.Helper()
	for seq := uint64(1); seq <= n; seq++ {
		token, err := c.TokenOf(log.Dot{Writer: c.site, Seq: seq})
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, token)
	}
	return all
}

// notes counts the notes on tokens in a store.
func notes(t *testing.T, store kv.Store) (n int) {
	t.Helper()
	lo := app.LocalKey("token/")
	hi := bytes.Clone(lo)
	hi[len(hi)-1]++
	if err := store.Scan(lo, hi, func(_, _ []byte) bool { n++; return true }); err != nil {
		t.Fatal(err)
	}
	return n
}

// TestTokens: a replica knows the token of an operation as long as it may send the operation: after a restart, and while the log that has
// it may be restored. Then it deletes the note. A partition with a log needs no notes.
func TestTokens(t *testing.T) {
	store := memkv.New()
	origin := open(t, store)
	submitWithToken(t, origin, partition.Token{Client: "c", Generation: 3}, "at the origin")
	c := openReplica(t, memkv.New(), 2)
	c.pull(t, origin, 99)
	old, young := partition.Token{Client: "c", Generation: 3}, partition.Token{Client: "c", Generation: 8}
	submitWithToken(t, c.Partition, old, "a", "b")
	submitWithToken(t, c.Partition, partition.Token{}, "an earlier version's")
	submitWithToken(t, c.Partition, young, "d")
	want := []partition.Token{old, old, {}, young}
	expect := func(when string, want []partition.Token, wantNotes int) {
		t.Helper()
		for i, got := range tokensOf(t, c, 4) {
			if got != want[i] {
				t.Errorf("%s, operation %d: %+v, want %+v", when, i+1, got, want[i])
			}
		}
		if n := notes(t, c.store); n != wantNotes {
			t.Errorf("%s: %d notes, want %d", when, n, wantNotes)
		}
	}
	expect("pending", want, 3)
	c = openReplica(t, c.store, c.site)
	expect("after a restart", want, 3)

	pull := func(stable uint64) {
		t.Helper()
		r := run(t, origin, c.Cursor(), 99)
		r.Stable = stable
		if _, err := c.Pull(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	c.push(t, origin, 2)
	pull(1)
	expect("half confirmed", want, 3)
	pull(c.Cursor().Seq)
	expect("half stable", []partition.Token{{}, {}, {}, young}, 1)
	c.push(t, origin, 99)
	pull(origin.Log().Head())
	expect("all stable", make([]partition.Token, 4), 0)
	if n := notes(t, store); n != 0 {
		t.Errorf("a log of one's own keeps %d notes", n)
	}
}
