package train

import (
	"cmp"
	"encoding/json"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/sightline-dev/sightline/core/proof"
)

// TestCurve holds the cut-off of random judgements to the best F1 of any, and the curve to what a ROC curve is: from
// one corner to the other, rising, with the area that is computed by pairs.
func TestCurve(t *testing.T) {
	for seed := range proof.Seeds(t, 300, 20_000) {
		random := rand.New(rand.NewPCG(seed, 8))
		steps := 1 + random.IntN(40)
		if random.IntN(4) == 0 {
			steps = 1 << 20
		}
		all := []judgement{{float32(random.IntN(steps)+1) / float32(steps+1), true}, {float32(random.IntN(steps)+1) / float32(steps+1), false}}
		for range random.IntN(400) {
			all = append(all, judgement{float32(random.IntN(steps)+1) / float32(steps+1), random.IntN(3) == 0})
		}
		slices.SortFunc(all, func(a, b judgement) int { return cmp.Compare(a.value, b.value) })
		weight := []float64{1, 0.25}[random.IntN(2)]
		cutOff, roc := curve(all, weight)
		if cutOff <= 0 || cutOff >= 1 {
			t.Fatalf("seed %d: cut-off %v", seed, cutOff)
		}
		got, best := f1(all, cutOff, weight), 0.0
		for _, j := range all {
			best = max(best, f1(all, float64(j.value), weight))
		}
		if math.Abs(got-best) > 1e-12 {
			t.Fatalf("seed %d: F1 %v at %v, the best is %v", seed, got, cutOff, best)
		}
		if c := counted(all, cutOff, weight); math.Abs(2*c.Precision*c.Recall/(c.Precision+c.Recall)-best) > 1e-12 {
			t.Fatalf("seed %d: %+v at %v, the best F1 is %v", seed, c, cutOff, best)
		}
		if len(roc) > MaxROC || roc[0] != (Point{}) || roc[len(roc)-1] != (Point{1, 1}) {
			t.Fatalf("seed %d: curve %v", seed, roc)
		}
		under := 0.0
		for i := 1; i < len(roc); i++ {
			dx, dy := roc[i][0]-roc[i-1][0], roc[i][1]-roc[i-1][1]
			if dx < 0 || dy < 0 {
				t.Fatalf("seed %d: point %d of %v falls", seed, i, roc)
			}
			under += float64(dx) * float64(roc[i][1]+roc[i-1][1]) / 2
		}
		near := 1e-5
		if len(roc) == MaxROC { // thinned
			near = 0.02
		}
		if want := area(all); math.Abs(under-want) > near {
			t.Fatalf("seed %d: %v under %d points, want %v", seed, under, len(roc), want)
		}
	}
}

// f1 is what counting from a value on gives.
func f1(all []judgement, from, weight float64) float64 {
	var found, missed, wrong float64
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
	return 2 * found / (2*found + missed + weight*wrong)
}

// TestMetricsOfOlder holds that metrics without what was added later are read as such, and written as they were.
func TestMetricsOfOlder(t *testing.T) {
	const older = `{"folds":2,"concepts":[{"roc_auc":1,"precision":1,"recall":0.5,"f1":0.75,"evaluated":true,"positives":2,"negatives":2,"unrelated":0}],` +
		`"macro":{"roc_auc":1,"precision":1,"recall":0.5,"f1":0.75},"confusion":[[1,1],[0,2]],"weakest":[{"example":1,"concept":0,"label":1,"value":0.25}]}`
	var m Metrics
	if err := json.Unmarshal([]byte(older), &m); err != nil {
		t.Fatal(err)
	}
	if c := &m.Concepts[0]; c.CutOff != 0 || c.ROC != nil || m.Weakest[0].SaidValue != 0 {
		t.Errorf("%+v", m)
	}
	again, err := json.Marshal(m)
	if err != nil || strings.TrimSpace(string(again)) != older {
		t.Errorf("%s, %v", again, err)
	}
}
