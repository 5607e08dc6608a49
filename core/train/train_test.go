package train

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sightline-dev/sightline/core/predict"
	"github.com/sightline-dev/sightline/core/train/kernel"
)

// world draws embeddings: each concept has a different direction, and a picture is somewhere around it. It uses no function of package
// math that hosts compute differently.
type world struct {
	rng     *rand.Rand
	centres [][]float32
	noise   float32
}

func newWorld(seed uint64, concepts int, noise float32) *world {
	w := &world{rng: rand.New(rand.NewPCG(seed, 1)), noise: noise}
	for range concepts {
		w.centres = append(w.centres, w.direction())
	}
	return w
}

// direction returns a random vector of about unit length.
func (w *world) direction() []float32 {
	v := make([]float32, predict.Dim)
	for i := range v {
		s := 0.0
		for range 4 { // roughly normal, variance 1/3·4
			s += 2*w.rng.Float64() - 1
		}
		v[i] = float32(s * 0.054126588) // so that the squares sum to about 1
	}
	return v
}

// picture returns the embedding of a picture of concept c, or of no concept if c is negative.
func (w *world) picture(c int) *predict.Embedding {
	v := w.direction()
	if c >= 0 {
		for i := range v {
			v[i] = float32(v[i]*w.noise) + w.centres[c][i]
		}
	}
	e, err := predict.NewEmbedding(v)
	if err != nil {
		panic(err)
	}
	return &e
}

func (w *world) background(n int) []predict.Embedding {
	out := make([]predict.Embedding, n)
	for i := range out {
		out[i] = *w.picture(-1)
	}
	return out
}

// problem returns a problem with n positive examples of each concept.
func (w *world) problem(n int, concepts ...string) *Problem {
	p := &Problem{Concepts: concepts}
	for c := range concepts {
		for range n {
			l := make([]int8, len(concepts))
			l[c] = True
			p.Examples = append(p.Examples, Example{Embedding: w.picture(c), Labels: l})
		}
	}
	return p
}

// run steps a fitter until it ends.
func run(f *Fitter) (*Result, error) {
	for !f.Step() {
	}
	return f.Result(), f.Err()
}

func fit(t testing.TB, p *Problem) *Result {
	t.Helper()
	r, err := run(NewFitter(p))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// fitHead steps a fitter until its head is solved, and skips the evaluation.
func fitHead(t testing.TB, f *Fitter) *Head {
	t.Helper()
	for f.folds == nil {
		if f.Step() {
			if f.Err() != nil {
				t.Fatal(f.Err())
			}
			return f.Result().Head
		}
	}
	return f.head(f.tasks)
}

// withStrength returns a fitter with another strength than versions use.
func withStrength(p *Problem, strength float64) *Fitter {
	f := NewFitter(p)
	f.strength = strength
	return f
}

// rowsOf returns all rows of a problem in their order.
func rowsOf(p *Problem) []row {
	var rows []row
	for i := range p.Examples {
		if r, ok := p.row(i); ok {
			rows = append(rows, r)
		}
	}
	return p.arrange(rows)
}

// TestTenPicturesSuffice trains with ten pictures of each of two concepts. At most 5 % of unrelated pictures score over a half on either
// concept, and at least 90 % of other pictures of the concepts do.
func TestTenPicturesSuffice(t *testing.T) {
	for _, exclusive := range []bool{false, true} {
		w := newWorld(1, 2, 1.1)
		p := w.problem(10, "ramen", "soba")
		p.Exclusive, p.Background = exclusive, w.background(1024)
		h := fitHead(t, NewFitter(p))
		const n = 500
		own, unrelated := 0, 0
		for i := range n {
			if h.Values(nil, w.picture(i%2))[i%2] > 0.5 {
				own++
			}
			if v := h.Values(nil, w.picture(-1)); max(v[0], v[1]) > 0.5 {
				unrelated++
			}
		}
		t.Logf("exclusive %v: own %d of %d, unrelated %d", exclusive, own, n, unrelated)
		if own < n*90/100 || unrelated > n*5/100 {
			t.Errorf("exclusive %v: own %d of %d, want 90 %%; unrelated %d, want at most 5 %%", exclusive, own, n, unrelated)
		}
	}
}

func TestUnusableLabels(t *testing.T) {
	w := newWorld(2, 2, 1)
	e := w.picture(0)
	tests := []struct {
		name string
		p    Problem
		want error
	}{
		{"labels but none true", Problem{Concepts: []string{"a"}, Examples: []Example{{Embedding: e, Labels: []int8{False}}}}, ErrNoPositives},
		{"labels but no embedding", Problem{Concepts: []string{"a"}, Examples: []Example{{Labels: []int8{True}}, {Embedding: e}}}, ErrNoExamples},
		{"a zero embedding", Problem{Concepts: []string{"a"}, Examples: []Example{{Embedding: new(predict.Embedding), Labels: []int8{True}}}}, ErrNoExamples},
		{
			"one class", Problem{
				Concepts: []string{"a", "b"}, Exclusive: true,
				Examples: []Example{{Embedding: e, Labels: []int8{True, Unknown}}, {Embedding: e, Labels: []int8{True, False}}},
			}, ErrSingleClass,
		},
		{"no concept", Problem{}, ErrProblem},
		{"labels of another length", Problem{Concepts: []string{"a"}, Examples: []Example{{Embedding: e, Labels: []int8{True, True}}}}, ErrProblem},
		{"a label that is none", Problem{Concepts: []string{"a"}, Examples: []Example{{Embedding: e, Labels: []int8{2}}}}, ErrProblem},
		{"too many concepts", Problem{Concepts: make([]string, MaxConcepts+1)}, ErrProblem},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := run(NewFitter(&tt.p)); !errors.Is(err, tt.want) {
				t.Errorf("error %v, want %v", err, tt.want)
			}
		})
	}
}

// TestNoLabelsPredictNoConcept trains versions without a label for any of the model's concepts. They predict no concept.
func TestNoLabelsPredictNoConcept(t *testing.T) {
	w := newWorld(3, 2, 1)
	for _, p := range []*Problem{
		{Concepts: []string{"a", "b"}},
		{Concepts: []string{"a", "b"}, Exclusive: true},
		{Concepts: []string{"a"}, Exclusive: true, Closed: true},
		{Concepts: []string{"a"}, Examples: []Example{{Embedding: w.picture(0), Other: true}, {Labels: []int8{0}}}, Background: w.background(3)},
	} {
		r := fit(t, p)
		for _, v := range r.Head.Values(nil, w.picture(1)) {
			if v > 1e-6 {
				t.Errorf("%+v: value %v, want none", p.Concepts, v)
			}
		}
		if m := r.Metrics; m == nil || m.Folds != 0 || len(m.Confusion) != len(p.Concepts)+1 {
			t.Errorf("metrics %+v, want some without folds", m)
		}
	}
}

func TestFitterRunsInSteps(t *testing.T) {
	w := newWorld(4, 3, 1)
	p := w.problem(5, "a", "b", "c")
	p.Background = w.background(1500)
	f := NewFitter(p)
	if f.Progress() != 0 || f.Result() != nil {
		t.Errorf("progress %v and result %v at the start", f.Progress(), f.Result())
	}
	last, steps, moves := 0.0, 0, 0
	for !f.Step() {
		now := f.Progress()
		if now < last || now > 1 {
			t.Fatalf("progress goes from %v to %v", last, now)
		}
		if now > last {
			moves++
		}
		last = now
		if steps++; f.Result() != nil {
			t.Fatal("a result before the end")
		}
	}
	if steps < 50 || moves < 20 || f.Progress() != 1 {
		t.Errorf("%d steps, %d with progress, at the end %v", steps, moves, f.Progress())
	}
	if !f.Step() {
		t.Error("Step after the end is not done")
	}
	if d := cmp.Diff(fit(t, p), f.Result()); d != "" {
		t.Errorf("a second fitter differs:\n%s", d)
	}
}

// TestFitterEndsWithAnError checks that a fitter returns the error of a problem once it reaches the fault, and keeps returning it.
func TestFitterEndsWithAnError(t *testing.T) {
	w := newWorld(5, 2, 1)
	e := w.picture(0)
	p := &Problem{Concepts: []string{"a"}, Examples: make([]Example, looks+2)}
	for i := range p.Examples {
		p.Examples[i] = Example{Embedding: e, Labels: []int8{False}}
	}
	for _, tt := range []struct {
		last  int8
		want  error
		steps int
	}{{2, ErrProblem, 2}, {False, ErrNoPositives, 3}} {
		p.Examples[looks+1].Labels = []int8{tt.last}
		f := NewFitter(p)
		steps := 1
		for !f.Step() {
			if f.Err() != nil {
				t.Fatalf("error %v before the end", f.Err())
			}
			steps++
		}
		if !errors.Is(f.Err(), tt.want) || f.Result() != nil || steps != tt.steps {
			t.Errorf("after %d steps %v, result %v; want %v after %d", steps, f.Err(), f.Result(), tt.want, tt.steps)
		}
		if !f.Step() || !errors.Is(f.Err(), tt.want) {
			t.Errorf("a step later: %v", f.Err())
		}
	}
}

// TestConceptValuesEqualValues checks that searches and predictions compute the same bits of a value.
func TestConceptValuesEqualValues(t *testing.T) {
	w := newWorld(6, 3, 1)
	for _, h := range heads(t) {
		const n = 2*chunk + 3
		var q []int16
		var scale []float32
		var want [][]float32
		for i := range n {
			e := w.picture(i%4 - 1)
			q, scale = append(q, e.Q[:]...), append(scale, e.Scale)
			want = append(want, h.Values(nil, e))
		}
		got := make([]float32, n)
		for c := range h.Concepts {
			h.ConceptValues(got, c, q, scale)
			for i := range got {
				if got[i] != want[i][c] {
					t.Fatalf("picture %d, concept %d: %v, want %v", i, c, got[i], want[i][c])
				}
			}
		}
	}
}

// TestValuesOfManyConcepts checks that Values appends, also for a head with more outputs than fit its scratch memory.
func TestValuesOfManyConcepts(t *testing.T) {
	w := newWorld(7, 1, 1)
	for _, exclusive := range []bool{false, true} {
		h := &Head{Concepts: make([]string, 100), Bias: make([]float32, 100), Weights: make([]float32, 100*predict.Dim), Exclusive: exclusive}
		v := h.Values([]float32{7}, w.picture(0))
		want := float32(0.5)
		if exclusive {
			want = 0.01
		}
		if len(v) != 101 || v[0] != 7 || v[1] != want || v[100] != want {
			t.Errorf("exclusive %v: %v", exclusive, v[:3])
		}
	}
}

// TestBitsAreTheSameEverywhere compares the bits of fitted heads, their values and their figures with those that every host must compute,
// with and without assembly. The tests run natively, as arm64 and as wasip1.
func TestBitsAreTheSameEverywhere(t *testing.T) {
	for level := range kernel.Levels.Each() {
		h := sha256.New()
		for _, exclusive := range []bool{false, true} {
			w := newWorld(30, 3, 1.2)
			p := w.problem(7, "ramen", "soba", "udon")
			p.Exclusive, p.Background = exclusive, w.background(150)
			for i := range 12 {
				p.Examples = append(p.Examples, Example{Embedding: w.picture(i%4 - 1), Other: i%2 == 0},
					Example{Embedding: w.picture(i % 3), Labels: []int8{False, Unknown, Unknown}})
			}
			r := fit(t, p)
			b, err := r.Head.MarshalBinary()
			if err != nil {
				t.Fatal(err)
			}
			h.Write(b)
			for i := range 20 {
				h.Write(appendFloats(nil, r.Head.Values(nil, w.picture(i%4-1))))
			}
			metrics, err := json.Marshal(r.Metrics)
			if err != nil {
				t.Fatal(err)
			}
			h.Write(metrics)
		}
		got := hex.EncodeToString(h.Sum(nil))
		want, err := os.ReadFile("testdata/bits.txt")
		if err != nil {
			t.Fatal(err)
		}
		if got != strings.TrimSpace(string(want)) {
			t.Errorf("level %s: %s, want %s", level, got, want)
		}
	}
}
