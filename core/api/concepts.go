package api

import (
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/sightline-dev/sightline/core/api/call"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/jsonio"
	"github.com/sightline-dev/sightline/core/lang"
	"github.com/sightline-dev/sightline/core/partition"
	"github.com/sightline-dev/sightline/core/predict"
)

// named is a concept as answers show it: public or the application's own.
type named struct {
	id, name, language string
	created, updated   time.Time
	public             bool
}

// publicNamed is a public concept in a language. Its dates are those of the model that
// brought it.
func publicNamed(x *call.Call, p call.Public, language string) named {
	return named{
		id: p.Concept.ID, name: conceptName(x, p.Concept, language), language: language,
		created: p.Model.CreatedAt, updated: p.Model.VersionCreatedAt, public: true,
	}
}

// ownNamed is a concept of the application's own, which has one name in all languages.
func ownNamed(x *call.Call, c *catalog.Concept) named {
	language := c.Language
	if language == "" {
		language = x.App.Language
	}
	return named{id: c.ID, name: c.Name, language: language, created: c.Created.Time(), updated: c.Updated.Time()}
}

// conceptNamed finds a concept by id. The error is catalog.ErrNotFound for one that is
// neither public nor the application's.
func conceptNamed(x *call.Call, v *partition.View, id, language string) (named, error) {
	if p, ok := x.Net.Concepts[id]; ok {
		return publicNamed(x, p, language), nil
	}
	c, err := v.Concept(id)
	if err != nil {
		return named{}, err
	}
	return ownNamed(x, &c), nil
}

// conceptsNamed finds concepts by id, in the order of ids.
func conceptsNamed(x *call.Call, v *partition.View, ids []string, language string) ([]named, error) {
	all := make([]named, 0, len(ids))
	for _, id := range ids {
		c, err := conceptNamed(x, v, id, language)
		if err != nil {
			return nil, err
		}
		all = append(all, c)
	}
	return all, nil
}

// listConcepts lists the application's concepts in the order of their creation, then the
// public ones: those of the general model, in its order.
func listConcepts(x *call.Call) error {
	p, err := x.Page()
	if err != nil {
		return err
	}
	v := x.View()
	defer v.Close()
	var rows []named
	n := int64(0)
	if err := v.Concepts(func(c catalog.Concept) bool {
		if p.Has(n) {
			rows = append(rows, ownNamed(x, &c))
		}
		n++
		return true
	}); err != nil {
		return err
	}
	m := x.Net.Models.General()
	language := languageOf(x, m)
	for i := range m.Concepts {
		if p.Has(n) {
			rows = append(rows, publicNamed(x, call.Public{Model: m, Concept: &m.Concepts[i]}, language))
		}
		n++
	}
	writeConceptList(x, rows, known)
	return nil
}

func writeConceptList(x *call.Call, rows []named, form conceptForm) {
	x.OK(func(w *jsonio.Writer) {
		w.Name("concepts")
		w.Array()
		for i := range rows {
			writeConcept(x, w, &rows[i], form)
		}
		w.End(']')
	})
}

// readConcept finds a concept by its id.
func readConcept(x *call.Call) error {
	id := x.IDs["concept_id"]
	v := x.View()
	defer v.Close()
	language := lang.English
	if p, ok := x.Net.Concepts[id]; ok {
		language = languageOf(x, p.Model)
	}
	c, err := conceptNamed(x, v, id, language)
	if errors.Is(err, catalog.ErrNotFound) {
		return call.Unknown("concept_id", id)
	}
	if err != nil {
		return err
	}
	x.OK(func(w *jsonio.Writer) {
		w.Name("concept")
		writeConcept(x, w, &c, known)
	})
	return nil
}

// searchConcepts finds concepts by concept_query: name, which may end in a `*`, in a
// language, the application's when absent. The application's own come first; their one
// name counts in every language.
func searchConcepts(x *call.Call) error {
	p, err := x.Page()
	if err != nil {
		return err
	}
	query, err := x.Body.Object("concept_query")
	if err != nil {
		return call.Refuse(call.ErrConceptQuery, err)
	}
	name, err := query.Text("name")
	if err != nil {
		return call.Refuse(call.ErrConceptQuery, err)
	}
	if name == "" {
		return call.Refusef(call.ErrConceptQuery, "%s is required; use \"*\" to match every name.", query.At("name"))
	}
	language, err := query.Text("language")
	if err != nil {
		return call.Refuse(call.ErrConceptQuery, err)
	}
	if language == "" {
		language = x.App.Language
	}
	ids, err := x.Net.Models.Names().Search(name, language)
	if err != nil {
		return call.Refuse(call.ErrConceptQuery, err)
	}
	all, err := ownConceptsCalled(x, name)
	if err != nil {
		return err
	}
	for _, id := range ids {
		if p, ok := x.Net.Concepts[id]; ok {
			all = append(all, publicNamed(x, p, language))
		}
	}
	writeConceptList(x, call.Cut(all, p), found)
	return nil
}

// ownConceptsCalled finds the application's concepts by name, in the order of the folded
// names, as public ones are found and ordered.
func ownConceptsCalled(x *call.Call, pattern string) ([]named, error) {
	v := x.View()
	defer v.Close()
	stem, wild := strings.CutSuffix(pattern, "*")
	stem = lang.Fold(stem)
	type row struct {
		key string
		c   named
	}
	var rows []row
	err := v.Concepts(func(c catalog.Concept) bool {
		key := lang.Fold(c.Name)
		if key == stem || wild && strings.HasPrefix(key, stem) {
			rows = append(rows, row{key, ownNamed(x, &c)})
		}
		return true
	})
	slices.SortStableFunc(rows, func(a, b row) int { return strings.Compare(a.key, b.key) })
	all := make([]named, len(rows))
	for i := range rows {
		all[i] = rows[i].c
	}
	return all, err
}

// conceptForm is the form of a concept: searches add when it was last changed.
type conceptForm bool

const (
	known conceptForm = false
	found conceptForm = true
)

// writeConcept writes a concept as reads and searches show it. Clients that want the app_id
// "main" fail on updated_at.
func writeConcept(x *call.Call, w *jsonio.Writer, c *named, form conceptForm) {
	w.Object()
	w.Name("id")
	w.String(c.id)
	w.Name("name")
	w.String(c.name)
	w.Name("value")
	w.Int(1)
	w.Name("created_at")
	w.String(timestamp(c.created))
	if form == found && x.Host.PublicAppID != "main" {
		w.Name("updated_at")
		w.String(timestamp(c.updated))
	}
	w.Name("language")
	w.String(c.language)
	w.Name("app_id")
	writeApp(x, w, c.public)
	w.End('}')
}

// writeApp writes an app_id: what is public has everyone's.
func writeApp(x *call.Call, w *jsonio.Writer, public bool) {
	if public {
		writePublicApp(x, w)
	} else {
		w.String(x.App.ID)
	}
}

// conceptName is what a concept is called in a language; the English name where the
// names have none, as for colours.
func conceptName(x *call.Call, c *predict.Concept, language string) string {
	if language != lang.English {
		if name, ok := x.Net.Models.Names().Name(c.ID, language); ok {
			return name
		}
	}
	return c.Name
}
