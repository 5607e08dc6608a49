package models

import (
	"cmp"
	"slices"
	"strings"

	"github.com/sightline-dev/sightline/core/api/call"
	"github.com/sightline-dev/sightline/core/api/show"
	"github.com/sightline-dev/sightline/core/auth"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/index"
	"github.com/sightline-dev/sightline/core/jsonio"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/partition"
)

// usedConcept is a concept with its usage.
type usedConcept struct {
	show.Concept
	present, absent uint64   // number of inputs that users labelled with it, and as not having it
	predicted       uint64   // number of inputs with this prediction; for a custom concept, known only on the shown page
	models          []string // ids of the custom models with this concept
}

// ConceptUsage lists the custom concepts, then the concepts of the general model that are in use: a label or a prediction of an input,
// or part of a custom model. They are sorted by number of labelled inputs, then of predictions, then by id. The parameter q is the start
// of their names in language, by default the application's language.
func ConceptUsage(x *call.Call) error {
	p, err := x.Page()
	if err != nil {
		return err
	}
	language := cmp.Or(x.Param("language"), x.App.Language)
	pattern := x.Param("q") + "*"
	ids, err := x.Net.Models.Names().Search(pattern, language)
	if err != nil {
		return call.Refuse(call.ErrConceptQuery, err)
	}
	v := x.View()
	index := x.App.Partition.Index().At(v.Reader)
	models, err := modelsOf(v)
	if err != nil {
		return err
	}
	own, err := ownUsed(x, v, index, pattern, models)
	if err != nil {
		return err
	}
	public, err := publicUsed(x, index, ids, language, models)
	if err != nil {
		return err
	}
	all := append(own, public...)
	rows := call.PageRows(all, p)
	if err := predictedOf(x, index, rows); err != nil {
		return err
	}
	return x.OK(func(w *jsonio.Writer) {
		show.WriteInt(w, "total", len(all))
		w.List("concepts", len(rows), func(i int) { writeUsed(x, w, &rows[i]) })
	})
}

// predictedOf counts the predictions of the custom concepts among rows.
func predictedOf(x *call.Call, index *index.View, rows []usedConcept) error {
	var own []string
	for i := range rows {
		if !rows[i].Public {
			own = append(own, rows[i].ID)
		}
	}
	if err := index.Warm(x.Ctx, own); err != nil {
		return err
	}
	for i := range rows {
		if rows[i].Public {
			continue
		}
		var err error
		if rows[i].predicted, err = index.CountPresent(x.Ctx, rows[i].ID); err != nil {
			return err
		}
	}
	return nil
}

// modelsOf returns the ids of the custom models with each concept, by concept id.
func modelsOf(v *partition.View) (map[string][]string, error) {
	of := map[string][]string{}
	return of, v.Models(func(m catalog.Model) bool {
		for _, id := range show.ModelConcepts(&m) {
			of[id] = append(of[id], m.ID)
		}
		return true
	})
}

// labels counts the users' labels.
func (u *usedConcept) labels(x *index.View) (err error) {
	if u.present, err = x.CountLabelled(u.ID, log.True); err != nil {
		return err
	}
	u.absent, err = x.CountLabelled(u.ID, log.False)
	return err
}

func ownUsed(x *call.Call, v *partition.View, index *index.View, pattern string, models map[string][]string) ([]usedConcept, error) {
	concepts, err := ownConceptsCalled(x, v, pattern)
	if err != nil {
		return nil, err
	}
	all := make([]usedConcept, len(concepts))
	for i := range concepts {
		all[i] = usedConcept{Concept: concepts[i], models: models[concepts[i].ID]}
		if err := all[i].labels(index); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(all, mostUsed)
	return all, nil
}

// publicUsed returns the concepts of the general model that are in use.
func publicUsed(x *call.Call, index *index.View, ids []string, language string, models map[string][]string) ([]usedConcept, error) {
	general := x.Net.Models.General()
	var all []usedConcept
	for _, id := range ids {
		place, ok := x.Net.Indices[general][id]
		if !ok {
			continue
		}
		u := usedConcept{Concept: show.PublicConcept(x, call.PublicConcept{Model: general, Concept: &general.Concepts[place]}, language), models: models[id]}
		if err := u.labels(index); err != nil {
			return nil, err
		}
		var err error
		if u.predicted, err = index.CountPresent(x.Ctx, id); err != nil {
			return nil, err
		}
		if u.present+u.absent+u.predicted > 0 || len(u.models) > 0 {
			all = append(all, u)
		}
	}
	slices.SortFunc(all, mostUsed)
	return all, nil
}

// mostUsed compares concepts: more labels first, then more predictions, then by id.
func mostUsed(a, b usedConcept) int {
	return cmp.Or(cmp.Compare(b.present+b.absent, a.present+a.absent), cmp.Compare(b.predicted, a.predicted), strings.Compare(a.ID, b.ID))
}

func writeUsed(x *call.Call, w *jsonio.Writer, u *usedConcept) {
	w.Object()
	show.WriteText(w, "id", u.ID)
	show.WriteText(w, "name", u.Name)
	if !u.Public {
		show.WriteText(w, "app_id", x.App.ID)
	}
	show.WriteInt(w, "present", u.present)
	show.WriteInt(w, "absent", u.absent)
	show.WriteInt(w, "predicted", u.predicted)
	if x.Shows(auth.ModelsGet) {
		w.Texts("models", u.models)
	}
	w.End('}')
}
