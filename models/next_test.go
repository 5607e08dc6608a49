//go:build !wasip1

package models_test

import (
	"context"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/sightline-dev/sightline/core/predict"
	"github.com/sightline-dev/sightline/core/train"
	"github.com/sightline-dev/sightline/core/training"
	"github.com/sightline-dev/sightline/models"
)

// album is the evaluation photos as an application has them, by ordinal.
type album []labelledPhoto

func (a album) Embeddings(_ context.Context, ords *roaring.Bitmap, yield func(uint32, *predict.Embedding)) error {
	for it := ords.Iterator(); it.HasNext(); {
		ord := it.Next()
		yield(ord, &a[ord].embedding)
	}
	return nil
}

// teacher labels photos of an album for a model of some concepts.
type teacher struct {
	album
	concepts   []string
	background []predict.Embedding
}

// learn trains on what is labelled.
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

// area is the mean ROC AUC of the concepts that are in some photos that nobody labels.
func (s *teacher) area(h *train.Head, photos []int) float64 {
	sum, n := 0.0, 0.0
	for c, name := range s.concepts {
		var shown, others []float32
		for _, i := range photos {
			value := float32(0)
			if h != nil {
				value = h.Values(nil, &s.album[i].embedding)[c]
			}
			if s.album[i].shows(name) {
				shown = append(shown, value)
			} else {
				others = append(others, value)
			}
		}
		if len(shown) == 0 {
			continue
		}
		won := 0.0
		for _, a := range shown {
			for _, b := range others {
				switch {
				case a > b:
					won++
				case a == b:
					won += 0.5
				}
			}
		}
		sum += won / float64(len(shown)*len(others))
		n++
	}
	return sum / n
}

// next is a list of what to label, ten photos long.
func (s *teacher) next(t *testing.T, pool, known *roaring.Bitmap, h *train.Head) []uint32 {
	t.Helper()
	var judge training.Judge
	if h != nil {
		judge = func(e *predict.Embedding) ([]float32, float64) {
			values := h.Values(nil, e)
			return values, training.Unsure(values, training.Relation{})
		}
	}
	list, err := training.Order(t.Context(), s.album, roaring.AndNot(pool, known), known, judge, 10)
	if err != nil {
		t.Fatal(err)
	}
	ords := make([]uint32, len(list))
	for i := range list {
		ords[i] = list[i].Ord
	}
	return ords
}

// TestNextTeaches is the bar of Label next, on real photos: models of three concepts that are taught by the list, ten
// photos and a training at a time from nothing on, tell them better in photos that they have not seen than models
// that are taught as many photos in random order, after 20, 40 and 60.
func TestNextTeaches(t *testing.T) {
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
	maps.DeleteFunc(counts, func(_ string, n int) bool { return n < 12 || n > 150 })
	names := slices.Sorted(maps.Keys(counts))
	const trials = 24
	var listed, random [3]float64
	better := [3]int{}
	for trial := range uint64(trials) {
		rng := rand.New(rand.NewPCG(trial, 7))
		rng.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
		s := &teacher{album: photos, concepts: names[:3], background: set.Background()}
		order := rng.Perm(len(photos))
		unseen, rest := order[:150], order[150:]
		pool, known, drawn := roaring.New(), roaring.New(), roaring.New()
		for _, i := range rest {
			pool.Add(uint32(i))
		}
		var h *train.Head
		for step := range 6 {
			known.AddMany(s.next(t, pool, known, h))
			h = s.learn(t, known)
			for _, i := range rest[10*step : 10*step+10] {
				drawn.Add(uint32(i))
			}
			if step%2 == 1 {
				a, b := s.area(h, unseen), s.area(s.learn(t, drawn), unseen)
				listed[step/2] += a / trials
				random[step/2] += b / trials
				if a > b {
					better[step/2]++
				}
			}
		}
	}
	for i := range listed {
		t.Logf("after %d photos: ROC AUC %.3f by the list, %.3f in random order; better in %d of %d", 20*(i+1), listed[i], random[i], better[i], trials)
		if listed[i] < random[i]+0.01 {
			t.Errorf("after %d photos: ROC AUC %.3f, want more than the %.3f of random order", 20*(i+1), listed[i], random[i])
		}
	}
}
