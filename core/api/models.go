package api

import (
	"slices"
	"strings"

	"github.com/sightline-dev/sightline/core/jsonio"
	"github.com/sightline-dev/sightline/core/lang"
	"github.com/sightline-dev/sightline/core/predict"
)

func listModels(x *exchange) error {
	p, err := x.paged()
	if err != nil {
		return err
	}
	x.writeModels(cut(x.s.o.Models.Models(), p))
	return nil
}

// searchModels finds models by model_query: name, which may end in a `*`, and type, which
// is a model's type or type_ext. What is absent matches all.
func searchModels(x *exchange) error {
	p, err := x.paged()
	if err != nil {
		return err
	}
	query, err := x.body.object("model_query")
	if err != nil {
		return refuse(ErrModelQuery, err)
	}
	name, err := query.text("name")
	if err != nil {
		return refuse(ErrModelQuery, err)
	}
	kind, err := query.text("type")
	if err != nil {
		return refuse(ErrModelQuery, err)
	}
	var found []*predict.Model
	for _, m := range x.s.o.Models.Models() {
		if called(m.Name, name) && (kind == "" || kind == "*" || kind == string(m.Type) || kind == m.TypeExt) {
			found = append(found, m)
		}
	}
	x.writeModels(cut(found, p))
	return nil
}

// called reports whether a name matches a pattern whose last `*` stands for any rest.
func called(name, pattern string) bool {
	if stem, wild := strings.CutSuffix(pattern, "*"); wild {
		return strings.HasPrefix(name, stem)
	}
	return pattern == "" || name == pattern
}

func (x *exchange) writeModels(models []*predict.Model) {
	x.ok(func(w *jsonio.Writer) {
		w.Name("models")
		w.Array()
		for _, m := range models {
			x.writeModel(w, m, message)
		}
		w.End(']')
	})
}

// model finds the model that the path names, and its version where it names one too.
func (x *exchange) model() (*predict.Model, error) {
	id := x.ids["model_id"]
	m, ok := x.s.o.Models.Model(id)
	if !ok {
		return nil, unknown("model_id", id)
	}
	if version, named := x.ids["version_id"]; named && version != m.VersionID {
		return nil, unknown("model_version_id", version)
	}
	return m, nil
}

// unknown is the error for an id that stands for nothing.
func unknown(what, id string) error {
	return refusef(ErrPath, "%s '%s' not found. Check the url of your request.", what, id)
}

func readModel(x *exchange) error {
	m, err := x.model()
	if err != nil {
		return err
	}
	x.ok(func(w *jsonio.Writer) {
		w.Name("model")
		x.writeModel(w, m, message)
	})
	return nil
}

func readOutputInfo(x *exchange) error {
	m, err := x.model()
	if err != nil {
		return err
	}
	x.ok(func(w *jsonio.Writer) {
		w.Name("model")
		x.writeModel(w, m, concepts)
	})
	return nil
}

func listVersions(x *exchange) error {
	m, err := x.model()
	if err != nil {
		return err
	}
	p, err := x.paged()
	if err != nil {
		return err
	}
	x.ok(func(w *jsonio.Writer) {
		w.Name("model_versions")
		w.Array()
		for range cut([]struct{}{{}}, p) {
			writeVersion(w, m)
		}
		w.End(']')
	})
	return nil
}

func readVersion(x *exchange) error {
	m, err := x.model()
	if err != nil {
		return err
	}
	x.ok(func(w *jsonio.Writer) {
		w.Name("model_version")
		writeVersion(w, m)
	})
	return nil
}

// infoForm is the form of a model's output_info: a message everywhere but on the path
// that the message names, which shows the concepts instead.
type infoForm bool

const (
	message  infoForm = false
	concepts infoForm = true
)

func (x *exchange) writeModel(w *jsonio.Writer, m *predict.Model, form infoForm) {
	w.Object()
	w.Name("id")
	w.String(m.ID)
	w.Name("name")
	w.String(m.Name)
	w.Name("created_at")
	w.String(timestamp(m.CreatedAt))
	w.Name("app_id")
	x.writePublicApp(w)
	w.Name("output_info")
	x.writeOutputInfo(w, m, form)
	w.Name("model_version")
	writeVersion(w, m)
	if m.DisplayName != "" {
		w.Name("display_name")
		w.String(m.DisplayName)
	}
	w.End('}')
}

func (x *exchange) writeOutputInfo(w *jsonio.Writer, m *predict.Model, form infoForm) {
	w.Object()
	switch {
	case form == message:
		w.Name("message")
		w.String("Show output_info with: GET /models/{model_id}/output_info")
	case len(m.Concepts) > 0:
		w.Name("data")
		w.Object()
		w.Name("concepts")
		w.Array()
		language := x.spoken(m)
		for i := range m.Concepts {
			x.writeConcept(w, m, &m.Concepts[i], language, known)
		}
		w.End(']')
		w.End('}')
	}
	w.Name("type")
	w.String(string(m.Type))
	w.Name("type_ext")
	w.String(m.TypeExt)
	w.End('}')
}

func writeVersion(w *jsonio.Writer, m *predict.Model) {
	w.Object()
	w.Name("id")
	w.String(m.VersionID)
	w.Name("created_at")
	w.String(timestamp(m.VersionCreatedAt))
	w.Name("status")
	writeStatus(w, statusTrained, "")
	if n := len(m.Concepts); n > 0 {
		w.Name("active_concept_count")
		w.Int(int64(n))
	}
	w.End('}')
}

// writePublicApp writes the app_id of what is everyone's.
func (x *exchange) writePublicApp(w *jsonio.Writer) {
	if id := x.s.o.PublicAppID; id != "" {
		w.String(id)
	} else {
		w.Null()
	}
}

// spoken is the language of a model's names in a request that sets none: the
// application's, English for a model that does not speak it.
func (x *exchange) spoken(m *predict.Model) string {
	if slices.Contains(m.Languages, x.s.o.DefaultLanguage) {
		return x.s.o.DefaultLanguage
	}
	return lang.English
}
