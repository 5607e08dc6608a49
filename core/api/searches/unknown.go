package searches

import (
	"github.com/sightline-dev/sightline/core/api/call"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/lang"
)

// unknownNames are the names in a query that no concept has.
type unknownNames []unknownName

type unknownName struct {
	path, name, code string
	speller          *lang.Speller // nil after the first maxSpelled names
}

// maxSpelled is the number of unknown names of a query for which the answer has a known name.
const maxSpelled = 8

func (u *unknownNames) add(path, name, code string) {
	n := unknownName{path: path, name: name, code: code}
	if len(*u) < maxSpelled {
		n.speller = lang.NewSpeller(name)
	}
	*u = append(*u, n)
}

// notify adds a notice for each name, with the nearest known one: a public name in the query's language, or a name of the application. It
// adds none for a name that another public model than the general one has.
func (u unknownNames) notify(x *call.Call) error {
	if len(u) == 0 {
		return nil
	}
	if err := x.View().Concepts(func(c catalog.Concept) bool {
		for i := range u {
			u[i].consider(c.Name)
		}
		return true
	}); err != nil {
		return err
	}
	for i := range u {
		n := &u[i]
		if n.isPublic(x) {
			continue
		}
		text := call.Excerpt(n.name) + ": no such concept"
		if n.speller != nil {
			x.Net.Models.Names().Spell(n.speller, n.code)
			if nearest := n.speller.Nearest(); nearest != "" {
				text += "; " + call.Excerpt(nearest) + "?"
			}
		}
		x.Notify(n.path, text)
	}
	return nil
}

func (n *unknownName) consider(name string) {
	if n.speller != nil {
		n.speller.Consider(name)
	}
}

// isPublic reports whether a concept of any public model has the English name.
func (n *unknownName) isPublic(x *call.Call) bool {
	if n.code != lang.English {
		return false
	}
	for _, c := range x.Net.Concepts {
		if c.Concept.Name == n.name {
			return true
		}
	}
	return false
}
