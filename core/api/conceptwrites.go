package api

import (
	"errors"
	"slices"
	"strings"
	"unicode"

	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/fold"
	"github.com/sightline-dev/sightline/core/lang"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/partition"
)

// createConcepts makes concepts of the application's own: all of the call's, or none when
// one cannot be.
func createConcepts(x *Call) error {
	elements, n, err := x.body.some("concepts", maxInputs, ErrConcept)
	if err != nil {
		return err
	}
	ids := make([]string, 0, n)
	bodies := make([]log.Body, 0, n)
	for o, err := range elements {
		if err != nil {
			return refuse(ErrConcept, err)
		}
		c, err := newConcept(x, o)
		if err != nil {
			return err
		}
		if slices.Contains(ids, c.ID) {
			return refusef(ErrConcept, "%s: duplicate value %q.", o.at("id"), c.ID)
		}
		ids = append(ids, c.ID)
		bodies = append(bodies, c)
	}
	if err := freeConcepts(x, ids); err != nil {
		return err
	}
	verdicts, err := x.record(bodies...)
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

// newConcept reads one concept to be made. Its name is its id unless it says another.
func newConcept(x *Call, o object) (*log.ConceptCreate, error) {
	id, err := o.text("id")
	if err != nil {
		return nil, refuse(ErrConcept, err)
	}
	name, err := o.text("name")
	if err != nil {
		return nil, refuse(ErrConcept, err)
	}
	language, err := o.text("language")
	if err != nil {
		return nil, refuse(ErrConcept, err)
	}
	if language != "" && !lang.Valid(language) {
		return nil, refusef(ErrConcept, "%s: unsupported language %q.", o.at("language"), language)
	}
	if language == x.app.Language {
		language = "" // as of concepts that a label or a model brings
	}
	switch {
	case id == "" && name == "":
		return nil, refusef(ErrConcept, "%s is missing.", o.at("id"))
	case id == "":
		if id, err = x.newID(); err != nil {
			return nil, err
		}
	case name == "":
		name = id
	}
	if err := checkConceptID(ErrConcept, o.at("id"), id); err != nil {
		return nil, err
	}
	return &log.ConceptCreate{ID: id, Name: name, Language: language}, checkName(ErrConcept, o, name)
}

// checkName refuses a name that is too long, or has control characters, which a terminal or a log would obey.
func checkName(kind error, o object, name string) error {
	if len(name) > maxNameBytes || strings.ContainsFunc(name, unicode.IsControl) {
		return refusef(kind, "%s: must be at most %d bytes without control characters.", o.at("name"), maxNameBytes)
	}
	return nil
}

// freeConcepts refuses ids that the application has already.
func freeConcepts(x *Call, ids []string) error {
	v := x.view()
	defer v.Close()
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
	return refusef(ErrConcept, "concept_id '%s' already exists.", id)
}

// answerConcepts answers with the application's concepts of these ids.
func answerConcepts(x *Call, ids []string) error {
	v := x.view()
	defer v.Close()
	all, err := conceptsNamed(x, v, ids, lang.English)
	if errors.Is(err, catalog.ErrNotFound) {
		return unknown("concept_id", strings.Join(ids, ", "))
	}
	if err != nil {
		return err
	}
	writeConceptList(x, all, known)
	return nil
}

// renameConcepts renames concepts of the application's own.
func renameConcepts(x *Call) error {
	if _, err := readAction(x, map[string]patchAction{"overwrite": overwrite}); err != nil {
		return err
	}
	elements, n, err := x.body.some("concepts", maxInputs, ErrConcept)
	if err != nil {
		return err
	}
	v := x.view()
	defer v.Close()
	ids := make([]string, 0, n)
	bodies := make([]log.Body, 0, n)
	for o, err := range elements {
		if err != nil {
			return refuse(ErrConcept, err)
		}
		id, err := o.text("id")
		if err != nil {
			return refuse(ErrConcept, err)
		}
		name, err := o.text("name")
		if err != nil {
			return refuse(ErrConcept, err)
		}
		if _, public := x.net.concepts[id]; public || isPublicID(id) {
			return refusef(ErrConcept, "concept_id '%s' is public and cannot be changed.", id)
		}
		_, err = v.Concept(id)
		if errors.Is(err, catalog.ErrNotFound) {
			return unknown("concept_id", id)
		}
		if err != nil {
			return err
		}
		if name == "" {
			return refusef(ErrConcept, "%s is missing.", o.at("name"))
		}
		if err := checkName(ErrConcept, o, name); err != nil {
			return err
		}
		ids = append(ids, id)
		bodies = append(bodies, &log.ConceptName{ID: id, Name: name})
	}
	if _, err := x.record(bodies...); err != nil {
		return err
	}
	return answerConcepts(x, ids)
}

// record writes operations to the application's log and returns what the fold made of each.
func (x *Call) record(bodies ...log.Body) ([]fold.Verdict, error) {
	return x.submit(bodies, nil)
}

// view is the application's data at this moment; close it.
func (x *Call) view() *partition.View { return x.app.Partition.View() }
