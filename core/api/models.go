package api

import (
	"slices"
	"strings"

	"github.com/sightline-dev/sightline/core/api/call"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/jsonio"
	"github.com/sightline-dev/sightline/core/lang"
	"github.com/sightline-dev/sightline/core/predict"
)

// listModels lists the application's models in the order of their creation, then the
// public ones.
func listModels(x *call.Call) error {
	return answerModels(x, func(model) bool { return true })
}

// searchModels finds models by model_query: name, which may end in a `*`, and type, which
// is a model's type or type_ext. What is absent matches all.
func searchModels(x *call.Call) error {
	query, err := x.Body.Object("model_query")
	if err != nil {
		return call.Refuse(call.ErrModelQuery, err)
	}
	name, err := query.Text("name")
	if err != nil {
		return call.Refuse(call.ErrModelQuery, err)
	}
	kind, err := query.Text("type")
	if err != nil {
		return call.Refuse(call.ErrModelQuery, err)
	}
	return answerModels(x, func(m model) bool {
		is := predict.Model{Type: predict.TypeConcept, TypeExt: string(predict.TypeConcept)}
		if m.public != nil {
			is = *m.public
		} else {
			is.Name = m.own.Name
		}
		return called(is.Name, name) && (kind == "" || kind == "*" || kind == string(is.Type) || kind == is.TypeExt)
	})
}

// called reports whether a name matches a pattern whose last `*` stands for any rest.
func called(name, pattern string) bool {
	if stem, wild := strings.CutSuffix(pattern, "*"); wild {
		return strings.HasPrefix(name, stem)
	}
	return pattern == "" || name == pattern
}

// answerModels answers with the page of those models that match, own ones first.
func answerModels(x *call.Call, match func(model) bool) error {
	p, err := x.Page()
	if err != nil {
		return err
	}
	v := x.View()
	defer v.Close()
	var rows []model
	n := int64(0)
	if err := v.Models(func(m catalog.Model) bool {
		own := model{own: &m}
		if !match(own) {
			return true
		}
		if p.Has(n) {
			m.Concepts = nil // a list shows none
			for i := range m.Config {
				m.Config[i].JSON = x.Weigh(m.Config[i].JSON)
			}
			rows = append(rows, own)
		}
		n++
		return true
	}); err != nil {
		return err
	}
	for _, m := range x.Net.Models.Models() {
		if public := (model{public: m}); match(public) {
			if p.Has(n) {
				rows = append(rows, public)
			}
			n++
		}
	}
	for i := range rows {
		if own := rows[i].own; own != nil && own.Newest != "" {
			newest, err := v.Version(own.Dot, own.Newest)
			if err != nil {
				return err
			}
			clear(newest.Concepts) // a list shows their number
			rows[i].version = &newest
		}
	}
	writeModels(x, rows)
	return nil
}

func writeModels(x *call.Call, models []model) {
	x.OK(func(w *jsonio.Writer) {
		w.Name("models")
		w.Array()
		for _, m := range models {
			writeModel(x, w, &shown{model: m})
		}
		w.End(']')
	})
}

// answerModel answers with one model.
func answerModel(x *call.Call, m model, form infoForm) error {
	v := x.View()
	defer v.Close()
	s, err := infoOf(x, v, m, form)
	if err != nil {
		return err
	}
	x.OK(func(w *jsonio.Writer) {
		w.Name("model")
		writeModel(x, w, &s)
	})
	return nil
}

func readModel(x *call.Call) error { return answerModelOfPath(x, message) }

func readOutputInfo(x *call.Call) error { return answerModelOfPath(x, concepts) }

func answerModelOfPath(x *call.Call, form infoForm) error {
	v := x.View()
	defer v.Close()
	m, err := modelOfPath(x, v)
	if err != nil {
		return err
	}
	return answerModel(x, m, form)
}

// writePublicApp writes the app_id of what is everyone's.
func writePublicApp(x *call.Call, w *jsonio.Writer) {
	if id := x.Host.PublicAppID; id != "" {
		w.String(id)
	} else {
		w.Null()
	}
}

// languageOf is the language of a model's names in a request that sets none: the
// application's, English for a model that does not speak it.
func languageOf(x *call.Call, m *predict.Model) string {
	if slices.Contains(m.Languages, x.App.Language) {
		return x.App.Language
	}
	return lang.English
}
