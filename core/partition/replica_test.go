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
	"github.com/sightline-dev/sightline/core/kv/kvtest"
	"github.com/sightline-dev/sightline/core/kv/memkv"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/partition"
)

// testReplica is a replica with its store.
type testReplica struct {
	store kv.Store
	*partition.Replica
	by    string         // account of its operations
	last  partition.Span // its last operations, if this process made them
	sent  uint64         // position of the last own operation that was pushed
	ahead time.Duration  // lead over the origin's clock
	limit uint64         // maximum number of operations in the outbox; 0: the default
	batch int            // size of a snapshot's batch in bytes; 0: the default
}

var plainSpace = index.Space{Base: network, Concepts: []string{"ai_a", "ai_b", "ai_c"}}

func openReplica(t testing.TB, store kv.Store) *testReplica {
	t.Helper()
	p, err := partition.OpenReplica(partition.Options{
		Store: store, App: app, Clock: clock, Epoch: opening(), Index: &index.Options{Space: plainSpace},
	}, partition.ReplicaOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return &testReplica{store: store, Replica: p}
}

// run returns the next entries of a log for a replica, at most n.
func run(t tb, of *partition.Origin, at partition.Cursor, n int) partition.Run {
	t.Helper()
	r := partition.Run{Frame: partition.Frame{From: at.Seq, To: at.Seq}}
	if n = min(n, log.MaxRows); n > 0 {
		err := of.Log().Read(at.Seq+1, func(e log.Entry) bool {
			r.Entries, r.Rows = append(r.Entries, e), log.AppendRow(r.Rows, log.Encode(nil, &e.Op))
			return len(r.Entries) < n
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	r.To += uint64(len(r.Entries))
	r.Epoch, r.Stable = of.Log().EpochOf(r.To).Epoch, of.Log().Head()
	var err error
	if r.From == 0 {
		r.Before, err = of.Log().Chain(0)
	}
	if err == nil {
		r.Chain, err = of.Log().Chain(r.To)
	}
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// pull pulls at most n entries and returns the verdicts on the replica's operations.
func (c *testReplica) pull(t testing.TB, of *partition.Origin, n int) (all []partition.OpVerdict) {
	t.Helper()
	for more := true; more; {
		r := run(t, of, c.Cursor(), n)
		verdicts, err := c.Pull(context.Background(), r)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, verdicts...)
		n -= len(r.Entries)
		more = n > 0 && len(r.Entries) == log.MaxRows
	}
	return all
}

// push sends at most n pending operations.
func (c *testReplica) push(t tb, to *partition.Origin, n int) {
	t.Helper()
	pending := c.waiting(t, c.sent, n)
	err := send(c.Replica, to, pending, partition.Offer{})
	if errors.Is(err, partition.ErrSequence) { // the outbox dropped the operations before them, or a horizon dropped their names
		pending = c.waiting(t, 0, n)
		err = send(c.Replica, to, pending, partition.Offer{Gap: true})
	}
	if err != nil {
		t.Fatal(err)
	}
	if len(pending) > 0 {
		c.sent = pending[len(pending)-1].Seq
	}
}

// send sends operations in a replica's outbox as sessions do: those of one writer after those of another, with the clock of the operation
// before them, as far as the outbox still has that.
func send(p *partition.Replica, to *partition.Origin, pending []log.Entry, o partition.Offer) error {
	for len(pending) > 0 {
		first := pending[0]
		o.Before, o.Ops = 0, nil
		err := p.LocalOps(max(first.Seq, 2)-2, func(at uint64, op log.Op) bool {
			if at+1 == first.Seq && op.Dot.Writer == first.Op.Dot.Writer {
				o.Before = op.At
			}
			return false
		})
		for len(o.Ops) < len(pending) && pending[len(o.Ops)].Op.Dot == (log.Dot{Writer: first.Op.Dot.Writer, Seq: first.Op.Dot.Seq + uint64(len(o.Ops))}) {
			o.Ops = append(o.Ops, pending[len(o.Ops)].Op)
		}
		if err == nil {
			_, _, err = to.AcceptOffer(context.Background(), &o)
		}
		if err != nil {
			return err
		}
		pending = pending[len(o.Ops):]
	}
	return nil
}

// waiting returns at most n pending operations after a position, as entries of the outbox.
func (c *testReplica) waiting(t tb, after uint64, n int) (pending []log.Entry) {
	t.Helper()
	_, settled := c.Outbox()
	c.sent = max(c.sent, settled)
	if n == 0 {
		return nil
	}
	err := c.Pending(after, func(at uint64, op log.Op) bool {
		pending = append(pending, log.Entry{Seq: at, Op: op})
		return len(pending) < n
	})
	if err != nil {
		t.Fatal(err)
	}
	return pending
}

// opsOf returns the operations of entries.
func opsOf(entries []log.Entry) (ops []log.Op) {
	for _, e := range entries {
		ops = append(ops, e.Op)
	}
	return ops
}

// plain returns a store with the folded state of a log's first to entries and the pending operations after them.
func plain(t tb, of *partition.Origin, to uint64, pending []log.Entry) kv.Store {
	t.Helper()
	store := kvtest.OrLate(t, memkv.New())
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
	for i, x := range pending {
		if _, err := f.ApplyPending(&log.Entry{Seq: to + 1 + uint64(i), Op: x.Op}, x.Seq); err != nil {
			t.Fatal(err)
		}
	}
	f.End()
	if err := store.Apply(tx.Batch()); err != nil {
		t.Fatal(err)
	}
	return store
}

// check compares a replica with plain folds: the visible state, the confirmed state, and the index.
func (c *testReplica) check(t tb, of *partition.Origin) {
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
	if v.Seq() != at+uint64(len(pending)) {
		t.Errorf("view at %d, want %d and %d", v.Seq(), at, len(pending))
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
	c.checkConfirmed(t, pending)
	consistent(t, v)
	if err := c.Index().Check(context.Background(), v.Reader); err != nil {
		t.Error(err)
	}
}

func TestReplica(t *testing.T) {
	origin := open(t, kvtest.OrLate(t, memkv.New()))
	a := openReplica(t, kvtest.OrLate(t, memkv.New()))
	dot := submit(t, origin, create("one"))[0].Dot
	a.check(t, origin)
	if v := submit(t, a.Replica, create("mine"), create("both"))[0]; v.Code != fold.OK || v.Ord != fold.PendingOrds+1 {
		t.Errorf("pending create: %+v", v)
	}
	submit(t, origin, create("both"))
	a.check(t, origin)
	if verdicts := a.pull(t, origin, 9); len(verdicts) != 0 {
		t.Errorf("told %v", verdicts)
	}
	a.check(t, origin)
	submit(t, a.Replica, &log.InputDelete{Input: dot}, &log.InputLabels{Input: dot, Labels: []log.Label{{Concept: "x", Value: log.True}}})
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
	if last, settled := a.Outbox(); last != 4 || settled != 4 {
		t.Errorf("outbox %d, %d", last, settled)
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

// TestPullIntoFullStore checks that a full store accepts only entries that free space, and all entries once it has space.
func TestPullIntoFullStore(t *testing.T) {
	origin := open(t, kvtest.OrLate(t, memkv.New()))
	store := &faulty{Store: kvtest.OrLate(t, memkv.New())}
	c := openReplica(t, store)
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
	submit(t, c.Replica, &log.InputDelete{Input: a.Dot})
	store.set(&store.room, nil)
	c.pull(t, origin, 1)
	store.set(&store.room, kv.ErrFull)
	c.pull(t, origin, 1) // deletes
	c.push(t, origin, 1)
	c.pull(t, origin, 1) // the echo of a deletion
	c.pull(t, origin, 0) // how far the log is stable
	if last, settled := c.Outbox(); c.Cursor().Seq != 4 || last != 1 || settled != 1 {
		t.Errorf("cursor %d, outbox %d, %d", c.Cursor().Seq, last, settled)
	}
	c.check(t, origin)
}

// checkConfirmed compares the outbox with the names in the confirmed state: an operation is pending if the state lacks its name, unless it is
// listed, or a horizon has dropped the names.
func (c *testReplica) checkConfirmed(t tb, pending []log.Entry) {
	t.Helper()
	waits := map[uint64]bool{}
	for _, x := range pending {
		waits[x.Seq] = true
	}
	err := c.ReadConfirmed(func(r kv.Reader) error {
		state := catalog.Read(r, app)
		h, err := state.Header()
		if err != nil {
			return err
		}
		return c.LocalOps(0, func(at uint64, op log.Op) bool {
			names, err := state.Names(op.Dot.Writer)
			_, unlisted := c.Conflict(op.Dot)
			if had := names.Has(op.Dot.Seq); err != nil || had && waits[at] || !had && !waits[at] && unlisted != nil && op.At >= h.Horizon {
				t.Errorf("operation %v at %d is pending: %v; the state has its name: %v, %v", op.Dot, at, waits[at], had, err)
			}
			return true
		})
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestOperationSentAgain: a horizon drops the name of an operation that its replica sends again. The log has the operation twice, and the
// first verdict counts.
func TestOperationSentAgain(t *testing.T) {
	origin := openAs(t, kvtest.OrLate(t, memkv.New()), opening(), fold.Version)
	c := openReplica(t, kvtest.OrLate(t, memkv.New()))
	submit(t, c.Replica, create("a"))
	c.push(t, origin, 9)
	submit(t, origin, create("b"), &log.Horizon{At: now() + 100})
	c.sent = 0
	c.push(t, origin, 9)
	if head := origin.Log().Head(); head != 5 {
		t.Fatalf("the log has %d entries, want the operation twice and 3 others", head)
	}
	if v := c.pull(t, origin, 9); len(v) != 1 || v[0].Verdict.Code != fold.OK || len(conflicts(t, c)) > 0 {
		t.Errorf("told %+v, conflicts %v", v, conflicts(t, c))
	}
	c.check(t, origin)
}

// TestStoreOpensOnlyAsItsKind checks that a store opens only as what it is: with its own log, or as a replica.
func TestStoreOpensOnlyAsItsKind(t *testing.T) {
	replica, log := kvtest.OrLate(t, memkv.New()), memkv.New()
	submit(t, openReplica(t, replica).Replica, create("before the first contact"))
	submit(t, open(t, log), create("x"))
	if _, err := partition.OpenOrigin(partition.Options{Store: replica, App: app, Clock: clock}); !errors.Is(err, partition.ErrKind) {
		t.Errorf("a replica as a log: %v, want ErrKind", err)
	}
	if _, err := partition.OpenReplica(partition.Options{Store: log, App: app, Clock: clock}, partition.ReplicaOptions{}); !errors.Is(err, partition.ErrKind) {
		t.Errorf("a log as a replica: %v, want ErrKind", err)
	}
}
