package train

import (
	"cmp"
	"encoding/json"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/sightline-dev/sightline/core/testkit"
)

// TestCurve checks the ROC curve of random judgements: it rises from one corner to the other, and its area is the one computed by pairs.
// Each of its points counts the judgements that reach its threshold.
func TestCurve(t *testing.T) {
	for seed := range testkit.Seeds(t, 300, 20_000) {
		random := rand.New(rand.NewPCG(seed, 8))
		all := judgements(random, 400)
		slices.SortFunc(all, func(a, b judgement) int { return cmp.Compare(a.value, b.value) })
		steps := curve(all)
		var positives, negatives int
		for _, j := range all {
			if j.positive {
				positives++
			} else {
				negatives++
			}
		}
		if last := steps[len(steps)-1]; len(steps) > MaxCurve || last.Found != positives || last.Wrong != negatives {
			t.Fatalf("seed %d: curve %v", seed, steps)
		}
		under, before := 0.0, CurvePoint{Threshold: 2}
		for i, s := range steps {
			if s.Threshold >= before.Threshold || s.Found < before.Found || s.Wrong < before.Wrong {
				t.Fatalf("seed %d: point %d of %v falls", seed, i, steps)
			}
			if found, wrong := countedFrom(all, float64(s.Threshold)); found != s.Found || wrong != s.Wrong {
				t.Fatalf("seed %d: %d and %d from %v on, want %d and %d", seed, s.Found, s.Wrong, s.Threshold, found, wrong)
			}
			under += float64(s.Wrong-before.Wrong) * float64(s.Found+before.Found) / 2
			before = s
		}
		near := 1e-9
		if len(steps) == MaxCurve { // thinned
			near = 0.02
		}
		if want, got := area(all), under/float64(positives)/float64(negatives); math.Abs(got-want) > near {
			t.Fatalf("seed %d: %v under %d points, want %v", seed, got, len(steps), want)
		}
	}
}

// judgements returns random judgements of both kinds: two, and up to limit more.
func judgements(random *rand.Rand, limit int) []judgement {
	steps := 1 + random.IntN(40)
	if random.IntN(4) == 0 {
		steps = 1 << 20
	}
	value := func() float32 { return float32(random.IntN(steps)+1) / float32(steps+1) }
	all := []judgement{{value(), true}, {value(), false}}
	share := 1 + random.IntN(8)
	for range random.IntN(limit) {
		positive := random.IntN(share) == 0
		v := value()
		if positive && random.IntN(2) == 0 {
			v = max(v, value(), value())
		}
		all = append(all, judgement{v, positive})
	}
	return all
}

// countedFrom counts the positives and negatives that reach a value.
func countedFrom(all []judgement, from float64) (found, wrong int) {
	for _, j := range all {
		switch {
		case float64(j.value) < from:
		case j.positive:
			found++
		default:
			wrong++
		}
	}
	return found, wrong
}

// TestCutOffKeepsItsPromise checks that the cut-off of random judgements is the lowest value that supports the precision. If none does, it
// is the one that supports the highest. The supported precision is at most the counted one.
func TestCutOffKeepsItsPromise(t *testing.T) {
	supported, seeds := 0, 0
	for seed := range testkit.Seeds(t, 300, 20_000) {
		random := rand.New(rand.NewPCG(seed, 9))
		all := judgements(random, 400)
		var backs []judgement
		for range random.IntN(100) {
			backs = append(backs, judgement{value: float32(random.Float64())})
		}
		weight := []float64{0, 0.25, 3}[random.IntN(3)]
		precision := []float64{0.6, 0.9}[random.IntN(2)]
		supportedFrom := func(from float64) (support, counted float64) {
			found, wrong := countedFrom(all, from)
			_, alarms := countedFrom(backs, from)
			all := float64(wrong) + weight*float64(alarms)
			return supportedPrecision(found, all), float64(found) / (float64(found) + all)
		}
		at, supports := cutOff(all, backs, weight, precision)
		support, counted := supportedFrom(at)
		if math.Abs(support-supports) > 1e-12 || supports > counted+1e-12 {
			t.Fatalf("seed %d: %v supported at %v, want %v of %v", seed, supports, at, support, counted)
		}
		lowest := slices.MinFunc(slices.Concat(all, backs[:len(backs)*int(min(1, 4*weight))]), func(a, b judgement) int { return cmp.Compare(a.value, b.value) })
		for _, j := range all {
			s, _ := supportedFrom(float64(j.value))
			if j.value == lowest.value && s < precision {
				continue // everything would pass
			}
			if supports >= precision && float64(j.value) < at && s >= precision || supports < precision && s > supports+1e-12 {
				t.Fatalf("seed %d: cut-off %v supports %v of %v, %v supports %v", seed, at, supports, precision, j.value, s)
			}
		}
		seeds++
		if supports >= precision {
			supported++
		}
	}
	if supported == 0 || supported == seeds {
		t.Errorf("%d of %d cut-offs keep their promise: this tests one side alone", supported, seeds)
	}
}

// TestSupportedPrecision checks the number of right predictions that support a precision of 0.9, with and without wrong ones.
func TestSupportedPrecision(t *testing.T) {
	for _, tt := range []struct {
		right int
		wrong float64
		least bool // 0.9 is supported
	}{{9, 0, false}, {14, 0, false}, {15, 0, true}, {30, 1, false}, {31, 1, true}, {1000, 90, true}, {1000, 110, false}} {
		if got := supportedPrecision(tt.right, tt.wrong); got >= 0.9 != tt.least {
			t.Errorf("%d right and %v wrong support %v", tt.right, tt.wrong, got)
		}
	}
	// The lower end of Wilson's interval for 8 of 10, computed by hand.
	if got := supportedPrecision(8, 2); math.Abs(got-0.6015960115) > 1e-9 {
		t.Errorf("8 of 10 support %v", got)
	}
}

// TestMetricsOfOlderVersions checks that metrics of an older version, which lack the newer fields, are read and written back unchanged.
func TestMetricsOfOlderVersions(t *testing.T) {
	const older = `{"folds":2,"concepts":[{"roc_auc":1,"precision":1,"recall":0.5,"f1":0.75,"evaluated":true,"positives":2,"negatives":2,"unrelated":0}],` +
		`"macro":{"roc_auc":1,"precision":1,"recall":0.5,"f1":0.75},"confusion":[[1,1],[0,2]],"weakest":[{"example":1,"concept":0,"label":1,"value":0.25}]}`
	var m Metrics
	if err := json.Unmarshal([]byte(older), &m); err != nil {
		t.Fatal(err)
	}
	if c := &m.Concepts[0]; c.CutOff != 0 || c.ROC != nil || m.Weakest[0].LabelledValue != 0 {
		t.Errorf("%+v", m)
	}
	again, err := json.Marshal(m)
	if err != nil || strings.TrimSpace(string(again)) != older {
		t.Errorf("%s, %v", again, err)
	}
}
