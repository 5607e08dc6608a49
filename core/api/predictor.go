package api

import (
	"cmp"
	"container/list"
	"fmt"
	"slices"
	"sync"

	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/lang"
	"github.com/sightline-dev/sightline/core/partition"
	"github.com/sightline-dev/sightline/core/predict"
	"github.com/sightline-dev/sightline/core/train"
)

// predictor is what a predict call runs its pictures through: a public model, or a trained
// version of the application's own.
type predictor struct {
	shown
	head  *loadedHead // of an own model
	names []named     // of an own model's concepts, in the head's order
}

// findPredictor finds a model that can predict, with the version named or else its newest
// trained one. Errors are 404s, ErrUntrained and ErrQueued.
func findPredictor(x *Call, id, version string) (predictor, error) {
	if _, public := x.net.models.Model(id); public {
		m, err := findModel(x, nil, id, version)
		return predictor{shown: shown{model: m}}, err
	}
	v := x.view()
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
	if p.head, err = x.s.heads.load(v, &trained, x.net.base); err != nil {
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
func (p *predictor) place(n *network, id string) (int, bool) {
	if p.public != nil {
		i, ok := n.places[p.public][id]
		return i, ok
	}
	i, ok := p.head.places[id]
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
func (p *predictor) concept(x *Call, i int, language string) (id, name string, public bool) {
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

// loadedHead is a trained head in memory. It is immutable.
type loadedHead struct {
	train.Head
	places map[string]int // of its concepts, by id
	bytes  int
}

// heads keeps the heads that were used last, by their manifests. It is safe for concurrent use.
type heads struct {
	mu    sync.Mutex
	byKey map[blob.Hash]*list.Element
	order *list.List // of keptHead, the last used first
	bytes int
}

type keptHead struct {
	key  blob.Hash
	head *loadedHead
}

// maxHeadBytes is what the heads in memory may take together, about.
const maxHeadBytes = 64 << 20

// load returns the head of a trained version. base is the hash of the network that
// embeddings come from: a head that was trained on another one's is refused.
func (h *heads) load(v *partition.View, version *catalog.Version, base [32]byte) (*loadedHead, error) {
	if head := h.find(version.Manifest); head != nil {
		return head, nil
	}
	data, err := v.Object(version.Manifest)
	if err != nil {
		return nil, fmt.Errorf("%w: manifest of version %q: %v", ErrInternal, version.ID, err)
	}
	m, err := catalog.UnmarshalManifest(data)
	if err != nil {
		return nil, fmt.Errorf("%w: manifest of version %q: %w", ErrInternal, version.ID, err)
	}
	if m.Base != base {
		return nil, refusef(ErrQueued, "model_version_id '%s' %s.", version.ID, m.Outdated())
	}
	head := &loadedHead{places: map[string]int{}, bytes: 2 * len(m.Head)}
	if err := head.UnmarshalBinary(m.Head); err != nil {
		return nil, fmt.Errorf("%w: head of version %q: %w", ErrInternal, version.ID, err)
	}
	for i, id := range head.Concepts {
		head.places[id] = i
	}
	h.keep(version.Manifest, head)
	return head, nil
}

func (h *heads) find(key blob.Hash) *loadedHead {
	h.mu.Lock()
	defer h.mu.Unlock()
	e, ok := h.byKey[key]
	if !ok {
		return nil
	}
	h.order.MoveToFront(e)
	return e.Value.(keptHead).head
}

func (h *heads) keep(key blob.Hash, head *loadedHead) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.byKey == nil {
		h.byKey, h.order = map[blob.Hash]*list.Element{}, list.New()
	}
	if _, ok := h.byKey[key]; ok {
		return
	}
	h.byKey[key] = h.order.PushFront(keptHead{key, head})
	for h.bytes += head.bytes; h.bytes > maxHeadBytes && h.order.Len() > 1; {
		last := h.order.Remove(h.order.Back()).(keptHead)
		delete(h.byKey, last.key)
		h.bytes -= last.head.bytes
	}
}
