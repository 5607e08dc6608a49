package models

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/sightline-dev/sightline/core/api/call"
	"github.com/sightline-dev/sightline/core/api/show"
	"github.com/sightline-dev/sightline/core/auth"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/fold"
	"github.com/sightline-dev/sightline/core/lang"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/log/form"
	"github.com/sightline-dev/sightline/core/partition"
)

// CreateConcepts creates all custom concepts in a call, or none if
// one is invalid.
func CreateConcepts(x *call.Call) error {
	elements, n, err := x.Body.LimitedObjects("concepts", call.MaxInputs, call.ErrConcept)
	if err != nil {
		return err
	}
	ids := make([]string, 0, n)
	bodies := make([]log.Body, 0, n)
	for o, err := range elements {
		if err != nil {
			return call.Refuse(call.ErrConcept, err)
		}
		c, err := newConcept(x, o)
		if err != nil {
			return err
		}
		if slices.Contains(ids, c.ID) {
			return call.Refusef(call.ErrConcept, "%s: duplicate value %q.", o.MemberPath("id"), c.ID)
		}
		ids = append(ids, c.ID)
		bodies = append(bodies, c)
	}
	if err := freeConcepts(x, ids); err != nil {
		return err
	}
	verdicts, err := x.Submit(nil, bodies...)
	if err != nil {
		return err
	}
	for i, v := range verdicts {
		if v.Code == fold.Duplicate {
			return conceptExists(ids[i])
		}
	}
	return answerConcepts(x, ids)
}

// newConcept reads one concept to create. Without a name, its name is its id.
func newConcept(x *call.Call, o call.Object) (*log.ConceptCreate, error) {
	var err error
	id, name := call.Read(&err, o.Text, "id"), call.Read(&err, o.Text, "name")
	language := call.Read(&err, o.Text, "language")
	if err != nil {
		return nil, call.Refuse(call.ErrConcept, err)
	}
	if language != "" && !lang.Valid(language) {
		return nil, call.Refusef(call.ErrConcept, "%s: unsupported language %q.", o.MemberPath("language"), language)
	}
	if language == x.App.Language {
		language = "" // the same as for concepts that a label or a model creates
	}
	switch {
	case id == "" && name == "":
		return nil, call.Refusef(call.ErrConcept, "%s is missing.", o.MemberPath("id"))
	case id == "":
		if id, err = x.NewID(); err != nil {
			return nil, err
		}
	case name == "":
		name = id
	}
	if err := call.CheckConceptID(call.ErrConcept, o.MemberPath("id"), id); err != nil {
		return nil, err
	}
	return &log.ConceptCreate{ID: id, Name: name, Language: language}, call.CheckName(call.ErrConcept, o, name)
}

// freeConcepts returns an error if the application has a concept with one of the ids.
func freeConcepts(x *call.Call, ids []string) error {
	v := x.View()
	for _, id := range ids {
		switch _, err := v.Concept(id); {
		case err == nil:
			return conceptExists(id)
		case !errors.Is(err, catalog.ErrNotFound):
			return err
		}
	}
	return nil
}

func conceptExists(id string) error {
	return call.Refusef(call.ErrConcept, "concept_id '%s' already exists.", id)
}

// answerConcepts answers with the application's concepts that have ids.
func answerConcepts(x *call.Call, ids []string) error {
	v := x.View()
	all, err := show.ConceptsNamed(x, v, ids, lang.English)
	if err != nil {
		return call.ReplaceNotFound(err, call.UnknownIDError("concept_id", strings.Join(ids, ", ")))
	}
	return writeConceptList(x, all, show.ReadForm)
}

// RenameConcepts renames custom concepts. A request may repeat the language of a concept, which is fixed.
func RenameConcepts(x *call.Call) error {
	if _, err := show.ReadAction(x, map[string]show.Action{"overwrite": show.Overwrite}); err != nil {
		return err
	}
	elements, n, err := x.Body.LimitedObjects("concepts", call.MaxInputs, call.ErrConcept)
	if err != nil {
		return err
	}
	v := x.View()
	ids := make([]string, 0, n)
	bodies := make([]log.Body, 0, n)
	for o, err := range elements {
		if err != nil {
			return call.Refuse(call.ErrConcept, err)
		}
		id, name := call.Read(&err, o.Text, "id"), call.Read(&err, o.Text, "name")
		language := call.Read(&err, o.Text, "language")
		if err != nil {
			return call.Refuse(call.ErrConcept, err)
		}
		if _, public := x.Net.Concepts[id]; public || form.IsPublicID(id) {
			return call.Refusef(call.ErrConcept, "concept_id '%s' is public and cannot be changed.", id)
		}
		c, err := v.Concept(id)
		if err != nil {
			return call.ReplaceNotFound(err, call.UnknownIDError("concept_id", id))
		}
		if now := cmp.Or(c.Language, x.App.Language); language != "" && language != now {
			return call.Refusef(call.ErrConcept, "%s: the language of concept_id '%s' is %q and cannot be changed.", o.MemberPath("language"), id, now)
		}
		if name == "" {
			return call.Refusef(call.ErrConcept, "%s is missing.", o.MemberPath("name"))
		}
		if err := call.CheckName(call.ErrConcept, o, name); err != nil {
			return err
		}
		ids = append(ids, id)
		bodies = append(bodies, &log.ConceptName{ID: id, Name: name})
	}
	if _, err := x.Submit(nil, bodies...); err != nil {
		return err
	}
	return answerConcepts(x, ids)
}

// DeleteConcept deletes the custom concept in the path if nothing uses it.
func DeleteConcept(x *call.Call) error {
	id := x.IDs["concept_id"]
	if _, public := x.Net.Concepts[id]; public || form.IsPublicID(id) {
		return call.Refusef(call.ErrConcept, "concept_id '%s' is public and cannot be deleted.", id)
	}
	v := x.View()
	if _, err := v.Concept(id); err != nil {
		return call.ReplaceNotFound(err, call.UnknownIDError("concept_id", id))
	}
	if err := refuseUsed(x, v, id); err != nil {
		return err
	}
	verdicts, err := x.Submit(nil, &log.ConceptDelete{ID: id})
	if err != nil {
		return err
	}
	switch verdicts[0].Code {
	case fold.OK:
		return x.Done()
	case fold.Gone:
		return call.UnknownIDError("concept_id", id)
	}
	return cmp.Or(refuseUsed(x, x.View(), id), call.Refusef(call.ErrConcept, "concept_id '%s' changed meanwhile. Try again.", id))
}

// conceptUses has the numbers of things that use a concept.
type conceptUses struct{ labelled, edited, models, versions int }

// refuseUsed returns an error with the numbers of uses of a concept, or nil if there are none. It leaves out numbers of things that the caller
// may not read.
func refuseUsed(x *call.Call, v *partition.View, id string) error {
	n, err := usesOf(v, id)
	if err != nil || n == (conceptUses{}) {
		return err
	}
	inputs, models := x.Shows(auth.InputsGet), x.Shows(auth.ModelsGet)
	var counts []string
	for _, c := range []struct {
		name  string
		n     int
		shown bool
	}{
		{"labelled inputs", n.labelled, inputs},
		{"inputs with an edited prediction", n.edited, inputs},
		{"models", n.models, models},
		{"model versions", n.versions, models},
	} {
		if c.n > 0 && c.shown {
			counts = append(counts, fmt.Sprintf("%s %d", c.name, c.n))
		}
	}
	if len(counts) == 0 {
		return call.Refusef(call.ErrConcept, "concept_id '%s' is in use.", id)
	}
	return call.Refusef(call.ErrConcept, "concept_id '%s' is in use: %s.", id, strings.Join(counts, ", "))
}

// usesOf counts what uses a concept. It reads all inputs, models and versions, since the index lacks inputs without a picture.
func usesOf(v *partition.View, id string) (n conceptUses, err error) {
	if err := v.Inputs(0, func(in catalog.Input) bool {
		if slices.ContainsFunc(in.Labels, func(l catalog.Label) bool { return l.Concept == id && l.Value != log.Removed }) {
			n.labelled++
		}
		if slices.ContainsFunc(in.Edits, func(e catalog.Edit) bool { return e.Concept == id && !e.Removed }) {
			n.edited++
		}
		return true
	}); err != nil {
		return n, err
	}
	n.models, n.versions, err = v.CountModelsWith(id)
	return n, err
}
