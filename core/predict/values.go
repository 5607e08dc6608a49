package predict

import (
	"fmt"
	"math"
	"slices"

	"github.com/sightline-dev/sightline/core/predict/elementary"
)

// evaluator converts the network's outputs to values. It is immutable.
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
// All arithmetic is float64. Sums run in ascending order of class, dimension or term from left to
// right; every product is rounded before it is added. Sums of p are sums of exponentials,
// divided once. The final value is rounded to float32, to nearest even.
type evaluator struct {
	rules       []rule
	food        []int     // indices in rules of the concepts of the food model
	foodClasses []uint16  // the classes of all food concepts, ascending, without duplicates
	weights     []float32 // (heads, Dim)
	intercepts  []float32 // (heads)
}

func newEvaluator(c *concepts, weights, intercepts []float32) *evaluator {
	ev := &evaluator{rules: c.rules, food: c.food, weights: weights, intercepts: intercepts}
	for _, place := range c.food {
		ev.foodClasses = append(ev.foodClasses, c.rules[place].classes...)
	}
	slices.Sort(ev.foodClasses)
	ev.foodClasses = slices.Compact(ev.foodClasses)
	return ev
}

// scratch is the memory of one evaluation. The zero value is ready; the slices grow on use.
type scratch struct {
	exps  []float64 // (classes) e^(logit − largest)
	heads []float64 // (heads)
	odds  []float64 // (concepts of general, then of food)
}

func resize(v []float64, n int) []float64 {
	if cap(v) < n {
		return make([]float64, n)
	}
	return v[:n]
}

const clip = 1e-6

// odds returns s/(1−s) of the clipped s.
func odds(s float64) float64 {
	// The code does not use min and max, which are calls if the processor has no such instruction.
	if s < clip {
		s = clip
	} else if s > 1-clip {
		s = 1 - clip
	}
	return s / (1 - s)
}

// values fills general (one element per concept) and food (one per food concept) from a network's outputs.
// It returns ErrNetwork for logits that are not finite.
func (ev *evaluator) values(general, food, logits []float32, e *Embedding, tmp *scratch) error {
	tmp.exps, tmp.heads = resize(tmp.exps, len(logits)), resize(tmp.heads, len(ev.intercepts))
	total, err := exponentials(tmp.exps, logits)
	if err != nil {
		return err
	}
	ev.evaluateHeads(tmp.heads, e)
	n := len(ev.rules)
	tmp.odds = resize(tmp.odds, n+len(ev.food))
	z := tmp.odds
	for i := range ev.rules {
		z[i] = odds(sum(tmp.exps, ev.rules[i].classes) / total)
	}
	all := max(0.5, sum(tmp.exps, ev.foodClasses)/total)
	for i, place := range ev.food {
		z[n+i] = odds(sum(tmp.exps, ev.rules[place].classes) / total / all)
	}
	elementary.Logs(z)
	for i := range ev.rules {
		r, h := &ev.rules[i], 0.0
		if r.head >= 0 {
			h = tmp.heads[r.head]
		}
		z[i] = float64(r.classSlope*z[i]) + float64(r.headSlope*h) + r.intercept
	}
	for i, place := range ev.food {
		r := &ev.rules[place]
		z[n+i] = float64(r.classSlope*z[n+i]) + r.intercept
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

// evaluateHeads fills dst with Scale · Σ Q[i]·weight[j][i] + intercept[j]. The product of a
// float32 and an int16 is exact in float64.
func (ev *evaluator) evaluateHeads(dst []float64, e *Embedding) {
	var q [Dim]float64
	for i, v := range &e.Q {
		q[i] = float64(v)
	}
	scale := float64(e.Scale)
	j := 0
	for ; j+4 <= len(dst); j += 4 { // four sums at a time, so that none waits for its last addition
		w := ev.weights[j*Dim : (j+4)*Dim]
		w0, w1, w2, w3 := (*[Dim]float32)(w), (*[Dim]float32)(w[Dim:]), (*[Dim]float32)(w[2*Dim:]), (*[Dim]float32)(w[3*Dim:])
		var s0, s1, s2, s3 float64
		for i, v := range &q {
			s0 += float64(v * float64(w0[i]))
			s1 += float64(v * float64(w1[i]))
			s2 += float64(v * float64(w2[i]))
			s3 += float64(v * float64(w3[i]))
		}
		for k, s := range [4]float64{s0, s1, s2, s3} {
			dst[j+k] = float64(s*scale) + float64(ev.intercepts[j+k])
		}
	}
	for ; j < len(dst); j++ {
		s := 0.0
		for i, w := range (*[Dim]float32)(ev.weights[j*Dim:]) {
			s += float64(q[i] * float64(w))
		}
		dst[j] = float64(s*scale) + float64(ev.intercepts[j])
	}
}
