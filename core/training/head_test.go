package training

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/fold"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/predict"
	"github.com/sightline-dev/sightline/core/train"
)

// newTrainedWorld returns a world with a trained version, and its head.
func newTrainedWorld(t *testing.T, config ...log.Setting) (*world, *ModelHead) {
	w := newWorld(t)
	w.do(&log.NetworkSwitch{Base: w.net.base})
	w.make([]string{"cat", "dog"}, config...)
	for i := range 6 {
		w.add(i%2, []string{"cat", "dog"}[i%2])
	}
	w.train("trained")
	return w, w.export("")
}

func (w *world) export(version string) *ModelHead {
	w.t.Helper()
	view := w.p.View()
	defer view.Close()
	h, err := Export(view, "model", version)
	if err != nil {
		w.t.Fatal(err)
	}
	return h
}

// seq is the number of operations so far.
func (w *world) seq() uint64 {
	view := w.p.View()
	defer view.Close()
	return view.Seq()
}

// TestImportedHeadIsAVersion imports a head whose concepts come in another order.
func TestImportedHeadIsAVersion(t *testing.T) {
	for _, config := range [][]log.Setting{nil, {setting(settingExclusive)}, {setting(settingExclusive), setting(settingClosed)}} {
		w, h := newTrainedWorld(t, config...)
		if h.Version != "trained" || h.Base != w.net.base {
			t.Fatalf("the head of %q, base %x, is exported", h.Version, h.Base)
		}
		want := *h
		want.Version = "imported"
		want.Head.Weights, want.Head.Bias = slices.Clone(h.Head.Weights), slices.Clone(h.Head.Bias)
		want.Head.Bias[0]++
		other := want
		other.Head.Concepts = []string{"dog", "cat"}
		d := predict.Dim
		other.Head.Weights = slices.Concat(want.Head.Weights[d:2*d], want.Head.Weights[:d], want.Head.Weights[2*d:])
		other.Head.Bias = slices.Concat(want.Head.Bias[1:2], want.Head.Bias[:1], want.Head.Bias[2:])
		if err := Import(t.Context(), w.p, &other, "imported"); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(&want, w.export("")); d != "" {
			t.Errorf("%v: another head is the newest one:\n%s", config, d)
		}
		if v, m := w.version("imported"), w.manifest("imported"); v.Code != catalog.VersionTrained || !m.Imported || m.Inputs != nil || m.Digest != [32]byte{} {
			t.Errorf("version at %d of manifest %+v", v.Code, m)
		}
		var metrics train.Metrics
		if err := json.Unmarshal(w.manifest("imported").Metrics, &metrics); err != nil || metrics.Folds != 0 || len(metrics.Concepts) != 2 || metrics.Precision != train.DefaultPrecision {
			t.Errorf("metrics %+v, %v", metrics, err)
		}
		if runs := w.take(); len(runs) > 0 {
			t.Errorf("%d trainings are due after an import", len(runs))
		}
	}
}

// TestUnfitHeadChangesNothing imports heads that do not fit their model.
func TestUnfitHeadChangesNothing(t *testing.T) {
	w, good := newTrainedWorld(t)
	exclusive, softmax := newTrainedWorld(t, setting(settingExclusive))
	for _, tt := range []struct {
		w       *world
		of      *ModelHead
		change  func(h *ModelHead)
		want    error
		message string
	}{
		{w, good, func(h *ModelHead) { h.Model = "none" }, catalog.ErrNotFound, "model none"},
		{w, good, func(h *ModelHead) { h.Base[0]++ }, train.ErrHead, "embedding 02000000"},
		{w, good, func(h *ModelHead) { h.Head.Exclusive = true }, train.ErrHead, "are not mutually exclusive"},
		{exclusive, softmax, func(h *ModelHead) { h.Head = good.Head }, train.ErrHead, "are mutually exclusive"},
		{w, good, func(h *ModelHead) { h.Head.Concepts = []string{"cat", "cow"} }, train.ErrHead, `no concept "dog", which model "model" has`},
		{w, good, func(h *ModelHead) {
			h.Head.Concepts = []string{"cat", "dog", "cow"}
			h.Head.Weights = append(h.Head.Weights, make([]float32, predict.Dim)...)
			h.Head.Bias = append(h.Head.Bias, 0)
		}, train.ErrHead, `concept "cow", which model "model" does not have`},
		{w, good, func(h *ModelHead) {
			h.Head.Concepts = []string{"cat", "dog", "dog"}
			h.Head.Weights = append(h.Head.Weights, make([]float32, predict.Dim)...)
			h.Head.Bias = append(h.Head.Bias, 0)
		}, train.ErrHead, `concept "dog" twice`},
		{w, good, func(h *ModelHead) { h.Head.Weights = h.Head.Weights[1:] }, train.ErrHead, "511 weights for 2 outputs"},
		{w, good, func(h *ModelHead) { h.Head.Weights[7] = float32(math.NaN()) }, train.ErrHead, "a parameter is not a number"},
		{w, good, func(h *ModelHead) { h.Head = train.Head{} }, train.ErrHead, "0 concepts"},
	} {
		h := *tt.of
		h.Head.Weights, h.Head.Bias = slices.Clone(h.Head.Weights), slices.Clone(h.Head.Bias)
		tt.change(&h)
		before := tt.w.seq()
		err := Import(t.Context(), tt.w.p, &h, "imported")
		if !errors.Is(err, tt.want) || !strings.Contains(err.Error(), tt.message) {
			t.Errorf("Import = %v, want %v with %q", err, tt.want, tt.message)
		}
		if after := tt.w.seq(); after != before {
			t.Errorf("%s: %d operations were appended", tt.message, after-before)
		}
		if got := tt.w.export(""); got.Version != "trained" {
			t.Errorf("%s: version %s is the newest one", tt.message, got.Version)
		}
	}
}

// changing is a partition whose model gets another concept before it takes an import.
type changing struct {
	*world
	Partition
	done bool
}

func (c *changing) Submit(ctx context.Context, by string, bodies []log.Body, also func(*kv.Batch)) ([]fold.Verdict, error) {
	if !c.done {
		c.done = true
		c.world.do(&log.ModelPatch{Model: c.model, Add: []string{"cow"}})
	}
	return c.Partition.Submit(ctx, by, bodies, also)
}

func TestModelChangesDuringImport(t *testing.T) {
	w, h := newTrainedWorld(t)
	err := Import(t.Context(), &changing{world: w, Partition: w.p}, h, "imported")
	if !errors.Is(err, train.ErrHead) || !strings.Contains(err.Error(), "changed during the import") {
		t.Errorf("Import = %v", err)
	}
	if got := w.export(""); got.Version != "trained" {
		t.Errorf("version %s is the newest one", got.Version)
	}
}

// TestImportedVersionIsNotTrainedAgain ends the run of an imported version without a manifest: another network has nothing to train it
// from.
func TestImportedVersionIsNotTrainedAgain(t *testing.T) {
	w, h := newTrainedWorld(t)
	if err := Import(t.Context(), w.p, h, "imported"); err != nil {
		t.Fatal(err)
	}
	r, err := Retrain(w.p.View(), newNetwork(t, 2, 64), w.version("imported"), "renewed")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if !r.Step() || r.Err() != nil || r.Outcome().Manifest != nil || r.Outcome().Result.Code != CodeNoData {
		t.Errorf("the run ends with %+v, %v", r.Outcome(), r.Err())
	}
}

// TestUntrainedVersionHasNoHead exports the heads of versions that do not exist or are not trained.
func TestUntrainedVersionHasNoHead(t *testing.T) {
	w, _ := newTrainedWorld(t)
	w.do(&log.ModelCreate{ID: "untrained", Concepts: []string{"cat"}})
	view := w.p.View()
	defer view.Close()
	for _, of := range [][2]string{{"model", "first"}, {"model", "none"}, {"none", ""}, {"untrained", ""}} {
		if h, err := Export(view, of[0], of[1]); !errors.Is(err, catalog.ErrNotFound) {
			t.Errorf("Export of %v = %+v, %v, want ErrNotFound", of, h, err)
		}
	}
}
