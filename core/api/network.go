package api

import (
	"sync"
	"sync/atomic"

	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/predict"
	"github.com/sightline-dev/sightline/core/search"
)

// network is a set of public models with what is looked up in it by id. A service has more
// than one while applications go over from an older network to a newer.
type network struct {
	models   Models
	base     [32]byte                          // of models
	concepts map[string]public                 // by id
	places   map[*predict.Model]map[string]int // of a model's concepts, by id
	written  map[*predict.Model]*written       // as outputs show them

	similarity predict.Similarity    // measured with the network; zero: was not
	similar    func() *search.CutOff // of similarity, as measured or else learned from the models' background pictures
}

// public is a public concept and the model that brought it: the general one where it can.
type public struct {
	model   *predict.Model
	concept *predict.Concept
}

// written is a public model as JSON, which is the same in every output: for who may read models, and who may not. It
// is written when it is first needed.
type written struct{ all, little atomic.Pointer[[]byte] }

func newNetwork(m Models) *network {
	n := &network{
		models: m, base: m.Base(), concepts: map[string]public{}, places: map[*predict.Model]map[string]int{},
		written: map[*predict.Model]*written{},
	}
	if s, ok := m.(interface{ Similarity() predict.Similarity }); ok {
		n.similarity = s.Similarity()
	}
	n.similar = sync.OnceValue(func() *search.CutOff {
		if s := &n.similarity; s.Pictures > 0 {
			return &search.CutOff{Value: s.Related, Source: search.FromPairs, Examples: s.Pictures}
		}
		if b, ok := m.(interface{ Background() []predict.Embedding }); ok {
			return search.OfUnrelated(b.Background())
		}
		return nil
	})
	for _, m := range append([]*predict.Model{m.General()}, m.Models()...) {
		n.places[m] = make(map[string]int, len(m.Concepts))
		n.written[m] = &written{}
		for i := range m.Concepts {
			c := &m.Concepts[i]
			n.places[m][c.ID] = i
			if _, ok := n.concepts[c.ID]; !ok {
				n.concepts[c.ID] = public{m, c}
			}
		}
	}
	return n
}

// network is the one with a base; the newest for an application that has named none.
func (s *Service) network(base [32]byte) *network {
	if n, ok := s.networks[base]; ok {
		return n
	}
	return s.networks[s.o.Models.Base()]
}

// networkOf is the one that serves an application as r shows it.
func (s *Service) networkOf(r catalog.Reader) (*network, error) {
	h, err := r.Header()
	if err != nil {
		return nil, err
	}
	return s.network(h.Base), nil
}

// findNetwork finds the one that serves the request's application now.
func (x *Call) findNetwork() error {
	if x.app == nil || x.app.Partition == nil {
		x.net = x.s.network([32]byte{})
		return nil
	}
	h, err := x.app.Partition.Header()
	x.net = x.s.network(h.Base)
	return err
}
