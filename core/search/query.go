package search

import (
	"errors"

	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/index"
	"github.com/sightline-dev/sightline/core/jsonio"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/predict"
	"github.com/sightline-dev/sightline/core/predict/raster"
)

// ErrQuery is returned by Parse for an invalid query.
var ErrQuery = errors.New("malformed search query")

// MaxClauses is the maximum number of clauses, and of conditions, of a query.
const MaxClauses = 64

// Query is an AND of clauses. The zero value matches every input.
type Query struct {
	Clauses  []Clause
	Pictures []Picture // pictures of the Similar conditions; the caller fills in their embeddings before Run
	MinScore float32   // hits with a lower score are left out, as if they did not match
}

// Clause holds if all its conditions hold. A negated clause holds if not all of them do.
type Clause struct {
	Negate bool
	All    []Condition
}

// Condition is one of [Prediction], [Label], [Metadata], [URL], [Bytes], [InputID], [Radius], [Box]
// and [Similar].
type Condition interface{ condition() }

type (
	// Prediction holds for an analysed input if any of the concepts is predicted present. With Absent it holds
	// if some have a value and none is present. It ranks by the largest value, or by 1 minus it.
	// Without concepts, which means that the name is unknown, nothing matches.
	Prediction struct {
		Concepts []string // ids that the clause's concept may mean
		Absent   bool
	}
	// Label holds when a user labelled any of the concepts with the value, True or False.
	Label struct {
		Concepts []string
		Value    log.Value
	}
	// Metadata holds for metadata that contains the pattern.
	Metadata struct{ Pattern *index.Pattern }
	// URL holds for an input added with this URL, or whose hosted picture has it.
	URL struct {
		URL    string
		Hosted [16]byte // public name of the picture if this server hosts it, else zero
	}
	// Bytes holds for an input whose picture has exactly these bytes.
	Bytes struct{ Blob blob.Hash }
	// InputID holds for one input.
	InputID struct{ ID string }
	// Radius holds for a place within Angle of Centre along a great circle, edge included.
	Radius struct {
		Centre log.Point
		Angle  float64 // radians
	}
	// Box holds for a place between the corners, edges included. It does not wrap.
	Box struct{ Min, Max log.Point }
	// Similar holds for every analysed input and ranks by similarity to Pictures[Picture].
	Similar struct{ Picture int }
)

func (Prediction) condition() {}
func (Label) condition()      {}
func (Metadata) condition()   {}
func (URL) condition()        {}
func (Bytes) condition()      {}
func (InputID) condition()    {}
func (Radius) condition()     {}
func (Box) condition()        {}
func (Similar) condition()    {}

// Picture is the picture of a Similar condition. Exactly one of URL, Base64 and Input identifies it.
//
// If IsStored returns true, Run looks the embedding up. Otherwise the caller analyses the picture (for an Input its stored blob, with this
// crop instead of the stored one) and sets Embedding. A picture has no embedding if its input is not yet at 30000 or does not exist. It is
// then similar to nothing, and the query has no hits.
type Picture struct {
	URL       string
	Base64    jsonio.Value // a string, not yet decoded; borrowed from the request
	Input     string       // id of a stored input
	Crop      raster.Crop
	Embedding *predict.Embedding
}

// IsStored reports whether the picture is a stored input with the crop with which it was analysed.
func (p *Picture) IsStored() bool { return p.Input != "" && p.Crop == raster.Crop{} }

// Hit is an input that matched.
type Hit struct {
	Ord uint32
	// Score is exactly 1 without output conditions. Otherwise it is the stored value of a predicted concept, or
	// the similarity, (1 + cosine)/2, or the product of several of them.
	Score float32
}

// Page is a range of the hits.
type Page struct{ Offset, N uint64 }

// Result is a page of hits.
type Result struct {
	Hits []Hit // by score descending, equal ones in the order of creation
}
