package training

import (
	"cmp"
	"context"
	"math"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/sightline-dev/sightline/core/index"
	"github.com/sightline-dev/sightline/core/index/hnsw/kernel"
	"github.com/sightline-dev/sightline/core/predict"
)

// Label next lists the pictures whose labels improve a model most.
//
//	unlabelled inputs ─▶ sample ─▶ unsure? (values of the newest version) ─┐
//	labelled inputs ───▶ sample ─▶ which inputs do they represent? ────────┴▶ greedy order
//
// The list is the greedy solution of facility location, as Wei, Iyer and Bilmes use it (2015, ICML, Submodularity in Data Subset Selection
// and Active Learning). A picture represents the unlabelled ones that are more similar to it than to any labelled one, and its gain is the
// sum of these differences of cosines. An outlier represents only itself and comes late, since it teaches little. Each difference is
// weighted by the rank of the model's doubt about the represented picture. It uses ranks because a head that was trained on a few pictures
// returns values near 0 for nearly all pictures.
//
// The list depends only on stored data and sums whole numbers, so every host makes the same list. [TestLabelNextTrainsBetter] of package
// models measures it on photographs.

// The sizes of the samples bound the cost of a list. A sample takes the inputs whose ordinals hash lowest. If one of them
// gets a label, the next input joins the sample and the others stay.
const (
	maxCandidates  = 4096 // unlabelled inputs
	maxRepresented = 1024 // candidates for which gains are summed
	maxKnown       = 256  // labelled inputs
	MaxSuggestions = 1000 // length of a list
)

// Reason is the reason for a picture's place in the list.
type Reason string

// The reasons.
const (
	Uncertain Reason = "uncertain" // the model's doubt about the picture is at least 0.5
	Different Reason = "different" // the picture is unlike the labelled and listed ones, and similar to others
)

// Suggestion is one picture of the list.
type Suggestion struct {
	Ord    uint32
	Score  float64 // gain as a share of the largest possible gain, 0 to 1; it never rises in a list
	Reason Reason
	Values []float32 // values that judge returned; nil if judge is nil
}

// Pictures reads analysed inputs. *index.View implements it.
type Pictures interface {
	// Embeddings calls yield with the embedding of every input of ords, in their order.
	Embeddings(ctx context.Context, ords *roaring.Bitmap, yield func(ord uint32, e *predict.Embedding)) error
}

var _ Pictures = (*index.View)(nil)

// Evaluate returns the values of the newest version for a picture, and the version's doubt, from 0 to 1.
type Evaluate func(e *predict.Embedding) (values []float32, unsure float64)

// Suggest returns the n most useful inputs of unlabelled, the most useful first. It returns fewer if unlabelled has fewer or n is above
// MaxSuggestions. known are labelled inputs. All inputs must be analysed. judge is nil if the model has no trained version. Suggest
// computes up to maxRepresented·(maxCandidates + maxKnown) distances and keeps 8 MB of them.
func Suggest(ctx context.Context, x Pictures, unlabelled, known *roaring.Bitmap, judge Evaluate, n int) ([]Suggestion, error) {
	c, err := newCandidates(ctx, x, sampleOrds(unlabelled, maxCandidates), judge)
	if err != nil {
		return nil, err
	}
	if err := c.compare(ctx, x, sampleOrds(known, maxKnown)); err != nil {
		return nil, err
	}
	var list []Suggestion
	for range min(n, MaxSuggestions, len(c.all)) {
		best := c.mostUseful()
		c.listed[best] = true
		list = append(list, c.all[best])
		c.cover(c.row(best))
	}
	return list, nil
}

// candidates are the pictures from which Suggest chooses, by ordinal.
type candidates struct {
	all     []Suggestion
	vectors *kernel.Vectors
	listed  []bool
	gains   []uint64 // last computed gain of each candidate: an upper bound, since gains fall as the list grows

	represented []uint32 // rows of the sample for which gains are summed
	weights     []uint64 // weight of each represented picture
	total       uint64   // largest possible gain: of all represented pictures if nothing is labelled

	similarities []uint16 // similarity of each candidate to each represented picture
	covered      []uint16 // similarity of each represented picture to the nearest labelled or listed one
	distances    []uint32 // scratch
}

func newCandidates(ctx context.Context, x Pictures, ords *roaring.Bitmap, judge Evaluate) (*candidates, error) {
	n := int(ords.GetCardinality())
	vectors, err := kernel.NewVectors(predict.Dim)
	if err != nil {
		return nil, err
	}
	vectors.Grow(n)
	c := &candidates{vectors: vectors, listed: make([]bool, n), gains: make([]uint64, n)}
	unsure := make([]float64, n)
	represented := sampleOrds(ords, maxRepresented)
	err = x.Embeddings(ctx, ords, func(ord uint32, e *predict.Embedding) {
		i := len(c.all)
		c.all = append(c.all, Suggestion{Ord: ord, Reason: Different})
		vectors.Set(uint32(i), e.Q[:], e.Scale)
		if judge != nil {
			c.all[i].Values, unsure[i] = judge(e)
		}
		if unsure[i] >= 0.5 {
			c.all[i].Reason = Uncertain
		}
		if represented.Contains(ord) {
			c.represented = append(c.represented, uint32(i))
		}
	})
	c.weigh(unsure)
	return c, err
}

// weigh sets the weights of the represented pictures: one to three times the number of candidates, by the share of
// candidates about which the model is surer. Without a model all weights are equal.
func (c *candidates) weigh(unsure []float64) {
	sorted := slices.Sorted(slices.Values(unsure))
	c.weights = make([]uint64, len(c.represented))
	for u, row := range c.represented {
		surer, _ := slices.BinarySearch(sorted, unsure[row])
		c.weights[u] = uint64(len(unsure) + 2*surer)
		c.total += c.weights[u] * same
	}
}

// compare computes all similarities, and the gains for an empty list.
func (c *candidates) compare(ctx context.Context, x Pictures, known *roaring.Bitmap) error {
	n := len(c.represented)
	c.similarities, c.covered, c.distances = make([]uint16, len(c.all)*n), make([]uint16, n), make([]uint32, n)
	var q kernel.Query
	row := make([]uint16, n)
	err := x.Embeddings(ctx, known, func(_ uint32, e *predict.Embedding) {
		q.Set(c.vectors, e.Q[:], e.Scale)
		c.measure(row, &q)
		c.cover(row)
	})
	if err != nil {
		return err
	}
	for i := range c.all {
		q := c.vectors.Row(uint32(i))
		c.measure(c.row(i), &q)
		c.sum(i)
	}
	return nil
}

// same is the similarity of two equal pictures. A similarity is same times the cosine. Negative cosines count as 0.
const same = 1 << 15

// measure sets row to the similarity of a picture to each represented one. The kernel bounds distances
// so that rounding cannot make a similarity reach 2¹⁶.
func (c *candidates) measure(row []uint16, q *kernel.Query) {
	c.vectors.Distances(c.distances, q, c.represented)
	for u, d := range c.distances {
		row[u] = uint16((kernel.OrthogonalDistance - min(d, kernel.OrthogonalDistance)) / (kernel.OrthogonalDistance / 2 / same))
	}
}

// row returns the similarities of a candidate.
func (c *candidates) row(i int) []uint16 {
	n := len(c.represented)
	return c.similarities[i*n : (i+1)*n]
}

// cover adds a picture with these similarities to the labelled and listed ones.
func (c *candidates) cover(row []uint16) {
	for u, s := range row {
		c.covered[u] = max(c.covered[u], s)
	}
}

// sum computes the gain of a candidate.
func (c *candidates) sum(i int) {
	gain := uint64(0) // below 2⁴⁰: 1,024 times a weight below 2¹⁴ and a similarity below 2¹⁶
	for u, s := range c.row(i) {
		gain += c.weights[u] * uint64(max(s, c.covered[u])-c.covered[u])
	}
	c.gains[i] = gain
	c.all[i].Score = min(1, float64(gain)/float64(c.total))
}

// mostUseful returns the candidate with the largest gain, the first of equal ones. It computes a gain again only if its
// upper bound exceeds the best so far (Minoux 1978, Accelerated Greedy Algorithms for Maximizing Submodular Set Functions).
func (c *candidates) mostUseful() int {
	best := -1
	for i, bound := range c.gains {
		if c.listed[i] || best >= 0 && bound <= c.gains[best] {
			continue
		}
		if c.sum(i); best < 0 || c.gains[i] > c.gains[best] {
			best = i
		}
	}
	return best
}

// sampleOrds returns the n ordinals with the lowest hashes, or ords itself if it has at most n.
func sampleOrds(ords *roaring.Bitmap, n int) *roaring.Bitmap {
	if ords.GetCardinality() <= uint64(n) {
		return ords
	}
	type hashed struct{ hash, ord uint32 }
	all := make([]hashed, 0, ords.GetCardinality())
	for it := ords.Iterator(); it.HasNext(); {
		ord := it.Next()
		all = append(all, hashed{mix(ord), ord})
	}
	slices.SortFunc(all, func(a, b hashed) int { return cmp.Compare(a.hash, b.hash) }) // mix is a bijection: no two are the same
	some := roaring.New()
	for _, h := range all[:n] {
		some.Add(h.ord)
	}
	return some
}

// mix is the last step of MurmurHash3 (Appleby): a bijection of 32 bits that scatters consecutive numbers.
func mix(h uint32) uint32 {
	h ^= h >> 16
	h *= 0x85ebca6b
	h ^= h >> 13
	h *= 0xc2b2ae35
	return h ^ h>>16
}

// Uncertainty returns how unsure a model is by its values, 0 to 1: of its most doubtful concept, or, where the concepts
// exclude each other, between the two most likely. A model that is not closed has one more value: that none of them is shown.
func Uncertainty(values []float32, r Relation) float64 {
	if !r.Exclusive {
		doubt := 0.0
		for _, v := range values {
			doubt = max(doubt, 1-2*math.Abs(float64(v)-0.5))
		}
		return doubt
	}
	first, second, none := 0.0, 0.0, 1.0
	see := func(p float64) {
		if p > first {
			first, second = p, first
		} else {
			second = max(second, p)
		}
	}
	for _, v := range values {
		none -= float64(v)
		see(float64(v))
	}
	if !r.Closed {
		see(none)
	}
	return 1 - (first - second)
}
