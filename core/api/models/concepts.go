package models

import (
	"cmp"
	"slices"
	"strings"

	"github.com/sightline-dev/sightline/core/api/call"
	"github.com/sightline-dev/sightline/core/api/show"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/jsonio"
	"github.com/sightline-dev/sightline/core/lang"
	"github.com/sightline-dev/sightline/core/partition"
)

// ListConcepts lists the application's concepts in the order of their creation, then the
// concepts of the general model, in its order.
func ListConcepts(x *call.Call) error {
	p, err := x.Page()
	if err != nil {
		return err
	}
	v := x.View()
	var rows []show.Concept
	n := int64(0)
	if err := v.Concepts(func(c catalog.Concept) bool {
		if p.Has(n) {
			rows = append(rows, show.CustomConcept(x, &c))
		}
		n++
		return true
	}); err != nil {
		return err
	}
	m := x.Net.Models.General()
	language := show.LanguageOf(x, m)
	for i := range m.Concepts {
		if p.Has(n) {
			rows = append(rows, show.PublicConcept(x, call.PublicConcept{Model: m, Concept: &m.Concepts[i]}, language))
		}
		n++
	}
	return writeConceptList(x, rows, show.ReadForm)
}

func writeConceptList(x *call.Call, rows []show.Concept, form show.ConceptForm) error {
	return x.OK(func(w *jsonio.Writer) {
		w.List("concepts", len(rows), func(i int) { show.WriteConcept(x, w, &rows[i], form) })
	})
}

// ReadConcept answers with the concept in the path.
func ReadConcept(x *call.Call) error {
	id := x.IDs["concept_id"]
	v := x.View()
	language := lang.English
	if p, ok := x.Net.Concepts[id]; ok {
		language = show.LanguageOf(x, p.Model)
	}
	c, err := show.ConceptNamed(x, v, id, language)
	if err != nil {
		return call.ReplaceNotFound(err, call.UnknownIDError("concept_id", id))
	}
	return x.OK(func(w *jsonio.Writer) {
		w.Name("concept")
		show.WriteConcept(x, w, &c, show.ReadForm)
	})
}

// SearchConcepts finds concepts by the name in concept_query, which may end in a `*`. Without a language it searches names in the
// application's language. Custom concepts come first. A custom concept has one name, which matches in every language.
func SearchConcepts(x *call.Call) error {
	p, err := x.Page()
	if err != nil {
		return err
	}
	query := call.Read(&err, x.Body.Object, "concept_query")
	name := call.Read(&err, query.Text, "name")
	if err != nil {
		return call.Refuse(call.ErrConceptQuery, err)
	}
	if name == "" {
		return call.Refusef(call.ErrConceptQuery, "%s is required; use \"*\" to match every name.", query.MemberPath("name"))
	}
	language, err := query.Text("language")
	if err != nil {
		return call.Refuse(call.ErrConceptQuery, err)
	}
	language = cmp.Or(language, x.App.Language)
	ids, err := x.Net.Models.Names().Search(name, language)
	if err != nil {
		return call.Refuse(call.ErrConceptQuery, err)
	}
	all, err := ownConceptsCalled(x, x.View(), name)
	if err != nil {
		return err
	}
	for _, id := range ids {
		if p, ok := x.Net.Concepts[id]; ok {
			all = append(all, show.PublicConcept(x, p, language))
		}
	}
	return writeConceptList(x, call.PageRows(all, p), show.SearchForm)
}

// ownConceptsCalled finds the application's concepts by name, sorted by folded
// name. Public concepts are found and sorted in the same way.
func ownConceptsCalled(x *call.Call, v *partition.View, pattern string) ([]show.Concept, error) {
	stem, wild := strings.CutSuffix(pattern, "*")
	stem = lang.Fold(stem)
	type row struct {
		key string
		c   show.Concept
	}
	var rows []row
	err := v.Concepts(func(c catalog.Concept) bool {
		key := lang.Fold(c.Name)
		if key == stem || wild && strings.HasPrefix(key, stem) {
			rows = append(rows, row{key, show.CustomConcept(x, &c)})
		}
		return true
	})
	slices.SortStableFunc(rows, func(a, b row) int { return strings.Compare(a.key, b.key) })
	all := make([]show.Concept, len(rows))
	for i := range rows {
		all[i] = rows[i].c
	}
	return all, err
}
