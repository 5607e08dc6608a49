package train

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/sightline-dev/sightline/core/predict"
	"github.com/sightline-dev/sightline/core/testkit"
)

// TestAreaCountsPairs compares area with a slow count of pairs.
func TestAreaCountsPairs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all := []judgement{{positive: true}, {value: 0.5}}
		for range rapid.IntRange(0, 30).Draw(t, "more") {
			all = append(all, judgement{
				value:    float32(rapid.IntRange(0, 6).Draw(t, "value")) / 6,
				positive: rapid.Bool().Draw(t, "positive"),
			})
		}
		won, pairs := 0.0, 0.0
		for _, a := range all {
			for _, b := range all {
				if a.positive && !b.positive {
					pairs++
					switch {
					case a.value > b.value:
						won++
					case a.value == b.value:
						won += 0.5
					}
				}
			}
		}
		if got, want := area(all), won/pairs; got-want > 1e-12 || want-got > 1e-12 {
			t.Fatalf("area %v, want %v", got, want)
		}
	})
}

func TestFoldsAreStratified(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(rapid.Uint64().Draw(t, "seed"), 3, 1)
		p := &Problem{Concepts: []string{"a", "b", "c"}}
		for c := range p.Concepts {
			for range rapid.IntRange(0, 25).Draw(t, p.Concepts[c]) {
				l := make([]int8, 3)
				l[c] = True
				p.Examples = append(p.Examples, Example{Embedding: w.picture(c), Labels: l})
			}
		}
		if len(p.Examples) == 0 {
			return
		}
		rows := rowsOf(p)
		k := max(2, p.folds(rows))
		counts := assign(p, rows, k)
		for c := range p.Concepts {
			lowest, highest := counts[0][c], counts[0][c]
			for f := range k {
				lowest, highest = min(lowest, counts[f][c]), max(highest, counts[f][c])
			}
			if highest > lowest+1 {
				t.Fatalf("concept %d is %v over the folds", c, counts)
			}
		}
		for i := range rows {
			if rows[i].fold < 0 || rows[i].fold >= k {
				t.Fatalf("row %d is in fold %d of %d", i, rows[i].fold, k)
			}
		}
	})
}

// TestCopiesShareAFold checks that copies of a picture are never on both sides of a fold.
func TestCopiesShareAFold(t *testing.T) {
	w := newWorld(9, 2, 1)
	p := w.problem(6, "a", "b")
	p.Examples = append(p.Examples, p.Examples...)
	p.Examples = append(p.Examples, Example{Embedding: p.Examples[0].Embedding, Other: true})
	rows := rowsOf(p)
	if got := p.folds(rows); got != 6 {
		t.Errorf("%d folds for six different pictures, want 6", got)
	}
	assign(p, rows, 6)
	fold := map[uint64]int{}
	for _, r := range rows {
		if f, ok := fold[r.hash]; ok && f != r.fold {
			t.Errorf("a copy is in fold %d, the other in %d", r.fold, f)
		}
		fold[r.hash] = r.fold
	}
}

func TestFewerFoldsForMany(t *testing.T) {
	for _, tt := range []struct{ rows, want int }{{20, 10}, {manyRows + 1, manyFolds}, {hugeRows + 1, hugeFolds}} {
		p := &Problem{Concepts: []string{"a"}}
		rows := make([]row, tt.rows)
		e := newWorld(1, 1, 1)
		for i := range rows {
			rows[i] = row{hash: uint64(i), embedding: e.picture(0), kind: other}
			if i < 15 {
				rows[i].kind, rows[i].labels, rows[i].positive = labelled, []int8{True}, true
			}
			if i > 20 {
				rows[i].embedding = rows[20].embedding
			}
		}
		if got := p.folds(rows); got != tt.want {
			t.Errorf("%d folds of %d rows, want %d", got, tt.rows, tt.want)
		}
	}
}

// TestFewPicturesAreNotChecked checks that the labels of a concept are checked from MinChecked pictures, and that few of them are listed
// however many are wrong.
func TestFewPicturesAreNotChecked(t *testing.T) {
	for _, tt := range []struct{ pictures, wrong, listed int }{
		{MinChecked - 2, 1, 0}, {MinChecked - 1, 0, 0}, {MinChecked - 1, 1, 1}, {9, 0, 0}, {9, 1, 1}, {9, 5, 3},
	} {
		w := newWorld(10, 2, 0.5)
		p := w.problem(tt.pictures, "a", "b")
		p.Background = w.background(300)
		for range tt.wrong {
			p.Examples = append(p.Examples, Example{Embedding: w.picture(1), Labels: []int8{True, Unknown}})
		}
		m := fit(t, p).Metrics
		if len(m.Weakest) != tt.listed {
			t.Errorf("%d pictures and %d with a wrong label: %d labels listed, want %d: %+v", tt.pictures, tt.wrong, len(m.Weakest), tt.listed, m.Weakest)
		}
		for _, weak := range m.Weakest {
			if weak.Example < 2*tt.pictures || weak.Concept != 0 || weak.Label != True {
				t.Errorf("%d pictures: %+v is listed, which is correct", tt.pictures, weak)
			}
		}
	}
}

// TestWrongLabelIsTheWeakest checks that Weakest lists a wrong label first, and that it costs the concept a hit.
func TestWrongLabelIsTheWeakest(t *testing.T) {
	for _, exclusive := range []bool{false, true} {
		w := newWorld(10, 2, 0.8)
		p := w.problem(12, "a", "b")
		p.Exclusive, p.Background = exclusive, w.background(300)
		wrong := len(p.Examples)
		p.Examples = append(p.Examples, Example{Embedding: w.picture(0), Labels: []int8{Unknown, True}})
		m := fit(t, p).Metrics
		if m.Weakest[0].Example != wrong || m.Weakest[0].Label != True && m.Weakest[0].Label != False {
			t.Errorf("exclusive %v: weakest is %+v, want example %d", exclusive, m.Weakest[0], wrong)
		}
		if m.Confusion[1][0] != 1 || m.Confusion[0][0] != 12 || m.Confusion[1][1] != 12 {
			t.Errorf("exclusive %v: confusion %v, want one b taken for a", exclusive, m.Confusion)
		}
		if c := m.Concepts[1]; c.Recall < 0.9 || c.Recall == 1 || c.Positives != 13 || c.Negatives != 12 || !c.Evaluated {
			t.Errorf("exclusive %v: %+v", exclusive, c)
		}
	}
}

func TestClearConceptsAreSeparated(t *testing.T) {
	step := 1
	if testing.Short() {
		step = 5
	}
	for n := 2; n <= 12; n += step {
		w := newWorld(uint64(n), 3, 0.5)
		p := w.problem(n, "a", "b", "never")
		p.Examples = p.Examples[:2*n]
		p.Background = w.background(256)
		m := fit(t, p).Metrics
		if m.Folds != min(n, 10) || m.Macro.ROCAUC != 1 || m.Macro.F1 < 0.99 {
			t.Errorf("%d photos: %d folds, %+v, want %d and all right", n, m.Folds, m.Macro, min(n, 10))
		}
		if m.Concepts[2].Evaluated || m.Concepts[0].Unrelated > 0.05 {
			t.Errorf("%d photos: %+v", n, m.Concepts)
		}
	}
}

// TestSingleConceptIsEvaluatedAgainstBackground evaluates a model of one concept against the background. Without a background, or with one
// picture, it is not evaluated.
func TestSingleConceptIsEvaluatedAgainstBackground(t *testing.T) {
	w := newWorld(11, 1, 0.7)
	p := w.problem(8, "a")
	p.Background = w.background(256)
	c := fit(t, p).Metrics.Concepts[0]
	if !c.Evaluated || !c.AgainstBackground || c.Negatives != 256 || c.ROCAUC < 0.99 {
		t.Errorf("%+v", c)
	}
	p.Background = nil
	if c := fit(t, p).Metrics.Concepts[0]; c.Evaluated || c.Positives != 8 {
		t.Errorf("with nothing to tell it from: %+v", c)
	}
	one := w.problem(1, "a")
	one.Background = w.background(64)
	if m := fit(t, one).Metrics; m.Folds != 0 || m.Concepts[0].Evaluated {
		t.Errorf("a single picture: %+v", m)
	}
}

// TestConfusionOfSeveralConcepts compares labels with predictions of examples with several concepts, or with none.
func TestConfusionOfSeveralConcepts(t *testing.T) {
	p := &Problem{Concepts: []string{"a", "b", "c"}}
	e := &evaluation{f: &Fitter{p: p}, metrics: UnevaluatedMetrics(p)}
	add := func(labels []int8, values ...float32) {
		r := row{kind: labelled, labels: labels, positive: slices.Contains(labels, True)}
		e.f.rows = append(e.f.rows, r)
		e.values = append(e.values, values...)
	}
	add([]int8{1, 1, 0}, 0.9, 0.2, 0.1)   // a is right, b is missed
	add([]int8{1, 0, 0}, 0.6, 0.1, 0.9)   // a is right, c is wrong beyond it
	add([]int8{0, 1, 0}, 0.7, 0.1, 0.8)   // b is predicted as c first, and a is wrong beyond it
	add([]int8{0, 0, 1}, 0.4, 0.1, 0.3)   // c is missed
	add([]int8{-1, 0, 0}, 0.8, 0.1, 0.8)  // none: a is wrong, c is unknown
	add([]int8{-1, -1, 0}, 0.1, 0.1, 0.1) // predicted as none, which is right
	e.f.rows = append(e.f.rows, row{kind: other, other: true}, row{kind: unlabelled, fold: -1}, row{kind: background})
	e.values = append(e.values, 0.1, 0.1, 0.6, 0, 0, 0, 0, 0, 0)
	e.confuse()
	want := [][]int{{2, 0, 0, 0}, {0, 0, 1, 1}, {0, 0, 0, 1}, {2, 0, 2, 1}}
	if d := cmp.Diff(want, e.metrics.Confusion); d != "" {
		t.Errorf("confusion:\n%s", d)
	}
	if m := e.metrics; m.Inputs != 7 || m.Others != 1 {
		t.Errorf("%d inputs, %d of them others, want 7 and 1", m.Inputs, m.Others)
	}
}

// TestConfusionCountsFromTheCutOffs checks for open and closed models that a concept is predicted once its value reaches the cut-off, as in
// the figures at the cut-offs.
func TestConfusionCountsFromTheCutOffs(t *testing.T) {
	p := &Problem{Concepts: []string{"a", "b"}, Exclusive: true}
	for _, closed := range []bool{false, true} {
		p.Closed = closed
		e := &evaluation{f: &Fitter{p: p}, metrics: UnevaluatedMetrics(p)}
		e.metrics.Concepts[0].CutOff, e.metrics.Concepts[1].CutOff = 0.1, 0.3
		for _, values := range [][]float32{{0.1, 0.2}, {0.09, 0.2}, {0.05, 0.3}} {
			e.f.rows = append(e.f.rows, row{kind: labelled, labels: []int8{True, False}, positive: true})
			e.values = append(e.values, values...)
		}
		e.confuse()
		want := [][]int{{1, 1, 1}, {0, 0, 0}, {0, 0, 0}}
		if d := cmp.Diff(want, e.metrics.Confusion); d != "" {
			t.Errorf("closed %v: confusion:\n%s", closed, d)
		}
	}
}

// TestFiguresCountOneSet compares the figures of each concept with the confusion matrix of the same evaluation. Its row sums to the labels,
// its column to the predictions, and the last point of its curve includes the whole set.
func TestFiguresCountOneSet(t *testing.T) {
	for seed := range testkit.Seeds(t, 20, 500) {
		random := rand.New(rand.NewPCG(seed, 10))
		w := newWorld(seed, 3, 1.6)
		p := &Problem{Concepts: []string{"a", "b"}, Exclusive: random.IntN(2) == 0, Closed: random.IntN(4) == 0, Background: w.background(40)}
		labels := func(i int) []int8 {
			l := []int8{int8(random.IntN(3) - 1), int8(random.IntN(3) - 1)}
			l[i%2] = True
			if p.Exclusive {
				l[1-i%2] = False
			}
			return l
		}
		inputs, others := 0, 0
		for i := range 8 + random.IntN(24) {
			e := Example{Embedding: w.picture(i % 3)}
			switch {
			case i%3 < 2:
				e.Labels = labels(i)
				inputs++
			case i%2 == 0:
				if e.Other = true; !p.Closed {
					inputs++
					others++
				}
			}
			p.Examples = append(p.Examples, e)
		}
		m := fit(t, p).Metrics
		if m.Inputs != inputs || m.Others != others {
			t.Fatalf("seed %d: %d inputs, %d others, want %d and %d", seed, m.Inputs, m.Others, inputs, others)
		}
		for c := range m.Concepts {
			k := &m.Concepts[c]
			var row, column int
			for i := range m.Confusion {
				row, column = row+m.Confusion[c][i], column+m.Confusion[i][c]
			}
			right := m.Confusion[c][c]
			if row != k.Positives {
				t.Fatalf("seed %d: row %d of %v sums to %d, want %d labels", seed, c, m.Confusion, row, k.Positives)
			}
			if !k.Evaluated || k.AgainstBackground {
				continue
			}
			if got := float64(right) / float64(row); got != k.Recall || k.AtCutOff.Recall != got {
				t.Fatalf("seed %d: recall %v of %d, and %v in %v", seed, k.Recall, c, got, m.Confusion)
			}
			if column > 0 && (float64(right)/float64(column) != k.Precision || k.AtCutOff.Precision != k.Precision) {
				t.Fatalf("seed %d: precision %v of %d, but %d of %d in %v", seed, k.Precision, c, right, column, m.Confusion)
			}
			if last := k.Curve[len(k.Curve)-1]; last.Found != k.Positives || last.Wrong != k.Negatives {
				t.Fatalf("seed %d: curve %v of %d and %d", seed, k.Curve, k.Positives, k.Negatives)
			}
		}
	}
}

// TestOrderOfExamplesChangesNothing checks that the order of the examples changes no bit of the result, except the indices of examples.
func TestOrderOfExamplesChangesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(rapid.Uint64().Draw(t, "seed"), 3, 1)
		p := &Problem{
			Concepts: []string{"a", "b"}, Exclusive: rapid.Bool().Draw(t, "exclusive"), Closed: rapid.Bool().Draw(t, "closed"),
			Background: w.background(40),
		}
		for i := range rapid.IntRange(4, 20).Draw(t, "examples") {
			e := Example{Embedding: w.picture(i%3 - 1), Other: rapid.Bool().Draw(t, "other")}
			if i%3 > 0 {
				e.Labels = []int8{int8(rapid.IntRange(-1, 1).Draw(t, "label")), int8(rapid.IntRange(-1, 1).Draw(t, "label"))}
			}
			if i > 0 && rapid.IntRange(0, 4).Draw(t, "copy") == 0 {
				e.Embedding = p.Examples[i-1].Embedding
			}
			p.Examples = append(p.Examples, e)
		}
		a, err := run(NewFitter(p))
		order := rapid.Permutation(indices(len(p.Examples))).Draw(t, "order")
		shuffled := *p
		shuffled.Examples = nil
		for _, i := range order {
			shuffled.Examples = append(shuffled.Examples, p.Examples[i])
		}
		b, errB := run(NewFitter(&shuffled))
		if !errors.Is(errB, err) {
			t.Fatalf("errors %v and %v", err, errB)
		}
		if err != nil {
			return
		}
		if d := cmp.Diff(a.Head, b.Head); d != "" {
			t.Fatalf("another head:\n%s", d)
		}
		for i := range b.Metrics.Weakest {
			b.Metrics.Weakest[i].Example = order[b.Metrics.Weakest[i].Example]
		}
		// Copies with the same labels are interchangeable.
		for _, m := range []*Metrics{a.Metrics, b.Metrics} {
			for i := range m.Weakest {
				m.Weakest[i].Example = firstAlike(p, m.Weakest[i].Example)
			}
		}
		if d := cmp.Diff(a.Metrics, b.Metrics); d != "" {
			t.Fatalf("other metrics:\n%s", d)
		}
	})
}

func indices(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}

// firstAlike returns the index of the first example with the embedding and labels of example i.
func firstAlike(p *Problem, i int) int {
	return slices.IndexFunc(p.Examples, func(e Example) bool {
		o := p.Examples[i]
		return e.Embedding == o.Embedding && slices.Equal(e.Labels, o.Labels)
	})
}

// TestNegativesFollowTheEnvironment checks the label that examples have for a concept in an open and in a closed environment.
func TestNegativesFollowTheEnvironment(t *testing.T) {
	e := newWorld(12, 1, 1).picture(0)
	tests := []struct {
		name   string
		e      Example
		open   int8 // label for concept 0
		closed int8
	}{
		{"true", Example{Labels: []int8{True, Unknown}}, True, True},
		{"false", Example{Labels: []int8{False, Unknown}}, False, False},
		{"another of the model", Example{Labels: []int8{Unknown, True}}, False, False},
		{"another of the model denied", Example{Labels: []int8{Unknown, False}}, Unknown, Unknown},
		{"denied, and others shown", Example{Labels: []int8{Unknown, False}, Other: true}, False, Unknown},
		{"others alone", Example{Other: true}, False, left},
		{"unlabelled", Example{}, Unknown, left},
		{"unlabelled, spelt out", Example{Labels: []int8{Unknown, Unknown}}, Unknown, left},
	}
	for _, tt := range tests {
		for _, closed := range []bool{false, true} {
			tt.e.Embedding = e
			p := &Problem{Concepts: []string{"a", "b"}, Examples: []Example{tt.e}, Closed: closed, Background: []predict.Embedding{*e}}
			rows := rowsOf(p)
			want := tt.open
			if closed {
				want = tt.closed
			}
			got := left
			for i := range rows {
				if rows[i].kind != background {
					got = p.label(&rows[i], 0)
				} else if closed {
					t.Errorf("%s: background in a closed environment", tt.name)
				}
			}
			if got != want {
				t.Errorf("%s, closed %v: label %d, want %d", tt.name, closed, got, want)
			}
		}
	}
}

// left marks an example that is left out.
const left int8 = 9

// TestWeights checks the total weights of the positives and of each kind of negatives.
func TestWeights(t *testing.T) {
	w := newWorld(13, 2, 1)
	p := w.problem(10, "a", "b")
	p.Background = w.background(50)
	for range 5 {
		p.Examples = append(p.Examples, Example{Embedding: w.picture(-1), Other: true}, Example{Embedding: w.picture(-1)})
	}
	rows := rowsOf(p)
	col, sum, ok := p.sigmoidColumn(rows, up(len(rows)), 0)
	if !ok {
		t.Fatal("no column")
	}
	totals := map[string]float64{}
	for i := range rows {
		name := [...]string{"labelled", "other", "unlabelled", "background"}[rows[i].kind]
		if col.y[i] == 1 {
			name = "positive"
		}
		totals[name] += float64(col.w[i]) * sum
	}
	want := map[string]float64{"positive": 10, "labelled": 10 * 10. / 15, "other": 10 * 5. / 15, "unlabelled": 5 * unlabelledMost, "background": 1}
	for name, v := range want {
		if d := totals[name] - v; d > 1e-4 || d < -1e-4 {
			t.Errorf("%s weighs %v, want %v", name, totals[name], v)
		}
	}
}

// TestThinning checks that thin keeps samples of the many other and unlabelled examples, and all labelled and background ones.
func TestThinning(t *testing.T) {
	rows := make([]row, 0, maxOther+maxUnlabelled+40)
	for i := range maxOther + maxUnlabelled + 40 {
		rows = append(rows, row{kind: kind(i % 4), hash: rand.New(rand.NewPCG(uint64(i), 1)).Uint64()})
	}
	rows = append(rows, slices.Repeat([]row{{kind: other}}, maxOther)...)
	rows = append(rows, slices.Repeat([]row{{kind: unlabelled}}, maxUnlabelled)...)
	n := map[kind]int{}
	before := map[kind]int{}
	for _, r := range rows {
		before[r.kind]++
	}
	for _, r := range thin(rows) {
		n[r.kind]++
	}
	if n[other] != maxOther || n[unlabelled] != maxUnlabelled || n[labelled] != before[labelled] || n[background] != before[background] {
		t.Errorf("%v are left of %v", n, before)
	}
}
