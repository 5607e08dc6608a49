package models

import (
	"fmt"

	"github.com/sightline-dev/sightline/core/api/call"
	"github.com/sightline-dev/sightline/core/api/show"
	"github.com/sightline-dev/sightline/core/auth"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/jsonio"
	"github.com/sightline-dev/sightline/core/lang"
	"github.com/sightline-dev/sightline/core/partition"
	"github.com/sightline-dev/sightline/core/train"
	"github.com/sightline-dev/sightline/core/training"
)

// Compare lists the inputs whose predictions differ between a trained version and another one, by default the one trained before it. Each
// version's cut-offs determine which concepts are added, removed and unchanged.
func Compare(x *call.Call) error {
	p, err := x.Page()
	if err != nil {
		return err
	}
	v, m, err := taughtModel(x)
	if err != nil {
		return err
	}
	is, err := show.TrainedVersion(v, &m)
	if err != nil {
		return err
	}
	was, err := comparedWith(x, v, m.Custom, &is)
	if err != nil {
		return err
	}
	c := comparison{x: x, view: v}
	if c.after, err = sideOf(x, v, &is); err != nil {
		return err
	}
	if c.before, err = sideOf(x, v, &was); err != nil {
		return err
	}
	if err := c.find(p); err != nil {
		return err
	}
	return x.OK(c.write)
}

// comparedWith returns the version in the query parameter with, or else the version that was trained before than.
func comparedWith(x *call.Call, v *partition.View, m *catalog.Model, than *catalog.Version) (catalog.Version, error) {
	if with := x.Param("with"); with != "" {
		other, err := show.FindModel(x, v, m.ID, with)
		if err != nil {
			return catalog.Version{}, err
		}
		return show.TrainedVersion(v, &other)
	}
	older, err := trainedBefore(v, m, than)
	if err == nil && older == nil {
		err = call.Refusef(call.ErrModelArgument, "model_version_id '%s' is the first trained version; name the other version in the query parameter \"with\".", than.ID)
	}
	if err != nil {
		return catalog.Version{}, err
	}
	return *older, nil
}

// comparedVersion is one of the two compared versions.
type comparedVersion struct {
	training.Side
	metrics train.Metrics
	names   []show.Concept
}

func sideOf(x *call.Call, v *partition.View, version *catalog.Version) (comparedVersion, error) {
	var c comparedVersion
	head, err := x.Host.Heads.Load(v, version, x.Net.Base)
	if err != nil {
		return c, err
	}
	manifest, err := v.Manifest(version)
	if err != nil {
		return c, err
	}
	if err := c.metrics.UnmarshalJSON(manifest.Metrics); err != nil {
		return c, fmt.Errorf("%w: metrics of version %q: %w", call.ErrInternal, version.ID, err)
	}
	c.Side = training.NewSide(&head.Head, &c.metrics)
	c.names, err = show.ConceptsNamed(x, v, head.Concepts, lang.English)
	return c, err
}

// comparison is a page of the differences between two versions.
type comparison struct {
	x             *call.Call
	view          *partition.View
	before, after comparedVersion
	inputs        uint64 // number of compared inputs
	changed       int
	rows          []changedInput
	lines         show.ConceptNames
}

// changedInput is an input with each version's values of the concepts that were added or removed.
type changedInput struct {
	input   catalog.Input
	was, is []float32 // values of all concepts
}

func (c *comparison) find(p call.Page) error {
	index := c.x.App.Partition.Index().At(c.view.Reader)
	all, err := index.AnalysedInputs()
	if err != nil {
		return err
	}
	c.inputs = all.GetCardinality()
	changes, err := training.Compare(c.x.Ctx, index, all, &c.before.Side, &c.after.Side)
	if err != nil {
		return err
	}
	c.changed = len(changes)
	for _, change := range call.PageRows(changes, p) {
		row := changedInput{}
		if row.input, err = c.lines.Load(c.x, c.view, change.Ord); err != nil {
			return err
		}
		e, _, err := index.Embedding(change.Ord)
		if err != nil {
			return err
		}
		row.was, row.is = c.before.Head.Values(nil, e), c.after.Head.Values(nil, e)
		c.rows = append(c.rows, row)
	}
	return nil
}

func (c *comparison) write(w *jsonio.Writer) {
	w.ObjectMember("comparison")
	show.WriteInt(w, "inputs", c.inputs)
	show.WriteInt(w, "changed", c.changed)
	w.Name("roc_auc")
	w.Array()
	for _, side := range []*comparedVersion{&c.after, &c.before} {
		if side.metrics.Folds == 0 {
			w.Null()
		} else {
			w.Float32(float32(side.metrics.Macro.ROCAUC))
		}
	}
	w.End(']')
	w.End('}')
	w.List("changes", len(c.rows), func(i int) { c.writeRow(w, &c.rows[i]) })
}

func (c *comparison) writeRow(w *jsonio.Writer, row *changedInput) {
	w.Object()
	w.Name("input")
	show.WriteInput(c.x, w, &c.lines, &row.input, nil)
	if c.x.Shows(auth.ConceptsGet) {
		var before, after []int // indices in the two heads
		for _, p := range training.Pairs(c.before.Head, c.after.Head) {
			if differ, _ := p.Differ(&c.before.Side, &c.after.Side, row.was, row.is); !differ {
				continue
			}
			if p.Before >= 0 {
				before = append(before, p.Before)
			}
			if p.After >= 0 {
				after = append(after, p.After)
			}
		}
		w.List("before", len(before), func(i int) { writeJudged(w, &c.before.names[before[i]], row.was[before[i]]) })
		w.List("after", len(after), func(i int) { writeJudged(w, &c.after.names[after[i]], row.is[after[i]]) })
	}
	w.End('}')
}
