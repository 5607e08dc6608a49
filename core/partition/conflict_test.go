package partition_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/fold"
	"github.com/sightline-dev/sightline/core/kv/kvtest"
	"github.com/sightline-dev/sightline/core/kv/memkv"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/partition"
)

// subjects makes a thing of each kind that operations name by its dot.
func subjects(t *testing.T, p kind) (in, model, workflow log.Dot) {
	t.Helper()
	v := submit(t, p, create("picture"), &log.ConceptCreate{ID: "c", Name: "c"},
		&log.ModelCreate{ID: "way", Name: "way", Version: "v1", Concepts: []string{"c"}},
		&log.WorkflowCreate{ID: "flow", Nodes: []log.WorkflowNode{{ID: "n", Model: "way"}}})
	return v[0].Dot, v[2].Dot, v[3].Dot
}

// conflictIDs returns the ids that conflicts keep, by operation.
func conflictIDs(t *testing.T, c *testReplica) map[uint64]string {
	t.Helper()
	all := map[uint64]string{}
	err := c.Conflicts(func(x partition.Conflict) bool {
		all[x.Op.Dot.Seq] = x.ID
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
	if n, err := c.CountConflicts(); err != nil || n != len(all) {
		t.Errorf("CountConflicts() = %d, %v, want %d", n, err, len(all))
	}
	return all
}

// TestConflictNames: a conflict has the id of its deleted thing, whatever runs bring the deletion and the operation's echo, after a
// restart, and after a snapshot.
func TestConflictNames(t *testing.T) {
	ways := map[string]func(t *testing.T, c *testReplica, origin *partition.Origin) *testReplica{
		"one run": func(t *testing.T, c *testReplica, origin *partition.Origin) *testReplica {
			c.push(t, origin, 99)
			c.pull(t, origin, 99)
			return c
		},
		"two runs and a restart": func(t *testing.T, c *testReplica, origin *partition.Origin) *testReplica {
			c.pull(t, origin, 99)
			c = openReplica(t, c.store)
			c.pull(t, origin, 0)
			c.push(t, origin, 99)
			for c.Cursor().Seq < origin.Log().Head() {
				c.pull(t, origin, 1)
			}
			return c
		},
		"a snapshot of the deletion": func(t *testing.T, c *testReplica, origin *partition.Origin) *testReplica {
			rebase(t, c, origin)
			c.push(t, origin, 99)
			c.pull(t, origin, 99)
			return c
		},
		"a snapshot of all": func(t *testing.T, c *testReplica, origin *partition.Origin) *testReplica {
			c.push(t, origin, 99)
			rebase(t, c, origin)
			return c
		},
	}
	for name, bring := range ways {
		t.Run(name, func(t *testing.T) {
			origin := open(t, kvtest.OrLate(t, memkv.New()))
			in, model, workflow := subjects(t, origin)
			c := openReplica(t, kvtest.OrLate(t, memkv.New()))
			c.pull(t, origin, 99)
			point := &log.Point{Longitude: 1, Latitude: 2}
			newName := "other"
			_, span, err := c.SubmitSpan(t.Context(), partition.Caller{By: "key"}, []log.Body{
				isTrue(in, "c"),
				&log.InputMeta{Input: in, Writes: []log.MetaWrite{{Path: []string{"a"}, JSON: []byte("1")}}},
				&log.InputGeo{Input: in, Geo: point},
				&log.ModelPatch{Model: model, Name: &newName},
				&log.VersionTrain{Model: model, Version: "v2"},
				create("mine"), // seq 6: no conflict
			}, nil)
			if err != nil {
				t.Fatal(err)
			}
			submit(t, c.Replica, &log.WorkflowDelete{Workflow: workflow})
			submit(t, origin, &log.InputDelete{Input: in}, &log.WorkflowDelete{Workflow: workflow}, &log.ModelDelete{Model: model})
			c = bring(t, c, origin)
			want := map[uint64]string{1: "picture", 2: "picture", 3: "picture", 4: "way", 5: "way", 7: "flow"}
			if name == "a snapshot of all" {
				delete(want, 7) // deleted, as intended
			}
			if diff := cmp.Diff(want, conflictIDs(t, c)); diff != "" {
				t.Errorf("conflicts (-want +got):\n%s", diff)
			}
			c = openReplica(t, c.store)
			x, err := c.Conflict(log.Dot{Writer: span.Writer, Seq: 4})
			if err != nil || x.ID != "way" || *x.Op.Body.(*log.ModelPatch).Name != "other" {
				t.Errorf("Conflict = %+v, %v", x, err)
			}
			if err := c.Dismiss(x.Op.Dot); err != nil {
				t.Fatal(err)
			}
			if x, err := c.Conflict(x.Op.Dot); !errors.Is(err, catalog.ErrNotFound) {
				t.Errorf("dismissed: %+v, %v", x, err)
			}
			delete(want, 4)
			if diff := cmp.Diff(want, conflictIDs(t, openReplica(t, c.store))); diff != "" {
				t.Errorf("after one was dismissed (-want +got):\n%s", diff)
			}
			rest := 0
			lo, hi := app.LocalKey("named/"), app.LocalKey("named0")
			if err := c.store.Scan(lo, hi, func(_, _ []byte) bool { rest++; return true }); err != nil || rest > 0 {
				t.Errorf("%d notes of names are left, %v", rest, err)
			}
		})
	}
}

// TestLocalOps: LocalOps yields all operations in the outbox with their positions, confirmed or not.
func TestLocalOps(t *testing.T) {
	origin := open(t, kvtest.OrLate(t, memkv.New()))
	c := openReplica(t, kvtest.OrLate(t, memkv.New()))
	list := func(after uint64) (positions []uint64) {
		err := c.LocalOps(after, func(at uint64, op log.Op) bool {
			if positions = append(positions, at); c.Position(op.Dot) != at {
				t.Errorf("operation %v at %d has the position %d", op.Dot, at, c.Position(op.Dot))
			}
			return true
		})
		if err != nil {
			t.Fatal(err)
		}
		return positions
	}
	if got := list(0); got != nil {
		t.Errorf("before anything: %v", got)
	}
	_, span, err := c.SubmitSpan(t.Context(), partition.Caller{By: "key"}, []log.Body{create("a"), create("b"), create("c")}, nil)
	if want := (partition.Span{Writer: span.Writer, First: 1, Last: 3}); span != want || !c.MadeBy(span.Writer) || err != nil {
		t.Errorf("SubmitSpan = %+v, %v, want %+v", span, err, want)
	}
	if _, span, err = c.SubmitSpan(t.Context(), partition.Caller{By: "key"}, nil, nil); span != (partition.Span{}) || err != nil {
		t.Errorf("SubmitSpan of nothing = %+v, %v", span, err)
	}
	c.push(t, origin, 2)
	r := run(t, origin, c.Cursor(), 99)
	r.Stable = 1
	if _, err := c.Pull(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]uint64{3}, list(2)); diff != "" {
		t.Errorf("behind what is confirmed (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]uint64{1, 2, 3}, list(0)); diff != "" {
		t.Errorf("all (-want +got):\n%s", diff)
	}
	if got := list(3); got != nil {
		t.Errorf("behind the last: %v", got)
	}
	if _, span, err = origin.SubmitSpan(t.Context(), partition.Caller{By: "key"}, []log.Body{create("d")}, nil); err != nil || span != (partition.Span{Writer: span.Writer, First: 1, Last: 1}) || !origin.MadeBy(span.Writer) {
		t.Errorf("SubmitSpan at the origin = %+v, %v", span, err)
	}
}

// TestDisown: a replica lists one pending operation of a writer and all later ones, with their content. It lists no earlier ones, no confirmed
// ones, and none of other writers, and draws another writer.
func TestDisown(t *testing.T) {
	origin := open(t, kvtest.OrLate(t, memkv.New()))
	c := openReplica(t, kvtest.OrLate(t, memkv.New()))
	old := submit(t, c.Replica, create("old"), create("old-2"))[0].Dot.Writer
	c = openReplica(t, c.store)
	w := submit(t, c.Replica, create("confirmed"), create("pending"), create("x"), create("y"))[0].Dot.Writer
	if err := send(c.Replica, origin, c.waiting(t, 0, 3), partition.Offer{}); err != nil {
		t.Fatal(err)
	}
	r := run(t, origin, c.Cursor(), 9)
	r.Stable = 0
	if _, err := c.Pull(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	for _, from := range []uint64{3, 1, 5} {
		if err := c.Disown(log.Dot{Writer: w, Seq: from}); err != nil {
			t.Fatal(err)
		}
		want := []string{"pending", "x", "y"}
		first := uint64(2)
		if from == 3 {
			want, first = want[1:], 3
		}
		checkListed(t, c.Replica, w, first, want...)
		c.check(t, origin)
	}
	if pending := c.waiting(t, 0, 9); len(pending) > 0 {
		t.Errorf("pending %+v", pending)
	}
	next := submit(t, c.Replica, create("x"))[0]
	if next.Code != fold.OK || next.Dot.Seq != 1 || next.Dot.Writer == w || next.Dot.Writer == old {
		t.Errorf("the next operation: %+v", next)
	}
	c = openReplica(t, c.store)
	checkListed(t, c.Replica, w, 2, "pending", "x", "y")
	if err := c.Disown(log.Dot{Writer: next.Dot.Writer, Seq: 2}); err != nil || len(conflictsOf(t, c.Replica)) != 3 || len(c.waiting(t, 0, 9)) != 1 {
		t.Errorf("with no operations from there on: %v, conflicts %+v", err, conflictsOf(t, c.Replica))
	}
}
