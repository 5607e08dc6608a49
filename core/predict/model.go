package predict

import (
	"cmp"
	"crypto/sha256"
	"slices"
	"strings"
	"time"

	"github.com/sightline-dev/sightline/core/lang"
)

// Type is the kind of a model's outputs, the value of output_info.type.
type Type string

// The types of the public models that we have.
const (
	TypeConcept Type = "concept" // data.concepts
	TypeColor   Type = "color"   // data.colors
	TypeEmbed   Type = "embed"   // data.embeddings
)

// Concept is one of a model's concepts.
type Concept struct {
	ID   string // "ai_" and letters and digits
	Name string // English

	// Hidden concepts are left out of an output that asks for nothing in particular, because
	// measuring found them unreliable: average precision under 0.1 on at least ten positives.
	// Their values are computed, stored and searched like any other, and an output that
	// selects them shows them.
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
	Languages []string  // the codes its names can be asked in: all 23, or English alone

	values func(*Analysis) []float32
}

// Want returns the parts of an analysis that the model's outputs are made from.
func (m *Model) Want() Want {
	if m.Type == TypeColor {
		return WantColors
	}
	return WantConcepts
}

// Values returns the part of a that holds the model's values, in the order of m.Concepts;
// nil for a model whose type is not concept.
func (m *Model) Values(a *Analysis) []float32 {
	if m.values == nil {
		return nil
	}
	return m.values(a)
}

// Sort puts places in m.Concepts into the order in which an output lists them: by value descending, equal values by
// id. values has one element a concept.
func (m *Model) Sort(places []int, values []float32) {
	slices.SortFunc(places, func(a, b int) int {
		return cmp.Or(cmp.Compare(values[b], values[a]), strings.Compare(m.Concepts[a].ID, m.Concepts[b].ID))
	})
}

// Top appends to dst the first n places in the order of [Model.Sort]. It leaves out hidden concepts and values below
// least. Few of many cost one comparison each: an output shows 20 of hundreds.
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
		at := len(dst) - 1 // the last's place is free
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

// Set is the public models that this program carries, with the network they share.
// It is immutable and safe for concurrent use.
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
	background *background // nil: there is none
	similarity Similarity
}

// Base returns a hash of everything that determines embeddings and the general model's values: the network, how pictures are cut for it,
// the table of concepts with its calibration, the heads, and the version of this package's arithmetic. Sets with the same Base derive the
// same bytes from a picture. Results of different Bases are never compared.
func (s *Set) Base() [sha256.Size]byte { return s.base }

// Models returns the public models: general, food, color, general embedding. The slice is
// the set's own and must not be changed.
func (s *Set) Models() []*Model { return s.models }

// Model returns the model with this id.
func (s *Set) Model(id string) (*Model, bool) {
	m, ok := s.byID[id]
	return m, ok
}

// General returns the general model: the one whose predictions are kept for every input.
func (s *Set) General() *Model { return s.general }

// ByName returns the models called name, in the order of Models. General's name belongs to
// two, of the types concept and embed.
func (s *Set) ByName(name string) []*Model {
	var found []*Model
	for _, m := range s.models {
		if m.Name == name {
			found = append(found, m)
		}
	}
	return found
}

// Names returns the names of the general model's concepts in the 23 languages. The food
// model's concepts are among them. nil of a set that LoadNetwork made.
func (s *Set) Names() *lang.Table { return s.names }

// Similarity returns the bounds of similarity that were measured with the network; zero: none were.
func (s *Set) Similarity() Similarity { return s.similarity }

// Background returns the embeddings of varied pictures that come with the network: built-in
// negatives for the heads of own models. The slice is the set's own and must not be changed. A set that LoadTables made reads the file
// at the first call. If the file does not exist yet, the error is fs.ErrNotExist, and a later call reads it.
func (s *Set) Background() ([]Embedding, error) {
	if s.background == nil {
		return nil, nil
	}
	return s.background.embeddings()
}
