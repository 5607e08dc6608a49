package predict

import (
	"fmt"
	"math"

	"github.com/sightline-dev/sightline/core/predict/elementary"
)

// evaluator turns the network's outputs into values. It is immutable.
//
// With p = softmax of the logits and h the concept's head on the unit embedding,
//
//	s     = Σ p over the concept's classes, clipped to [1e−6, 1 − 1e−6]
//	value = Logistic(class_slope · ln(s/(1−s)) + head_slope · h + intercept)
//
// and in the food model, with S = Σ p over the classes of all its concepts together,
//
//	s     = Σ p over the concept's classes / max(S, ½), clipped likewise
//	value = Logistic(class_slope · ln(s/(1−s)) + intercept)
//
// All of it is float64. Sums run in ascending order of class, dimension or term from left to
// right; every product is rounded before it is added. Sums of p are sums of exponentials,
// divided once. A value is rounded to float32 at the very end, to nearest even.
type evaluator struct {
	rules []rule
	food  []int // places in rules
	Evaluation
	lent lentTables
}

// Evaluation is the tables of an evaluator as loops, and a host that evaluates for a guest, take them.
type Evaluation struct {
	Terms      []uint16  // the classes of every concept, ascending, one concept after the other
	Starts     []uint32  // (concepts + 1) where those of a concept begin, and the last end
	Heads      []int32   // (concepts) which head, or −1
	Slopes     []float64 // (concepts, 3) of the classes, of the head, the intercept
	Weights    []float32 // (heads, Dim)
	Intercepts []float32 // (heads)
	Food       []uint32  // places of the concepts of the food model
	FoodTerms  []uint16  // the classes of all of them, ascending, each once
}

func newEvaluator(c *concepts, weights, intercepts []float32) *evaluator {
	ev := &evaluator{rules: c.rules, food: c.food}
	t := &ev.Evaluation
	t.Weights, t.Intercepts = weights, intercepts
	t.Starts = append(t.Starts, 0)
	for i := range c.rules {
		r := &c.rules[i]
		t.Terms = append(t.Terms, r.classes...)
		t.Starts = append(t.Starts, uint32(len(t.Terms)))
		t.Heads = append(t.Heads, int32(r.head))
		t.Slopes = append(t.Slopes, r.classSlope, r.headSlope, r.intercept)
	}
	in := map[uint16]bool{}
	for _, place := range c.food {
		t.Food = append(t.Food, uint32(place))
		for _, class := range c.rules[place].classes {
			in[class] = true
		}
	}
	for class := range maxClasses {
		if in[uint16(class)] {
			t.FoodTerms = append(t.FoodTerms, uint16(class))
		}
	}
	ev.lent = lend(t)
	return ev
}

// values fills general (one element a concept) and food (one a food concept).
func (ev *evaluator) values(general, food, logits []float32, e *Embedding, tmp *Scratch) error {
	if ev.valuesElsewhere(general, food, logits, e) {
		return nil
	}
	return ev.Values(general, food, logits, e, tmp)
}

// Fits reports whether all of the tables' numbers are such that Values stays inside them, with so many
// classes.
func (t *Evaluation) Fits(classes int) bool {
	n := len(t.Heads)
	if len(t.Starts) != n+1 || len(t.Slopes) != 3*n || len(t.Weights) != Dim*len(t.Intercepts) || int64(t.Starts[n]) != int64(len(t.Terms)) || t.Starts[0] != 0 {
		return false
	}
	for i, head := range t.Heads {
		if t.Starts[i] > t.Starts[i+1] || int(head) >= len(t.Intercepts) {
			return false
		}
	}
	for _, place := range t.Food {
		if int64(place) >= int64(n) {
			return false
		}
	}
	return below(t.Terms, classes) && below(t.FoodTerms, classes)
}

func below(terms []uint16, classes int) bool {
	largest := -1
	for _, class := range terms {
		largest = max(largest, int(class))
	}
	return largest < classes
}

// Scratch is what one evaluation needs; the zero value is ready, and grows.
type Scratch struct {
	exps  []float64 // (classes) e^(logit − largest)
	heads []float64 // (heads)
	odds  []float64 // (concepts of general, then of food)
}

func grown(v []float64, n int) []float64 {
	if cap(v) < n {
		return make([]float64, n)
	}
	return v[:n]
}

const clip = 1e-6

// odds is s/(1−s) of the clipped s.
func odds(s float64) float64 {
	// Not min and max, which are calls where the processor has no such instruction.
	if s < clip {
		s = clip
	} else if s > 1-clip {
		s = 1 - clip
	}
	return s / (1 - s)
}

// Values fills general (one element a concept) and food (one a food concept) from a network's outputs.
// It returns ErrNetwork for logits that are not finite.
func (t *Evaluation) Values(general, food, logits []float32, e *Embedding, tmp *Scratch) error {
	tmp.exps, tmp.heads = grown(tmp.exps, len(logits)), grown(tmp.heads, len(t.Intercepts))
	total, err := exponentials(tmp.exps, logits)
	if err != nil {
		return err
	}
	t.evaluateHeads(tmp.heads, e)
	n := len(t.Heads)
	tmp.odds = grown(tmp.odds, n+len(t.Food))
	z := tmp.odds
	for i := range n {
		z[i] = odds(sum(tmp.exps, t.terms(i)) / total)
	}
	all := sum(tmp.exps, t.FoodTerms) / total
	if all < 0.5 {
		all = 0.5
	}
	for i, place := range t.Food {
		z[n+i] = odds(sum(tmp.exps, t.terms(int(place))) / total / all)
	}
	elementary.Logs(z)
	for i := range n {
		classSlope, headSlope, intercept := t.slopes(i)
		h := 0.0
		if head := t.Heads[i]; head >= 0 {
			h = tmp.heads[head]
		}
		z[i] = float64(classSlope*z[i]) + float64(headSlope*h) + intercept
	}
	for i, place := range t.Food {
		classSlope, _, intercept := t.slopes(int(place))
		z[n+i] = float64(classSlope*z[n+i]) + intercept
	}
	elementary.Logistics(z)
	for i := range general {
		general[i] = float32(z[i])
	}
	for i := range food {
		food[i] = float32(z[n+i])
	}
	return nil
}

// terms are the classes of a concept.
func (t *Evaluation) terms(i int) []uint16 { return t.Terms[t.Starts[i]:t.Starts[i+1]] }

// slopes are those of a concept, and its intercept.
func (t *Evaluation) slopes(i int) (class, head, intercept float64) {
	s := (*[3]float64)(t.Slopes[3*i:])
	return s[0], s[1], s[2]
}

// exponentials fills exps with e^(logit − largest logit) and returns their sum, at least 1.
func exponentials(exps []float64, logits []float32) (float64, error) {
	largest := math.Inf(-1)
	for i, l := range logits {
		if !(math.Abs(float64(l)) <= math.MaxFloat32) {
			return 0, fmt.Errorf("logit %d is %v: %w", i, l, ErrNetwork)
		}
		if float64(l) > largest {
			largest = float64(l)
		}
	}
	for i, l := range logits {
		exps[i] = float64(l) - largest
	}
	exps = exps[:len(logits)]
	elementary.Exps(exps)
	total := 0.0
	for _, e := range exps {
		total += e
	}
	return total, nil
}

func sum(exps []float64, classes []uint16) float64 {
	s := 0.0
	for _, c := range classes {
		s += exps[c]
	}
	return s
}

// evaluateHeads fills dst with Scale · Σ Q[i]·weight[j][i] + intercept[j]. A product of a
// float32 and an int16 is exact in float64.
func (t *Evaluation) evaluateHeads(dst []float64, e *Embedding) {
	var q [Dim]float64
	for i, v := range &e.Q {
		q[i] = float64(v)
	}
	scale := float64(e.Scale)
	j := 0
	for ; j+4 <= len(dst); j += 4 { // four sums at a time, so that none waits for its last addition
		w := t.Weights[j*Dim : (j+4)*Dim]
		w0, w1, w2, w3 := (*[Dim]float32)(w), (*[Dim]float32)(w[Dim:]), (*[Dim]float32)(w[2*Dim:]), (*[Dim]float32)(w[3*Dim:])
		var s0, s1, s2, s3 float64
		for i, v := range &q {
			s0 += float64(v * float64(w0[i]))
			s1 += float64(v * float64(w1[i]))
			s2 += float64(v * float64(w2[i]))
			s3 += float64(v * float64(w3[i]))
		}
		for k, s := range [4]float64{s0, s1, s2, s3} {
			dst[j+k] = float64(s*scale) + float64(t.Intercepts[j+k])
		}
	}
	for ; j < len(dst); j++ {
		s := 0.0
		for i, w := range (*[Dim]float32)(t.Weights[j*Dim:]) {
			s += float64(q[i] * float64(w))
		}
		dst[j] = float64(s*scale) + float64(t.Intercepts[j])
	}
}
