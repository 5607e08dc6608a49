package fold

import (
	"errors"

	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/log"
)

func (f *Fold) workflowCreate(b *log.WorkflowCreate) (Verdict, error) {
	if !orNone(b.ID) {
		return refusal("id"), nil
	}
	if deleted, err := f.wasDeleted(); deleted || err != nil {
		return Verdict{Code: Superseded}, err
	}
	id := f.idOr(b.ID, "workflow")
	other, err := f.w.Workflow(id)
	if err == nil {
		return Verdict{Code: Duplicate, Detail: "id", Dot: other.Dot, ID: id}, nil
	}
	if !errors.Is(err, catalog.ErrNotFound) {
		return Verdict{}, err
	}
	op := &f.e.Op
	f.w.PutWorkflow(&catalog.Workflow{Dot: op.Dot, Seq: f.e.Seq, ID: id, Created: op.At, Made: op.Made, Nodes: b.Nodes})
	return Verdict{Code: OK, Dot: op.Dot, ID: id}, nil
}

func (f *Fold) workflowDelete(b *log.WorkflowDelete) (Verdict, error) {
	w, err := f.w.WorkflowByDot(b.Workflow)
	if err != nil {
		return f.deleteMissing(b.Workflow, err)
	}
	f.w.DeleteWorkflow(&w)
	return Verdict{Code: OK, Dot: w.Dot, ID: w.ID}, nil
}

func (f *Fold) feedback(b *log.Feedback) (Verdict, error) {
	if !isJSON(b.JSON) {
		return refusal("feedback"), nil
	}
	op := &f.e.Op
	f.w.PutFeedback(&catalog.Feedback{
		Dot: op.Dot, Seq: f.e.Seq, Created: op.At, By: op.By, Model: b.Model, Version: b.Version, JSON: b.JSON,
	})
	return Verdict{Code: OK, Dot: op.Dot}, nil
}

// networkSwitch makes b.Base the base model of the application, and replaces versions by versions that were trained with it. It skips a
// version if its model was deleted or trained again in the meantime.
func (f *Fold) networkSwitch(b *log.NetworkSwitch) (Verdict, error) {
	if b.Base == [32]byte{} {
		return refusal("base"), nil
	}
	if b.Base == f.h.Base {
		return Verdict{Code: Superseded}, nil
	}
	f.h.Base = b.Base
	for _, r := range b.Versions {
		if err := f.replaceVersion(&r); err != nil {
			return Verdict{}, err
		}
	}
	return Verdict{Code: OK}, nil
}

// replaceVersion stores r as a new version of its model. It does nothing if the model was deleted, if its current version is not r.From
// or was stored by this operation, if the new ID is taken, or if r has no manifest.
func (f *Fold) replaceVersion(r *log.RetrainedVersion) error {
	m, err := f.model(r.Model)
	if errors.Is(err, catalog.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	current, err := f.w.CurrentVersion(m.Dot)
	if errors.Is(err, catalog.ErrNotFound) || err == nil && (current.ID != r.From || current.Seq == f.e.Seq) {
		return nil
	}
	if err != nil {
		return err
	}
	id := f.idOr(r.Version, "version")
	if taken, err := f.hasVersion(m.Dot, id); taken || err != nil || r.Manifest.IsZero() {
		return err
	}
	version := catalog.Version{
		Model: m.Dot, Seq: f.e.Seq, ID: id, Created: f.e.Op.At, Code: catalog.VersionTrained,
		Concepts: current.Concepts, Config: current.Config, Manifest: r.Manifest,
	}
	if f.inForce(rulesOfConcepts) {
		version.Detail = r.Detail
	}
	f.w.PutVersion(&version)
	if m.Newest == current.ID {
		m.Newest = id
		f.w.PutModel(&m)
	}
	return nil
}
