package models

import (
	"errors"

	"github.com/sightline-dev/sightline/core/api/call"
	"github.com/sightline-dev/sightline/core/api/show"
	"github.com/sightline-dev/sightline/core/auth"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/jsonio"
	"github.com/sightline-dev/sightline/core/lang"
	"github.com/sightline-dev/sightline/core/partition"
	"github.com/sightline-dev/sightline/core/training"
)

// TrainingSet answers with the data from which a training of a custom model would learn now, and with the most useful additions.
func TrainingSet(x *call.Call) error {
	v, m, err := taughtModel(x)
	if err != nil {
		return err
	}
	newest, err := lastTrained(v, m.Own)
	if err != nil {
		return err
	}
	ids := show.Members(m.Own)
	survey, err := training.Take(v, x.App.Partition.Index().At(v.Reader), ids, newest)
	if err != nil {
		return err
	}
	names, err := show.ConceptsNamed(x, v, ids, lang.English)
	if err != nil {
		return err
	}
	advice := training.Advise(&survey, training.RelationOf(m.Own.Config))
	return x.OK(func(w *jsonio.Writer) {
		w.Begin("training_set")
		show.Count(w, "inputs", survey.Inputs)
		show.Count(w, "new_inputs", survey.New)
		if newest != nil {
			show.Member(w, "version_id", newest.ID)
		}
		if x.Shows(auth.ConceptsGet) {
			w.Objects("concepts", len(names), func(i int) {
				show.Member(w, "id", names[i].ID)
				show.Member(w, "name", names[i].Name)
				show.Count(w, "positives", survey.Concepts[i].Positives)
				show.Count(w, "negatives", survey.Concepts[i].Negatives)
			})
		}
		if advice.Code != training.NoAdvice {
			w.Begin("advice")
			show.Member(w, "code", string(advice.Code))
			if advice.Concept >= 0 && x.Shows(auth.ConceptsGet) {
				show.Member(w, "concept_id", names[advice.Concept].ID)
			}
			if advice.Missing > 0 {
				show.Count(w, "missing", advice.Missing)
			}
			w.End('}')
		}
		w.End('}')
	})
}

// taughtModel returns the custom model in the path. For a public model it returns an error.
func taughtModel(x *call.Call) (*partition.View, show.Model, error) {
	v, m, err := show.ModelOfPath(x)
	if err == nil && m.Public != nil {
		err = call.Refusef(call.ErrModelArgument, "model_id '%s' is public and cannot be trained.", m.Public.ID)
	}
	return v, m, err
}

// lastTrained returns a model's newest trained version, or nil if it has none.
func lastTrained(v *partition.View, m *catalog.Model) (*catalog.Version, error) {
	got, err := show.NewestTrained(v, m)
	if errors.Is(err, call.ErrUntrained) || errors.Is(err, call.ErrQueued) {
		return nil, nil
	}
	return &got, err
}
