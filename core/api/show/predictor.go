package show

import (
	"cmp"
	"slices"

	"github.com/sightline-dev/sightline/core/api/call"
	"github.com/sightline-dev/sightline/core/lang"
	"github.com/sightline-dev/sightline/core/predict"
)

// Predictor is the model of a predict call: a public model, or a trained version of a custom one.
type Predictor struct {
	ModelInfo
	Head  *call.LoadedHead // of a custom model
	names []Concept        // of a custom model's concepts, in the head's order
}

// FindPredictor finds a model that can predict, with the version named or else its newest
// trained one. Errors are 404s, ErrUntrained and ErrQueued.
func FindPredictor(x *call.Call, id, version string) (Predictor, error) {
	if _, public := x.Net.Models.Model(id); public {
		m, err := FindModel(x, nil, id, version)
		return Predictor{ModelInfo: ModelInfo{Model: m}}, err
	}
	v := x.View()
	m, err := FindModel(x, v, id, version)
	if err != nil {
		return Predictor{}, err
	}
	trained, err := TrainedVersion(v, &m)
	if err != nil {
		return Predictor{}, err
	}
	m.Version = &trained
	p := Predictor{ModelInfo: ModelInfo{Model: m}}
	if p.Head, err = x.Host.Heads.Load(v, &trained, x.Net.Base); err != nil {
		return Predictor{}, err
	}
	p.names, err = ConceptsNamed(x, v, p.Head.Concepts, lang.English)
	return p, err
}

// Kind is the type of the outputs.
func (p *Predictor) Kind() predict.Type {
	if p.Public != nil {
		return p.Public.Type
	}
	return predict.TypeConcept
}

// Want returns the parts that an analysis must have.
func (p *Predictor) Want() predict.Want {
	if p.Public != nil {
		return p.Public.Want()
	}
	return predict.WantConcepts
}

// languages are those that the names of the concepts can be asked in.
func (p *Predictor) languages() []string {
	if p.Public != nil {
		return p.Public.Languages
	}
	return english
}

var english = []string{lang.English}

// Place is that of a concept in the order of the values.
func (p *Predictor) Place(n *call.Network, id string) (int, bool) {
	if p.Public != nil {
		i, ok := n.Places[p.Public][id]
		return i, ok
	}
	i, ok := p.Head.Places[id]
	return i, ok
}

// size is the number of concepts.
func (p *Predictor) size() int {
	if p.Public != nil {
		return len(p.Public.Concepts)
	}
	return len(p.names)
}

// Concept is the id and the name of the concept at a place, and whether it is public.
func (p *Predictor) Concept(x *call.Call, i int, language string) (id, name string, public bool) {
	if p.Public != nil {
		c := &p.Public.Concepts[i]
		return c.ID, conceptName(x, c, language), true
	}
	c := &p.names[i]
	return c.ID, c.Name, c.Public
}

// values are those of the concepts; nil for an analysis that does not have them.
func (p *Predictor) values(a *predict.Analysis) []float32 {
	if p.Public != nil {
		return p.Public.Values(a)
	}
	return p.Head.Values(nil, &a.Embedding)
}

// complete reports whether an analysis has what the model's outputs are made from.
func (p *Predictor) complete(a *predict.Analysis) bool {
	if a.Has&p.Want() != p.Want() {
		return false
	}
	return p.Public == nil || p.Public.Type != predict.TypeConcept || len(p.Public.Values(a)) == len(p.Public.Concepts)
}

// rank returns the places of the concepts that an output lists when it selects none, by
// value descending, equal values by id: of a public model, which has hundreds, the first n of at
// least so much.
func (p *Predictor) rank(values []float32, n int, least float32) []int {
	if p.Public != nil {
		return p.Public.Top(make([]int, 0, n), values, n, least)
	}
	places := make([]int, len(values))
	for i := range places {
		places[i] = i
	}
	p.sort(places, values)
	return places
}

// sort puts places into the order of rank.
func (p *Predictor) sort(places []int, values []float32) {
	if p.Public != nil {
		p.Public.Sort(places, values)
		return
	}
	slices.SortFunc(places, func(a, b int) int {
		return cmp.Or(cmp.Compare(values[b], values[a]), cmp.Compare(p.names[a].ID, p.names[b].ID))
	})
}

// completes reports whether a result of a picture or of a video has what the model's outputs are made from.
func (p *Predictor) completes(r *call.Result, video bool) bool {
	if !video {
		return p.complete(&r.Analysis)
	}
	incomplete := func(f call.Frame) bool { return !p.complete(&f.Analysis) }
	return len(r.Frames) > 0 && !slices.ContainsFunc(r.Frames, incomplete)
}
