package train

import (
	"cmp"
	"math"
	"slices"
)

// Point is one point of an older version's ROC curve: the false positive rate and the true positive rate.
type Point [2]float32

// MaxCurve is the maximum number of points of a curve.
const MaxCurve = 64

// CurvePoint is one point of a concept's curves: the numbers of examples whose values reach a threshold.
type CurvePoint struct {
	Threshold float32 `json:"threshold"`
	Found     int     `json:"found"` // positives
	Wrong     int     `json:"wrong"` // negatives
}

func (s CurvePoint) isNegative() bool { return s.Found < 0 || s.Wrong < 0 }

// DefaultPrecision is the precision that cut-offs promise if Problem.Precision is 0.
const DefaultPrecision = 0.9

const (
	// confidence is the standard score of a one-sided confidence of 90 %. With it, cut-offs that support a
	// precision of 0.9 reached it on photos that were in no training; RATIONALE.md has the counts.
	confidence = 1.2815515655446004

	// A promised precision assumes at least rarest negatives per positive, up to enough of them. Background pictures
	// replace the missing ones.
	rarest = 9
	enough = 225
)

// fill returns the number of negatives that the background replaces.
func fill(positives, negatives int) int { return max(0, min(rarest*positives, enough)-negatives) }

// supportedPrecision returns the precision that the counts support: the lower end of the one-sided Wilson interval.
func supportedPrecision(right int, wrong float64) float64 {
	n, z2 := float64(right)+wrong, confidence*confidence
	p := float64(right) / n
	spread := confidence * math.Sqrt(float64(p*(1-p)/n)+float64(z2/(4*n*n)))
	return (p + float64(z2/(2*n)) - float64(spread)) / (1 + float64(z2/n))
}

// cutOff returns the lowest cut-off that supports a precision, and the precision that it supports. If none
// supports it, it returns the cut-off that supports the highest precision. all and backs are in any order; each of
// backs, the background, counts with a weight.
func cutOff(all, backs []judgement, weight, precision float64) (at, supports float64) {
	type value struct {
		judgement
		background bool
	}
	values := make([]value, 0, len(all)+len(backs))
	for _, j := range all {
		values = append(values, value{judgement: j})
	}
	if weight > 0 {
		for _, j := range backs {
			values = append(values, value{j, true})
		}
	}
	slices.SortFunc(values, func(a, b value) int { return cmp.Compare(b.value, a.value) })
	var found, wrong, background int
	for i := 0; i < len(values); {
		v, below := values[i].value, float32(0)
		for ; i < len(values) && values[i].value == v; i++ {
			switch {
			case values[i].positive:
				found++
			case values[i].background:
				background++
			default:
				wrong++
			}
		}
		if i < len(values) {
			below = values[i].value
		} else if at > 0 && supports < precision {
			break // no lower value exists: the cut-off would accept everything
		}
		s := supportedPrecision(found, float64(wrong)+float64(weight*float64(background)))
		if s >= precision || s >= supports && supports < precision {
			at, supports = (float64(v)+float64(below))/2, s
		}
	}
	return at, supports
}

// curve returns the corners of the ROC curve of judgements that ascend by value, at most MaxCurve of them.
func curve(all []judgement) []CurvePoint {
	var steps []CurvePoint
	var found, wrong int
	for i := len(all); i > 0; {
		value := all[i-1].value
		for ; i > 0 && all[i-1].value == value; i-- {
			if all[i-1].positive {
				found++
			} else {
				wrong++
			}
		}
		steps = append(steps, CurvePoint{value, found, wrong})
	}
	return thinSteps(corners(steps))
}

// corners removes the steps between others on one line along an axis.
func corners(steps []CurvePoint) []CurvePoint {
	out := steps[:0]
	var last CurvePoint
	for i, s := range steps {
		if i+1 < len(steps) && (last.Wrong == s.Wrong && s.Wrong == steps[i+1].Wrong || last.Found == s.Found && s.Found == steps[i+1].Found) {
			continue
		}
		out, last = append(out, s), s
	}
	return out
}

// thinSteps returns at most MaxCurve of the steps, evenly among them, with both ends.
func thinSteps(steps []CurvePoint) []CurvePoint {
	if len(steps) <= MaxCurve {
		return slices.Clip(steps)
	}
	some := make([]CurvePoint, MaxCurve)
	for i := range some {
		some[i] = steps[i*(len(steps)-1)/(MaxCurve-1)]
	}
	return some
}
