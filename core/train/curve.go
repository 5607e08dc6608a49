package train

import "slices"

// Point is one of a ROC curve: the share of the negatives that are taken for positives, and of the positives that
// are found, when all from some value on count.
type Point [2]float32

// MaxROC is how many points a curve has at most.
const MaxROC = 64

// curve returns the cut-off with the highest F1 and the ROC curve of judgements that ascend by value, of both
// kinds; weight is that of a negative in the precision. Of equal cut-offs the one nearest to Threshold is best,
// and of those the lower.
func curve(all []judgement, weight float64) (cutOff float64, roc []Point) {
	var positives, negatives, found, wrong int
	for _, j := range all {
		if j.positive {
			positives++
		} else {
			negatives++
		}
	}
	best := -1.0
	roc = append(roc, Point{})
	for i := len(all); i > 0; {
		value := all[i-1].value
		for ; i > 0 && all[i-1].value == value; i-- {
			if all[i-1].positive {
				found++
			} else {
				wrong++
			}
		}
		below := 0.0
		if i > 0 {
			below = float64(all[i-1].value)
		}
		at := (float64(value) + below) / 2
		f1 := 2 * float64(found) / (float64(found+positives) + float64(weight*float64(wrong)))
		if f1 > best || f1 == best && distance(at) <= distance(cutOff) {
			best, cutOff = f1, at
		}
		roc = append(roc, Point{
			float32(float64(wrong) / float64(negatives)),
			float32(float64(found) / float64(positives)),
		})
	}
	return cutOff, thinned(corners(roc))
}

func distance(at float64) float64 { return max(at-Threshold, Threshold-at) }

// corners leaves out the points of a staircase between others on one line along an axis.
func corners(roc []Point) []Point {
	kept := roc[:1]
	for i := 1; i < len(roc); i++ {
		last := kept[len(kept)-1]
		if i+1 < len(roc) && (last[0] == roc[i][0] && roc[i][0] == roc[i+1][0] || last[1] == roc[i][1] && roc[i][1] == roc[i+1][1]) {
			continue
		}
		kept = append(kept, roc[i])
	}
	return kept
}

// thinned is at most MaxROC of the points, evenly among them, with both ends.
func thinned(roc []Point) []Point {
	if len(roc) <= MaxROC {
		return slices.Clip(roc)
	}
	some := make([]Point, MaxROC)
	for i := range some {
		some[i] = roc[i*(len(roc)-1)/(MaxROC-1)]
	}
	return some
}
