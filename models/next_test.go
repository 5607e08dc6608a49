//go:build !wasip1

package models_test

import (
	"context"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/sightline-dev/sightline/core/predict"
	"github.com/sightline-dev/sightline/core/testkit"
	"github.com/sightline-dev/sightline/core/train"
	"github.com/sightline-dev/sightline/core/training"
	"github.com/sightline-dev/sightline/models"
)

// album is the evaluation photos as inputs of an application. An ordinal is an index in it.
type album []labelledPhoto

func (a album) Embeddings(_ context.Context, ords *roaring.Bitmap, yield func(uint32, *predict.Embedding)) error {
	for it := ords.Iterator(); it.HasNext(); {
		ord := it.Next()
		yield(ord, &a[ord].embedding)
	}
	return nil
}

// teacher labels photos of an album for a model with some concepts.
type teacher struct {
	album
	concepts   []string
	background []predict.Embedding
}

// learn trains a head on the labelled photos. It returns nil if none of them shows a concept.
func (s *teacher) learn(t *testing.T, known *roaring.Bitmap) *train.Head {
	t.Helper()
	p := &train.Problem{Concepts: s.concepts, Background: s.background}
	for it := known.Iterator(); it.HasNext(); {
		photo := &s.album[it.Next()]
		labels := make([]int8, len(s.concepts))
		for c, name := range s.concepts {
			if labels[c] = train.False; photo.shows(name) {
				labels[c] = train.True
			}
		}
		p.Examples = append(p.Examples, train.Example{Embedding: &photo.embedding, Labels: labels})
	}
	h, err := fit(p)
	if err != nil {
		return nil // no photo of any of the concepts yet
	}
	return h
}

// area returns the mean ROC AUC of the concepts in unlabelled photos. It skips concepts that no photo shows.
func (s *teacher) area(h *train.Head, photos []int) float64 {
	sum, n := 0.0, 0.0
	for c, name := range s.concepts {
		var positives, others []float32
		for _, i := range photos {
			value := float32(0)
			if h != nil {
				value = h.Values(nil, &s.album[i].embedding)[c]
			}
			if s.album[i].shows(name) {
				positives = append(positives, value)
			} else {
				others = append(others, value)
			}
		}
		if len(positives) == 0 {
			continue
		}
		won := 0.0
		for _, a := range positives {
			for _, b := range others {
				switch {
				case a > b:
					won++
				case a == b:
					won += 0.5
				}
			}
		}
		sum += won / float64(len(positives)*len(others))
		n++
	}
	return sum / n
}

// next returns the ten photos to label next.
func (s *teacher) next(t *testing.T, pool, known *roaring.Bitmap, h *train.Head) []uint32 {
	t.Helper()
	var judge training.Evaluate
	if h != nil {
		judge = func(e *predict.Embedding) ([]float32, float64) {
			values := h.Values(nil, e)
			return values, training.Uncertainty(values, training.Relation{})
		}
	}
	list, err := training.Suggest(t.Context(), s.album, roaring.AndNot(pool, known), known, judge, 10)
	if err != nil {
		t.Fatal(err)
	}
	ords := make([]uint32, len(list))
	for i := range list {
		ords[i] = list[i].Ord
	}
	return ords
}

// margin sums the ROC AUC of the list's order and of random order over trials.
type margin struct {
	n                            int
	listed, random, sum, squares float64
	better                       int
}

func (m *margin) add(listed, random float64) {
	m.n++
	m.listed += listed
	m.random += random
	m.sum += listed - random
	m.squares += (listed - random) * (listed - random)
	if listed > random {
		m.better++
	}
}

func (m *margin) mean() float64 { return m.sum / float64(m.n) }

// deviation returns the standard error of the mean.
func (m *margin) deviation() float64 {
	return math.Sqrt((m.squares/float64(m.n) - m.mean()*m.mean()) / float64(m.n-1))
}

// teach trains in the list's order and in random order, ten photos at a time. After 20, 40 and 60 photos it adds the scores of both on
// unseen photos.
func (s *teacher) teach(t *testing.T, unseen, rest []int, margins []margin) {
	t.Helper()
	pool, known, drawn := roaring.New(), roaring.New(), roaring.New()
	for _, i := range rest {
		pool.Add(uint32(i))
	}
	var h *train.Head
	for step := range 2 * len(margins) {
		known.AddMany(s.next(t, pool, known, h))
		h = s.learn(t, known)
		for _, i := range rest[10*step : 10*step+10] {
			drawn.Add(uint32(i))
		}
		if step%2 == 1 {
			margins[step/2].add(s.area(h, unseen), s.area(s.learn(t, drawn), unseen))
		}
	}
}

// TestLabelNextTrainsBetter is the acceptance test of Label next, on real photos. It trains models of three concepts, starting with nothing
// and adding ten photos per training. Models trained on the list's photos must separate the concepts in unseen photos better than models
// trained on as many photos in random order. The difference of one trial has a standard deviation of 0.13, so the mean of 24 has a standard
// error of 0.03.
func TestLabelNextTrainsBetter(t *testing.T) {
	if testing.Short() {
		t.Skip("analyses 400 photos")
	}
	set, err := predict.Load(models.FS)
	if err != nil {
		t.Fatal(err)
	}
	photos := evaluationPhotos(t, set)
	counts := map[string]int{}
	for i := range photos {
		for _, name := range photos[i].concepts {
			counts[name]++
		}
	}
	// Photos without a concept have an empty name in the table.
	maps.DeleteFunc(counts, func(name string, n int) bool { return name == "" || n < 12 || n > 150 })
	margins := make([]margin, 3)
	for trial := range uint64(testkit.Size(t, 0, 24, 100, 400)) {
		rng := rand.New(rand.NewPCG(trial, 7))
		names := slices.Sorted(maps.Keys(counts))
		rng.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
		s := &teacher{album: photos, concepts: names[:3], background: background(t, set)}
		order := rng.Perm(len(photos))
		s.teach(t, order[:150], order[150:], margins)
	}
	for i := range margins {
		m := &margins[i]
		t.Logf("after %d photos: ROC AUC %.3f by the list, %.3f in random order: %+.3f ± %.3f; better in %d of %d",
			20*(i+1), m.listed/float64(m.n), m.random/float64(m.n), m.mean(), m.deviation(), m.better, m.n)
		if m.mean() < 0.03 {
			t.Errorf("after %d photos: ROC AUC %+.3f over random order, want 0.03", 20*(i+1), m.mean())
		}
	}
}
