package partition_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/fold"
	"github.com/sightline-dev/sightline/core/fold/foldtest"
	"github.com/sightline-dev/sightline/core/index"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/kv/memkv"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/partition"
)

// testReplica is a replica with its store.
type testReplica struct {
	store kv.Store
	*partition.Partition
	site  log.Writer
	sent  uint64        // last own operation that was pushed
	ahead time.Duration // lead over the origin's clock
	limit uint64        // maximum number of operations in the outbox; 0: the default
	batch int           // size of a snapshot's batch in bytes; 0: the default
}

var plainSpace = index.Space{Base: network, Concepts: []string{"ai_a", "ai_b", "ai_c"}}

func openReplica(t testing.TB, store kv.Store, site log.Writer) *testReplica {
	t.Helper()
	p, err := partition.Open(partition.Options{
		Store: store, App: app, Clock: clock, Epoch: log.Epoch{9}, Index: &index.Options{Space: plainSpace},
		Replica: &partition.Replica{Site: site},
	})
	if err != nil {
		t.Fatal(err)
	}
	return &testReplica{store: store, Partition: p, site: site}
}

// run returns the next entries of a log for a replica, at most n.
func run(t tb, of *partition.Partition, at partition.Cursor, n int) partition.Run {
	t.Helper()
	r := partition.Run{Epoch: of.Log().Epoch(), From: at.Seq, To: at.Seq}
	if n > 0 {
		err := of.Log().Read(at.Seq+1, func(e log.Entry) bool {
			r.Entries = append(r.Entries, e)
			return len(r.Entries) < n
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	r.To += uint64(len(r.Entries))
	var err error
	if r.Chain, err = of.Log().Chain(r.To); err != nil {
		t.Fatal(err)
	}
	r.Stable = of.Log().Head()
	return r
}

// pull pulls at most n entries and returns the verdicts on the replica's operations.
func (c *testReplica) pull(t testing.TB, of *partition.Partition, n int) []partition.OpVerdict {
	t.Helper()
	verdicts, err := c.Pull(context.Background(), run(t, of, c.Cursor(), n))
	if err != nil {
		t.Fatal(err)
	}
	return verdicts
}

// push sends at most n pending operations.
func (c *testReplica) push(t tb, to *partition.Partition, n int) {
	t.Helper()
	ops := c.waiting(t, c.sent, n)
	if _, _, err := to.Accept(context.Background(), ops, nil); err != nil {
		t.Fatal(err)
	}
	c.sent += uint64(len(ops))
}

func (c *testReplica) waiting(t tb, after uint64, n int) (ops []log.Op) {
	t.Helper()
	_, confirmed := c.Outbox()
	c.sent = max(c.sent, confirmed)
	if n == 0 {
		return nil
	}
	err := c.Pending(after, func(op log.Op) bool {
		ops = append(ops, op)
		return len(ops) < n
	})
	if err != nil {
		t.Fatal(err)
	}
	return ops
}

// plain returns a store with the folded state of a log's first to entries and the pending operations after them.
func plain(t tb, of *partition.Partition, to uint64, pending []log.Op) kv.Store {
	t.Helper()
	store := memkv.New()
	f, tx := fold.New(app), kv.NewOverlay(store)
	if to == 0 && len(pending) == 0 {
		return store
	}
	if err := f.Begin(tx); err != nil {
		t.Fatal(err)
	}
	apply := func(e log.Entry) bool {
		if _, err := f.Apply(&e); err != nil {
			t.Fatal(err)
		}
		return true
	}
	if to > 0 {
		err := of.Log().Read(1, func(e log.Entry) bool { return e.Seq <= to && apply(e) && e.Seq < to })
		if err != nil {
			t.Fatal(err)
		}
	}
	f.End()
	f = fold.NewPending(app, of.Rules()) // the newest rules apply to pending operations, also before the log has them
	if err := f.Begin(tx); err != nil {
		t.Fatal(err)
	}
	for i, op := range pending {
		apply(log.Entry{Seq: to + 1 + uint64(i), Op: op})
	}
	f.End()
	if err := store.Apply(tx.Batch()); err != nil {
		t.Fatal(err)
	}
	return store
}

// check compares a replica with plain folds: the visible state, the confirmed state, and the index.
func (c *testReplica) check(t tb, of *partition.Partition) {
	t.Helper()
	at := c.Cursor().Seq
	pending := c.waiting(t, 0, 1<<30)
	want := digest(t, plain(t, of, at, nil))
	err := c.ReadConfirmed(func(r kv.Reader) error {
		got, err := fold.Digest(r, app)
		if err == nil && got != want {
			t.Errorf("confirmed state at %d has digest %x, want %x", at, got, want)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	v := c.View()
	defer v.Close()
	visible := 0
	for i := range pending {
		if _, lost := pending[i].Body.(*log.Refused); !lost {
			visible++
		}
	}
	if v.Seq() != at+uint64(visible) {
		t.Errorf("view at %d, want %d and %d", v.Seq(), at, visible)
	}
	content := func(r kv.Reader) [32]byte {
		d, err := foldtest.ContentDigest(r, app)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	folded := plain(t, of, at, pending)
	if content(v.KV()) != content(folded) {
		t.Errorf("state at %d with %d pending is not that of a fold", at, len(pending))
	}
	if diff := cmp.Diff(visibleContents(t, catalog.Read(folded, app)), visibleContents(t, v.Reader)); diff != "" {
		t.Errorf("state at %d with %d pending (-want +got):\n%s", at, len(pending), diff)
	}
	consistent(t, v)
	if err := c.Index().Check(context.Background(), v.Reader); err != nil {
		t.Error(err)
	}
}

func TestReplica(t *testing.T) {
	origin := open(t, memkv.New())
	a := openReplica(t, memkv.New(), 2)
	dot := submit(t, origin, create("one"))[0].Dot
	a.check(t, origin)
	if v := submit(t, a.Partition, create("mine"), create("both"))[0]; v.Code != fold.OK || v.Ord != fold.PendingOrds+1 {
		t.Errorf("pending create: %+v", v)
	}
	submit(t, origin, create("both"))
	a.check(t, origin)
	if verdicts := a.pull(t, origin, 9); len(verdicts) != 0 {
		t.Errorf("told %v", verdicts)
	}
	a.check(t, origin)
	submit(t, a.Partition, &log.InputDelete{Input: dot}, &log.InputLabels{Input: dot, Labels: []log.Label{{Concept: "x", Value: log.True}}})
	a.check(t, origin)
	a.push(t, origin, 2)
	a.check(t, origin)
	a.pull(t, origin, 1)
	a.check(t, origin)
	verdicts := a.pull(t, origin, 1)
	if len(verdicts) != 1 || verdicts[0].Verdict.Code != fold.Duplicate {
		t.Errorf("told %+v", verdicts)
	}
	a.check(t, origin)
	a.push(t, origin, 9)
	a.pull(t, origin, 9)
	a.check(t, origin)
	if got, want := digest(t, a.store), digest(t, plain(t, origin, 6, nil)); got != want {
		t.Errorf("digest %x, want %x", got, want)
	}
	if issued, confirmed := a.Outbox(); issued != 4 || confirmed != 4 {
		t.Errorf("outbox %d, %d", issued, confirmed)
	}
	var conflicts []log.Dot
	list := func(c partition.Conflict) bool {
		conflicts = append(conflicts, c.Op.Dot)
		return true
	}
	if err := a.Conflicts(list); err != nil || len(conflicts) != 2 || conflicts[0].Seq != 2 || conflicts[1].Seq != 4 {
		t.Errorf("conflicts %v, %v", conflicts, err)
	}
	if err := a.Dismiss(conflicts[0]); err != nil {
		t.Fatal(err)
	}
	conflicts = nil
	if err := a.Conflicts(list); err != nil || len(conflicts) != 1 || conflicts[0].Seq != 4 {
		t.Errorf("conflicts %v, %v", conflicts, err)
	}
}

// TestPullFull checks that a full store accepts only entries that free space, and all entries once it has space.
func TestPullFull(t *testing.T) {
	origin := open(t, memkv.New())
	store := &faulty{Store: memkv.New()}
	c := openReplica(t, store, 2)
	a := submit(t, origin, create("a"))[0]
	c.pull(t, origin, 9)
	submit(t, origin, create("b"), &log.InputDelete{Input: a.Dot})
	store.set(&store.room, kv.ErrFull)
	before := store.applied.Load()
	for _, n := range []int{1, 2} {
		if _, err := c.Pull(context.Background(), run(t, origin, c.Cursor(), n)); !errors.Is(err, kv.ErrFull) || store.applied.Load() != before {
			t.Errorf("a pull of %d entries to a full store: %v, %d batches, want ErrFull and none", n, err, store.applied.Load()-before)
		}
	}
	x, _ := export(t, origin, [32]byte{})
	if err := c.Rebase(context.Background(), x.Snapshot); !errors.Is(err, kv.ErrFull) || store.applied.Load() != before {
		t.Errorf("a snapshot to a full store: %v, %d batches, want ErrFull and none", err, store.applied.Load()-before)
	}
	c.check(t, origin)
	submit(t, c.Partition, &log.InputDelete{Input: a.Dot})
	store.set(&store.room, nil)
	c.pull(t, origin, 1)
	store.set(&store.room, kv.ErrFull)
	c.pull(t, origin, 1) // deletes
	c.push(t, origin, 1)
	c.pull(t, origin, 1) // the echo of a deletion
	c.pull(t, origin, 0) // how far the log is stable
	if issued, confirmed := c.Outbox(); c.Cursor().Seq != 4 || issued != 1 || confirmed != 1 {
		t.Errorf("cursor %d, outbox %d, %d", c.Cursor().Seq, issued, confirmed)
	}
	c.check(t, origin)
}

func TestReplicaLease(t *testing.T) {
	store := memkv.New()
	p := openReplica(t, store, 0)
	if _, err := p.Submit(context.Background(), "key", []log.Body{create("x")}, nil); !errors.Is(err, partition.ErrNoSite) {
		t.Errorf("Submit without a site: %v", err)
	}
	for _, site := range []log.Writer{3, 3} {
		if err := p.Lease(site); err != nil {
			t.Fatal(err)
		}
	}
	submit(t, p.Partition, create("x"))
	if err := p.Lease(4); !errors.Is(err, partition.ErrSite) {
		t.Errorf("another site: %v", err)
	}
	if p = openReplica(t, store, 0); p.Site() != 3 {
		t.Errorf("site %d", p.Site())
	}
	if err := open(t, memkv.New()).Lease(3); !errors.Is(err, partition.ErrReplica) {
		t.Errorf("Lease of a log's own site: %v", err)
	}
	for _, o := range []*partition.Replica{nil, {Site: 4}} {
		_, err := partition.Open(partition.Options{Store: store, App: app, Clock: clock, Replica: o})
		if !errors.Is(err, partition.ErrReplica) && !errors.Is(err, partition.ErrSite) {
			t.Errorf("opened with %v: %v", o, err)
		}
	}
	other := memkv.New()
	submit(t, open(t, other), create("x"))
	if _, err := partition.Open(partition.Options{Store: other, App: app, Clock: clock, Replica: &partition.Replica{}}); !errors.Is(err, partition.ErrReplica) {
		t.Errorf("a log opened as a replica: %v", err)
	}
}
