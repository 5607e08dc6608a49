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

// openNamed opens a replica's store as one that has a random name.
func openNamed(t testing.TB, store kv.Store, name byte) *partition.Partition {
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
	first := openNamed(t, store, 1)
	submit(t, first, create("a"), create("b"))
	image := imageOf(t, store)
	submit(t, first, create("c"), create("d"), create("e"))
	if err := sendLives(t, first, origin); err != nil {
		t.Fatal(err)
	}
	second := openNamed(t, image, 2)
	verdicts := submit(t, second, create("x"), create("y"))
	submit(t, second, &log.InputLabels{Input: verdicts[0].Dot, Labels: []log.Label{{Concept: "k", Value: log.True}}})
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
	if err := second.Renew(renewed, last, origin.Log().Epoch()); err != nil {
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
	for _, p := range []*partition.Partition{origin, second, openNamed(t, image, 3)} {
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

// TestRenewBehindSnapshot has a replica that takes another site get a snapshot without all that the log has of the old one. The rest stays
// pending, and the site stays, until the log brings it.
func TestRenewBehindSnapshot(t *testing.T) {
	origin, p := open(t, memkv.New()), openNamed(t, memkv.New(), 1)
	submit(t, p, create("a"), create("b"), create("c"))
	var ops []log.Op
	if err := p.Pending(0, func(op log.Op) bool { ops = append(ops, op); return true }); err != nil {
		t.Fatal(err)
	}
	if _, _, err := origin.Accept(t.Context(), ops[:1], nil); err != nil {
		t.Fatal(err)
	}
	x, _ := export(t, origin, network)
	if _, _, err := origin.Accept(t.Context(), ops[:2], nil); err != nil {
		t.Fatal(err)
	}
	if err := p.Renew(edge+1, 2, origin.Log().Epoch()); err != nil {
		t.Fatal(err)
	}
	if err := p.Rebase(t.Context(), x.Snapshot); err != nil {
		t.Fatal(err)
	}
	if issued, confirmed := p.Outbox(); p.Site() != edge || issued != 3 || confirmed != 1 {
		t.Errorf("with a snapshot of operation 1: site %d, %d of %d; want 1 of 3 of site %d", p.Site(), confirmed, issued, edge)
	}
	if list := conflictsOf(t, p); len(list) != 0 {
		t.Errorf("conflicts %+v", list)
	}
	if _, err := p.Pull(t.Context(), run(t, origin, p.Cursor(), 9)); err != nil {
		t.Fatal(err)
	}
	if issued, confirmed := p.Outbox(); p.Site() != edge+1 || issued != 1 || confirmed != 0 {
		t.Errorf("with operation 2 of the log: site %d, %d of %d; want 0 of 1 of site %d", p.Site(), confirmed, issued, edge+1)
	}
	v := p.View()
	defer v.Close()
	if got := ids(t, v.Reader); fmt.Sprint(got) != "[a b c]" {
		t.Errorf("inputs %v", got)
	}
}

// TestSnapshotOfAnotherLife offers a replica a snapshot with an operation of its site that another life of it may have made. The replica
// does not take it, and its own operation of that name stays pending.
func TestSnapshotOfAnotherLife(t *testing.T) {
	origin, p := open(t, memkv.New()), openNamed(t, memkv.New(), 1)
	submit(t, p, create("here"))
	other := log.Op{Dot: log.Dot{Writer: edge, Seq: 1}, At: 1, Body: create("there")}
	if _, _, err := origin.Accept(t.Context(), []log.Op{other}, nil); err != nil {
		t.Fatal(err)
	}
	x, _ := export(t, origin, network)
	x.Snapshot.FirstForeign = 1
	err := p.Rebase(t.Context(), x.Snapshot)
	if issued, confirmed := p.Outbox(); !errors.Is(err, partition.ErrSite) || issued != 1 || confirmed != 0 || p.Cursor().Seq != 0 {
		t.Errorf("Rebase = %v, %d of %d operations confirmed, at entry %d", err, confirmed, issued, p.Cursor().Seq)
	}
	x.Snapshot.FirstForeign = 2
	if err := p.Rebase(t.Context(), x.Snapshot); err != nil {
		t.Errorf("a snapshot with an operation that was made here: %v", err)
	}
}

// TestRenamedAndSetBack has an origin rename what an operation names, and set back its clock. By the life that made both, the replica knows
// the entry for its own operation. Without the life it takes it for that of another one.
func TestRenamedAndSetBack(t *testing.T) {
	for name, known := range map[string]bool{"with the life": true, "without": false} {
		origin, p := open(t, memkv.New()), openNamed(t, memkv.New(), 1)
		submit(t, p, &log.InputDelete{Input: log.Dot{Writer: 7, Seq: 1}})
		lives, err := p.Lives(edge, 1, 1)
		if err != nil || len(lives) != 1 {
			t.Fatal(lives, err)
		}
		entry := log.Op{Dot: log.Dot{Writer: edge, Seq: 1}, At: 1, Body: &log.InputDelete{Input: log.Dot{Writer: 9, Seq: 1}}}
		if _, _, err := origin.AcceptOf(t.Context(), []log.Op{entry}, lives, nil); err != nil {
			t.Fatal(err)
		}
		r := run(t, origin, p.Cursor(), 9)
		if known {
			r.Lives = []partition.SiteLife{{Site: edge, Life: lives[0]}}
		}
		_, err = p.Pull(t.Context(), r)
		if _, confirmed := p.Outbox(); known && (err != nil || confirmed != 1) || !known && !errors.Is(err, partition.ErrSite) {
			t.Errorf("%s: Pull = %v, %d confirmed", name, err, confirmed)
		}
	}
}

// TestRenewToRestoredLog has a replica take another site that has pulled its operations from the log of before a restore. It stays at the
// old site, and shows its operations, until it has pulled them from the restored log.
func TestRenewToRestoredLog(t *testing.T) {
	before, p := open(t, memkv.New()), openNamed(t, memkv.New(), 1)
	origin := openRestored(t, memkv.New(), 9)
	x, _ := export(t, origin, network)
	submit(t, p, create("a"), create("b"))
	for _, to := range []*partition.Partition{before, origin} {
		if err := sendLives(t, p, to); err != nil {
			t.Fatal(err)
		}
	}
	pullSealed(t, p, before)
	if err := p.Renew(edge+1, 2, origin.Log().Epoch()); err != nil {
		t.Fatal(err)
	}
	if err := p.Rebase(t.Context(), x.Snapshot); err != nil {
		t.Fatal(err)
	}
	shows := func(site log.Writer, issued uint64) {
		t.Helper()
		v := p.View()
		defer v.Close()
		if n, _ := p.Outbox(); n != issued || p.Site() != site || fmt.Sprint(ids(t, v.Reader)) != "[a b]" {
			t.Errorf("site %d with %d operations and the inputs %v, want site %d with %d and [a b]", p.Site(), n, ids(t, v.Reader), site, issued)
		}
	}
	shows(edge, 2)
	if _, err := p.Pull(t.Context(), run(t, origin, p.Cursor(), 9)); err != nil {
		t.Fatal(err)
	}
	shows(edge+1, 0)
}

// buffering is a store that finds its disk full when it syncs, as one does that buffers what is applied.
type buffering struct {
	kv.Store
	full bool
}

func (b *buffering) Commit(batch *kv.Batch) (func() error, error) {
	if b.full {
		return nil, kv.ErrFull
	}
	return b.Store.Commit(batch)
}

// TestRenewOnFullDisk: a replica whose disk is full does not take another site, neither in memory nor in its store, until there is space.
func TestRenewOnFullDisk(t *testing.T) {
	store := &buffering{Store: memkv.New()}
	p := openNamed(t, store, 1)
	submit(t, p, create("a"))
	writes := func(p *partition.Partition, site log.Writer) {
		t.Helper()
		var dots []log.Dot
		err := p.Pending(0, func(op log.Op) bool { dots = append(dots, op.Dot); return true })
		if err != nil || p.Site() != site || !slices.Equal(dots, []log.Dot{{Writer: site, Seq: 1}}) {
			t.Errorf("site %d with the operations %v, %v; want site %d", p.Site(), dots, err, site)
		}
	}
	store.full = true
	if err := p.Renew(edge+1, 0, log.Epoch{1}); !errors.Is(err, kv.ErrFull) {
		t.Errorf("Renew = %v", err)
	}
	writes(p, edge)
	writes(openNamed(t, imageOf(t, store.Store), 2), edge)
	store.full = false
	if err := p.Renew(edge+1, 0, log.Epoch{1}); err != nil {
		t.Fatal(err)
	}
	writes(p, edge+1)
	writes(openNamed(t, imageOf(t, store.Store), 2), edge+1)
}

// TestRenewUnderWrites has callers write while a replica takes another site: all that was acknowledged is pending.
func TestRenewUnderWrites(t *testing.T) {
	p := openNamed(t, memkv.New(), 1)
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
		if err := p.Renew(site, 0, log.Epoch{1}); err != nil {
			t.Fatal(err)
		}
	}
	writing.Wait()
	n := uint64(0)
	err := p.Pending(0, func(op log.Op) bool {
		n++
		if op.Dot != (log.Dot{Writer: edge + 8, Seq: n}) {
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

// dying is a store whose process is killed at the next sync.
type dying struct {
	kv.Store
	killed bool
	behind bool // it has batches that a loss of power may take back
}

func (d *dying) Apply(b *kv.Batch) error {
	d.behind = true
	return d.Store.Apply(b)
}

func (d *dying) Commit(b *kv.Batch) (func() error, error) {
	if d.killed {
		return func() error { return kv.ErrClosed }, d.Apply(b)
	}
	wait, err := d.Store.Commit(b)
	return func() error {
		d.behind = false
		return wait()
	}, err
}

// TestRenewKilled has the process of a replica killed when it has taken another site and has not synced that. The next process makes it
// durable before it can push as the new site.
func TestRenewKilled(t *testing.T) {
	store := &dying{Store: memkv.New()}
	p := openNamed(t, store, 1)
	submit(t, p, create("a"))
	store.killed = true
	if err := p.Renew(edge+1, 0, log.Epoch{1}); !errors.Is(err, kv.ErrFailed) {
		t.Fatal(err)
	}
	store.killed = false
	p = openNamed(t, store, 2)
	if issued, _ := p.Outbox(); p.Site() != edge+1 || issued != 1 || store.behind {
		t.Errorf("site %d with %d operations; not durable: %v", p.Site(), issued, store.behind)
	}
}
