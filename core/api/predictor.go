package api

import (
	"cmp"
	"slices"

	"github.com/sightline-dev/sightline/core/api/call"
	"github.com/sightline-dev/sightline/core/lang"
	"github.com/sightline-dev/sightline/core/predict"
)

// predictor is what a predict call runs its pictures through: a public model, or a trained
// version of the application's own.
type predictor struct {
	shown
	head  *call.LoadedHead // of an own model
	names []named          // of an own model's concepts, in the head's order
}

// findPredictor finds a model that can predict, with the version named or else its newest
// trained one. Errors are 404s, ErrUntrained and ErrQueued.
func findPredictor(x *call.Call, id, version string) (predictor, error) {
	if _, public := x.Net.Models.Model(id); public {
		m, err := findModel(x, nil, id, version)
		return predictor{shown: shown{model: m}}, err
	}
	v := x.View()
	defer v.Close()
	m, err := findModel(x, v, id, version)
	if err != nil {
		return predictor{}, err
	}
	trained, err := trainedVersion(v, &m)
	if err != nil {
		return predictor{}, err
	}
	m.version = &trained
	p := predictor{shown: shown{model: m}}
	if p.head, err = x.Host.Heads.Load(v, &trained, x.Net.Base); err != nil {
		return predictor{}, err
	}
	p.names, err = conceptsNamed(x, v, p.head.Concepts, lang.English)
	return p, err
}

// kind is the type of the outputs.
func (p *predictor) kind() predict.Type {
	if p.public != nil {
		return p.public.Type
	}
	return predict.TypeConcept
}

// want is what an analysis must have.
func (p *predictor) want() predict.Want {
	if p.public != nil {
		return p.public.Want()
	}
	return predict.WantConcepts
}

// languages are those that the names of the concepts can be asked in.
func (p *predictor) languages() []string {
	if p.public != nil {
		return p.public.Languages
	}
	return english
}

var english = []string{lang.English}

// place is that of a concept in the order of the values.
func (p *predictor) place(n *call.Network, id string) (int, bool) {
	if p.public != nil {
		i, ok := n.Places[p.public][id]
		return i, ok
	}
	i, ok := p.head.Places[id]
	return i, ok
}

// size is the number of concepts.
func (p *predictor) size() int {
	if p.public != nil {
		return len(p.public.Concepts)
	}
	return len(p.names)
}

// concept is the id and the name of the concept at a place, and whether it is public.
func (p *predictor) concept(x *call.Call, i int, language string) (id, name string, public bool) {
	if p.public != nil {
		c := &p.public.Concepts[i]
		return c.ID, conceptName(x, c, language), true
	}
	c := &p.names[i]
	return c.id, c.name, c.public
}

// values are those of the concepts; nil for an analysis that does not have them.
func (p *predictor) values(a *predict.Analysis) []float32 {
	if p.public != nil {
		return p.public.Values(a)
	}
	return p.head.Values(nil, &a.Embedding)
}

// complete reports whether an analysis has what the model's outputs are made from.
func (p *predictor) complete(a *predict.Analysis) bool {
	if a.Has&p.want() != p.want() {
		return false
	}
	return p.public == nil || p.public.Type != predict.TypeConcept || len(p.public.Values(a)) == len(p.public.Concepts)
}

// rank returns the places of the concepts that an output lists when it selects none, by
// value descending, equal values by id: of a public model, which has hundreds, the first n of at
// least so much.
func (p *predictor) rank(values []float32, n int, least float32) []int {
	if p.public != nil {
		return p.public.Top(make([]int, 0, n), values, n, least)
	}
	places := make([]int, len(values))
	for i := range places {
		places[i] = i
	}
	p.sort(places, values)
	return places
}

// sort puts places into the order of rank.
func (p *predictor) sort(places []int, values []float32) {
	if p.public != nil {
		p.public.Sort(places, values)
		return
	}
	slices.SortFunc(places, func(a, b int) int {
		return cmp.Or(cmp.Compare(values[b], values[a]), cmp.Compare(p.names[a].id, p.names[b].id))
	})
}
