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

// Label next: which pictures teach a model most if somebody says what they show.
//
//	unlabelled inputs ─▶ sample ─▶ unsure? (values of the newest version) ─┐
//	labelled inputs ───▶ sample ─▶ unlike them, and those before in the list? ─┴▶ greedy order
//
// The order is that of the k-center greedy of Sener and Savarese (2018, arXiv:1708.00489), in which each picture's
// distance counts the more, the more unsure the model is of it: by its place among the others, since a head that was
// trained on a few pictures says next to 0 of nearly all. It depends on what is stored alone: every host makes the
// same list. [TestNextTeaches] of package models measures it on photographs.

// How many pictures are looked at, so that a list costs the same however many there are. Of more, those are taken
// whose ordinals hash lowest: labelling one moves another one up, and the others stay.
const (
	MaxCandidates = 4096 // that nobody has said anything of
	maxKnown      = 256  // labelled ones that they are compared to
	MaxNext       = 1000 // length of a list
)

// Why a picture is in the list where it is.
type Why string

// The reasons.
const (
	Uncertain Why = "uncertain" // the model cannot tell: it is unsure of it by a half or more
	Different Why = "different" // it is unlike what is labelled, and unlike those before it
)

// Next is one picture of the list.
type Next struct {
	Ord    uint32
	Score  float64 // how useful, 0 to 1; as much as or less than those before
	Why    Why
	Values []float32 // what judge said; nil without it
}

// Pictures are analysed inputs; *index.View has them.
type Pictures interface {
	// Embeddings calls yield with the embedding of every input of ords, in their order.
	Embeddings(ctx context.Context, ords *roaring.Bitmap, yield func(ord uint32, e *predict.Embedding)) error
}

var _ Pictures = (*index.View)(nil)

// Judge says what the newest version thinks of a picture and how unsure it is, 0 to 1.
type Judge func(e *predict.Embedding) (values []float32, unsure float64)

// Order returns the n most useful of the inputs in unlabelled, all of them analysed, the most useful first, and
// fewer where there are no more, or n is over MaxNext. known are labelled inputs, likewise analysed; judge is nil
// without a trained version. It costs up to MaxCandidates·(maxKnown + n) distances of two embeddings.
func Order(ctx context.Context, x Pictures, unlabelled, known *roaring.Bitmap, judge Judge, n int) ([]Next, error) {
	c, err := newCandidates(ctx, x, Sample(unlabelled, MaxCandidates), judge)
	if err != nil {
		return nil, err
	}
	var q kernel.Query
	err = x.Embeddings(ctx, Sample(known, maxKnown), func(_ uint32, e *predict.Embedding) {
		q.Set(c.vectors, e.Q[:], e.Scale)
		c.liken(&q)
	})
	if err != nil {
		return nil, err
	}
	var list []Next
	for range min(n, MaxNext, len(c.all)) {
		best := c.mostUseful()
		c.taken[best] = true
		list = append(list, c.all[best])
		row := c.vectors.Row(uint32(best))
		c.liken(&row)
	}
	return list, nil
}

// candidates are pictures of which a list is made, by ordinal.
type candidates struct {
	all     []Next
	vectors *kernel.Vectors
	rows    []uint32  // all of them
	weight  []float64 // of what a picture is unlike, base/(1 + base) to 1
	near    []uint32  // distance to what it is most like, of what is labelled and of those before it
	taken   []bool
	scratch []uint32
}

func newCandidates(ctx context.Context, x Pictures, ords *roaring.Bitmap, judge Judge) (*candidates, error) {
	n := int(ords.GetCardinality())
	vectors, err := kernel.NewVectors(predict.Dim)
	if err != nil {
		return nil, err
	}
	vectors.Grow(n)
	c := &candidates{
		vectors: vectors, rows: make([]uint32, n), weight: make([]float64, n), near: make([]uint32, n),
		taken: make([]bool, n), scratch: make([]uint32, n),
	}
	unsure := make([]float64, n)
	err = x.Embeddings(ctx, ords, func(ord uint32, e *predict.Embedding) {
		i := len(c.all)
		c.all = append(c.all, Next{Ord: ord, Why: Different})
		c.rows[i], c.near[i] = uint32(i), kernel.Far
		vectors.Set(uint32(i), e.Q[:], e.Scale)
		if judge != nil {
			c.all[i].Values, unsure[i] = judge(e)
		}
	})
	c.weigh(unsure, judge != nil)
	return c, err
}

// base is what a picture counts of which the model is surest, against a rank of 0 to 1: it may be wrong.
const base = 0.5

// weigh gives the candidates their weights, by how many of the others the model is surer of; 1 where nothing is
// known of that.
func (c *candidates) weigh(unsure []float64, judged bool) {
	sorted := slices.Sorted(slices.Values(unsure))
	for i, u := range unsure {
		surer, _ := slices.BinarySearch(sorted, u)
		if c.weight[i] = 1; judged {
			c.weight[i] = (base + float64(surer)/float64(len(unsure))) / (base + 1)
		}
		if u >= 0.5 {
			c.all[i].Why = Uncertain
		}
	}
}

// liken notes how near the candidates are to a picture.
func (c *candidates) liken(q *kernel.Query) {
	c.vectors.Distances(c.scratch, q, c.rows)
	for i, d := range c.scratch {
		c.near[i] = min(c.near[i], d)
	}
}

// right is the distance at a right angle; the cosine is 1 at half of it.
const right = int64(kernel.Far)

// mostUseful is the candidate that is to come next, the first of equal ones.
func (c *candidates) mostUseful() int {
	best := -1
	for i := range c.all {
		if c.taken[i] {
			continue
		}
		// 0 for a copy of what was seen, 1 for what is unlike all of it.
		unlike := max(0, float64(int64(c.near[i])-right/2)/float64(right/2))
		c.all[i].Score = unlike * c.weight[i]
		if best < 0 || c.all[i].Score > c.all[best].Score {
			best = i
		}
	}
	return best
}

// Sample is at most n of some ordinals, those that hash lowest.
func Sample(ords *roaring.Bitmap, n int) *roaring.Bitmap {
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

// mix is the last step of MurmurHash3 (Appleby): a bijection of 32 bits that leaves no order.
func mix(h uint32) uint32 {
	h ^= h >> 16
	h *= 0x85ebca6b
	h ^= h >> 13
	h *= 0xc2b2ae35
	return h ^ h>>16
}

// Unsure returns how unsure a model is by its values, 0 to 1: of its most doubtful concept, or, where the concepts
// exclude each other, between the two most likely. A model that is not closed has one more value: that none of them is shown.
func Unsure(values []float32, r Relation) float64 {
	if !r.Exclusive {
		most := 0.0
		for _, v := range values {
			most = max(most, 1-2*math.Abs(float64(v)-0.5))
		}
		return most
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
