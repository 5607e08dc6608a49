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
	Head  *call.LoadedHead // nil for a public model
	names []Concept        // concepts of a custom model, in the head's order
}

// FindPredictor finds a model that can predict. It uses the version with an id, or the newest trained
// version if version is empty. Errors are 404s, ErrUntrained and ErrQueued.
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

// Kind returns the type of the model's outputs.
func (p *Predictor) Kind() predict.Type {
	if p.Public != nil {
		return p.Public.Type
	}
	return predict.TypeConcept
}

// Want returns the parts of an analysis that the model's outputs need.
func (p *Predictor) Want() predict.Want {
	if p.Public != nil {
		return p.Public.Want()
	}
	return predict.WantConcepts
}

// languages returns the supported languages of the concepts' names.
func (p *Predictor) languages() []string {
	if p.Public != nil {
		return p.Public.Languages
	}
	return english
}

var english = []string{lang.English}

// ConceptIndex returns the index of a concept in the order of the values, and whether the model has the concept.
func (p *Predictor) ConceptIndex(n *call.Network, id string) (int, bool) {
	if p.Public != nil {
		i, ok := n.Indices[p.Public][id]
		return i, ok
	}
	i, ok := p.Head.Indices[id]
	return i, ok
}

// size returns the number of concepts.
func (p *Predictor) size() int {
	if p.Public != nil {
		return len(p.Public.Concepts)
	}
	return len(p.names)
}

// Concept returns the id and the name of the concept at an index, and whether it is public.
func (p *Predictor) Concept(x *call.Call, i int, language string) (id, name string, public bool) {
	if p.Public != nil {
		c := &p.Public.Concepts[i]
		return c.ID, conceptName(x, c, language), true
	}
	c := &p.names[i]
	return c.ID, c.Name, c.Public
}

// values returns the values of the concepts, or nil if the analysis lacks them.
func (p *Predictor) values(a *predict.Analysis) []float32 {
	if p.Public != nil {
		return p.Public.Values(a)
	}
	return p.Head.Values(nil, &a.Embedding)
}

// complete reports whether an analysis has the parts that the model's outputs need.
func (p *Predictor) complete(a *predict.Analysis) bool {
	if a.Has&p.Want() != p.Want() {
		return false
	}
	return p.Public == nil || p.Public.Type != predict.TypeConcept || len(p.Public.Values(a)) == len(p.Public.Concepts)
}

// rank returns the indices of the concepts that an output lists if the call selects none. They are sorted by
// descending value, and by id for equal values. For a public model, which has hundreds of concepts, it returns only the
// first n with a value of at least least.
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

// sort sorts places in the order of rank.
func (p *Predictor) sort(places []int, values []float32) {
	if p.Public != nil {
		p.Public.Sort(places, values)
		return
	}
	slices.SortFunc(places, func(a, b int) int {
		return cmp.Or(cmp.Compare(values[b], values[a]), cmp.Compare(p.names[a].ID, p.names[b].ID))
	})
}

// completes reports whether the result for a picture or a video has the parts that the model's outputs need.
func (p *Predictor) completes(r *call.Result, video bool) bool {
	if !video {
		return p.complete(&r.Analysis)
	}
	incomplete := func(f call.Frame) bool { return !p.complete(&f.Analysis) }
	return len(r.Frames) > 0 && !slices.ContainsFunc(r.Frames, incomplete)
}
