package api

import (
	"fmt"

	"github.com/sightline-dev/sightline/core/api/call"
	"github.com/sightline-dev/sightline/core/fold"
	"github.com/sightline-dev/sightline/core/jsonio"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/partition"
)

// tell shows operations to people: who made them and when, what they are about, and all that they
// say. It is told of each before it writes any.
type tell struct {
	x     *call.Call
	view  *partition.View
	names map[log.Dot]string // of what an operation is about, by the operation
	lines conceptLines
}

// learn looks up what an operation names. id is of what it is about, where that is known otherwise.
func (t *tell) learn(op *log.Op, id string) (err error) {
	if id == "" {
		if id, err = t.x.App.Partition.NameOf(op.Body); err != nil {
			return err
		}
	}
	if id != "" {
		if t.names == nil {
			t.names = map[log.Dot]string{}
		}
		t.names[op.Dot] = id
	}
	t.lines.x = t.x
	for _, concept := range conceptsOf(op.Body) {
		if err := t.lines.look(t.view, concept); err != nil {
			return err
		}
	}
	return nil
}

// conceptsOf are the ids of the concepts that a body names.
func conceptsOf(body log.Body) (ids []string) {
	labels := func(list []log.Label) {
		for i := range list {
			ids = append(ids, list[i].Concept)
		}
	}
	switch b := body.(type) {
	case *log.InputCreate:
		labels(b.Labels)
	case *log.InputLabels:
		labels(b.Labels)
	case *log.OutputsPatch:
		for i := range b.Edits {
			ids = append(ids, b.Edits[i].Concept)
		}
	case *log.ModelCreate:
		ids = b.Concepts
	case *log.ModelPatch:
		ids = append(append(ids, b.Add...), b.Remove...)
	}
	return ids
}

// operation writes the members of an operation.
func (t *tell) operation(w *jsonio.Writer, op *log.Op) {
	count(w, "site", uint64(op.Dot.Site))
	if op.Dot.Seq > 0 {
		count(w, "seq", op.Dot.Seq)
	}
	moment(w, "at", op.At.Time())
	member(w, "by", op.By)
	member(w, "kind", log.KindOf(op.Body).String())
	t.subject(w, op)
	w.Name("content")
	w.Object()
	t.content(w, op)
	w.End('}')
}

// subject writes the ids of what an operation is about.
func (t *tell) subject(w *jsonio.Writer, op *log.Op) {
	name := t.names[op.Dot]
	switch b := op.Body.(type) {
	case *log.InputCreate:
		member(w, "input_id", b.ID)
	case *log.InputFetched, *log.InputLabels, *log.InputMeta, *log.InputGeo, *log.InputDelete, *log.OutputsPatch:
		member(w, "input_id", name)
	case *log.ConceptCreate:
		member(w, "concept_id", b.ID)
	case *log.ConceptName:
		member(w, "concept_id", b.ID)
	case *log.ModelCreate:
		member(w, "model_id", b.ID)
		member(w, "version_id", b.Version)
	case *log.ModelPatch:
		member(w, "model_id", name)
		member(w, "version_id", b.Version)
	case *log.ModelDelete:
		member(w, "model_id", name)
	case *log.VersionTrain:
		member(w, "model_id", name)
		member(w, "version_id", b.Version)
	case *log.VersionResult:
		member(w, "model_id", name)
		member(w, "version_id", b.Version)
	case *log.VersionDelete:
		member(w, "model_id", name)
		member(w, "version_id", b.Version)
	case *log.WorkflowCreate:
		member(w, "workflow_id", b.ID)
	case *log.WorkflowDelete:
		member(w, "workflow_id", name)
	case *log.Feedback:
		member(w, "model_id", b.Model)
		member(w, "version_id", b.Version)
	}
}

// reason is why an operation was not taken as it was meant, in a sentence. orphan says that what it is about
// was made by another one that was not taken.
func reason(c *partition.Conflict, orphan bool) string {
	v := &c.Verdict
	_, creates := c.Op.Body.(*log.InputCreate)
	switch v.Code {
	case fold.Duplicate:
		switch v.Detail {
		case "url":
			return fmt.Sprintf("Input %q already has this URL.", v.ID)
		case "version":
			return "The model already has a version with this ID."
		}
		return fmt.Sprintf("Another %s with this ID already existed.", thing(c.Op.Body))
	case fold.Gone:
		switch {
		case v.Detail == "lease":
			return "The training had already ended, or was restarted elsewhere."
		case v.Detail == "unknown":
			return "It is not in the snapshot downloaded from the origin; its outcome is unknown."
		case creates:
			return "A later call deleted all inputs, including this one."
		case orphan:
			return fmt.Sprintf("The %s it refers to was rejected.", thing(c.Op.Body))
		}
		return fmt.Sprintf("The %s was already deleted.", thing(c.Op.Body))
	case fold.Stale:
		return "It was made too long ago to be merged safely."
	case fold.Refused:
		return fmt.Sprintf("The origin rejected it: %s.", v.Detail)
	}
	return v.Detail
}

// thing is what an operation is about, in a word.
func thing(body log.Body) string {
	switch body.(type) {
	case *log.InputCreate, *log.InputFetched, *log.InputLabels, *log.InputMeta, *log.InputGeo, *log.InputDelete, *log.OutputsPatch:
		return "input"
	case *log.ConceptCreate, *log.ConceptName:
		return "concept"
	case *log.ModelCreate, *log.ModelPatch, *log.ModelDelete, *log.VersionTrain:
		return "model"
	case *log.VersionResult, *log.VersionDelete:
		return "model version"
	case *log.WorkflowCreate, *log.WorkflowDelete:
		return "workflow"
	}
	return "thing"
}
