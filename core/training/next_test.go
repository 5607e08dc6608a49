package training

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/sightline-dev/sightline/core/predict"
	"github.com/sightline-dev/sightline/core/testkit"
)

// album is the embeddings of pictures in memory, by ordinal.
type album map[uint32]*predict.Embedding

func (a album) Embeddings(ctx context.Context, ords *roaring.Bitmap, yield func(uint32, *predict.Embedding)) error {
	for it := ords.Iterator(); it.HasNext(); {
		ord := it.Next()
		yield(ord, a[ord])
	}
	return ctx.Err()
}

// randomAlbum returns pictures of a few kinds, some of them twice, and their ordinals.
func randomAlbum(t testing.TB, random *rand.Rand) (album, *roaring.Bitmap) {
	t.Helper()
	a, ords := album{}, roaring.New()
	n, kinds := 2+random.IntN(60), 1+random.IntN(6)
	ord := random.Uint32N(1 << 20)
	for i := range n {
		ord += 1 + random.Uint32N(9)
		e := vector(t, random.IntN(kinds), uint64(i)*uint64(1+random.IntN(3))/2)
		a[ord] = &e
		ords.Add(ord)
	}
	return a, ords
}

// doubts returns an Evaluate that derives its values from a picture's own bits. Many values are equal.
func doubts(steps int) Evaluate {
	return func(e *predict.Embedding) ([]float32, float64) {
		u := float64(int(e.Q[0])&0x7fff%steps) / float64(steps)
		return []float32{float32(u)}, u
	}
}

// TestOrderIsGreedy compares lists for random pictures with a direct computation from the cosines. Each picture must be the most useful
// one of the rest, up to the rounding of the kernel. Scores must fall. A longer list must begin with a shorter one. Labelled pictures
// must not be in it.
func TestOrderIsGreedy(t *testing.T) {
	for seed := range testkit.Seeds(t, 60, 2000) {
		random := rand.New(rand.NewPCG(seed, 1))
		a, ords := randomAlbum(t, random)
		known := roaring.New()
		for it := ords.Iterator(); it.HasNext(); {
			if ord := it.Next(); random.IntN(4) == 0 {
				known.Add(ord)
			}
		}
		unlabelled := roaring.AndNot(ords, known)
		var judge Evaluate
		if random.IntN(3) > 0 {
			judge = doubts(1 + random.IntN(8))
		}
		list, err := Suggest(t.Context(), a, unlabelled, known, judge, 1000)
		if err != nil || len(list) != int(unlabelled.GetCardinality()) {
			t.Fatalf("seed %d: %d of %d in the list, %v", seed, len(list), unlabelled.GetCardinality(), err)
		}
		s := newSlow(a, unlabelled, unlabelled, known, judge)
		for i, next := range list {
			if err := s.take(&next); err != nil {
				t.Fatalf("seed %d: place %d: %v", seed, i, err)
			}
			if i > 0 && next.Score > list[i-1].Score {
				t.Fatalf("seed %d: score %v after %v", seed, next.Score, list[i-1].Score)
			}
			if wrong := judge != nil && (next.Reason == Uncertain) != (next.Values[0] >= 0.5); wrong || judge == nil && next.Reason != Different {
				t.Fatalf("seed %d: %+v", seed, next)
			}
		}
		short, err := Suggest(t.Context(), a, unlabelled, known, judge, len(list)/2)
		same := func(a, b Suggestion) bool { return a.Ord == b.Ord && a.Score == b.Score }
		if err != nil || !slices.EqualFunc(short, list[:len(list)/2], same) {
			t.Fatalf("seed %d: the list of %d is no beginning of that of %d: %v", seed, len(short), len(list), err)
		}
	}
}

// TestOrderRepresentsASample checks that a list of many pictures sums gains over a sample of them. Pictures of a kind that the sample lacks
// represent nothing and come last.
func TestOrderRepresentsASample(t *testing.T) {
	const others = 50
	ords := roaring.New()
	ords.AddRange(0, maxRepresented+others)
	sample, a := sampleOrds(ords, maxRepresented), album{}
	for it := ords.Iterator(); it.HasNext(); {
		ord := it.Next()
		kind := int(ord) % 5
		if !sample.Contains(ord) {
			kind = 5
		}
		e := vector(t, kind, uint64(ord))
		a[ord] = &e
	}
	list, err := Suggest(t.Context(), a, ords, roaring.New(), nil, 20)
	if err != nil || len(list) != 20 {
		t.Fatalf("%d in the list, %v", len(list), err)
	}
	for i, next := range list {
		if !sample.Contains(next.Ord) {
			t.Errorf("place %d: %d is of a kind that the sample lacks", i, next.Ord)
		}
	}
}

// slow computes the gains of a list directly from cosines.
type slow struct {
	album
	left, represented *roaring.Bitmap
	weights, covered  map[uint32]float64 // by represented picture: its weight, and its cosine to the nearest labelled or listed one
	total             float64
}

func newSlow(a album, unlabelled, represented, known *roaring.Bitmap, judge Evaluate) *slow {
	s := &slow{album: a, left: unlabelled.Clone(), represented: represented, weights: map[uint32]float64{}, covered: map[uint32]float64{}}
	unsure := map[uint32]float64{}
	for it := unlabelled.Iterator(); judge != nil && it.HasNext(); {
		ord := it.Next()
		_, unsure[ord] = judge(a[ord])
	}
	for u := represented.Iterator(); u.HasNext(); {
		ord := u.Next()
		surer := 0
		for _, doubt := range unsure {
			if doubt < unsure[ord] {
				surer++
			}
		}
		s.weights[ord] = 1 + 2*float64(surer)/float64(unlabelled.GetCardinality())
		s.total += s.weights[ord]
	}
	for it := known.Iterator(); it.HasNext(); {
		s.cover(it.Next())
	}
	return s
}

func (s *slow) cover(ord uint32) {
	for u := s.represented.Iterator(); u.HasNext(); {
		one := u.Next()
		s.covered[one] = max(s.covered[one], s.album[ord].Cosine(s.album[one]))
	}
}

// gain returns the score of a picture.
func (s *slow) gain(ord uint32) float64 {
	sum := 0.0
	for u := s.represented.Iterator(); u.HasNext(); {
		one := u.Next()
		sum += s.weights[one] * max(0, s.album[ord].Cosine(s.album[one])-s.covered[one])
	}
	return sum / s.total
}

// take checks the next picture of a list and moves it from left to the listed pictures.
func (s *slow) take(next *Suggestion) error {
	got, largest := s.gain(next.Ord), 0.0
	for it := s.left.Iterator(); it.HasNext(); {
		largest = max(largest, s.gain(it.Next()))
	}
	if !s.left.CheckedRemove(next.Ord) {
		return fmt.Errorf("%d is in the list twice, or was labelled", next.Ord)
	}
	const rounding = 0.01
	if got < largest-rounding || math.Abs(got-next.Score) > rounding {
		return fmt.Errorf("%d has a gain of %v by the cosines and a score of %v; the largest gain is %v", next.Ord, got, next.Score, largest)
	}
	s.cover(next.Ord)
	return nil
}

// TestSampleOfOrdinals checks that a sample is as large as possible. After an ordinal of the sample is removed from the whole, the next
// sample still has all others.
func TestSampleOfOrdinals(t *testing.T) {
	for seed := range testkit.Seeds(t, 200, 20_000) {
		random := rand.New(rand.NewPCG(seed, 2))
		all := roaring.New()
		for range random.IntN(300) {
			all.Add(random.Uint32N(1000))
		}
		n := random.IntN(200)
		some := sampleOrds(all.Clone(), n)
		if want := min(uint64(n), all.GetCardinality()); some.GetCardinality() != want || some.AndCardinality(all) != want {
			t.Fatalf("seed %d: a sample of %d of %d has %d", seed, n, all.GetCardinality(), some.GetCardinality())
		}
		if some.IsEmpty() {
			continue
		}
		removed := some.ToArray()[random.IntN(int(some.GetCardinality()))]
		all.Remove(removed)
		after := sampleOrds(all.Clone(), n)
		some.Remove(removed)
		if roaring.AndNot(some, after).IsEmpty() {
			continue
		}
		t.Fatalf("seed %d: taking %d out moves others", seed, removed)
	}
}

func TestUnsure(t *testing.T) {
	for _, tt := range []struct {
		values            []float32
		exclusive, closed bool
		want              float64
	}{
		{nil, false, false, 0},
		{[]float32{0, 1}, false, false, 0},
		{[]float32{0.5, 1}, false, false, 1},
		{[]float32{0.25, 0}, false, false, 0.5},
		{[]float32{0.5, 0.5}, true, true, 1},
		{[]float32{0.75, 0.25}, true, true, 0.5},
		{[]float32{0.25, 0}, true, false, 0.5}, // none of them is the most likely
		{[]float32{0.25, 0}, true, true, 0.75},
		{[]float32{1, 0}, true, false, 0},
	} {
		if got := Uncertainty(tt.values, Relation{tt.exclusive, tt.closed}); got != tt.want {
			t.Errorf("Unsure(%v, exclusive %t, closed %t) = %v, want %v", tt.values, tt.exclusive, tt.closed, got, tt.want)
		}
	}
}

func TestAdvise(t *testing.T) {
	tallies := func(counts ...uint64) []Tally {
		all := make([]Tally, len(counts))
		for i, n := range counts {
			all[i].Positives = n
		}
		return all
	}
	for _, tt := range []struct {
		name              string
		inputs            uint64
		concepts          []Tally
		exclusive, closed bool
		want              Advice
	}{
		{"nothing", 0, nil, false, false, Advice{NoConcepts, -1, 0}},
		{"no label", 0, tallies(0, 0), false, false, Advice{NoPositives, 0, 10}},
		{"one without", 30, tallies(30, 0), false, false, Advice{NoPositives, 1, 10}},
		{"only one of two that exclude each other", 30, tallies(30, 0), true, false, Advice{OneClass, 1, 10}},
		{"one concept cannot exclude itself", 30, tallies(30), true, false, Advice{OneClass, 0, 0}},
		{"two of three that exclude each other", 30, tallies(20, 10, 0), true, false, Advice{NoPositives, 2, 10}},
		{"all alike in a closed world", 12, tallies(12), false, true, Advice{OneClass, 0, 0}},
		{"all alike in an open one", 12, tallies(12), false, false, Advice{NoAdvice, -1, 0}},
		{"few", 40, tallies(30, 7, 9), false, false, Advice{FewExamples, 1, 3}},
		{"as in the design", 130, tallies(64, 49, 17), false, false, Advice{Unbalanced, 2, 8}},
		{"even", 60, tallies(20, 25, 30), false, false, Advice{NoAdvice, -1, 0}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := Survey{Inputs: tt.inputs, Concepts: tt.concepts}
			if got := Advise(&s, Relation{tt.exclusive, tt.closed}); got != tt.want {
				t.Errorf("%+v, want %+v", got, tt.want)
			}
		})
	}
}

// TestCompare compares Compare with a comparison picture by picture, for heads that share some of their concepts.
func TestCompare(t *testing.T) {
	for seed := range testkit.Seeds(t, 60, 2000) {
		random := rand.New(rand.NewPCG(seed, 3))
		a, ords := randomAlbum(t, random)
		before, after := randomSide(random), randomSide(random)
		got, err := Compare(t.Context(), a, ords, &before, &after)
		if err != nil {
			t.Fatal(err)
		}
		var want []Change
		for it := ords.Iterator(); it.HasNext(); {
			ord := it.Next()
			was, is := before.says(a[ord]), after.says(a[ord])
			c := Change{Ord: ord, MaxDifference: -1}
			for _, id := range []string{"cat", "dog", "emu"} {
				if was[id].present != is[id].present {
					c.MaxDifference = max(c.MaxDifference, was[id].value-is[id].value, is[id].value-was[id].value)
				}
			}
			if c.MaxDifference >= 0 {
				want = append(want, c)
			}
		}
		slices.SortStableFunc(want, func(a, b Change) int { return cmp.Compare(b.MaxDifference, a.MaxDifference) })
		if !slices.Equal(got, want) {
			t.Fatalf("seed %d: %v, want %v", seed, got, want)
		}
	}
}

// prediction is the value that a version returns for a concept.
type prediction struct {
	present bool
	value   float32
}

func (s *Side) says(e *predict.Embedding) map[string]prediction {
	all := map[string]prediction{}
	for i, v := range s.Head.Values(nil, e) {
		all[s.Head.Concepts[i]] = prediction{float64(v) >= s.CutOffs[i], v}
	}
	return all
}
