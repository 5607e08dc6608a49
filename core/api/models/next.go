package models

import (
	"cmp"
	"errors"
	"slices"

	"github.com/sightline-dev/sightline/core/api/call"
	"github.com/sightline-dev/sightline/core/api/show"
	"github.com/sightline-dev/sightline/core/auth"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/jsonio"
	"github.com/sightline-dev/sightline/core/lang"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/partition"
	"github.com/sightline-dev/sightline/core/predict"
	"github.com/sightline-dev/sightline/core/training"
)

// Next lists inputs without a label for the model's concepts, most useful for its training first. total counts all of them. The list
// ends after training.MaxSuggestions inputs.
func Next(x *call.Call) error {
	p, err := x.Page()
	if err != nil {
		return err
	}
	v, m, err := taughtModel(x)
	if err != nil {
		return err
	}
	index := x.App.Partition.Index().At(v.Reader)
	known, err := labelledWith(x, v, show.ModelConcepts(m.Custom))
	if err != nil {
		return err
	}
	unlabelled, err := index.AnalysedInputs()
	if err != nil {
		return err
	}
	known.And(unlabelled)
	unlabelled.AndNot(known)
	q, err := newQuestioner(x, v, m.Custom)
	if err != nil {
		return err
	}
	total := unlabelled.GetCardinality()
	depth := min(p.Number*p.Size, training.MaxSuggestions)
	list, err := training.Suggest(x.Ctx, index, unlabelled, known, q.judge(), int(depth))
	if err != nil {
		return err
	}
	rows := call.PageRows(list, p)
	inputs := make([]catalog.Input, len(rows))
	var lines show.ConceptNames
	for i := range rows {
		if inputs[i], err = lines.Load(x, v, rows[i].Ord); err != nil {
			return err
		}
	}
	return x.OK(func(w *jsonio.Writer) {
		show.WriteInt(w, "total", total)
		w.Objects("inputs", len(rows), func(i int) {
			show.WriteInputMembers(x, w, &lines, &inputs[i], nil)
			q.write(x, w, &rows[i], inputs[i].Created > q.since)
		})
	})
}

// questioner has the predictions of a model's newest trained version.
type questioner struct {
	head     *call.LoadedHead // nil if there is no such version
	names    []show.Concept   // concepts that the head and the model share
	places   []int            // indices of these concepts in the head
	relation training.Relation
	since    log.HLC // time of the version's creation
}

func newQuestioner(x *call.Call, v *partition.View, m *catalog.Model) (*questioner, error) {
	q := &questioner{relation: training.RelationOf(m.Config)}
	newest, err := lastTrained(v, m)
	if err != nil || newest == nil {
		return q, err
	}
	q.since = newest.Created
	head, err := x.Host.Heads.Load(v, newest, x.Net.Base)
	if errors.Is(err, call.ErrQueued) {
		return q, nil // the head belongs to another network; the version is being retrained
	}
	if err != nil {
		return q, err
	}
	q.head = head
	var ids []string
	for _, id := range show.ModelConcepts(m) {
		if place, ok := head.Indices[id]; ok {
			ids, q.places = append(ids, id), append(q.places, place)
		}
	}
	q.names, err = show.ConceptsNamed(x, v, ids, lang.English)
	return q, err
}

// judge returns the evaluation function of the head. It returns nil if there is no head, or none that has a concept of the model.
func (q *questioner) judge() training.Evaluate {
	if len(q.places) == 0 {
		return nil
	}
	all := make([]float32, 0, len(q.head.Concepts))
	return func(e *predict.Embedding) ([]float32, float64) {
		all = q.head.Values(all[:0], e)
		values := make([]float32, len(q.places))
		for i, place := range q.places {
			values[i] = all[place]
		}
		return values, training.Uncertainty(values, q.relation)
	}
}

// write writes the reason why an input is in the list, and its predictions.
func (q *questioner) write(x *call.Call, w *jsonio.Writer, row *training.Suggestion, later bool) {
	why := string(row.Reason)
	if row.Reason == training.Different && later && q.head != nil {
		why = "new"
	}
	w.ObjectMember("useful")
	show.WriteFloat32(w, "score", row.Score)
	show.WriteText(w, "why", why)
	w.End('}')
	if !x.Shows(auth.ConceptsGet) {
		return
	}
	order := make([]int, len(row.Values))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(row.Values[b], row.Values[a]), cmp.Compare(q.names[a].ID, q.names[b].ID))
	})
	w.List("predicted", len(order), func(i int) { writeJudged(w, &q.names[order[i]], row.Values[order[i]]) })
}

// writeJudged writes a concept with a model's value.
func writeJudged(w *jsonio.Writer, c *show.Concept, value float32) {
	w.Object()
	show.WriteText(w, "id", c.ID)
	show.WriteText(w, "name", c.Name)
	show.WriteFloat32(w, "value", value)
	w.End('}')
}
