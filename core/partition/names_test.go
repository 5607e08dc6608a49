package partition_test

import (
	"bytes"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/fold"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/kv/kvtest"
	"github.com/sightline-dev/sightline/core/kv/memkv"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/log/form"
	"github.com/sightline-dev/sightline/core/partition"
)

// openNames opens an origin whose log has the rules of names.
func openNames(t *testing.T, now func() time.Time) *partition.Origin {
	t.Helper()
	p, err := partition.OpenOrigin(partition.Options{Store: kvtest.OrLate(t, memkv.New()), App: app, Clock: now, Epoch: opening()})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// lastBody returns the body of the last entry of a log.
func lastBody(t *testing.T, p *partition.Origin) log.Body {
	t.Helper()
	all := entries(t, p)
	return all[len(all)-1].Op.Body
}

// TestDeleteAllNames: a deletion of all inputs names the newest input of each writer that its maker sees. It deletes these in every order, and
// nothing else. In a log of earlier rules it names none.
func TestDeleteAllNames(t *testing.T) {
	p := openNames(t, clock)
	submit(t, p, &log.InputDeleteAll{})
	if b := lastBody(t, p).(*log.InputDeleteAll); !slices.Equal(b.Upto, []log.Dot{{Writer: log.Origin}}) {
		t.Errorf("without an input it names %v", b.Upto)
	}
	ours := submit(t, p, create("a"), create("b"), &log.ConceptCreate{ID: "x"})[1].Dot
	accept(t, p, writerOps(edge, 1, create("c")))
	submit(t, p, &log.InputDeleteAll{Barrier: true})
	b := lastBody(t, p).(*log.InputDeleteAll)
	want := []log.Dot{{Writer: edge, Seq: 1}, ours}
	slices.SortFunc(want, func(a, b log.Dot) int { return bytes.Compare(b.AppendKey(nil), a.AppendKey(nil)) })
	if b.Barrier || !slices.Equal(b.Upto, want) {
		t.Errorf("it names %v, want %v", b.Upto, want)
	}
	unseen := writerOps(edge, 2, create("d"), create("e"))
	if v := accept(t, p, unseen[:1]); v[0].Code != fold.OK {
		t.Errorf("an input that nobody had seen: %v", v)
	}
	if v := accept(t, p, append(unseen[1:], writerOps(edge, 4, &log.InputDeleteAll{Upto: []log.Dot{{Writer: edge, Seq: 9}}}, create("f"))...)); v[2].Code != fold.Gone {
		t.Errorf("an input that its own writer deleted before: %v", v)
	}
	if by, known, err := p.LastDeletion("e"); err != nil || !known || by.Op.Dot != (log.Dot{Writer: edge, Seq: 4}) {
		t.Errorf("e was deleted by %v, %v, %v", by.Op.Dot, known, err)
	}

	old := open(t, kvtest.OrLate(t, memkv.New()))
	submit(t, old, create("a"), &log.InputDeleteAll{})
	if b := lastBody(t, old).(*log.InputDeleteAll); b.Upto != nil {
		t.Errorf("by the first rules it names %v", b.Upto)
	}
}

// TestDeleteAllOfManyWriters: a deletion of the inputs of too many writers continues in another operation. The caller gets one verdict.
func TestDeleteAllOfManyWriters(t *testing.T) {
	p := openNames(t, clock)
	for i := range log.Writer(form.MaxUpto + 1) {
		accept(t, p, writerOps(edge+i, 1, create(fmt.Sprint(i))))
	}
	if v := submit(t, p, &log.InputDeleteAll{}, create("a")); len(v) != 2 || v[0].Code != fold.OK || v[1].ID != "a" {
		t.Errorf("verdicts %v", v)
	}
	all := entries(t, p)
	if first, rest := all[len(all)-3].Op.Body.(*log.InputDeleteAll), lastBody(t, p).(*log.InputDeleteAll); len(first.Upto) != form.MaxUpto || len(rest.Upto) != 1 {
		t.Errorf("they name %d and %d writers", len(first.Upto), len(rest.Upto))
	}
	v := p.View()
	defer v.Close()
	if c, err := v.Counts(); err != nil || c.Processed != 1 {
		t.Errorf("counts %+v, %v", c, err)
	}
}

// TestStaleCreation: a pending creation becomes stale because its replica was offline for months. The replica hides it. Its content is a conflict,
// and needs its picture.
func TestStaleCreation(t *testing.T) {
	wall := clock()
	at := func() time.Time { return wall }
	origin := openNames(t, at)
	store := kvtest.OrLate(t, memkv.New())
	c, err := partition.OpenReplica(partition.Options{Store: store, App: app, Clock: at, Epoch: opening()}, partition.ReplicaOptions{})
	if err != nil {
		t.Fatal(err)
	}
	body := create("late")
	submit(t, c, body)
	wall = wall.AddDate(0, 4, 0)
	submit(t, origin, create("new"), &log.Horizon{At: log.HLC(wall.AddDate(0, -3, 0).UnixMilli()) << 16})
	pull := func(want ...fold.Code) {
		t.Helper()
		r := run(t, origin, c.Cursor(), 99)
		r.Stable = 0
		verdicts, err := c.Pull(t.Context(), r)
		var codes []fold.Code
		for _, v := range verdicts {
			codes = append(codes, v.Verdict.Code)
		}
		if err != nil || !slices.Equal(codes, want) {
			t.Fatalf("verdicts %v, %v, want %v", codes, err, want)
		}
	}
	pull()
	v := c.View()
	if _, err := v.InputByID("late"); err == nil {
		t.Error("a pending creation below the horizon is shown")
	}
	_ = v.Close()
	var ops []log.Op
	if err := c.Pending(0, func(_ uint64, op log.Op) bool { ops = append(ops, op); return true }); err != nil {
		t.Fatal(err)
	}
	accept(t, origin, ops)
	pull(fold.Stale)
	x, err := c.Conflict(ops[0].Dot)
	if b, ok := x.Op.Body.(*log.InputCreate); err != nil || !ok || b.Blob != body.Blob || x.Verdict.Code != fold.Stale {
		t.Errorf("conflict %+v, %v", x, err)
	}
	claimed := false
	if err := partition.NeededPictures(kv.Reader(store), app, func(h blob.Hash) bool { claimed = claimed || h == body.Blob; return true }); err != nil || !claimed {
		t.Errorf("the conflict's picture is claimed: %v, %v", claimed, err)
	}
}
