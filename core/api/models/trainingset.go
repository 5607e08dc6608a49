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
	newest, err := lastTrained(v, m.Custom)
	if err != nil {
		return err
	}
	ids := show.ModelConcepts(m.Custom)
	survey, err := training.NewSurvey(v, x.App.Partition.Index().At(v.Reader), ids, newest)
	if err != nil {
		return err
	}
	names, err := show.ConceptsNamed(x, v, ids, lang.English)
	if err != nil {
		return err
	}
	advice := training.Advise(&survey, training.RelationOf(m.Custom.Config))
	return x.OK(func(w *jsonio.Writer) {
		w.ObjectMember("training_set")
		show.WriteInt(w, "inputs", survey.Inputs)
		show.WriteInt(w, "new_inputs", survey.New)
		if newest != nil {
			show.WriteText(w, "version_id", newest.ID)
		}
		if x.Shows(auth.ConceptsGet) {
			w.Objects("concepts", len(names), func(i int) {
				show.WriteText(w, "id", names[i].ID)
				show.WriteText(w, "name", names[i].Name)
				show.WriteInt(w, "positives", survey.Concepts[i].Positives)
				show.WriteInt(w, "negatives", survey.Concepts[i].Negatives)
			})
		}
		if advice.Code != training.NoAdvice {
			w.ObjectMember("advice")
			show.WriteText(w, "code", string(advice.Code))
			if advice.Concept >= 0 && x.Shows(auth.ConceptsGet) {
				show.WriteText(w, "concept_id", names[advice.Concept].ID)
			}
			if advice.Missing > 0 {
				show.WriteInt(w, "missing", advice.Missing)
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
