package call

import (
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/predict"
	"github.com/sightline-dev/sightline/core/predict/raster"
	"github.com/sightline-dev/sightline/core/search"
)

// Network is a set of public models, with tables by id. A service has more than one while applications change from an older network to a
// newer one.
type Network struct {
	Models   Models
	Base     [32]byte                          // of models
	Concepts map[string]Public                 // by id
	Places   map[*predict.Model]map[string]int // of a model's concepts, by id
	Written  map[*predict.Model]*modelJSON     // as outputs show them

	Similarity predict.Similarity    // measured with the network; zero: was not
	Similar    func() *search.CutOff // of similarity, as measured or else learned from the models' background pictures
}

// Public is a public concept and the model that brought it: the general one where it can.
type Public struct {
	Model   *predict.Model
	Concept *predict.Concept
}

// modelJSON is a public model as JSON, which is the same in every output: for who may read models, and who may not. It
// is written when it is first needed.
type modelJSON struct{ All, Little atomic.Pointer[[]byte] }

func newNetwork(m Models) *Network {
	n := &Network{
		Models: m, Base: m.Base(), Concepts: map[string]Public{}, Places: map[*predict.Model]map[string]int{},
		Written: map[*predict.Model]*modelJSON{},
	}
	if s, ok := m.(interface{ Similarity() predict.Similarity }); ok {
		n.Similarity = s.Similarity()
	}
	n.Similar = similarOf(m, &n.Similarity)
	for _, m := range append([]*predict.Model{m.General()}, m.Models()...) {
		n.Places[m] = make(map[string]int, len(m.Concepts))
		n.Written[m] = &modelJSON{}
		for i := range m.Concepts {
			c := &m.Concepts[i]
			n.Places[m][c.ID] = i
			if _, ok := n.Concepts[c.ID]; !ok {
				n.Concepts[c.ID] = Public{m, c}
			}
		}
	}
	return n
}

// similarOf returns the Similar of a network with such models.
func similarOf(m Models, measured *predict.Similarity) func() *search.CutOff {
	if measured.Pictures > 0 {
		c := &search.CutOff{Value: measured.Related, Source: search.FromPairs, Examples: measured.Pictures}
		return func() *search.CutOff { return c }
	}
	b, ok := m.(interface {
		Background() ([]predict.Embedding, error)
	})
	if !ok {
		return func() *search.CutOff { return nil }
	}
	var once sync.Once
	var learned *search.CutOff
	return func() *search.CutOff {
		pictures, err := b.Background()
		if err != nil {
			return nil // a page does not have the file yet
		}
		once.Do(func() { learned = search.OfUnrelated(pictures) })
		return learned
	}
}

// Network is the one with a base; the newest for an application that has named none.
func (h *Host) Network(base [32]byte) *Network {
	if n, ok := h.networks[base]; ok {
		return n
	}
	return h.networks[h.Models.Base()]
}

// NetworkOf is the one that serves an application as r shows it.
func (h *Host) NetworkOf(r catalog.Reader) (*Network, error) {
	header, err := r.Header()
	if err != nil {
		return nil, err
	}
	return h.Network(header.Base), nil
}

// WantOfInputs is the stored part of the analysis of every input's picture.
const WantOfInputs = predict.WantConcepts | predict.WantThumb

// Derive returns the stored part of an analysis with WantOfInputs.
func (n *Network) Derive(a *predict.Analysis) (*catalog.DerivedData, error) {
	general := n.Models.General()
	values := general.Values(a)
	if a.Has&WantOfInputs != WantOfInputs || len(values) != len(general.Concepts) {
		return nil, ErrNoResult
	}
	embedding, err := a.Embedding.MarshalBinary()
	if err != nil {
		return nil, err
	}
	fingerprint, err := search.Fingerprint(raster.NewDecoder(raster.Limits{}), a.Thumb)
	if err != nil {
		return nil, fmt.Errorf("%w: thumbnail: %v", ErrNoResult, err) // the picture itself was read
	}
	return &catalog.DerivedData{Embedding: embedding, Values: values, Thumb: blob.Sum(a.Thumb), Print: fingerprint}, nil
}
