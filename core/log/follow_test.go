package log_test

import (
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/kv/kvtest"
	"github.com/sightline-dev/sightline/core/kv/memkv"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/testkit"
)

// member is one of two machines with the same log.
type member struct {
	store *kvtest.Late
	log   *log.Store
}

// TestRoleChanges: two machines have one log, and change their roles at random moments. Both have the same entries, each once, and all that
// were acknowledged.
func TestRoleChanges(t *testing.T) {
	for seed := range testkit.Seeds(t, 1000, 10_000) {
		follow(t, seed)
	}
}

func follow(t *testing.T, seed uint64) {
	rng, channel := rand.New(rand.NewPCG(seed, 9)), kvtest.NewChannel(seed)
	var both [2]*member
	for i := range both {
		store := channel.Machine(memkv.New(), t.Errorf)
		o := settings
		o.Follow = true
		both[i] = &member{store, openStore(t, store, o)}
	}
	acked := map[log.Dot]bool{}
	var waits []func() // of both machines, in any order
	leader, turn := -1, 0
	lead := func(next int) {
		turn++
		channel.Depose()
		for both[next].store.Next() != nil {
		}
		both[next].store.Lead()
		err := both[next].log.Advance()
		if err == nil {
			err = both[next].log.Lead(log.Epoch{byte(turn), byte(turn >> 8)})
		}
		if err != nil {
			t.Fatal(err)
		}
		leader = next
	}
	lead(0)
	seq := 0
	for range 60 {
		first, second := both[leader], both[1-leader]
		switch rng.IntN(12) {
		case 0:
			if seed%2 == 0 {
				continue // all entries stay
			}
			if err := first.log.Trim(first.log.Floor() + uint64(rng.IntN(3))); err != nil && !errors.Is(err, kv.ErrNotFound) {
				t.Fatal(err)
			}
		case 1:
			if err := first.log.Redact(1, redactSecrets); err != nil {
				t.Fatal(err)
			}
		case 2: // the other one leads, and this one may learn of it much later
			lead(1 - leader)
			if _, _, err := first.log.Append(opsOf(9999, 1, 1), nil); err == nil {
				t.Error("a machine that follows appends entries")
			}
			if rng.IntN(2) == 0 {
				if err := first.log.Advance(); err != nil {
					t.Fatal(err)
				}
			}
			seq = 0
		case 3, 4, 5:
			second.store.Next()
			if err := second.log.Advance(); err != nil {
				t.Fatal(err)
			}
		case 6:
			for _, i := range rng.Perm(len(waits)) {
				waits[i]()
			}
			waits = nil
		default:
			ops := opsOf(log.Writer(turn), seq+1, 1+rng.IntN(3))
			seq += len(ops)
			if rng.IntN(3) == 0 {
				ops[0].Body = &log.AppCreate{ID: "x", Name: secret}
			}
			_, wait, err := first.log.Append(ops, nil)
			if err != nil {
				t.Fatal(err)
			}
			waits = append(waits, func() {
				switch err := wait(); {
				case err == nil:
					for i := range ops {
						acked[ops[i].Dot] = true
					}
				case !errors.Is(err, kv.ErrFollows):
					t.Error(err)
				}
			})
		}
	}
	for _, wait := range waits {
		wait()
	}
	channel.Depose()
	var found [2][]log.Entry
	for i, m := range both {
		for m.store.Next() != nil {
		}
		if err := m.log.Advance(); err != nil {
			t.Fatal(err)
		}
		if err := m.log.Read(m.log.Floor(), func(e log.Entry) bool {
			found[i] = append(found[i], e)
			return true
		}); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(found[0], found[1]); diff != "" {
		t.Fatalf("the machines have different entries:\n%s", diff)
	}
	a, b := both[0].log, both[1].log
	for seq := a.Floor(); seq <= a.Head(); seq++ {
		if a.EpochOf(seq) != b.EpochOf(seq) {
			t.Errorf("entry %d is in epoch %v, and in %v", seq, a.EpochOf(seq), b.EpochOf(seq))
		}
	}
	have := map[log.Dot]bool{}
	for _, e := range found[0] {
		if have[e.Op.Dot] {
			t.Errorf("operation %v is there twice", e.Op.Dot)
		}
		have[e.Op.Dot] = true
	}
	for dot := range acked {
		if !have[dot] && a.Floor() == 1 {
			t.Errorf("the acknowledged operation %v is lost", dot)
		}
	}
}
