package search

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/sightline-dev/sightline/core/predict"
	"github.com/sightline-dev/sightline/core/testkit"
)

// TestBestScoreAgreesWithScan compares the score that separates two kinds of pairs best with the best of all scores.
func TestBestScoreAgreesWithScan(t *testing.T) {
	found := 0
	for seed := range testkit.Seeds(t, 300, 100_000) {
		r := rand.New(rand.NewPCG(seed, 3))
		draw := func(middle float64) (out []float64) {
			for range r.IntN(80) {
				out = append(out, middle+float64(r.IntN(40))/100)
			}
			return out
		}
		alike, different := draw(0.5+r.Float64()/3), draw(0.5)
		best, want := 0, 0.0
		for _, at := range slices.Concat(alike, different) {
			good := 0
			for _, a := range alike {
				if a >= at {
					good += len(different)
				}
			}
			for _, d := range different {
				if d >= at {
					good -= farAway * len(alike)
				}
			}
			if good > best || good == best && best > 0 && at > want {
				best, want = good, at
			}
		}
		enough := len(alike) >= learnPairs && len(different) >= learnPairs && best > 0
		got, ok := BestThreshold(alike, different)
		if ok != enough || ok && got != want {
			t.Fatalf("seed %d: Separate = %v %v, want %v %v", seed, got, ok, want, enough)
		}
		if ok {
			found++
		}
	}
	if found < 10 && !testing.Short() {
		t.Errorf("only %d were told", found)
	}
}

// TestScoresOfUnrelatedPictures checks that one pair of unrelated pictures in a hundred exceeds the learned score.
func TestScoresOfUnrelatedPictures(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 5))
	var pictures []predict.Embedding
	for range 300 {
		v := make([]float32, predict.Dim)
		for i := range 8 {
			v[i] = float32(r.NormFloat64())
		}
		e, err := predict.NewEmbedding(v)
		if err != nil {
			t.Fatal(err)
		}
		pictures = append(pictures, e)
	}
	got := LearnCutOff(pictures)
	reach, n := 0, 0
	for i := range pictures {
		for j := range pictures[:i] {
			if n++; similarity(pictures[i].Cosine(&pictures[j])) > got.Value {
				reach++
			}
		}
	}
	if got.Source != FromBackground || got.Examples != len(pictures) || reach < n/100-1 || reach > n/100+1 {
		t.Errorf("OfUnrelated = %+v, which %d of %d pairs reach", got, reach, n)
	}
	if few := LearnCutOff(pictures[:10]); few != nil {
		t.Errorf("of 10 pictures %+v was learned", few)
	}
}
