package train

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// Threshold is the value from which a concept without a cut-off counts as present.
const Threshold = 0.5

const (
	maxWeakest = 20 // maximum number of examples in Metrics.Weakest

	// MinChecked is the number of pictures of a concept from which its labels are checked: a head that was trained on three others
	// disagrees with few correct labels. TestDoubtfulLabels of package models measures the rates with these numbers.
	MinChecked  = 4
	moreOdds    = 10  // ratio of odds above which another concept contradicts a label
	likelier    = 0.6 // share of background pictures with a higher value above which a positive label is doubtful
	mislabelled = 0.2 // maximum share of the labels of a concept that are listed
)

// Metrics is the evaluation of a version on pictures that its head was not trained on: stratified k-fold cross
// validation of the same fit, with the values of all folds pooled. The picture of the parts:
//
//	labelled examples ─▶ k folds ─▶ for each: a head without it ─▶ values of its pictures ─▶ pool
//
// It depends on the content of the problem alone, not on the order of the examples.
type Metrics struct {
	Folds int `json:"folds"` // number of folds; 0 if nothing was evaluated, because no concept has two pictures
	// Inputs is the number of labelled examples from which all figures, curves and Confusion are computed. It is 0 if an
	// older program stored the metrics. Others is the number of those examples with labels only for concepts of other models.
	Inputs    int             `json:"inputs,omitempty"`
	Others    int             `json:"others,omitempty"`
	Precision float64         `json:"promised_precision,omitempty"` // that the cut-offs promise; 0 if an older program stored the metrics
	Concepts  []ConceptMetric `json:"concepts"`
	Macro     Figures         `json:"macro"` // plain means over the concepts that are Evaluated
	// Confusion counts labels (row) against predictions (column), in the order of Concepts. A concept is predicted if
	// its value reaches its cut-off. A predicted label counts in the diagonal. A label that is not predicted counts in
	// the column of a wrong prediction of the same example, the one of the highest value first, or else in the last
	// column, "none". A wrong prediction beyond those counts in the last row. An example without labels and predictions
	// counts in the last cell. Thus a row sums to the labels of its concept and a column to the predictions.
	//
	// Older programs counted an example by its highest value alone.
	Confusion [][]int `json:"confusion"` // (concepts + 1, concepts + 1)
	// Weakest lists labels to check: those with which the values disagree by more than chance, the most wrong first. It has an example at
	// most once. If Checked is 0, an older program stored the metrics, and the list is that of the highest differences.
	Weakest []Weakness `json:"weakest"`
	Checked int        `json:"checked,omitempty"` // number of pictures of a concept from which its labels were checked
}

// Figures are shares between 0 and 1. Precision, Recall and F1 hold at the cut-off. In metrics of older programs, which
// stored no curves, they hold at Threshold.
type Figures struct {
	ROCAUC    float64 `json:"roc_auc"`
	Precision float64 `json:"precision"`
	Recall    float64 `json:"recall"`
	F1        float64 `json:"f1"`
}

// ConceptMetric has the figures of one concept.
type ConceptMetric struct {
	Figures
	// Evaluated is false, and Figures are zeros, if a concept has fewer than two different pictures, or no others to compare with.
	Evaluated bool `json:"evaluated"`
	Positives int  `json:"positives"`
	Negatives int  `json:"negatives"`
	// AgainstBackground reports that no labelled example is a negative. Negatives and the figures then count background
	// pictures instead, which together weigh as much as the negatives that a promised precision assumes.
	AgainstBackground bool `json:"against_background,omitempty"`
	// Unrelated is the share of background pictures, also held out, whose values reach Threshold.
	Unrelated float64 `json:"unrelated"`
	// CutOff is the value from which the concept counts as present: the lowest that supports Metrics.Precision. If no
	// value does, it is the value that supports the highest precision. It lies in the middle of the gap below the last value
	// that counts. It is 0 if the concept is not Evaluated or an older program stored none. Other versions used the highest F1.
	CutOff float64 `json:"cut_off,omitempty"`
	// Supported is the precision that cross-validation supports at CutOff with a confidence of 90 %, if at most one in ten
	// pictures shows the concept. If it is below Metrics.Precision, the cut-off does not reach the promised precision.
	Supported float64 `json:"supported_precision,omitempty"`
	// AtCutOff has the precision and recall at CutOff. It is zero if CutOff is 0 or an earlier program stored the metrics.
	AtCutOff PrecisionRecall `json:"at_cut_off,omitzero"`
	// Curve has the steps of the ROC and precision-recall curves by falling threshold: only their corners, and at most
	// MaxCurve of them. It is nil if CutOff is 0.
	Curve []CurvePoint `json:"curve,omitempty"`
	// ROC is the curve that older programs stored, from (0, 0) to (1, 1), without thresholds.
	ROC []Point `json:"roc,omitempty"`
}

// NegativeWeight returns the weight of one of Negatives in the precision. Background pictures count together as
// the negatives that a promised precision assumes.
func (m *ConceptMetric) NegativeWeight() float64 {
	if m.AgainstBackground {
		return float64(fill(m.Positives, 0)) / float64(m.Negatives)
	}
	return 1
}

// PrecisionRecall has the precision and recall if all values from some threshold on count as present.
type PrecisionRecall struct {
	Precision float64 `json:"precision"` // share of the counted pictures that show the concept
	Recall    float64 `json:"recall"`    // share of the pictures with the concept that are counted
}

// Weakness is a user's label to check: it may be wrong, or its picture is unlike the others. In metrics of older programs it may also follow
// from other labels.
type Weakness struct {
	Example int     `json:"example"` // index in Problem.Examples
	Concept int     `json:"concept"` // index in Problem.Concepts
	Label   int8    `json:"label"`   // True or False
	Value   float32 `json:"value"`   // value by a head that was not trained on the example
	// Labelled is the concept with the highest value for the example, and LabelledValue is that value. Both are 0 in
	// metrics of older programs, which did not store them.
	Labelled      int     `json:"said,omitempty"`
	LabelledValue float32 `json:"said_value,omitempty"`
}

// InRange reports whether the example and the concepts are among so many of them.
func (w *Weakness) InRange(examples, concepts int) bool {
	within := func(i, n int) bool { return i >= 0 && i < n }
	return within(w.Example, examples) && within(w.Concept, concepts) && within(w.Labelled, concepts)
}

// Check returns ErrProblem for metrics that are not those of a problem with so many examples and concepts.
func (m *Metrics) Check(examples, concepts int) error {
	if len(m.Concepts) != concepts || len(m.Confusion) != concepts+1 || min(m.Folds, m.Others, m.Checked) < 0 || m.Inputs < m.Others {
		return fmt.Errorf("metrics of %d concepts, not %d: %w", len(m.Concepts), concepts, ErrProblem)
	}
	for i := range m.Concepts {
		if c := &m.Concepts[i]; c.Positives < 0 || c.Negatives < 0 || len(c.Curve) > MaxCurve || slices.ContainsFunc(c.Curve, CurvePoint.isNegative) {
			return fmt.Errorf("metrics of concept %d: %w", i, ErrProblem)
		}
	}
	for _, row := range m.Confusion {
		if len(row) != concepts+1 || slices.ContainsFunc(row, func(n int) bool { return n < 0 }) {
			return fmt.Errorf("confusion of %d concepts, not %d: %w", len(row)-1, concepts, ErrProblem)
		}
	}
	for i := range m.Weakest {
		if !m.Weakest[i].InRange(examples, concepts) {
			return fmt.Errorf("weakest example %d: %w", i, ErrProblem)
		}
	}
	return nil
}

// UnevaluatedMetrics returns the metrics of a problem's head that is not evaluated: they have no folds.
func UnevaluatedMetrics(p *Problem) *Metrics {
	n := len(p.Concepts)
	m := &Metrics{Precision: p.Precision, Checked: MinChecked, Concepts: make([]ConceptMetric, n), Confusion: make([][]int, n+1)}
	if m.Precision == 0 {
		m.Precision = DefaultPrecision
	}
	for i := range m.Confusion {
		m.Confusion[i] = make([]int, n+1)
	}
	return m
}

// judgement is a picture's value for a concept, with its true label.
type judgement struct {
	value    float32
	positive bool
}

// judge computes the figures of concept c.
func (e *evaluation) judge(c int) ConceptMetric {
	var m ConceptMetric
	var all, backs []judgement
	different := 0
	for i := range e.f.rows {
		r := &e.f.rows[i]
		if r.fold < 0 {
			continue
		}
		j := judgement{value: e.value(i, c)}
		if r.kind == background {
			backs = append(backs, j)
			if j.value >= Threshold {
				m.Unrelated++
			}
			continue
		}
		switch e.f.p.label(r, c) {
		case True:
			j.positive = true
			m.Positives++
			if i == 0 || !sameEmbedding(&e.f.rows[i-1], r) {
				different++
			}
		case False:
			m.Negatives++
		default:
			continue
		}
		all = append(all, j)
	}
	if len(backs) > 0 {
		m.Unrelated /= float64(len(backs))
	}
	weight := float64(fill(m.Positives, m.Negatives)) / float64(max(1, len(backs))) // of a background picture
	inputs := all
	if m.Negatives == 0 && len(backs) > 0 {
		m.Negatives, m.AgainstBackground = len(backs), true
		all = slices.Concat(all, backs)
	}
	if different < 2 || m.Negatives == 0 {
		return m
	}
	m.Evaluated = true
	m.CutOff, m.Supported = cutOff(inputs, backs, weight, e.metrics.Precision)
	m.ROCAUC = area(all)
	m.Curve = curve(all)
	m.AtCutOff = precisionRecallAt(all, m.CutOff, m.NegativeWeight())
	m.Precision, m.Recall = m.AtCutOff.Precision, m.AtCutOff.Recall
	if s := m.Precision + m.Recall; s > 0 {
		m.F1 = 2 * m.Precision * m.Recall / s
	}
	return m
}

// area returns the area under the ROC curve: the share of pairs of a positive and a negative in which the positive has the
// larger value. Equal values count half. It sorts all.
func area(all []judgement) float64 {
	slices.SortFunc(all, func(a, b judgement) int { return cmp.Compare(a.value, b.value) })
	var below, pairs2, positives, negatives int // pairs2: twice the pairs won
	for i := 0; i < len(all); {
		var pos, neg int
		j := i
		for ; j < len(all) && all[j].value == all[i].value; j++ {
			if all[j].positive {
				pos++
			} else {
				neg++
			}
		}
		pairs2 += pos * (2*below + neg)
		below += neg
		positives, negatives = positives+pos, negatives+neg
		i = j
	}
	return float64(pairs2) / 2 / float64(positives) / float64(negatives)
}

// precisionRecallAt returns precision and recall if values of at least from count as present. weight is the weight of a negative.
func precisionRecallAt(all []judgement, from, weight float64) PrecisionRecall {
	var found, missed, wrong int
	for _, j := range all {
		switch present := float64(j.value) >= from; {
		case present && j.positive:
			found++
		case present:
			wrong++
		case j.positive:
			missed++
		}
	}
	c := PrecisionRecall{Recall: float64(found) / float64(found+missed)}
	if found > 0 {
		c.Precision = float64(found) / (float64(found) + float64(weight*float64(wrong)))
	}
	return c
}

// average sets m.Macro to the means over the evaluated concepts.
func (m *Metrics) average() {
	n := 0.0
	for i := range m.Concepts {
		c := &m.Concepts[i]
		if !c.Evaluated {
			continue
		}
		n++
		m.Macro.ROCAUC += c.ROCAUC
		m.Macro.Precision += c.Precision
		m.Macro.Recall += c.Recall
		m.Macro.F1 += c.F1
	}
	if n == 0 {
		return
	}
	m.Macro.ROCAUC /= n
	m.Macro.Precision /= n
	m.Macro.Recall /= n
	m.Macro.F1 /= n
}

// confuse fills Confusion, Inputs and Others.
func (e *evaluation) confuse() {
	m, none := e.metrics, len(e.f.p.Concepts)
	for i := range e.f.rows {
		r := &e.f.rows[i]
		if r.fold < 0 || r.kind == background {
			continue
		}
		m.Inputs++
		if r.kind == other {
			m.Others++
		}
		var missed, wrong []int // concepts
		right := 0
		for c := range none {
			switch l, present := e.f.p.label(r, c), e.reaches(i, c); {
			case l == True && present:
				m.Confusion[c][c]++
				right++
			case l == True:
				missed = append(missed, c)
			case l == False && present:
				wrong = append(wrong, c)
			}
		}
		slices.SortStableFunc(wrong, func(a, b int) int { return cmp.Compare(e.value(i, b), e.value(i, a)) })
		for j := range max(len(missed), len(wrong)) {
			row, column := none, none
			if j < len(missed) {
				row = missed[j]
			}
			if j < len(wrong) {
				column = wrong[j]
			}
			m.Confusion[row][column]++
		}
		if right+len(missed)+len(wrong) == 0 {
			m.Confusion[none][none]++
		}
	}
}

// reaches reports whether the value of row i for concept c counts as present.
func (e *evaluation) reaches(i, c int) bool {
	from := e.metrics.Concepts[c].CutOff
	if from == 0 {
		from = Threshold
	}
	return float64(e.value(i, c)) >= from
}

// checkLabels adds the doubtful labels for concept c to Weakest, which listWeakest completes.
func (e *evaluation) checkLabels(c int) {
	backs := e.backgroundValues(c)
	for _, label := range []int8{True, False} {
		e.metrics.Weakest = append(e.metrics.Weakest, e.doubtful(c, label, backs)...)
	}
}

// listWeakest orders Weakest and limits its length.
func (e *evaluation) listWeakest() {
	all := e.metrics.Weakest
	slices.SortStableFunc(all, func(a, b Weakness) int { return cmp.Compare(b.wrong(), a.wrong()) })
	listed := map[int]bool{}
	all = slices.DeleteFunc(all, func(w Weakness) bool {
		again := listed[w.Example]
		listed[w.Example] = true
		return again
	})
	e.metrics.Weakest = slices.Clone(all[:min(maxWeakest, len(all))])
}

// backgroundValues returns the values of the held-out background pictures for concept c, ascending.
func (e *evaluation) backgroundValues(c int) []float32 {
	var backs []float32
	for i := range e.f.rows {
		if r := &e.f.rows[i]; r.kind == background && r.fold >= 0 {
			backs = append(backs, e.value(i, c))
		}
	}
	slices.Sort(backs)
	return backs
}

// doubtful returns the users' labels of one kind for concept c with which the values disagree by more than chance. backs are its
// backgroundValues. Users rarely mislabel more than mislabelled of the pictures. If more look wrong, the values are at fault, so only the
// most doubtful of them are returned.
func (e *evaluation) doubtful(c int, label int8, backs []float32) []Weakness {
	var all []Weakness
	judged := 0
	for i := range e.f.rows {
		r := &e.f.rows[i]
		if r.kind != labelled {
			break
		}
		if r.labels[c] != label || r.fold < 0 || e.positives[c]-e.counts[r.fold][c] < MinChecked-1 {
			continue
		}
		judged++
		w := Weakness{Example: r.example, Concept: c, Label: label, Value: e.value(i, c)}
		w.Labelled, w.LabelledValue = e.tops[i].concept, e.tops[i].value
		below, _ := slices.BinarySearch(backs, w.Value)
		if w.Contradicts() || label == True && float64(len(backs)-below) > likelier*float64(len(backs)) {
			all = append(all, w)
		}
	}
	slices.SortStableFunc(all, func(a, b Weakness) int { return cmp.Compare(b.wrong(), a.wrong()) })
	return all[:min(len(all), int(math.Ceil(float64(mislabelled*float64(judged)))))]
}

// Contradicts reports whether the value denies the label: a positive one if the odds of another concept are more than ten times those
// of the label's, a negative one if the concept counts as present.
func (w *Weakness) Contradicts() bool {
	if w.Label != True {
		return w.Value >= Threshold
	}
	label, other := float64(w.Value), float64(w.LabelledValue)
	return float64(other*(1-label)) > float64(moreOdds*float64(label*(1-other)))
}

// top is the concept with the highest value in a row, the first of equal ones.
type top struct {
	concept int
	value   float32
}

// findTops fills tops for the rows with labels.
func (e *evaluation) findTops() {
	for i := range e.f.rows {
		if e.f.rows[i].kind != labelled {
			break
		}
		var t top
		for c := range e.f.p.Concepts {
			if v := e.value(i, c); v > t.value {
				t = top{c, v}
			}
		}
		e.tops = append(e.tops, t)
	}
}

// wrong returns the distance of the value from the label, 0 to 1.
func (w Weakness) wrong() float64 {
	if w.Label == True {
		return 1 - float64(w.Value)
	}
	return math.Abs(float64(w.Value))
}
