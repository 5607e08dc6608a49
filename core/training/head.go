package training

import (
	"context"
	"fmt"
	"slices"

	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/fold"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/partition"
	"github.com/sightline-dev/sightline/core/predict"
	"github.com/sightline-dev/sightline/core/train"
)

// ModelHead is the head of a model's version, apart from the model.
type ModelHead struct {
	Model   string   // ID
	Version string   // ID
	Base    [32]byte // identity of the embeddings that the head needs, as predict.Set.Base returns it
	Head    train.Head
}

// Export returns the head of a trained version, or of the newest one if version is empty. Errors: catalog.ErrNotFound, and those of the
// store.
func Export(v *partition.View, model, version string) (*ModelHead, error) {
	m, err := v.Model(model)
	if err != nil {
		return nil, err
	}
	var of catalog.Version
	if version == "" {
		of, err = v.CurrentVersion(m.Dot)
	} else {
		of, err = v.Version(m.Dot, version)
	}
	switch {
	case err != nil:
		return nil, err
	case of.Code != catalog.VersionTrained:
		return nil, fmt.Errorf("head of version %q, which is not trained: %w", of.ID, catalog.ErrNotFound)
	}
	manifest, err := v.Manifest(&of)
	if err != nil {
		return nil, err
	}
	h := &ModelHead{Model: m.ID, Version: of.ID, Base: manifest.Base}
	return h, h.Head.UnmarshalBinary(manifest.Head)
}

// Import creates a trained version from a head that was trained elsewhere. If the head does not fit its model, nothing changes and the
// error wraps train.ErrHead. Other errors: catalog.ErrNotFound, and those of the partition.
func Import(ctx context.Context, p Partition, h *ModelHead, version string) error {
	view := p.View()
	model, fits, err := fit(view, h)
	manifest := catalog.Manifest{Version: version, Base: h.Base, Seq: view.Seq(), Imported: true}
	app := view.AppID()
	view.Close()
	if err != nil {
		return err
	}
	if manifest.Head, err = fits.MarshalBinary(); err != nil {
		return err
	}
	metrics := train.UnevaluatedMetrics(&train.Problem{Concepts: fits.Concepts, Precision: requestedPrecision(model.Config)})
	if manifest.Metrics, err = metrics.MarshalJSON(); err != nil {
		return err
	}
	verdicts, err := AddVersion(ctx, p, app, model.Dot, version, &Outcome{Manifest: manifest.Marshal()})
	if err != nil {
		return err
	}
	for _, v := range verdicts {
		if v.Code != fold.OK {
			return fmt.Errorf("head of model %q: %v %s", h.Model, v.Code, v.Detail)
		}
	}
	return undoStaleImport(ctx, p, &model, version, fits.Concepts)
}

// AddVersion adds a trained version with the manifest and the detail of an outcome to a model, and returns the verdicts on both of its
// operations. The error is the partition's.
func AddVersion(ctx context.Context, p Partition, app catalog.AppID, model log.Dot, version string, o *Outcome) ([]fold.Verdict, error) {
	return p.Submit(ctx, "", []log.Body{
		&log.VersionTrain{Model: model, Version: version},
		&log.VersionResult{
			Model: model, Version: version, Code: catalog.VersionTrained, Detail: o.Result.Detail, Manifest: blob.Sum(o.Manifest),
		},
	}, func(b *kv.Batch) { catalog.PutObject(b, app, o.Manifest) })
}

// CheckManifest returns train.ErrHead, train.ErrProblem or an error of jsonio for a manifest whose head or evaluation cannot be read. It does
// not know the concepts of the version.
func CheckManifest(m *catalog.Manifest) error {
	var head train.Head
	if err := head.UnmarshalBinary(m.Head); err != nil {
		return err
	}
	var metrics train.Metrics
	if err := metrics.UnmarshalJSON(m.Metrics); err != nil {
		return err
	}
	return metrics.Check(len(m.Inputs), len(head.Concepts))
}

// fit returns the model of a head, and the head in the order of the model's concepts.
func fit(view *partition.View, h *ModelHead) (m catalog.Model, fits *train.Head, err error) {
	if m, err = view.Model(h.Model); err != nil {
		return m, nil, err
	}
	if err := h.Head.Check(); err != nil {
		return m, nil, err
	}
	serving, err := view.Header()
	switch {
	case err != nil:
		return m, nil, err
	case h.Base != serving.Base:
		return m, nil, fmt.Errorf("embedding %x, the application has %x: %w", h.Base, serving.Base, train.ErrHead)
	case h.Head.Exclusive && !RelationOf(m.Config).Exclusive:
		return m, nil, fmt.Errorf("softmax, but the concepts of model %q are not mutually exclusive: %w", m.ID, train.ErrHead)
	case !h.Head.Exclusive && RelationOf(m.Config).Exclusive:
		return m, nil, fmt.Errorf("sigmoid, but the concepts of model %q are mutually exclusive: %w", m.ID, train.ErrHead)
	}
	fits = &train.Head{Exclusive: h.Head.Exclusive}
	take := func(output int) {
		fits.Weights = append(fits.Weights, h.Head.Weights[output*predict.Dim:(output+1)*predict.Dim]...)
		fits.Bias = append(fits.Bias, h.Head.Bias[output])
	}
	for _, c := range m.Concepts {
		if !c.In {
			continue
		}
		output := slices.Index(h.Head.Concepts, c.Concept)
		if output < 0 {
			return m, nil, fmt.Errorf("no concept %q, which model %q has: %w", c.Concept, m.ID, train.ErrHead)
		}
		fits.Concepts = append(fits.Concepts, c.Concept)
		take(output)
	}
	for i, id := range h.Head.Concepts {
		switch {
		case !slices.Contains(fits.Concepts, id):
			return m, nil, fmt.Errorf("concept %q, which model %q does not have: %w", id, m.ID, train.ErrHead)
		case slices.Contains(h.Head.Concepts[:i], id):
			return m, nil, fmt.Errorf("concept %q twice: %w", id, train.ErrHead)
		}
	}
	if n := len(h.Head.Concepts); h.Head.Outputs() > n {
		take(n)
	}
	return m, fits, nil
}

// undoStaleImport deletes an imported version if the concepts of its model changed during the import.
func undoStaleImport(ctx context.Context, p Partition, m *catalog.Model, version string, concepts []string) error {
	view := p.View()
	imported, err := view.Version(m.Dot, version)
	view.Close()
	if err != nil || slices.Equal(imported.Concepts, concepts) {
		return err
	}
	if _, err := p.Submit(ctx, "", []log.Body{&log.VersionDelete{Model: m.Dot, Version: version}}, nil); err != nil {
		return err
	}
	return fmt.Errorf("the concepts of model %q changed during the import: %w", m.ID, train.ErrHead)
}
