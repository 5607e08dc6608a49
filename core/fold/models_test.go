package fold_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/fold"
	"github.com/sightline-dev/sightline/core/log"
)

func (w *world) concepts() (ids []string) {
	w.Helper()
	last := uint64(0)
	err := w.reader().Concepts(func(c catalog.Concept) bool {
		if c.Seq <= last {
			w.Fatalf("concept %q is number %d after %d", c.ID, c.Seq, last)
		}
		last = c.Seq
		ids = append(ids, c.ID)
		return true
	})
	if err != nil {
		w.Fatal(err)
	}
	return ids
}

func (w *world) model(id string) catalog.Model {
	w.Helper()
	m, err := w.reader().Model(id)
	if err != nil {
		w.Fatal(err)
	}
	return m
}

func (w *world) versions(m log.Dot) (ids []string) {
	w.Helper()
	if err := w.reader().Versions(m, func(v catalog.Version) bool {
		ids = append(ids, v.ID)
		return true
	}); err != nil {
		w.Fatal(err)
	}
	return ids
}

// TestConcepts creates concepts by name, by their first label and by their first model. Each concept is created once.
func TestConcepts(t *testing.T) {
	w := newWorld(t)
	concept := w.expect(fold.OK, 1, 10, &log.ConceptCreate{ID: "made", Name: "Made", Language: "de"})
	body := create("a")
	body.Labels = []log.Label{{Concept: "first", Value: log.True}, {Concept: "ai_public", Value: log.True}, {Concept: "second", Value: log.False}}
	a := w.expect(fold.OK, 1, 11, body)
	w.expect(fold.OK, 1, 12, labels(a.Dot, "third", log.True, "not", log.Removed, "first", log.False))
	w.expect(fold.OK, 1, 13, &log.ModelCreate{ID: "m", Concepts: []string{"fourth", "ai_other", "made"}})
	w.expect(fold.OK, 1, 14, &log.ModelPatch{Model: w.model("m").Dot, Add: []string{"fifth"}, Remove: []string{"never"}})
	if v := w.expect(fold.Duplicate, 2, 1, &log.ConceptCreate{ID: "made"}); v.Dot != concept.Dot {
		t.Errorf("duplicate of %v", v.Dot)
	}
	if got, want := w.concepts(), []string{"made", "first", "second", "third", "fourth", "fifth"}; !slices.Equal(got, want) {
		t.Errorf("concepts %v, want %v", got, want)
	}
	c, err := w.reader().Concept("first")
	want := catalog.Concept{Dot: a.Dot, Seq: 2, ID: "first", Name: "first", NameAt: log.Stamp{At: 11, Writer: 1}, Created: 11, Updated: 11}
	if diff := cmp.Diff(want, c); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	w.expect(fold.OK, 2, 20, &log.ConceptName{ID: "first", Name: "First"})
	w.expect(fold.Superseded, 1, 19, &log.ConceptName{ID: "first", Name: "Later"})
	w.expect(fold.Gone, 1, 19, &log.ConceptName{ID: "nothing"})
	if c, _ := w.reader().Concept("first"); c.Name != "First" || c.Updated != 20 {
		t.Errorf("renamed %+v", c)
	}
	if v := w.expect(fold.OK, 1, 21, &log.ConceptCreate{}); len(v.ID) != 32 {
		t.Errorf("a generated id %q", v.ID)
	}
	if h, err := w.reader().Header(); h.Concepts != 7 || err != nil {
		t.Errorf("%d concepts are counted, %v, want 7", h.Concepts, err)
	}
}

// TestConceptDelete deletes a concept that nothing uses. A label or a model of another site creates it again, whichever comes first in the
// log. Before the rules are in force, the operation has no effect.
func TestConceptDelete(t *testing.T) {
	uses := map[string]func(w *world, in, m log.Dot) log.Body{
		"present": func(_ *world, in, _ log.Dot) log.Body { return labels(in, "bird", log.True) },
		"absent":  func(_ *world, in, _ log.Dot) log.Body { return labels(in, "bird", log.False) },
		"a new input": func(*world, log.Dot, log.Dot) log.Body {
			return &log.InputCreate{ID: "b", Blob: blob.Sum([]byte("b")), Labels: []log.Label{{Concept: "bird", Value: log.True}}}
		},
		"an edit": func(_ *world, in, _ log.Dot) log.Body {
			return &log.OutputsPatch{Input: in, Edits: []log.OutputEdit{{Concept: "bird", Value: 1}}}
		},
		"a new model": func(*world, log.Dot, log.Dot) log.Body { return &log.ModelCreate{ID: "n", Concepts: []string{"bird"}} },
		"a model":     func(_ *world, _, m log.Dot) log.Body { return &log.ModelPatch{Model: m, Add: []string{"bird"}} },
	}
	for name, use := range uses {
		for _, first := range []string{"deletion", "use"} {
			w := newWorld(t)
			w.expect(fold.OK, 1, 1, &log.ConceptCreate{ID: "bird", Name: "Bird"})
			in := w.expect(fold.OK, 1, 2, create("a")).Dot
			m := w.expect(fold.OK, 1, 3, &log.ModelCreate{ID: "m", Version: "v", Concepts: []string{"cat"}}).Dot
			w.expect(fold.Refused, 1, 4, &log.ConceptDelete{ID: "bird"})
			w.expect(fold.OK, 1, 5, &log.Rules{Version: 2})
			w.expect(fold.Gone, 1, 6, &log.ConceptDelete{ID: "fish"})
			if first == "use" {
				w.expect(fold.OK, 2, 8, use(w, in, m))
				w.expect(fold.Superseded, 1, 7, &log.ConceptDelete{ID: "bird"})
			} else {
				w.expect(fold.OK, 1, 7, &log.ConceptDelete{ID: "bird"})
				w.expect(fold.Gone, 1, 7, &log.ConceptName{ID: "bird", Name: "Vogel"})
				if got := w.concepts(); !slices.Equal(got, []string{"cat"}) {
					t.Errorf("%s: concepts %v after the deletion", name, got)
				}
				w.expect(fold.OK, 2, 6, use(w, in, m))
			}
			if _, err := w.reader().Concept("bird"); err != nil {
				t.Errorf("%s, first the %s: %v", name, first, err)
			}
			w.expect(fold.Superseded, 1, 9, &log.ConceptDelete{ID: "bird"})
			w.check()
		}
	}
}

// TestUnusedConceptIsDeleted deletes a concept after each of its uses has ended, and not after a later name.
func TestUnusedConceptIsDeleted(t *testing.T) {
	w := newWorld(t)
	w.expect(fold.OK, 1, 1, &log.Rules{Version: 2})
	at := log.HLC(1)
	next := func() log.HLC { at++; return at }
	ends := func(name string, use, end log.Body) {
		t.Helper()
		w.expect(fold.OK, 1, next(), use)
		w.expect(fold.Superseded, 1, next(), &log.ConceptDelete{ID: "bird"})
		w.expect(fold.OK, 1, next(), end)
		w.expect(fold.OK, 1, next(), &log.ConceptDelete{ID: "bird"})
		if _, err := w.reader().Concept("bird"); !errors.Is(err, catalog.ErrNotFound) {
			t.Errorf("%s: %v", name, err)
		}
	}
	in := w.expect(fold.OK, 1, next(), create("a")).Dot
	edit := func(removed bool) log.Body {
		return &log.OutputsPatch{Input: in, Edits: []log.OutputEdit{{Concept: "bird", Value: 1, Removed: removed}}}
	}
	ends("label", labels(in, "bird", log.False), labels(in, "bird", log.Removed))
	ends("edit", edit(false), edit(true))
	m := w.expect(fold.OK, 1, next(), &log.ModelCreate{ID: "m", Version: "v", Concepts: []string{"cat"}}).Dot
	ends("member", &log.ModelPatch{Model: m, Add: []string{"bird"}}, &log.ModelPatch{Model: m, Remove: []string{"bird"}})
	w.expect(fold.OK, 1, next(), &log.ModelPatch{Model: m, Add: []string{"bird"}, Version: "w"})
	ends("version", &log.ModelPatch{Model: m, Remove: []string{"bird"}}, &log.VersionDelete{Model: m, Version: "w"})
	ends("input", labels(in, "bird", log.True), &log.InputDelete{Input: in})
	ends("all inputs", &log.InputCreate{ID: "b", Blob: blob.Sum([]byte("b")), Labels: []log.Label{{Concept: "bird", Value: log.True}}}, &log.InputDeleteAll{})
	ends("all models", &log.ModelCreate{ID: "n", Concepts: []string{"bird"}}, &log.ModelDeleteAll{})
	w.expect(fold.OK, 2, 100, &log.ConceptCreate{ID: "bird", Name: "Bird"})
	w.expect(fold.Superseded, 1, 99, &log.ConceptDelete{ID: "bird"})
	w.expect(fold.OK, 1, 101, &log.ConceptDelete{ID: "bird"})
	w.check()
}

func TestModels(t *testing.T) {
	w := newWorld(t)
	closed := log.Setting{Name: "closed_environment", JSON: []byte("true")}
	v := w.expect(fold.OK, 1, 10, &log.ModelCreate{
		ID: "m", Name: "M", Version: "v1", Concepts: []string{"b", "a", "b"}, Config: []log.Setting{closed},
	})
	at := log.Stamp{At: 10, Writer: 1}
	want := catalog.Model{
		Dot: v.Dot, Seq: 1, ID: "m", Name: "M", NameAt: at, Created: 10, Newest: "v1",
		Config:   []catalog.Setting{{Setting: closed, At: at}},
		Concepts: []catalog.Member{{Concept: "b", In: true, At: at}, {Concept: "a", In: true, At: at}},
	}
	if diff := cmp.Diff(want, w.model("m")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	first, err := w.reader().Version(v.Dot, "v1")
	wantVersion := catalog.Version{
		Model: v.Dot, Seq: 1, ID: "v1", Created: 10, Code: catalog.VersionUntrained,
		Concepts: []string{"b", "a"}, Config: want.Config,
	}
	if diff := cmp.Diff(wantVersion, first); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	w.expect(fold.Duplicate, 2, 1, &log.ModelCreate{ID: "m"})
	if m, err := w.reader().ModelByDot(v.Dot); err != nil || m.ID != "m" {
		t.Errorf("by its dot the model is %q, %v", m.ID, err)
	}
	anonymous := w.expect(fold.OK, 1, 11, &log.ModelCreate{})
	if m := w.model(anonymous.ID); m.Name != m.ID || len(m.Newest) != 32 {
		t.Errorf("a model without anything is %+v", m)
	}
}

func TestModelPatch(t *testing.T) {
	w := newWorld(t)
	m := w.expect(fold.OK, 1, 10, &log.ModelCreate{ID: "m", Version: "v1", Concepts: []string{"a", "b"}}).Dot
	name := func(s string) *string { return &s }
	set := func(value string) []log.Setting { return []log.Setting{{Name: "s", JSON: []byte(value)}} }
	steps := []struct {
		at   log.HLC
		code fold.Code
		body *log.ModelPatch
	}{
		{20, fold.OK, &log.ModelPatch{Model: m, Name: name("N"), Version: "unused"}},
		{19, fold.Superseded, &log.ModelPatch{Model: m, Name: name("old")}},
		{20, fold.OK, &log.ModelPatch{Model: m, Config: set("1")}},
		{19, fold.Superseded, &log.ModelPatch{Model: m, Config: set("2")}},
		{21, fold.OK, &log.ModelPatch{Model: m, Config: []log.Setting{{Name: "s"}, {Name: "r", JSON: []byte("0")}}}},
		{20, fold.OK, &log.ModelPatch{Model: m, Add: []string{"c"}, Remove: []string{"a"}, Version: "v2"}},
		{19, fold.Superseded, &log.ModelPatch{Model: m, Add: []string{"a"}, Version: "v3"}},
		{21, fold.OK, &log.ModelPatch{Model: m, Add: []string{"d"}}},
		{22, fold.Duplicate, &log.ModelPatch{Model: m, Add: []string{"e"}, Version: "v2"}},
		{23, fold.OK, &log.ModelPatch{Model: m, Add: []string{"a"}, Version: "v4"}},
		{24, fold.Superseded, &log.ModelPatch{Model: m}},
		{24, fold.Gone, &log.ModelPatch{Model: log.Dot{Writer: 5, Seq: 5}, Name: name("x")}},
	}
	for i, s := range steps {
		if v := w.do(1, s.at, s.body); v.Code != s.code {
			t.Errorf("step %d: %v, want %v", i, v.Code, s.code)
		}
	}
	got := w.model("m")
	if got.Name != "N" || got.Newest != "v4" || !slices.Equal(w.versions(m), []string{"v4", "v2", "v1"}) {
		t.Errorf("model %q, newest %q of %v", got.Name, got.Newest, w.versions(m))
	}
	for id, want := range map[string][]string{"v1": {"a", "b"}, "v2": {"b", "c"}, "v4": {"a", "b", "c", "d"}} {
		if v, err := w.reader().Version(m, id); err != nil || !slices.Equal(v.Concepts, want) {
			t.Errorf("version %s of %v, %v, want %v", id, v.Concepts, err, want)
		}
	}
	if v, _ := w.reader().Version(m, "v4"); len(v.Config) != 1 || v.Config[0].Name != "r" {
		t.Errorf("settings of the last version: %+v", v.Config)
	}
}

// TestTraining takes versions through their states. A result must have the lease of its version.
func TestTraining(t *testing.T) {
	w := newWorld(t)
	m := w.expect(fold.OK, 1, 10, &log.ModelCreate{ID: "m", Version: "v1", Concepts: []string{"a"}}).Dot
	if _, err := w.reader().CurrentVersion(m); !errors.Is(err, catalog.ErrNotFound) {
		t.Errorf("an untrained model predicts: %v", err)
	}
	w.expect(fold.OK, 1, 11, &log.VersionTrain{Model: m, Version: "v2"})
	w.expect(fold.OK, 1, 12, &log.VersionTrain{Model: m, Version: "v3"})
	w.expect(fold.Duplicate, 1, 13, &log.VersionTrain{Model: m, Version: "v1"})
	var leases []uint64
	pending := func() (ids []string) {
		leases = nil
		if err := w.reader().PendingVersions(func(v catalog.Version) bool {
			ids, leases = append(ids, v.ID), append(leases, v.Seq)
			return true
		}); err != nil {
			t.Fatal(err)
		}
		return ids
	}
	if got := pending(); !slices.Equal(got, []string{"v2", "v3"}) || w.model("m").Newest != "v3" {
		t.Fatalf("to train: %v; newest %q", got, w.model("m").Newest)
	}
	manifest := catalog.Manifest{Version: "v3", Head: []byte{1, 2}}
	result := func(version string, lease uint64, code int) *log.VersionResult {
		b := &log.VersionResult{Model: m, Version: version, Lease: lease, Code: code, Detail: "d"}
		if code == catalog.VersionTrained {
			b.Manifest = blob.Sum(manifest.Marshal())
		}
		return b
	}
	l2, l3 := leases[0], leases[1]
	w.expect(fold.Gone, 1, 20, result("v3", l2, catalog.VersionTrained)) // the lease of another version
	w.expect(fold.Gone, 1, 20, result("v1", l2, catalog.VersionTrained))
	w.expect(fold.OK, 1, 20, result("v3", l3, catalog.VersionTrained))
	w.expect(fold.Superseded, 1, 21, result("v3", l3, 21110))
	w.expect(fold.OK, 1, 21, result("v2", l2, 21111))
	w.expect(fold.Superseded, 1, 22, result("v1", 1, 21111)) // no training of v1 was requested
	w.expect(fold.Gone, 1, 22, result("v9", l2, 21111))
	if got := pending(); len(got) != 0 {
		t.Errorf("still to train: %v", got)
	}
	v, err := w.reader().CurrentVersion(m)
	if err != nil || v.ID != "v3" || v.Manifest != blob.Sum(manifest.Marshal()) {
		t.Errorf("current version %+v, %v", v, err)
	}
	if v, _ := w.reader().Version(m, "v2"); v.Code != 21111 || v.Detail != "d" {
		t.Errorf("failed version %+v", v)
	}
	w.expect(fold.OK, 1, 30, &log.VersionTrain{Model: m, Version: "v4"})
	if v, err := w.reader().CurrentVersion(m); err != nil || v.ID != "v3" {
		t.Errorf("while another trains, %q predicts, %v", v.ID, err)
	}
	w.expect(fold.OK, 1, 31, &log.VersionDelete{Model: m, Version: "v4"})
	w.expect(fold.Gone, 1, 32, &log.VersionDelete{Model: m, Version: "v4"})
	if got := pending(); len(got) != 0 || w.model("m").Newest != "v3" {
		t.Errorf("after deleting the newest: to train %v, newest %q", got, w.model("m").Newest)
	}
	for _, id := range []string{"v3", "v2", "v1"} {
		w.expect(fold.OK, 1, 33, &log.VersionDelete{Model: m, Version: id})
	}
	if got := w.model("m"); got.Newest != "" || len(w.versions(m)) != 0 {
		t.Errorf("a model without versions: newest %q", got.Newest)
	}
	w.expect(fold.Gone, 1, 34, &log.VersionTrain{Model: log.Dot{Writer: 9, Seq: 1}})
	if v := w.expect(fold.OK, 1, 35, &log.VersionTrain{Model: m}); len(v.ID) != 32 {
		t.Errorf("a generated version id %q", v.ID)
	}
}

func TestDeleteModels(t *testing.T) {
	w := newWorld(t)
	var dots []log.Dot
	for _, id := range []string{"a", "b", "c"} {
		dots = append(dots, w.expect(fold.OK, 1, 10, &log.ModelCreate{ID: id, Version: "v1"}).Dot)
		w.expect(fold.OK, 1, 11, &log.VersionTrain{Model: dots[len(dots)-1], Version: "v2"})
	}
	w.expect(fold.OK, 1, 20, &log.ModelDelete{Model: dots[1]})
	w.expect(fold.Gone, 1, 21, &log.ModelDelete{Model: dots[1]})
	w.expect(fold.Gone, 1, 21, &log.VersionTrain{Model: dots[1]})
	w.expect(fold.Gone, 1, 21, &log.VersionResult{Model: dots[1], Version: "v2", Lease: 4, Code: 21110})
	count := func() (models, pending int) {
		r := w.reader()
		if err := errors.Join(
			r.Models(func(catalog.Model) bool { models++; return true }),
			r.PendingVersions(func(catalog.Version) bool { pending++; return true }),
		); err != nil {
			t.Fatal(err)
		}
		return models, pending
	}
	if m, p := count(); m != 2 || p != 2 {
		t.Errorf("%d models and %d trainings, want 2 and 2", m, p)
	}
	w.expect(fold.OK, 1, 22, &log.ModelDeleteAll{})
	if m, p := count(); m != 0 || p != 0 {
		t.Errorf("%d models and %d trainings, want none", m, p)
	}
	w.expect(fold.OK, 1, 23, &log.ModelCreate{ID: "a"})
	w.expect(fold.Gone, 1, 24, &log.ModelPatch{Model: dots[0]})
}

func TestWorkflowsAndFeedback(t *testing.T) {
	w := newWorld(t)
	nodes := []log.WorkflowNode{{ID: "n", Model: "general", Version: "v"}, {ID: "o", Model: "food"}}
	v := w.expect(fold.OK, 1, 10, &log.WorkflowCreate{ID: "w", Nodes: nodes})
	w.expect(fold.Duplicate, 1, 11, &log.WorkflowCreate{ID: "w"})
	got, err := w.reader().Workflow("w")
	if diff := cmp.Diff(catalog.Workflow{Dot: v.Dot, Seq: 1, ID: "w", Created: 10, Nodes: nodes}, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	n := 0
	if err := w.reader().Workflows(func(catalog.Workflow) bool { n++; return true }); err != nil || n != 1 {
		t.Errorf("%d workflows, %v", n, err)
	}
	w.expect(fold.OK, 1, 12, &log.WorkflowDelete{Workflow: v.Dot})
	w.expect(fold.Gone, 1, 13, &log.WorkflowDelete{Workflow: v.Dot})
	if _, err := w.reader().Workflow("w"); !errors.Is(err, catalog.ErrNotFound) {
		t.Errorf("deleted workflow: %v", err)
	}
	for _, json := range []string{`{"a":1}`, `[]`} {
		w.expect(fold.OK, 1, 14, &log.Feedback{Model: "m", Version: "v", JSON: []byte(json)})
	}
	var feedback []string
	err = w.reader().Feedback(func(f catalog.Feedback) bool {
		feedback = append(feedback, string(f.JSON))
		return f.By == "key" && f.Model == "m"
	})
	if err != nil || !slices.Equal(feedback, []string{`{"a":1}`, `[]`}) {
		t.Errorf("feedback %v, %v", feedback, err)
	}
}

func TestControl(t *testing.T) {
	w := newWorld(t)
	w.app = catalog.Control
	id := app.String()
	v := w.expect(fold.OK, 1, 10, &log.AppCreate{ID: id, Name: "n", Language: "en", DefaultModel: "general"})
	w.expect(fold.Duplicate, 1, 11, &log.AppCreate{ID: id})
	got, err := w.reader().App(id)
	want := catalog.App{Dot: v.Dot, ID: id, Seq: 1, Name: "n", Language: "en", DefaultModel: "general", Created: 10}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	key := &log.KeyCreate{Hash: [32]byte{1}, App: id, Scopes: []string{"All"}, Description: "d"}
	w.expect(fold.Gone, 1, 12, &log.KeyCreate{Hash: [32]byte{1}, App: "other"})
	w.expect(fold.OK, 1, 13, key)
	w.expect(fold.Duplicate, 1, 14, key)
	k, err := w.reader().Key(key.Hash)
	if diff := cmp.Diff(catalog.Key{Hash: key.Hash, App: id, Scopes: key.Scopes, Description: "d", By: "key", Created: 13}, k); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	apps, keys := 0, 0
	if err := errors.Join(
		w.reader().Apps(func(catalog.App) bool { apps++; return true }),
		w.reader().Keys(func(catalog.Key) bool { keys++; return true }),
	); err != nil || apps != 1 || keys != 1 {
		t.Errorf("%d applications and %d keys, %v", apps, keys, err)
	}
	w.expect(fold.OK, 1, 15, &log.KeyDelete{Hash: key.Hash})
	w.expect(fold.Gone, 1, 16, &log.KeyDelete{Hash: key.Hash})
	if _, err := w.reader().Key(key.Hash); !errors.Is(err, catalog.ErrNotFound) {
		t.Errorf("deleted key: %v", err)
	}
}

// TestNetworkSwitch changes the base model and the current versions of all models in one entry.
func TestNetworkSwitch(t *testing.T) {
	w := newWorld(t)
	old, next := [32]byte{1}, [32]byte{2}
	w.expect(fold.OK, 1, 1, &log.NetworkSwitch{Base: old})
	w.expect(fold.Superseded, 1, 2, &log.NetworkSwitch{Base: old})
	w.expect(fold.Refused, 1, 3, &log.NetworkSwitch{})
	var dots []log.Dot
	for i, id := range []string{"trained", "patched", "again", "untrained", "deleted"} {
		m := w.expect(fold.OK, 1, log.HLC(10+i), &log.ModelCreate{ID: id, Version: "v0", Concepts: []string{"a"}}).Dot
		dots = append(dots, m)
		if id == "untrained" {
			continue
		}
		w.expect(fold.OK, 1, log.HLC(10+i), &log.VersionTrain{Model: m, Version: "v1"})
		w.expect(fold.OK, 1, log.HLC(10+i), &log.VersionResult{Model: m, Version: "v1", Lease: uint64(len(w.entries)), Code: 21100, Manifest: blob.Sum([]byte("old"))})
	}
	w.expect(fold.OK, 1, 20, &log.ModelPatch{Model: dots[1], Add: []string{"b"}, Version: "v2"})
	w.expect(fold.OK, 1, 21, &log.VersionTrain{Model: dots[2], Version: "v2"})
	w.expect(fold.OK, 1, 21, &log.VersionResult{Model: dots[2], Version: "v2", Lease: uint64(len(w.entries)), Code: 21100, Manifest: blob.Sum([]byte("newer"))})
	w.expect(fold.OK, 1, 22, &log.ModelDelete{Model: dots[4]})

	sum := blob.Sum([]byte("new"))
	b := &log.NetworkSwitch{Base: next}
	for _, m := range dots {
		b.Versions = append(b.Versions, log.RetrainedVersion{Model: m, From: "v1", Version: "r", Manifest: sum})
	}
	b.Versions = append(b.Versions, log.RetrainedVersion{Model: dots[0], From: "r", Version: "s", Manifest: sum})
	w.expect(fold.OK, 1, 30, b)
	if h, err := w.reader().Header(); err != nil || h.Base != next {
		t.Errorf("Base = %x, %v, want %x", h.Base, err, next)
	}
	for i, want := range [][]string{{"r", "v1", "v0"}, {"r", "v2", "v1", "v0"}, {"v2", "v1", "v0"}, {"v0"}} {
		if diff := cmp.Diff(want, w.versions(dots[i])); diff != "" {
			t.Errorf("model %d: versions, -want +got:\n%s", i, diff)
		}
	}
	for id, want := range map[string][2]string{"trained": {"r", "r"}, "patched": {"v2", "r"}, "again": {"v2", "v2"}} {
		m := w.model(id)
		current, err := w.reader().CurrentVersion(m.Dot)
		if err != nil || m.Newest != want[0] || current.ID != want[1] {
			t.Errorf("%s: newest %s, current %s, %v, want %v", id, m.Newest, current.ID, err, want)
		}
		if current.ID == "r" && (current.Manifest != sum || !slices.Equal(current.Concepts, []string{"a"})) {
			t.Errorf("%s: renewed version %+v", id, current)
		}
	}
	w.check()
}

// TestDetailOfRetrainedVersion: a version that was trained again has the detail of its result, by the rules that have it.
func TestDetailOfRetrainedVersion(t *testing.T) {
	for _, rules := range []uint32{1, 2} {
		w := newWorld(t)
		w.expect(fold.OK, 1, 1, &log.Rules{Version: rules})
		m := w.expect(fold.OK, 1, 2, &log.ModelCreate{ID: "m", Version: "v0"}).Dot
		train := w.entry(1, 3, &log.VersionTrain{Model: m, Version: "v1"})
		w.fold(1)
		w.expect(fold.OK, 1, 4, &log.VersionResult{Model: m, Version: "v1", Train: train, Code: 21100, Manifest: blob.Sum([]byte("old"))})
		w.expect(fold.OK, 1, 5, &log.NetworkSwitch{Base: [32]byte{2}, Versions: []log.RetrainedVersion{
			{Model: m, From: "v1", Version: "v2", Manifest: blob.Sum([]byte("new")), Detail: "nothing"},
		}})
		v, err := w.reader().CurrentVersion(m)
		if want := map[uint32]string{2: "nothing"}[rules]; err != nil || v.ID != "v2" || v.Detail != want {
			t.Errorf("rules %d: version %s with the detail %q, %v, want %q", rules, v.ID, v.Detail, err, want)
		}
	}
}

// TestTrainingResultNamesOperation: a result may name the operation that requested its version, if its site does not know that operation's
// position in the log. A wrong operation does not complete the version.
func TestTrainingResultNamesOperation(t *testing.T) {
	w := newWorld(t)
	m := w.expect(fold.OK, 1, 10, &log.ModelCreate{ID: "m", Version: "v1", Concepts: []string{"a"}}).Dot
	first := w.entry(2, 11, &log.VersionTrain{Model: m, Version: "v2"})
	w.fold(1)
	w.expect(fold.OK, 1, 12, &log.VersionDelete{Model: m, Version: "v2"})
	second := w.entry(1, 13, &log.VersionTrain{Model: m, Version: "v2"})
	w.fold(1)
	result := func(train log.Dot) *log.VersionResult {
		return &log.VersionResult{Model: m, Version: "v2", Train: train, Lease: 4, Code: 21110}
	}
	w.expect(fold.Gone, 2, 14, result(first))
	w.expect(fold.Gone, 2, 14, &log.VersionResult{Model: m, Version: "v2", Lease: 2, Code: 21110})
	w.expect(fold.OK, 1, 15, result(second))
	w.expect(fold.Superseded, 1, 16, result(second))
	w.expect(fold.Superseded, 2, 17, result(first))
}
