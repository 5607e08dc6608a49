package api

import (
	"github.com/sightline-dev/sightline/core/jsonio"
	"github.com/sightline-dev/sightline/core/lang"
	"github.com/sightline-dev/sightline/core/predict"
)

// listConcepts lists the public concepts: those of the general model, in its order.
func listConcepts(x *exchange) error {
	p, err := x.paged()
	if err != nil {
		return err
	}
	m := x.s.o.Models.General()
	language := x.spoken(m)
	x.ok(func(w *jsonio.Writer) {
		w.Name("concepts")
		w.Array()
		rows := cut(m.Concepts, p)
		for i := range rows {
			x.writeConcept(w, m, &rows[i], language, known)
		}
		w.End(']')
	})
	return nil
}

// readConcept finds a concept of any public model by its id.
func readConcept(x *exchange) error {
	id := x.ids["concept_id"]
	p, ok := x.s.concepts[id]
	if !ok {
		return unknown("concept_id", id)
	}
	x.ok(func(w *jsonio.Writer) {
		w.Name("concept")
		x.writeConcept(w, p.model, p.concept, x.spoken(p.model), known)
	})
	return nil
}

// searchConcepts finds concepts by concept_query: name, which may end in a `*`, in a
// language, the application's when absent.
func searchConcepts(x *exchange) error {
	p, err := x.paged()
	if err != nil {
		return err
	}
	query, err := x.body.object("concept_query")
	if err != nil {
		return refuse(ErrConceptQuery, err)
	}
	name, err := query.text("name")
	if err != nil {
		return refuse(ErrConceptQuery, err)
	}
	if name == "" {
		return refusef(ErrConceptQuery, "%s is missing; \"*\" matches every name.", query.at("name"))
	}
	language, err := query.text("language")
	if err != nil {
		return refuse(ErrConceptQuery, err)
	}
	if language == "" {
		language = x.s.o.DefaultLanguage
	}
	ids, err := x.s.o.Models.Names().Search(name, language)
	if err != nil {
		return refuse(ErrConceptQuery, err)
	}
	x.ok(func(w *jsonio.Writer) {
		w.Name("concepts")
		w.Array()
		for _, id := range cut(ids, p) {
			if p, ok := x.s.concepts[id]; ok {
				x.writeConcept(w, p.model, p.concept, language, found)
			}
		}
		w.End(']')
	})
	return nil
}

// conceptForm is the form of a concept: searches add when it was last changed.
type conceptForm bool

const (
	known conceptForm = false
	found conceptForm = true
)

// writeConcept writes a public concept as reads and searches show it. Its dates are those
// of the model that brought it. Clients that want the app_id "main" fail on updated_at.
func (x *exchange) writeConcept(w *jsonio.Writer, m *predict.Model, c *predict.Concept, language string, form conceptForm) {
	w.Object()
	w.Name("id")
	w.String(c.ID)
	w.Name("name")
	w.String(x.conceptName(c, language))
	w.Name("value")
	w.Int(1)
	w.Name("created_at")
	w.String(timestamp(m.CreatedAt))
	if form == found && x.s.o.PublicAppID != "main" {
		w.Name("updated_at")
		w.String(timestamp(m.VersionCreatedAt))
	}
	w.Name("language")
	w.String(language)
	w.Name("app_id")
	x.writePublicApp(w)
	w.End('}')
}

// conceptName is what a concept is called in a language; the English name where the
// names have none, as for colours.
func (x *exchange) conceptName(c *predict.Concept, language string) string {
	if language != lang.English {
		if name, ok := x.s.o.Models.Names().Name(c.ID, language); ok {
			return name
		}
	}
	return c.Name
}
