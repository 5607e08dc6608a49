package partition_test

import (
	"testing"

	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/kv/kvtest"
	"github.com/sightline-dev/sightline/core/kv/memkv"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/partition"
)

// submitWithToken writes inputs as a caller with a token does.
func submitWithToken(t *testing.T, p kind, token partition.Token, ids ...string) (dots []log.Dot) {
	t.Helper()
	bodies := make([]log.Body, len(ids))
	for i, id := range ids {
		bodies[i] = create(id)
	}
	_, span, err := p.SubmitSpan(t.Context(), partition.Caller{By: "token", Token: token}, bodies, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := range ids {
		dots = append(dots, log.Dot{Writer: span.Writer, Seq: span.First + uint64(i)})
	}
	return dots
}

// localRecords counts the records with a name in a store.
func localRecords(t *testing.T, store kv.Store, name string) (n int) {
	t.Helper()
	var err error
	for range kv.WithPrefix(store, app.LocalKey(name), &err) {
		n++
	}
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestTokens: a replica knows the token of an operation, and the secret of its writer, as long as it may send the operation: after a restart,
// and while the log that has it may be restored. Then it deletes both, except the secret of the last writer. A partition with a log needs
// no tokens.
func TestTokens(t *testing.T) {
	store := kvtest.OrLate(t, memkv.New())
	origin := open(t, store)
	submitWithToken(t, origin, partition.Token{Client: "c", Generation: 3}, "at the origin")
	c := openReplica(t, kvtest.OrLate(t, memkv.New()))
	c.pull(t, origin, 99)
	old, young := partition.Token{Client: "c", Generation: 3}, partition.Token{Client: "c", Generation: 8}
	dots := submitWithToken(t, c.Replica, old, "a", "b")
	c = openReplica(t, c.store)
	dots = append(dots, submitWithToken(t, c.Replica, partition.Token{}, "an earlier version's")...)
	c = openReplica(t, c.store)
	dots = append(dots, submitWithToken(t, c.Replica, young, "d")...)
	want := []partition.Token{old, old, {}, young}
	expect := func(when string, want []partition.Token, tokens, writers int) {
		t.Helper()
		for i, dot := range dots {
			if got, err := c.TokenOf(dot); got != want[i] || err != nil {
				t.Errorf("%s, operation %d: %+v, %v, want %+v", when, i+1, got, err, want[i])
			}
			if known := c.Secret(dot.Writer) != nil; known != (i >= len(dots)-writers || writers == 3) {
				t.Errorf("%s, operation %d: the secret of its writer is known: %v", when, i+1, known)
			}
		}
		if n, m := localRecords(t, c.store, "token/"), localRecords(t, c.store, "writer/"); n != tokens || m != writers {
			t.Errorf("%s: %d tokens and %d writers, want %d and %d", when, n, m, tokens, writers)
		}
	}
	expect("pending", want, 3, 3)
	c = openReplica(t, c.store)
	expect("after a restart", want, 3, 3)

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
	expect("half confirmed", want, 3, 3)
	pull(c.Cursor().Seq)
	expect("half stable", []partition.Token{{}, {}, {}, young}, 1, 2)
	c.push(t, origin, 99)
	pull(origin.Log().Head())
	expect("all stable", make([]partition.Token, 4), 0, 1)
	dots = submitWithToken(t, c.Replica, young, "e")
	c.push(t, origin, 99)
	pull(origin.Log().Head())
	expect("with a later writer", make([]partition.Token, 1), 0, 1)
	if n := localRecords(t, store, "token/"); n != 0 {
		t.Errorf("a log of its own has %d tokens", n)
	}
}
