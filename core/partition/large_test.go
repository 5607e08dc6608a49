package partition_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/fold"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/kv/kvtest"
	"github.com/sightline-dev/sightline/core/kv/memkv"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/partition"
)

// brimful is a store that is full after some more batches.
type brimful struct {
	kv.Store
	left int // number of batches that it still accepts; negative: unlimited
}

func (f *brimful) Apply(b *kv.Batch) error {
	if f.left == 0 {
		return kv.ErrFull
	}
	f.left--
	return f.Store.Apply(b)
}

func (f *brimful) Commit(b *kv.Batch) (wait func() error, err error) {
	if f.left == 0 {
		return nil, kv.ErrFull
	}
	return f.Store.Commit(b)
}

// TestLargeSnapshot installs a snapshot in many batches while views are open. It makes each batch fail and starts again after each failure.
func TestLargeSnapshot(t *testing.T) {
	origin := open(t, kvtest.OrLate(t, memkv.New()))
	n := 2500
	if testing.Short() {
		n = 600
	}
	for i := 0; i < n; i += 100 {
		var bodies []log.Body
		for j := i; j < i+100; j++ {
			c := create(fmt.Sprintf("input-%06d", j))
			c.Meta = fmt.Appendf(nil, `{"number":%d,"text":"%0500d"}`, j, j*j)
			bodies = append(bodies, c)
		}
		submit(t, origin, bodies...)
	}
	x, _ := export(t, origin, [32]byte{})
	w := newCopies(t, nil, 0, false)
	w.origin = origin
	for fail := -1; fail < 4; fail++ {
		store := &brimful{Store: kvtest.OrLate(t, memkv.New()), left: -1}
		c := w.reopen(&testReplica{store: store, batch: 64 << 10})
		c.pull(t, origin, 50)
		submit(t, c.Replica, create("mine"), &log.InputDelete{Input: dotAt(t, origin, 3)})
		looked := 0
		s := x.Snapshot
		s.Read = func(i int) ([]byte, error) {
			v := c.View()
			if got := len(ids(t, v.Reader)); got != 50 || v.Seq() != 52 {
				t.Errorf("%d inputs at %d are visible meanwhile", got, v.Seq())
			}
			looked++
			if err := v.Close(); err != nil {
				t.Error(err)
			}
			return x.Chunk(i)
		}
		before := c.View()
		store.left = fail
		err := c.Rebase(context.Background(), s)
		if err == nil && fail > 1 {
			break // it takes fewer batches
		}
		if fail < 0 && err != nil || fail >= 0 && !errors.Is(err, kv.ErrFull) {
			t.Fatalf("batches %d: %v", fail, err)
		}
		store.left = -1
		if _, err := c.Submit(context.Background(), "key", []log.Body{create("more")}, nil); fail > 0 != (err != nil) {
			t.Errorf("Submit after %d batches: %v", fail, err)
		}
		if looked < 2*len(x.Chunks)-1 && fail < 0 {
			t.Errorf("looked %d times at %d chunks", looked, len(x.Chunks))
		}
		if got := len(ids(t, before.Reader)); got != 50 {
			t.Errorf("a view of before has %d inputs", got)
		}
		if err := before.Close(); err != nil {
			t.Error(err)
		}
		if fail > 0 {
			c = w.reopen(c)
		}
		c.check(t, origin)
		if fail >= 0 && len(x.Chunks) > 1 {
			if err := c.Rebase(context.Background(), x.Snapshot); err != nil {
				t.Fatal(err)
			}
			c.check(t, origin)
		}
		if c.Cursor().Seq != x.Seq {
			t.Errorf("cursor %+v", c.Cursor())
		}
		c.push(t, origin, 0)
	}
}

// TestOutboxAfterLostState: a replica fails in the middle of a snapshot and has lost its state. Its first operations were acknowledged and
// trimmed as stable. It pulls the log from the beginning, and the rest of its outbox is still pending.
func TestOutboxAfterLostState(t *testing.T) {
	origin := openAs(t, kvtest.OrLate(t, memkv.New()), opening(), fold.Version) // operations after a gap are folded
	large(t, origin, 0, 2000)
	w := newCopies(t, nil, 0, false)
	w.origin = origin
	store := &brimful{Store: kvtest.OrLate(t, memkv.New()), left: -1}
	c := w.reopen(&testReplica{store: store, batch: 64 << 10})
	c.pull(t, origin, 3000)
	submit(t, c.Replica, create("a"), create("b"))
	c.push(t, origin, 9)
	c.pull(t, origin, 9)
	c.pull(t, origin, 0) // stable
	submit(t, c.Replica, create("c"))
	large(t, origin, 2000, 1000)
	x, _ := export(t, origin, [32]byte{})
	store.left = 1
	if err := c.Rebase(context.Background(), x.Snapshot); !errors.Is(err, kv.ErrFull) {
		t.Fatal(err)
	}
	store.left = -1
	for range 2 {
		c = w.reopen(c)
		if c.Cursor() != (partition.Cursor{}) {
			t.Errorf("cursor %+v", c.Cursor())
		}
		if got := ids(t, catalog.Read(c.store, app)); len(got) != 1 || got[0] != "c" {
			t.Errorf("inputs %v", got)
		}
		c.check(t, origin)
	}
	for c.Cursor().Seq < origin.Log().Head() {
		c.pull(t, origin, 1000)
	}
	c.check(t, origin)
	if last, settled := c.Outbox(); last != 3 || settled != 2 {
		t.Errorf("outbox %d, %d", last, settled)
	}
	c.push(t, origin, 9)
	c.pull(t, origin, 9)
	c.check(t, origin)
}
