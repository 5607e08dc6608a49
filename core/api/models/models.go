// Package models has the calls about models and their concepts. They create, change and train models, read their versions, evaluations
// and training sets, and find and name concepts. Public models cannot be changed.
// Training runs in the background, so a call that requests it only writes the request.
package models

import (
	"strings"

	"github.com/sightline-dev/sightline/core/api/call"
	"github.com/sightline-dev/sightline/core/api/show"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/jsonio"
	"github.com/sightline-dev/sightline/core/partition"
	"github.com/sightline-dev/sightline/core/predict"
)

// List lists the application's models in the order of their creation, then the
// public models.
func List(x *call.Call) error {
	return answerModels(x, func(show.Model) bool { return true })
}

// Search finds models by model_query: name, which may end in a `*`, and type, which is a model's type or type_ext. An absent member
// matches every model.
func Search(x *call.Call) error {
	var err error
	query := call.Read(&err, x.Body.Object, "model_query")
	name, kind := call.Read(&err, query.Text, "name"), call.Read(&err, query.Text, "type")
	if err != nil {
		return call.Refuse(call.ErrModelQuery, err)
	}
	return answerModels(x, func(m show.Model) bool {
		is := predict.Model{Type: predict.TypeConcept, TypeExt: string(predict.TypeConcept)}
		if m.Public != nil {
			is = *m.Public
		} else {
			is.Name = m.Custom.Name
		}
		return nameMatches(is.Name, name) && (kind == "" || kind == "*" || kind == string(is.Type) || kind == is.TypeExt)
	})
}

// nameMatches reports whether a name matches a pattern. A `*` at the end of the pattern matches any text.
func nameMatches(name, pattern string) bool {
	if stem, wild := strings.CutSuffix(pattern, "*"); wild {
		return strings.HasPrefix(name, stem)
	}
	return pattern == "" || name == pattern
}

// answerModels answers with a page of the models for which match returns true, custom models first.
func answerModels(x *call.Call, match func(show.Model) bool) error {
	p, err := x.Page()
	if err != nil {
		return err
	}
	v := x.View()
	var rows []show.Model
	n := int64(0)
	if err := v.Models(func(m catalog.Model) bool {
		own := show.Model{Custom: &m}
		if !match(own) {
			return true
		}
		if p.Has(n) {
			m.Concepts = nil // a list does not show them
			for i := range m.Config {
				m.Config[i].JSON = x.ReservePart(m.Config[i].JSON)
			}
			rows = append(rows, own)
		}
		n++
		return true
	}); err != nil {
		return err
	}
	for _, m := range x.Net.Models.Models() {
		if public := (show.Model{Public: m}); match(public) {
			if p.Has(n) {
				rows = append(rows, public)
			}
			n++
		}
	}
	for i := range rows {
		if own := rows[i].Custom; own != nil && own.Newest != "" {
			newest, err := v.Version(own.Dot, own.Newest)
			if err != nil {
				return err
			}
			clear(newest.Concepts) // a list shows their number
			rows[i].Version = &newest
		}
	}
	return writeModels(x, rows)
}

func writeModels(x *call.Call, models []show.Model) error {
	return x.OK(func(w *jsonio.Writer) {
		w.List("models", len(models), func(i int) { show.WriteModel(x, w, &show.ModelInfo{Model: models[i]}) })
	})
}

// answerModel answers with one model.
func answerModel(x *call.Call, v *partition.View, m show.Model, form show.InfoForm) error {
	s, err := show.InfoOf(x, v, m, form)
	if err != nil {
		return err
	}
	return x.OK(func(w *jsonio.Writer) {
		w.Name("model")
		show.WriteModel(x, w, &s)
	})
}

// Read answers with one model.
func Read(x *call.Call) error { return answerModelOfPath(x, show.InfoMessage) }

// OutputInfo answers with one model and its concepts.
func OutputInfo(x *call.Call) error { return answerModelOfPath(x, show.InfoConcepts) }

func answerModelOfPath(x *call.Call, form show.InfoForm) error {
	v, m, err := show.ModelOfPath(x)
	if err != nil {
		return err
	}
	return answerModel(x, v, m, form)
}
