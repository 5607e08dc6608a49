package training

import (
	"context"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/sightline-dev/sightline/core/index"
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

// Judge says what the newest version thinks of a picture and how unsure it is, 0 to 1.
type Judge func(e *predict.Embedding) (values []float32, unsure float64)

// candidate is a picture in the making of a list.
type candidate struct {
	Next
	embedding predict.Embedding
	unsure    float64
	weight    float64 // of what it is unlike, base to 1
	like      float64 // cosine to what it is most like, of what is labelled and of those before it
	taken     bool
}

// Order returns the n most useful of the inputs in unlabelled, all of them analysed, the most useful first, and
// fewer where there are no more, or n is over MaxNext. known are labelled inputs, likewise analysed; judge is nil
// without a trained version. It costs up to MaxCandidates·(maxKnown + n) products of two embeddings.
func Order(ctx context.Context, x *index.View, unlabelled, known *roaring.Bitmap, judge Judge, n int) ([]Next, error) {
	all, err := candidates(ctx, x, unlabelled, judge)
	if err != nil {
		return nil, err
	}
	err = x.Embeddings(ctx, Sample(known, maxKnown), func(_ uint32, e *predict.Embedding) { liken(all, e) })
	if err != nil {
		return nil, err
	}
	var list []Next
	for range min(n, MaxNext, len(all)) {
		best := mostUseful(all)
		best.taken = true
		list = append(list, best.Next)
		liken(all, &best.embedding)
	}
	return list, nil
}

func candidates(ctx context.Context, x *index.View, unlabelled *roaring.Bitmap, judge Judge) ([]candidate, error) {
	some := Sample(unlabelled, MaxCandidates)
	all := make([]candidate, 0, some.GetCardinality())
	err := x.Embeddings(ctx, some, func(ord uint32, e *predict.Embedding) {
		c := candidate{embedding: *e, Next: Next{Ord: ord}}
		if judge != nil {
			c.Values, c.unsure = judge(e)
		}
		all = append(all, c)
	})
	weigh(all, judge != nil)
	return all, err
}

// weigh gives the candidates their weights, by how many of the others the model is surer of; 1 where there is no
// judge.
func weigh(all []candidate, judged bool) {
	sorted := make([]float64, len(all))
	for i := range all {
		sorted[i] = all[i].unsure
	}
	slices.Sort(sorted)
	for i := range all {
		surer, _ := slices.BinarySearch(sorted, all[i].unsure)
		all[i].weight = (base + float64(surer)/float64(len(all))) / (base + 1)
		all[i].Why = Different
		if !judged {
			all[i].weight = 1
		}
		if all[i].unsure >= 0.5 {
			all[i].Why = Uncertain
		}
	}
}

// liken notes how like a picture the candidates are.
func liken(all []candidate, e *predict.Embedding) {
	for i := range all {
		if c := &all[i]; !c.taken {
			c.like = max(c.like, c.embedding.Cosine(e))
		}
	}
}

// mostUseful is the candidate that is to come next, the first of equal ones.
func mostUseful(all []candidate) *candidate {
	var best *candidate
	for i := range all {
		c := &all[i]
		if c.taken {
			continue
		}
		c.Score = (1 - c.like) * c.weight
		if best == nil || c.Score > best.Score {
			best = c
		}
	}
	return best
}

// base is what a picture counts of which the model is surest, against a rank of 0 to 1: it may be wrong.
const base = 0.5

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
	slices.SortFunc(all, func(a, b hashed) int {
		if a.hash < b.hash {
			return -1
		}
		return 1 // mix is a bijection: no two are the same
	})
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

// Unsure is how unsure a model is by its values, 0 to 1: of its most doubtful concept, or, where the concepts
// exclude each other, between the two most likely, none of them being one more.
func Unsure(values []float32, exclusive, closed bool) float64 {
	if !exclusive {
		most := 0.0
		for _, v := range values {
			most = max(most, 1-2*abs(float64(v)-0.5))
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
	if !closed {
		see(none)
	}
	return 1 - (first - second)
}

func abs(x float64) float64 {
	if x < 0 {
		return -x
	}
	return x
}
