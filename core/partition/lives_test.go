package partition_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/kv/memkv"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/partition"
)

// opened opens a replica's store as one that has a random name.
func opened(t testing.TB, store kv.Store, name byte) *partition.Partition {
	t.Helper()
	p, err := partition.Open(partition.Options{
		Store: store, App: app, Clock: clock, Epoch: log.Epoch{name}, Replica: &partition.Replica{},
	})
	if err == nil && p.Site() == 0 {
		err = p.Lease(edge)
	}
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// imageOf copies a store.
func imageOf(t testing.TB, store kv.Store) kv.Store {
	t.Helper()
	var b kv.Batch
	err := store.Scan(nil, nil, func(key, value []byte) bool {
		b.Put(key, value)
		return true
	})
	out := memkv.New()
	if err == nil {
		err = out.Apply(&b)
	}
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// sendLives pushes what is pending, with the lives that made it.
func sendLives(t testing.TB, p, to *partition.Partition) error {
	t.Helper()
	var ops []log.Op
	if err := p.Pending(0, func(op log.Op) bool { ops = append(ops, op); return true }); err != nil {
		t.Fatal(err)
	}
	lives, err := p.Lives(p.Site(), max(ops[0].Dot.Seq-1, 1), ops[len(ops)-1].Dot.Seq)
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = to.AcceptOf(t.Context(), ops, lives, nil)
	return err
}

// TestRenew has an image of a replica issue sequences that its origin has: the origin refuses them, and they reach it from
// another site, with new names.
func TestRenew(t *testing.T) {
	origin, store := open(t, memkv.New()), memkv.New()
	first := opened(t, store, 1)
	submit(t, first, create("a"), create("b"))
	image := imageOf(t, store)
	submit(t, first, create("c"), create("d"), create("e"))
	if err := sendLives(t, first, origin); err != nil {
		t.Fatal(err)
	}
	second := opened(t, image, 2)
	made := submit(t, second, create("x"), create("y"))
	submit(t, second, &log.InputLabels{Input: made[0].Dot, Labels: []log.Label{{Concept: "k", Value: log.True}}})
	if err := sendLives(t, second, origin); !errors.Is(err, partition.ErrLife) {
		t.Fatalf("operations of another life: %v", err)
	}
	had, err := origin.SiteSeq(edge)
	if err != nil {
		t.Fatal(err)
	}
	theirs, err := origin.Lives(edge, 1, had)
	if err != nil {
		t.Fatal(err)
	}
	issued, _ := second.Outbox()
	last, forked, err := second.Fork(issued, had, theirs)
	if err != nil || last != 2 || !forked {
		t.Fatalf("Fork = %d, %v, %v; want 2, true", last, forked, err)
	}
	const renewed = edge + 1
	if err := second.Renew(renewed, last); err != nil {
		t.Fatal(err)
	}
	if !second.Renewing() || second.Site() != edge {
		t.Fatal("another site was taken before the log has brought back what is ours")
	}
	if _, err := second.Pull(t.Context(), run(t, origin, second.Cursor(), 9)); err != nil {
		t.Fatal(err)
	}
	if issued, confirmed := second.Outbox(); second.Site() != renewed || issued != 3 || confirmed != 0 {
		t.Fatalf("site %d, %d of %d", second.Site(), confirmed, issued)
	}
	if err := sendLives(t, second, origin); err != nil {
		t.Fatal(err)
	}
	if _, err := second.Pull(t.Context(), run(t, origin, second.Cursor(), 9)); err != nil {
		t.Fatal(err)
	}
	for _, p := range []*partition.Partition{origin, second, opened(t, image, 3)} {
		v := p.View()
		got := ids(t, v.Reader)
		slices.Sort(got)
		if fmt.Sprint(got) != "[a b c d e x y]" {
			t.Errorf("inputs %v", got)
		}
		if x, err := v.InputByID("x"); err != nil || len(x.Labels) != 1 {
			t.Errorf("x = %+v, %v: want its label", x, err)
		}
		if err := v.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestRenewUnderWrites has callers write while a replica takes another site: all that was acknowledged is pending.
func TestRenewUnderWrites(t *testing.T) {
	p := opened(t, memkv.New(), 1)
	var writing sync.WaitGroup
	for w := range 4 {
		writing.Go(func() {
			for i := range 25 {
				if _, err := p.Submit(context.Background(), "key", []log.Body{create(fmt.Sprintf("%d-%d", w, i))}, nil); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for site := edge + 1; site < edge+9; site++ {
		if err := p.Renew(site, 0); err != nil {
			t.Fatal(err)
		}
	}
	writing.Wait()
	n := uint64(0)
	err := p.Pending(0, func(op log.Op) bool {
		n++
		if op.Dot != (log.Dot{Site: edge + 8, Seq: n}) {
			t.Errorf("operation %d is %v", n, op.Dot)
		}
		return true
	})
	v := p.View()
	defer v.Close()
	if got := len(ids(t, v.Reader)); err != nil || n != 100 || got != 100 {
		t.Errorf("%d operations, %d inputs, %v; want 100", n, got, err)
	}
}
