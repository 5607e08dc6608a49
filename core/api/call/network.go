package call

import (
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/predict"
	"github.com/sightline-dev/sightline/core/predict/raster"
	"github.com/sightline-dev/sightline/core/predict/raster/exif"
	"github.com/sightline-dev/sightline/core/search"
)

// Network is a set of public models, with tables by id. While a service moves applications to a newer network, it has several
// networks.
type Network struct {
	Models   Models
	Base     [32]byte                          // base of Models, see predict.Set.Base
	Concepts map[string]PublicConcept          // by id
	Indices  map[*predict.Model]map[string]int // indices of a model's concepts, by id
	JSON     map[*predict.Model]*modelJSON     // the models as JSON, as outputs show them

	Similarity predict.Similarity    // measured for the network; zero if it was not
	Similar    func() *search.CutOff // cut-off of similarity, measured or learned from the models' background pictures; nil if unknown
}

// PublicConcept is a public concept and the model that has it. If several models have the concept, Model is the general one or the first.
type PublicConcept struct {
	Model   *predict.Model
	Concept *predict.Concept
}

// modelJSON is a public model as JSON, which is the same in every output of a form. All and AllNull are for keys that may read models,
// with and without an app_id. Little is for other keys. Each is written when it is first needed.
type modelJSON struct{ All, AllNull, Little atomic.Pointer[[]byte] }

func newNetwork(m Models) *Network {
	n := &Network{
		Models: m, Base: m.Base(), Concepts: map[string]PublicConcept{}, Indices: map[*predict.Model]map[string]int{},
		JSON: map[*predict.Model]*modelJSON{},
	}
	if s, ok := m.(interface{ Similarity() predict.Similarity }); ok {
		n.Similarity = s.Similarity()
	}
	n.Similar = similarOf(m, &n.Similarity)
	for _, m := range append([]*predict.Model{m.General()}, m.Models()...) {
		n.Indices[m] = make(map[string]int, len(m.Concepts))
		n.JSON[m] = &modelJSON{}
		for i := range m.Concepts {
			c := &m.Concepts[i]
			n.Indices[m][c.ID] = i
			if _, ok := n.Concepts[c.ID]; !ok {
				n.Concepts[c.ID] = PublicConcept{m, c}
			}
		}
	}
	return n
}

// similarOf returns the function Similar for a network with models m.
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
			return nil // a page may not have downloaded the file yet
		}
		once.Do(func() { learned = search.LearnCutOff(pictures) })
		return learned
	}
}

// Network returns the network whose base is base. For an unknown base, such as zero, it returns the newest network.
func (h *Host) Network(base [32]byte) *Network {
	if n, ok := h.networks[base]; ok {
		return n
	}
	return h.networks[h.Models.Base()]
}

// NetworkOf returns the network that serves the application in r.
func (h *Host) NetworkOf(r catalog.Reader) (*Network, error) {
	header, err := r.Header()
	if err != nil {
		return nil, err
	}
	return h.Network(header.Base), nil
}

// WantOfInputs are the parts of an analysis that are stored for every input.
const WantOfInputs = predict.WantConcepts | predict.WantThumb | predict.WantExif

// PointOf returns the place that the file of a picture has, or nil for an unknown one.
func PointOf(p exif.Place) *log.Point {
	if p == (exif.Place{}) {
		return nil
	}
	return &log.Point{Longitude: p.Longitude, Latitude: p.Latitude}
}

// decoders has decoders of thumbnails. A new one allocates 1.1 MB.
var decoders = sync.Pool{New: func() any { return raster.NewDecoder(raster.Limits{}) }}

// Derive returns the stored part of an analysis. If the analysis lacks a part of WantOfInputs, the error is ErrNoResult. A host of an older
// release returns no metadata of the file. Then the record has no date until one of this release reads the file.
func (n *Network) Derive(a *predict.Analysis) (*catalog.DerivedData, error) {
	general := n.Models.General()
	values := general.Values(a)
	if want := WantOfInputs &^ predict.WantExif; a.Has&want != want || len(values) != len(general.Concepts) {
		return nil, ErrNoResult
	}
	embedding, err := a.Embedding.MarshalBinary()
	if err != nil {
		return nil, err
	}
	decoder := decoders.Get().(*raster.Decoder)
	fingerprint, err := search.Fingerprint(decoder, a.Thumb)
	decoders.Put(decoder)
	if err != nil {
		return nil, fmt.Errorf("%w: thumbnail: %v", ErrNoResult, err) // the picture itself was readable
	}
	d := &catalog.DerivedData{Embedding: embedding, Values: values, Thumb: blob.Sum(a.Thumb), Fingerprint: fingerprint}
	if a.Has&predict.WantExif != 0 {
		d.Read, d.Taken = exif.Version, a.Exif.Taken
	}
	return d, nil
}
