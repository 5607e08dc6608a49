package fold_test

import (
	_ "embed"
	"encoding/hex"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/fold"
	"github.com/sightline-dev/sightline/core/fold/foldtest"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/kv/memkv"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/testkit"
)

// TestAgainstOracle folds random programs and compares every verdict and every state with a naive model. Among other rules this checks that
// nothing deleted comes back.
func TestAgainstOracle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		againstOracle(t, programOf(rapidChooser{t}, rapid.IntRange(1, 60).Draw(t, "operations"), rapid.Uint32Range(fold.FirstVersion, fold.Version).Draw(t, "rules")))
	})
}

// TestLongPrograms is TestAgainstOracle with longer programs.
func TestLongPrograms(t *testing.T) {
	for seed := range testkit.Seeds(t, 100, 5000) {
		againstOracle(t, programOf(rand.New(rand.NewPCG(seed, 1)), 300, fold.FirstVersion+uint32(seed%fold.Version)))
	}
}

func againstOracle(t tb, ops []log.Op) {
	w, m := newWorld(t), foldtest.NewModel(app)
	for _, op := range ops {
		w.raw(op)
		v := w.fold(1)[0]
		if want := m.Fold(&op); want != 0 && v.Code != want {
			t.Fatalf("verdict on %v %T at %d: %v %q, want %v", op.Dot, op.Body, op.At, v.Code, v.Detail, want)
		}
		if err := m.Compare(w.reader()); err != nil {
			t.Fatalf("after %v %T: %v", op.Dot, op.Body, err)
		}
	}
	w.check()
}

// TestLengthOfRunsChangesNothing folds one log entry by entry, in runs of random lengths, and starting at a copy of the state. The digests
// are equal.
func TestLengthOfRunsChangesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ops := programOf(rapidChooser{t}, rapid.IntRange(1, 60).Draw(t, "operations"), rapid.Uint32Range(fold.FirstVersion, fold.Version).Draw(t, "rules"))
		single := newWorld(t)
		for _, op := range ops {
			single.raw(op)
		}
		single.fold(1)
		want := single.digest()

		runs := newWorld(t)
		runs.entries = single.entries
		runs.fold(rapid.IntRange(2, 60).Draw(t, "run"))
		if runs.digest() != want {
			t.Fatal("another length of runs gave another state")
		}

		cut := rapid.IntRange(0, len(ops)).Draw(t, "cut")
		first := newWorld(t)
		first.entries = single.entries[:cut]
		first.fold(7)
		tail := newWorld(t)
		tail.store = copyState(t, first)
		tail.entries, tail.folded = single.entries, cut
		tail.fold(5)
		if tail.digest() != want {
			t.Fatalf("a snapshot at %d and the tail gave another state", cut)
		}
	})
}

// copyState returns a store with only the keys that the digest covers.
func copyState(t tb, w *world) kv.Store {
	store := memkv.New()
	var b kv.Batch
	lo, _ := w.app.Range()
	err := w.reader().StateTables(func(key, value []byte) bool {
		b.Put(append(slices.Clone(lo), key...), value)
		return true
	})
	if err == nil {
		err = store.Apply(&b)
	}
	if err != nil {
		t.Fatal(err)
	}
	return store
}

// TestIdempotence repeats operations later in the log. The repetitions have no effect.
func TestIdempotence(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ops := programOf(rapidChooser{t}, rapid.IntRange(1, 40).Draw(t, "operations"), rapid.Uint32Range(fold.FirstVersion, fold.Version).Draw(t, "rules"))
		once, twice := newWorld(t), newWorld(t)
		for i, op := range ops {
			once.raw(op)
			twice.raw(op)
			for range rapid.IntRange(0, 2).Draw(t, "again") {
				twice.raw(ops[rapid.IntRange(0, i).Draw(t, "which")])
			}
		}
		once.fold(10)
		twice.fold(10)
		if diff := cmp.Diff(registers(t, once), registers(t, twice)); diff != "" {
			t.Fatalf("operations that came again did something (-once +again):\n%s", diff)
		}
	})
}

// TestRegistersIgnoreArrivalOrder interleaves the writes of three sites in two ways that keep each site's order. Every LWW register ends
// with the same value.
func TestRegistersIgnoreArrivalOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := newProgrammer(rapidChooser{t})
		var before []log.Op
		for range 4 {
			before = append(before, p.opOf(1, p.create()))
		}
		before = append(before, p.opOf(1, &log.ModelCreate{ID: "m", Concepts: []string{"x", "y"}}))
		for _, id := range []string{"x", "y", "z"} {
			before = append(before, p.opOf(1, &log.ConceptCreate{ID: id}))
		}
		writes := map[log.Writer][]log.Op{}
		for range rapid.IntRange(1, 30).Draw(t, "writes") {
			op := p.op(p.register())
			writes[op.Dot.Writer] = append(writes[op.Dot.Writer], op)
		}
		a, b := newWorld(t), newWorld(t)
		for _, w := range []*world{a, b} {
			for _, op := range append(slices.Clone(before), interleave(t, writes)...) {
				w.raw(op)
			}
			w.fold(9)
			w.check()
		}
		if diff := cmp.Diff(registers(t, a), registers(t, b)); diff != "" {
			t.Fatalf("in another order (-one +other):\n%s", diff)
		}
	})
}

// register returns a random write whose result must not depend on the order.
func (p *programmer) register() log.Body {
	switch p.IntN(8) {
	case 0, 1, 2:
		return &log.InputLabels{Input: p.dot(), Labels: p.labels()}
	case 3:
		b := p.meta()
		for i := range b.Writes {
			if b.Writes[i].Action == log.MetaAppend {
				b.Writes[i].Action = log.MetaSet
			}
		}
		return b
	case 4:
		return &log.InputGeo{Input: p.dot(), Geo: p.geo()}
	case 5:
		return &log.OutputsPatch{Input: p.dot(), Edits: []log.OutputEdit{{Concept: p.concept(), Value: 0.5, Removed: p.IntN(2) == 0}}}
	case 6:
		return &log.ConceptName{ID: p.pick("x", "y", "z"), Name: p.pick("X", "Y")}
	}
	name := p.pick("N", "O")
	return &log.ModelPatch{
		Model: log.Dot{Writer: 1, Seq: 5}, Name: &name, Add: []string{p.concept()}, Remove: []string{p.concept()},
		Config: []log.Setting{{Name: p.pick("s", "t"), JSON: []byte(p.pick("1", "2"))}},
	}
}

// interleave merges the sites' operations at random. Each site's operations keep their order.
func interleave(t *rapid.T, writes map[log.Writer][]log.Op) (out []log.Op) {
	rest := [][]log.Op{writes[1], writes[2], writes[3]}
	for {
		rest = slices.DeleteFunc(slices.Clone(rest), func(ops []log.Op) bool { return len(ops) == 0 })
		if len(rest) == 0 {
			return out
		}
		i := rapid.IntRange(0, len(rest)-1).Draw(t, "site")
		out = append(out, rest[i][0])
		rest[i] = rest[i][1:]
	}
}

// registers returns the part of the state that must not depend on the order: every LWW register and its stamp.
func registers(t tb, w *world) map[string]any {
	out := map[string]any{}
	r := w.reader()
	err := r.Inputs(0, func(in catalog.Input) bool {
		for i := range in.Meta {
			in.Meta[i].Path = append([]string{}, in.Meta[i].Path...)
		}
		out[fmt.Sprint("input ", in.Ord)] = in
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
	err = r.Models(func(m catalog.Model) bool {
		slices.SortFunc(m.Concepts, func(a, b catalog.Member) int { return strings.Compare(a.Concept, b.Concept) })
		m.Seq = 0
		out["model "+m.ID] = m
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
	err = r.Concepts(func(c catalog.Concept) bool {
		out["concept "+c.ID] = c
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestContentDigest: the digest ignores authors, sites, positions and times, and nothing else.
func TestContentDigest(t *testing.T) {
	build := func(app catalog.AppID, site log.Writer, from log.HLC, edit func(w *world, a log.Dot)) [32]byte {
		w := newWorld(t)
		w.app = app
		body := create("a")
		body.Meta, body.Labels = []byte(`{"k":1}`), []log.Label{{Concept: "x", Value: log.True}}
		a := w.expect(fold.OK, site, from, body).Dot
		w.expect(fold.OK, site, from+1, create("b"))
		w.expect(fold.OK, site, from+2, &log.ModelCreate{ID: "m", Concepts: []string{"x"}, Config: []log.Setting{{Name: "s", JSON: []byte("1")}}})
		w.expect(fold.OK, site, from+3, &log.WorkflowCreate{ID: "w"})
		edit(w, a)
		d, err := foldtest.ContentDigest(w.store, app)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	nothing := func(*world, log.Dot) {}
	want := build(app, 1, 10, nothing)
	if build(catalog.AppID{9}, 7, 99, nothing) != want {
		t.Error("the content digest depends on application, site or clock")
	}
	roundabout := build(app, 1, 10, func(w *world, a log.Dot) {
		w.expect(fold.OK, 2, 50, labels(a, "y", log.True, "x", log.False))
		w.expect(fold.OK, 2, 51, labels(a, "y", log.Removed, "x", log.True))
		w.expect(fold.OK, 2, 52, &log.ConceptName{ID: "y", Name: "y"})
	})
	plain := build(app, 1, 10, func(w *world, _ log.Dot) { w.expect(fold.OK, 1, 50, &log.ConceptCreate{ID: "y"}) })
	if roundabout != plain {
		t.Error("the content digest shows what was undone")
	}
	seen := map[[32]byte]bool{want: true}
	for i, edit := range []func(w *world, a log.Dot){
		func(w *world, a log.Dot) { w.expect(fold.OK, 1, 50, labels(a, "x", log.False)) },
		func(w *world, a log.Dot) { w.expect(fold.OK, 1, 50, &log.InputGeo{Input: a, Geo: &log.Point{}}) },
		func(w *world, a log.Dot) { w.expect(fold.OK, 1, 50, &log.InputDelete{Input: a}) },
		func(w *world, a log.Dot) {
			w.expect(fold.OK, 1, 50, &log.InputMeta{Input: a, Writes: []log.MetaWrite{{JSON: []byte(`{"k":2}`)}}})
		},
		func(w *world, a log.Dot) {
			w.expect(fold.OK, 1, 50, &log.OutputsPatch{Input: a, Edits: []log.OutputEdit{{Concept: "ai_1", Value: 1}}})
		},
		func(w *world, _ log.Dot) { w.expect(fold.OK, 1, 50, create("c")) },
		func(w *world, _ log.Dot) { w.expect(fold.OK, 1, 50, &log.ConceptName{ID: "x", Name: "X"}) },
		func(w *world, _ log.Dot) { w.expect(fold.OK, 1, 50, &log.ModelDeleteAll{}) },
		func(w *world, _ log.Dot) {
			w.expect(fold.OK, 1, 50, &log.ModelPatch{Model: w.model("m").Dot, Remove: []string{"x"}})
		},
		func(w *world, _ log.Dot) { w.expect(fold.OK, 1, 50, &log.WorkflowCreate{ID: "v"}) },
	} {
		d := build(app, 1, 10, edit)
		if seen[d] {
			t.Errorf("edit %d does not show in the content digest", i)
		}
		seen[d] = true
	}
}

//go:embed testdata/golden.txt
var golden string

var update = flag.Bool("update", false, "rewrite testdata from what is folded now")

// TestGolden folds one fixed program. The digests must be equal on every host: natively, on arm64, as wasip1 and without assembly.
func TestGolden(t *testing.T) {
	w := newWorld(t)
	for _, op := range program(rand.New(rand.NewPCG(20261121, 4)), 2000) {
		w.raw(op)
	}
	w.fold(64)
	w.check()
	content, err := foldtest.ContentDigest(w.store, w.app)
	if err != nil {
		t.Fatal(err)
	}
	state := w.digest()
	got := fmt.Sprintf("state   %s\ncontent %s\n", hex.EncodeToString(state[:]), hex.EncodeToString(content[:]))
	if *update {
		if err := os.WriteFile("testdata/golden.txt", []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if got != golden {
		t.Errorf("digests\n%swant\n%s(go test ./core/fold -run Golden -update writes them)", got, golden)
	}
}
