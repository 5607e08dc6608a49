package training

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/kv/memkv"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/predict"
	"github.com/sightline-dev/sightline/core/testkit"
	"github.com/sightline-dev/sightline/core/train"
)

func randomSide(random *rand.Rand) Side {
	concepts := [][]string{{"cat", "dog"}, {"dog", "emu"}, {"cat", "dog", "emu"}, {"emu"}}[random.IntN(4)]
	h := &train.Head{Concepts: concepts}
	m := &train.Metrics{Concepts: make([]train.ConceptMetric, len(concepts))}
	for i := range concepts {
		for range predict.Dim {
			h.Weights = append(h.Weights, float32(random.NormFloat64()))
		}
		h.Bias = append(h.Bias, float32(random.NormFloat64()))
		if random.IntN(2) == 0 {
			m.Concepts[i].CutOff = random.Float64()
		}
	}
	return NewSide(h, m)
}

// TestSurvey compares the summary of a training's inputs with the inputs' records, read one by one, through random labels, deletions and
// downloads, before and after trainings.
func TestSurvey(t *testing.T) {
	for seed := range testkit.Seeds(t, 12, 500) {
		random := rand.New(rand.NewPCG(seed, 5))
		w := newIndexedWorld(t, memkv.New())
		w.make([]string{"cat", "dog"})
		var dots []log.Dot
		concepts := []string{"cat", "dog", "emu"}
		var trained *catalog.Version
		for range 60 {
			id := concepts[random.IntN(3)]
			switch random.IntN(9) {
			case 0, 1:
				dots = append(dots, w.add(random.IntN(3), id))
			case 2:
				dots = append(dots, w.add(random.IntN(3)))
			case 3:
				dots = append(dots, w.pend(id))
				if random.IntN(2) == 0 {
					w.do(&log.InputFetched{Input: dots[len(dots)-1], Code: 30002})
				}
			case 4, 5, 6:
				if len(dots) > 0 {
					value := []log.Value{log.True, log.False, log.Removed}[random.IntN(3)]
					w.do(&log.InputLabels{Input: dots[random.IntN(len(dots))], Labels: []log.Label{{Concept: id, Value: value}}})
				}
			case 7:
				if len(dots) > 0 {
					at := random.IntN(len(dots))
					w.do(&log.InputDelete{Input: dots[at]})
					dots = slices.Delete(dots, at, at+1)
				}
			case 8:
				if v := w.train(fmt.Sprint("v", w.n, len(dots))); v.Code == catalog.VersionTrained {
					trained = &v
				}
			}
			w.n++
			checkSurvey(t, w, seed, trained)
		}
	}
}

// checkSurvey compares a survey with the records.
func checkSurvey(t *testing.T, w *world, seed uint64, trained *catalog.Version) {
	t.Helper()
	view := w.p.View()
	defer view.Close()
	got, err := NewSurvey(view, w.p.Index().At(view.Reader), []string{"cat", "dog"}, trained)
	if err != nil {
		t.Fatal(err)
	}
	want := Survey{Concepts: make([]Tally, 2)}
	learned := map[log.Dot]string{}
	if trained != nil {
		m, err := view.Manifest(trained)
		if err != nil {
			t.Fatal(err)
		}
		for _, in := range m.Inputs {
			learned[in.Dot] = about(in.Labels)
		}
	}
	if err := view.Inputs(0, func(in catalog.Input) bool {
		var labels []log.Label
		for _, l := range in.Labels {
			if l.Value != log.Removed {
				labels = append(labels, l.Label)
			}
		}
		now := about(labels)
		if now == "" || in.Code != catalog.InputReady && in.Code != catalog.InputPending {
			return true
		}
		want.Inputs++
		if now != learned[in.Dot] {
			want.New++
		}
		for _, l := range labels {
			if at := slices.Index([]string{"cat", "dog"}, l.Concept); at >= 0 && l.Value == log.True {
				want.Concepts[at].Positives++
			} else if at >= 0 {
				want.Concepts[at].Negatives++
			}
		}
		return true
	}); err != nil {
		t.Fatal(err)
	}
	if got.Inputs != want.Inputs || got.New != want.New || !slices.Equal(got.Concepts, want.Concepts) {
		t.Fatalf("seed %d: %+v, want %+v", seed, got, want)
	}
}

// about returns the labels for the model's concepts, as text.
func about(labels []log.Label) (text string) {
	for _, l := range labels {
		if l.Concept == "cat" || l.Concept == "dog" {
			text += fmt.Sprint(l.Concept, l.Value, " ")
		}
	}
	return text
}

// TestHistory compares the operations about an input with a scan of the whole log.
func TestHistory(t *testing.T) {
	for seed := range testkit.Seeds(t, 6, 200) {
		random := rand.New(rand.NewPCG(seed, 6))
		w := newIndexedWorld(t, memkv.New())
		var dots []log.Dot
		for range 80 {
			if len(dots) == 0 || random.IntN(3) == 0 {
				dots = append(dots, w.add(0, "cat"))
			} else {
				w.do(&log.InputLabels{Input: dots[random.IntN(len(dots))], Labels: []log.Label{{Concept: "dog", Value: log.True}}})
			}
		}
		if floor := uint64(random.IntN(60)); floor > 0 {
			w.do(&log.ConceptCreate{ID: "last"})
			if random.IntN(2) == 0 {
				if err := w.p.Log().Trim(floor); err != nil {
					t.Fatal(err)
				}
			}
		}
		for _, dot := range dots {
			var want []uint64
			wantAll := false
			if err := w.p.Log().Read(w.p.Log().Floor(), func(e log.Entry) bool {
				if e.Op.Dot == dot {
					wantAll = true
				}
				if e.Op.Dot == dot || log.SubjectDot(e.Op.Body) == dot {
					want = append(want, e.Seq)
				}
				return true
			}); err != nil {
				t.Fatal(err)
			}
			slices.Reverse(want)
			var got []uint64
			all, err := w.p.History(dot, func(e log.Entry) bool {
				got = append(got, e.Seq)
				return true
			})
			if err != nil || all != wantAll || !slices.Equal(got, want) {
				t.Fatalf("seed %d: %v, whole: %v, %v; want %v, whole: %v", seed, got, all, err, want, wantAll)
			}
		}
	}
}
