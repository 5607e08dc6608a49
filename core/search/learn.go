package search

import (
	"cmp"
	"context"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/index"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/predict"
)

// The similarity from which two pictures are alike is learned from pairs of pictures, by the first of these ways that is possible:
//
//	labels     pairs that share a custom concept ───────────────────┐
//	           pairs that do not ──────────────────────────────────┴▶ the score that separates them best
//	else       pairs that the bundle's bake measured ───────────────▶ the score that separates them best
//	else       pairs of the bundle's background pictures ───────────▶ the score that 1 in 100 reaches
//
// Few of all pictures are like a given one, so a wrong pair weighs as much as farAway missed ones. All computations are sums of whole
// numbers and comparisons, so every host learns the same cut-off.
const (
	learnConcepts = 64  // number of the application's own concepts: the oldest that have labels
	learnPictures = 256 // number of pictures that are compared, each with each
	learnPairs    = 20  // minimum number of pairs of each kind
	farAway       = 10
	unrelated     = 100 // one in so many unrelated pairs reaches the cut-off
)

// labelledPicture is a picture with the concepts that its labels say it shows (yes) and does not show (no), as bits.
type labelledPicture struct {
	ord       uint32
	yes, no   uint64
	embedding predict.Embedding
}

// fromLabels learns the cut-off of similarity from an application's labels. It returns nil if there are too few or they separate nothing.
func fromLabels(ctx context.Context, v *index.View, r catalog.Reader) (*CutOff, error) {
	pictures, err := sample(v, r)
	if err != nil {
		return nil, err
	}
	var alike, different []float64
	for i := range pictures {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		a := &pictures[i]
		for j := range pictures[:i] {
			b := &pictures[j]
			if a.embedding == b.embedding {
				continue // the same picture twice is useless
			}
			switch {
			case a.yes&b.yes != 0:
				alike = append(alike, similarity(a.embedding.Cosine(&b.embedding)))
			case a.yes != 0 && b.yes != 0 || a.yes&b.no != 0 || a.no&b.yes != 0:
				different = append(different, similarity(a.embedding.Cosine(&b.embedding)))
			}
		}
	}
	value, ok := BestThreshold(alike, different)
	if !ok {
		return nil, nil
	}
	return &CutOff{value, FromLabels, len(pictures)}, nil
}

// BestThreshold returns the score that separates two kinds of pairs best, or false if no score does. It sorts both slices.
func BestThreshold(alike, different []float64) (float64, bool) {
	if len(alike) < learnPairs || len(different) < learnPairs {
		return 0, false
	}
	falling := func(a, b float64) int { return cmp.Compare(b, a) }
	slices.SortFunc(alike, falling)
	slices.SortFunc(different, falling)
	best, value, wrong := int64(0), 0.0, 0
	for i, score := range alike {
		for wrong < len(different) && different[wrong] >= score {
			wrong++
		}
		if good := int64(i+1)*int64(len(different)) - farAway*int64(wrong)*int64(len(alike)); good > best {
			best, value = good, score
		}
	}
	return value, best > 0
}

// sample returns labelled and analysed pictures: about equally many for each concept, evenly from first to last.
func sample(v *index.View, r catalog.Reader) ([]labelledPicture, error) {
	yes, no, err := labels(v, r)
	if err != nil || len(yes) == 0 {
		return nil, err
	}
	chosen, kinds := roaring.New(), slices.Concat(yes, no)
	kinds = slices.DeleteFunc(kinds, (*roaring.Bitmap).IsEmpty)
	for _, of := range kinds {
		pick(chosen, of, max(learnPictures/len(kinds), 1))
	}
	out := make([]labelledPicture, 0, chosen.GetCardinality())
	for it := chosen.Iterator(); it.HasNext(); {
		t := labelledPicture{ord: it.Next()}
		embedding, ok, err := v.Embedding(t.ord)
		if err != nil {
			return nil, err
		}
		if !ok {
			continue
		}
		t.embedding = *embedding
		for i := range yes {
			if yes[i].Contains(t.ord) {
				t.yes |= 1 << i
			}
			if no[i].Contains(t.ord) {
				t.no |= 1 << i
			}
		}
		out = append(out, t)
	}
	return out, nil
}

// labels returns the inputs with a positive label and those with a negative one, by custom concept.
func labels(v *index.View, r catalog.Reader) (yes, no []*roaring.Bitmap, err error) {
	var failed error
	err = r.Concepts(func(c catalog.Concept) bool {
		var inputs [2]*roaring.Bitmap
		for i, value := range []log.Value{log.True, log.False} {
			if inputs[i], failed = v.LabelledInputs(c.ID, value); failed != nil {
				return false
			}
		}
		if !inputs[0].IsEmpty() {
			yes, no = append(yes, inputs[0]), append(no, inputs[1])
		}
		return len(yes) < learnConcepts
	})
	return yes, no, cmp.Or(err, failed)
}

// pick adds n inputs of from to to, evenly spread, or all if there are at most n.
func pick(to, from *roaring.Bitmap, n int) {
	all := from.GetCardinality()
	if all <= uint64(n) {
		to.Or(from)
		return
	}
	for i := range uint64(n) {
		ord, err := from.Select(uint32(i * all / uint64(n)))
		if err == nil {
			to.Add(ord)
		}
	}
}

// LearnCutOff learns the cut-off of similarity from pictures of which hardly two are alike. It returns nil if there are too few.
func LearnCutOff(pictures []predict.Embedding) *CutOff {
	every := max(1, len(pictures)/learnPictures)
	var some []*predict.Embedding
	for i := 0; i < len(pictures); i += every {
		some = append(some, &pictures[i])
	}
	var scores []float64
	for i, a := range some {
		for _, b := range some[:i] {
			scores = append(scores, similarity(a.Cosine(b)))
		}
	}
	if len(scores) < unrelated {
		return nil
	}
	slices.Sort(scores)
	return &CutOff{scores[len(scores)-1-len(scores)/unrelated], FromBackground, len(some)}
}
