package predict

import (
	"cmp"
	"crypto/sha256"
	"slices"
	"strings"
	"time"

	"github.com/sightline-dev/sightline/core/lang"
)

// Type is the type of a model's outputs. The API shows it as output_info.type.
type Type string

// The types of the public models, each with the field of an output that it fills.
const (
	TypeConcept Type = "concept" // data.concepts
	TypeColor   Type = "color"   // data.colors
	TypeEmbed   Type = "embed"   // data.embeddings
)

// Concept is one of a model's concepts.
type Concept struct {
	ID   string // "ai_", then letters and digits
	Name string // English name

	// Hidden reports that the concept was measured as unreliable: its average precision is below 0.1 on at least ten positives. An
	// output shows a hidden concept only if the request selects the concept. Its values are computed, stored and searched like others.
	Hidden bool
}

// Model is a public model. It is immutable.
type Model struct {
	ID          string // 32 hex digits
	Name        string // such as "general-v1.3"; unique together with Type
	DisplayName string
	Type        Type
	TypeExt     string
	CreatedAt   time.Time

	VersionID        string
	VersionCreatedAt time.Time

	Concepts  []Concept // in the order of the values; nil for an embed model
	Languages []string  // codes of the languages of its names: all 23, or English only

	values func(*Analysis) []float32
}

// Want returns the parts of an analysis that the model's outputs need.
func (m *Model) Want() Want {
	if m.Type == TypeColor {
		return WantColors
	}
	return WantConcepts
}

// Values returns the values of the model in a, in the order of m.Concepts. It returns nil if the model's type is not concept. The result
// shares the memory of a.
func (m *Model) Values(a *Analysis) []float32 {
	if m.values == nil {
		return nil
	}
	return m.values(a)
}

// Sort sorts indices in m.Concepts into the order of an output: by descending value, and by id for equal values. values has one element per
// concept.
func (m *Model) Sort(places []int, values []float32) {
	slices.SortFunc(places, func(a, b int) int {
		return cmp.Or(cmp.Compare(values[b], values[a]), strings.Compare(m.Concepts[a].ID, m.Concepts[b].ID))
	})
}

// Top appends to dst the first n indices in m.Concepts in the order of [Model.Sort]. It omits hidden concepts and concepts with values
// below least. If n is small, most concepts cost one comparison: an output shows 20 of hundreds.
func (m *Model) Top(dst []int, values []float32, n int, least float32) []int {
	if n <= 0 {
		return dst
	}
	from := len(dst)
	for i, v := range values {
		if v < least || m.Concepts[i].Hidden {
			continue
		}
		if len(dst)-from < n {
			dst = append(dst, i)
		} else if !m.before(values, i, v, dst[len(dst)-1]) {
			continue
		}
		at := len(dst) - 1 // dst[at] is free or holds the concept that i displaces
		for ; at > from && m.before(values, i, v, dst[at-1]); at-- {
			dst[at] = dst[at-1]
		}
		dst[at] = i
		if len(dst)-from == n {
			least = max(least, values[dst[len(dst)-1]])
		}
	}
	return dst
}

// before reports whether concept i, which has value v, sorts before j.
func (m *Model) before(values []float32, i int, v float32, j int) bool {
	w := values[j]
	return v > w || v == w && m.Concepts[i].ID < m.Concepts[j].ID
}

// Set holds the public models of the loaded bundles and the network that they share. It is immutable and safe for concurrent use.
type Set struct {
	models  []*Model
	byID    map[string]*Model
	names   *lang.Table
	general *Model

	base       [sha256.Size]byte
	backbone   *backbone // nil of a set that LoadTables made
	evaluator  *evaluator
	classes    int
	palette    *palette    // nil without a bundle of colours
	background *background // nil of a set that LoadNetwork made
	similarity Similarity
}

// Base returns a hash of everything that determines embeddings and the general model's values: the network, how pictures are cut for it,
// the table of concepts with its calibration, the heads, and the version of this package's arithmetic. Sets with the same Base derive the
// same bytes from a picture. Results of different Bases are never compared.
func (s *Set) Base() [sha256.Size]byte { return s.base }

// Models returns the public models that the bundles contain, in the order general, food, color, general embedding. The caller must not
// change the slice.
func (s *Set) Models() []*Model { return s.models }

// Model returns the model with the given id, and false if there is none.
func (s *Set) Model(id string) (*Model, bool) {
	m, ok := s.byID[id]
	return m, ok
}

// General returns the general model. Its predictions are stored for every input.
func (s *Set) General() *Model { return s.general }

// ByName returns the models with the given name, in the order of Models. Two models have the name of the general model: one of the type
// concept and one of the type embed.
func (s *Set) ByName(name string) []*Model {
	var found []*Model
	for _, m := range s.models {
		if m.Name == name {
			found = append(found, m)
		}
	}
	return found
}

// Names returns the names of the general model's concepts, which include those of the food model, in the 23 languages. It returns nil for a
// set that LoadNetwork made.
func (s *Set) Names() *lang.Table { return s.names }

// Similarity returns the thresholds that the bake measured with the network, or the zero value if the bundle has none.
func (s *Set) Similarity() Similarity { return s.similarity }

// Background returns the embeddings of varied pictures that come with the network. They are built-in negatives for training the heads of
// custom models. The caller must not change the slice. A set that LoadTables made reads the file at the first call. If the file does not
// exist yet, the error is fs.ErrNotExist, and a later call reads it. A set that LoadNetwork made returns nil.
func (s *Set) Background() ([]Embedding, error) {
	if s.background == nil {
		return nil, nil
	}
	return s.background.embeddings()
}
