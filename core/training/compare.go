package training

import (
	"cmp"
	"context"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/sightline-dev/sightline/core/predict"
	"github.com/sightline-dev/sightline/core/train"
)

// Side is one of two versions that are compared.
type Side struct {
	Head    *train.Head
	CutOffs []float64 // of the head's concepts: value from which a concept counts as present
}

// NewSide returns the side of a version with a head and its evaluation. A concept without a learned cut-off, such as one that
// could not be evaluated, counts as present from train.Threshold on.
func NewSide(h *train.Head, m *train.Metrics) Side {
	s := Side{Head: h, CutOffs: make([]float64, len(h.Concepts))}
	for i := range s.CutOffs {
		s.CutOffs[i] = train.Threshold
		if i < len(m.Concepts) && m.Concepts[i].CutOff > 0 {
			s.CutOffs[i] = m.Concepts[i].CutOff
		}
	}
	return s
}

// Pair has the index of a concept in each of two heads, or -1 for a head without it, by which it is never present.
type Pair struct{ Before, After int }

// Pairs returns the concepts of two versions: those of after in its order, then those that only before has.
func Pairs(before, after *train.Head) []Pair {
	place := places(before.Concepts)
	var all []Pair
	for i, id := range after.Concepts {
		was, ok := place[id]
		if !ok {
			was = -1
		}
		delete(place, id)
		all = append(all, Pair{was, i})
	}
	for i, id := range before.Concepts {
		if _, alone := place[id]; alone {
			all = append(all, Pair{i, -1})
		}
	}
	return all
}

// Differ reports whether a concept is present by one version and not by the other. was and is are the values of the versions
// for a picture. moved is the difference of the concept's values; a version without the concept counts as 0.
func (p Pair) Differ(before, after *Side, was, is []float32) (differ bool, moved float32) {
	valueAt := func(s *Side, values []float32, at int) (bool, float32) {
		if at < 0 {
			return false, 0
		}
		return float64(values[at]) >= s.CutOffs[at], values[at]
	}
	a, va := valueAt(before, was, p.Before)
	b, vb := valueAt(after, is, p.After)
	return a != b, max(va-vb, vb-va)
}

// Change is an input for which two versions predict different concepts.
type Change struct {
	Ord           uint32
	MaxDifference float32 // largest difference of values, among the concepts that only one version predicts
}

// Compare finds the inputs among ords for which two versions predict different concepts. All of ords must be analysed. The result
// is in the order of falling MaxDifference, then by ordinal. It computes both heads for every input.
func Compare(ctx context.Context, x Pictures, ords *roaring.Bitmap, before, after *Side) ([]Change, error) {
	pairs := Pairs(before.Head, after.Head)
	was := make([]float32, 0, len(before.Head.Concepts))
	is := make([]float32, 0, len(after.Head.Concepts))
	var all []Change
	err := x.Embeddings(ctx, ords, func(ord uint32, e *predict.Embedding) {
		was, is = before.Head.Values(was[:0], e), after.Head.Values(is[:0], e)
		c := Change{Ord: ord}
		changed := false
		for _, p := range pairs {
			if differ, moved := p.Differ(before, after, was, is); differ {
				changed, c.MaxDifference = true, max(c.MaxDifference, moved)
			}
		}
		if changed {
			all = append(all, c)
		}
	})
	slices.SortFunc(all, func(a, b Change) int {
		return cmp.Or(cmp.Compare(b.MaxDifference, a.MaxDifference), cmp.Compare(a.Ord, b.Ord))
	})
	return all, err
}
