package partition_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/fold"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/kv/kvtest"
	"github.com/sightline-dev/sightline/core/kv/memkv"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/partition"
)

// rebase installs a snapshot of a partition's current state in a replica.
func rebase(t testing.TB, c *testReplica, of *partition.Origin) {
	t.Helper()
	x, _ := export(t, of, network)
	if err := c.Rebase(context.Background(), x.Snapshot); err != nil {
		t.Fatal(err)
	}
}

// conflicts returns the verdicts of a replica's conflicts, by sequence number of the operation.
func conflicts(t testing.TB, c *testReplica) map[uint64]fold.Verdict {
	t.Helper()
	all := map[uint64]fold.Verdict{}
	err := c.Conflicts(func(x partition.Conflict) bool {
		all[x.Op.Dot.Seq] = x.Verdict
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func isTrue(dot log.Dot, concept string) *log.InputLabels {
	return &log.InputLabels{Input: dot, Labels: []log.Label{{Concept: concept, Value: log.True}}}
}

// TestUnrelatedRunsChangeNothing checks that a run of another log, from another position or with other entries changes nothing.
func TestUnrelatedRunsChangeNothing(t *testing.T) {
	origin := open(t, kvtest.OrLate(t, memkv.New()))
	submit(t, origin, create("a"), create("b"), create("c"))
	c := openReplica(t, kvtest.OrLate(t, memkv.New()))
	c.pull(t, origin, 1)
	submit(t, c.Replica, create("mine"))
	for name, x := range map[string]struct {
		want error
		edit func(r *partition.Run)
	}{
		"from elsewhere":  {partition.ErrCursor, func(r *partition.Run) { r.From++ }},
		"too few entries": {partition.ErrCursor, func(r *partition.Run) { r.Entries = r.Entries[1:] }},
		"backwards":       {partition.ErrCursor, func(r *partition.Run) { r.To = 0; r.Entries = nil }},
		"out of place":    {partition.ErrCursor, func(r *partition.Run) { r.Entries[0].Seq = 7 }},
		"another chain":   {partition.ErrChain, func(r *partition.Run) { r.Chain[3]++ }},
		"another entry":   {partition.ErrChain, func(r *partition.Run) { r.Rows[len(r.Rows)-1]++ }},
		"another row":     {partition.ErrChain, func(r *partition.Run) { r.Rows = log.AppendRow(r.Rows, r.Rows) }},
	} {
		r := run(t, origin, c.Cursor(), 9)
		x.edit(&r)
		if _, err := c.Pull(context.Background(), r); !errors.Is(err, x.want) {
			t.Errorf("%s: %v, want %v", name, err, x.want)
		}
		c.check(t, origin)
	}
	c.pull(t, origin, 9)
	c.check(t, origin)
	r := run(t, origin, partition.Cursor{}, 9)
	r.Before[3]++
	if _, err := openReplica(t, kvtest.OrLate(t, memkv.New())).Pull(t.Context(), r); !errors.Is(err, partition.ErrChain) {
		t.Errorf("the first run with another chain before it: %v, want ErrChain", err)
	}
}

// TestFullOutbox checks that a replica accepts no more operations than its outbox holds, and more once the origin has some of them.
func TestFullOutbox(t *testing.T) {
	w := newCopies(t, rand.New(rand.NewPCG(1, 1)), 0, false)
	c := w.reopen(&testReplica{store: kvtest.OrLate(t, memkv.New()), limit: 3})
	submit(t, c.Replica, create("a"), create("b"))
	bodies := []log.Body{create("c"), create("d")}
	if _, err := c.Submit(context.Background(), "key", bodies, nil); !errors.Is(err, partition.ErrOutbox) {
		t.Errorf("a full outbox: %v", err)
	}
	submit(t, c.Replica, create("c"))
	c.push(t, w.origin, 2)
	c.pull(t, w.origin, 9)
	submit(t, c.Replica, create("d"))
	c.check(t, w.origin)
}

// TestRefusedDeletionOfAllRestoresInputs checks that inputs hidden by a pending deletion of everything come back if the origin refuses it.
func TestRefusedDeletionOfAllRestoresInputs(t *testing.T) {
	origin := open(t, kvtest.OrLate(t, memkv.New()))
	for i := range 30 {
		submit(t, origin, create(fmt.Sprint(i)))
	}
	c := openReplica(t, kvtest.OrLate(t, memkv.New()))
	c.pull(t, origin, 20)
	submit(t, c.Replica, create("mine"), &log.InputDeleteAll{}, create("0"), &log.ModelDeleteAll{})
	c.check(t, origin)
	c.pull(t, origin, 5)
	c.check(t, origin)
	if more, err := c.Step(context.Background(), clock()); err != nil || more {
		t.Errorf("Step: %v, %v", more, err)
	}
	ops := opsOf(c.waiting(t, 0, 9))
	for i := range ops {
		partition.Refuse(&ops[i], "scope: role")
	}
	if _, _, err := origin.Accept(context.Background(), ops, nil); err != nil {
		t.Fatal(err)
	}
	for _, verdict := range c.pull(t, origin, 99) {
		if verdict.Verdict.Code != fold.Refused || verdict.Verdict.Detail != "scope: role" {
			t.Errorf("told %+v", verdict)
		}
		if _, refused := verdict.Op.Body.(*log.Refused); refused {
			t.Error("what was asked for is lost")
		}
	}
	c.check(t, origin)
	if n := len(ids(t, catalog.Read(c.store, app))); n != 30 {
		t.Errorf("%d inputs are back, want 30", n)
	}
	if len(conflicts(t, c)) != 4 {
		t.Errorf("conflicts %v", conflicts(t, c))
	}
}

// TestSnapshotWithoutVerdicts installs a snapshot that includes the replica's operations but brings no verdicts on them. The replica stores
// those without an effect in the snapshot as conflicts.
func TestSnapshotWithoutVerdicts(t *testing.T) {
	origin := open(t, kvtest.OrLate(t, memkv.New()))
	theirs := submit(t, origin, create("one"), create("two"))
	dot := theirs[0].Dot
	c := openReplica(t, kvtest.OrLate(t, memkv.New()))
	c.pull(t, origin, 9)
	name := "renamed"
	model := log.Dot{Writer: submit(t, c.Replica, create("mine"))[0].Dot.Writer, Seq: 6}
	submit(t, c.Replica,
		create("theirs"), isTrue(dot, "kept"), isTrue(dot, "refused"), &log.InputDelete{Input: theirs[1].Dot},
		&log.ModelCreate{ID: "m", Version: "v"}, &log.ModelPatch{Model: model, Name: &name}, &log.Feedback{JSON: []byte("1")},
		&log.InputMeta{Input: dot, Writes: []log.MetaWrite{{Path: []string{"a"}, Action: log.MetaAppend, JSON: []byte("[1]")}}},
		&log.VersionTrain{Model: model, Version: "w"}, isTrue(log.Dot{Writer: 7, Seq: 7}, "gone"), create("last"))
	submit(t, origin, create("theirs"))
	ops := opsOf(c.waiting(t, 0, 11))
	partition.Refuse(&ops[3], "scope: role")
	if _, _, err := origin.Accept(context.Background(), ops, nil); err != nil {
		t.Fatal(err)
	}
	rebase(t, c, origin)
	c.check(t, origin)
	got := conflicts(t, c)
	want := map[uint64]fold.Code{2: fold.Duplicate, 4: fold.Gone, 11: fold.Gone}
	for seq, v := range got {
		if want[seq] != v.Code {
			t.Errorf("conflict of operation %d: %+v, want %v", seq, v, want[seq])
		}
	}
	if len(got) != len(want) || got[4].Detail != "unknown" {
		t.Errorf("conflicts %+v", got)
	}
	if last, settled := c.Outbox(); last != 12 || settled != 11 {
		t.Errorf("outbox %d, %d", last, settled)
	}
	c.push(t, origin, 9)
	c.pull(t, origin, 9)
	c.check(t, origin)
}

// TestRestoredOrigin restores an origin from an old backup, under another epoch. The replica sends it the lost operations again, except those
// that the origin had reported as stable.
func TestRestoredOrigin(t *testing.T) {
	for _, stable := range []bool{false, true} {
		origin := open(t, kvtest.OrLate(t, memkv.New()))
		c := openReplica(t, kvtest.OrLate(t, memkv.New()))
		for i := range 4 {
			submit(t, c.Replica, create(fmt.Sprint(i)))
		}
		c.push(t, origin, 9)
		r := run(t, origin, c.Cursor(), 2)
		if r.Stable = 0; stable {
			r.Stable = 2
		}
		if _, err := c.Pull(context.Background(), r); err != nil {
			t.Fatal(err)
		}
		restored, err := partition.OpenOrigin(partition.Options{Store: kvtest.OrLate(t, memkv.New()), App: app, Clock: clock, Epoch: opening()})
		if err != nil {
			t.Fatal(err)
		}
		submit(t, restored, create("other"))
		if _, err := c.Pull(context.Background(), run(t, restored, c.Cursor(), 1)); !errors.Is(err, partition.ErrChain) {
			t.Errorf("another log: %v", err)
		}
		rebase(t, c, restored)
		c.check(t, restored)
		c = openReplica(t, c.store)
		c.check(t, restored)
		c.push(t, restored, 9)
		c.pull(t, restored, 9)
		c.check(t, restored)
		want := 5
		if stable {
			want = 3
		}
		if got := ids(t, catalog.Read(c.store, app)); len(got) != want {
			t.Errorf("stable %v: inputs %v", stable, got)
		}
	}
}

// TestDamagedSnapshots checks that a snapshot that differs from its description changes nothing.
func TestDamagedSnapshots(t *testing.T) {
	origin := open(t, kvtest.OrLate(t, memkv.New()))
	large(t, origin, 0, 3000)
	c := openReplica(t, kvtest.OrLate(t, memkv.New()))
	submit(t, c.Replica, create("mine"))
	x, chunks := export(t, origin, [32]byte{})
	if len(chunks) < 3 {
		t.Fatalf("%d chunks", len(chunks))
	}
	for name, y := range map[string]struct {
		want error
		edit func(s *partition.Snapshot)
	}{
		"another digest": {kv.ErrCorrupt, func(s *partition.Snapshot) { s.Digest[0]++ }},
		"another place":  {kv.ErrCorrupt, func(s *partition.Snapshot) { s.Seq++ }},
		"newer rules":    {kv.ErrNewer, func(s *partition.Snapshot) { s.Fold = fold.Version + 1 }},
		"a byte": {partition.ErrChunk, func(s *partition.Snapshot) {
			s.Read = func(i int) ([]byte, error) {
				data := append([]byte{}, chunks[i]...)
				data[len(data)/2]++
				return data, nil
			}
		}},
		"the order": {kv.ErrCorrupt, func(s *partition.Snapshot) {
			s.Chunks = []partition.Chunk{s.Chunks[1], s.Chunks[0]}
			s.Read = func(i int) ([]byte, error) { return chunks[1-i], nil }
		}},
		"a missing chunk": {kv.ErrCorrupt, func(s *partition.Snapshot) { s.Chunks = s.Chunks[:len(s.Chunks)-1] }},
		"a failed read": {kv.ErrClosed, func(s *partition.Snapshot) {
			s.Read = func(int) ([]byte, error) { return nil, kv.ErrClosed }
		}},
	} {
		s := x.Snapshot
		y.edit(&s)
		if err := c.Rebase(context.Background(), s); !errors.Is(err, y.want) {
			t.Errorf("%s: %v, want %v", name, err, y.want)
		}
		c.check(t, origin)
	}
	if err := c.Rebase(context.Background(), x.Snapshot); err != nil {
		t.Fatal(err)
	}
	c.check(t, origin)
}
