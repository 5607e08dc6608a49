package catalog

import (
	"bytes"
	"errors"
	"slices"

	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/log"
)

// Concept returns the custom concept with an id.
func (r Reader) Concept(id string) (Concept, error) {
	return lookup(r, r.app.stringKey(tableConcept, id), "concept", id, decodeConcept)
}

// Concepts yields the custom concepts in the order of their creation.
func (r Reader) Concepts(yield func(Concept) bool) error {
	return inOrder(r, tableConceptSeq, r.Concept, yield)
}

// inOrder yields the records whose ids a table has in the order of creation.
func inOrder[T any](r Reader, table byte, get func(id string) (T, error), yield func(T) bool) error {
	return each(r, r.app.key(table, 0), func(_, id []byte) (T, error) { return get(string(id)) }, yield)
}

// Model returns the live custom model with an id.
func (r Reader) Model(id string) (Model, error) {
	return lookup(r, r.app.stringKey(tableModel, id), "model", id, decodeModel)
}

// ModelByDot returns the live model that an operation created.
func (r Reader) ModelByDot(dot log.Dot) (Model, error) {
	id, err := r.get(r.app.dotKey(tableModelDot, dot, 0), "model of operation", dot)
	if err != nil {
		return Model{}, err
	}
	return r.Model(string(id))
}

// Models yields the live custom models in the order of their creation.
func (r Reader) Models(yield func(Model) bool) error {
	return inOrder(r, tableModelSeq, r.Model, yield)
}

// CountModelsWith returns the number of live models that have a concept now, and the number of versions of live models that were made for
// it.
func (r Reader) CountModelsWith(concept string) (models, versions int, err error) {
	var failed error
	err = r.Models(func(m Model) bool {
		if slices.ContainsFunc(m.Concepts, func(c Member) bool { return c.In && c.Concept == concept }) {
			models++
		}
		failed = r.Versions(m.Dot, func(v Version) bool {
			if slices.Contains(v.Concepts, concept) {
				versions++
			}
			return true
		})
		return failed == nil
	})
	return models, versions, errors.Join(err, failed)
}

// Version returns the version of a live model with an id.
func (r Reader) Version(model log.Dot, id string) (Version, error) {
	key := append(r.app.dotKey(tableVersionID, model, len(id)), id...)
	seq, err := lookup(r, key, "version", id, number8)
	if err != nil {
		return Version{}, err
	}
	return r.version(model, seq)
}

func (r Reader) version(model log.Dot, seq uint64) (Version, error) {
	return lookup(r, r.app.version(model, seq), "version of entry", seq, decodeVersion)
}

// Versions yields the versions of a live model, newest first.
func (r Reader) Versions(model log.Dot, yield func(Version) bool) error {
	prefix := r.app.dotKey(tableVersion, model, 0)
	var failed error
	for _, value := range kv.Backward(r.kv, prefix, kv.PrefixEnd(prefix), &failed) {
		v, err := decodeVersion(bytes.Clone(value))
		if err != nil || !yield(v) {
			return err
		}
	}
	return failed
}

// CurrentVersion returns the newest version of a model at 21100, which is the version that predicts. If there is none, the error is
// ErrNotFound.
func (r Reader) CurrentVersion(model log.Dot) (Version, error) {
	var current Version
	err := r.Versions(model, func(v Version) bool {
		if v.Code == VersionTrained {
			current = v
		}
		return v.Code != VersionTrained
	})
	if err == nil && current.ID == "" {
		err = notFound("trained version of model", model)
	}
	return current, err
}

// PendingVersions yields the versions at 21103, in the order of their training requests.
func (r Reader) PendingVersions(yield func(Version) bool) error {
	return each(r, r.app.key(tableTraining, 0), r.training, yield)
}

func (r Reader) training(key, value []byte) (Version, error) {
	seq, err := number8(key[len(key)-8:])
	if err != nil {
		return Version{}, err
	}
	model, request, err := decodeRequest(value)
	if err != nil {
		return Version{}, err
	}
	v, err := r.version(model, seq)
	v.RequestedAt = request
	return v, err
}

// decodeRequest decodes a value that appendRequest encoded.
func decodeRequest(value []byte) (model, request log.Dot, err error) {
	const one = 12
	if model, err = dotOf(value[:min(one, len(value))]); err == nil && len(value) > one {
		request, err = dotOf(value[one:])
	}
	return model, request, err
}

// TrainingRequest returns the dot of the operation that requested the training of a version at 21103; zero if it is unknown.
func (r Reader) TrainingRequest(v *Version) (log.Dot, error) {
	value, err := kv.Find(r.kv, r.app.uint64Key(tableTraining, v.Seq))
	if value == nil {
		return log.Dot{}, err
	}
	_, request, err := decodeRequest(value)
	return request, err
}

// Workflow returns the custom workflow with an id.
func (r Reader) Workflow(id string) (Workflow, error) {
	return lookup(r, r.app.stringKey(tableWorkflow, id), "workflow", id, decodeWorkflow)
}

// WorkflowByDot returns the live workflow that an operation created.
func (r Reader) WorkflowByDot(dot log.Dot) (Workflow, error) {
	id, err := r.get(r.app.dotKey(tableWorkflowDot, dot, 0), "workflow of operation", dot)
	if err != nil {
		return Workflow{}, err
	}
	return r.Workflow(string(id))
}

// Workflows yields the custom workflows in the order of their creation.
func (r Reader) Workflows(yield func(Workflow) bool) error {
	return inOrder(r, tableWorkflowSeq, r.Workflow, yield)
}

// Feedback yields the users' feedback, oldest first.
func (r Reader) Feedback(yield func(Feedback) bool) error {
	return all(r, r.app.key(tableFeedback, 0), decodeFeedback, yield)
}
