package train

import (
	"bytes"
	"encoding/json"
	"math"
	"reflect"
	"testing"

	"pgregory.net/rapid"
)

// plain is Metrics without its methods, so that encoding/json writes and reads its fields.
type plain Metrics

// TestMetricsAsJSON compares the bytes of metrics with those of encoding/json, and the metrics that both read from them.
func TestMetricsAsJSON(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := rapid.Custom(drawMetrics).Draw(t, "metrics")
		got, err := m.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		want, err := json.Marshal((*plain)(&m))
		if err != nil || !bytes.Equal(got, want) {
			t.Fatalf("%v\n%s, want\n%s", err, got, want)
		}
		var read Metrics
		var oracle plain
		if err := read.UnmarshalJSON(got); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(got, &oracle); err != nil || !reflect.DeepEqual(read, Metrics(oracle)) {
			t.Fatalf("%v\n%+v, want\n%+v", err, read, oracle)
		}
	})
}

func drawMetrics(t *rapid.T) Metrics {
	// Few values and long tails: zeros are omitted, and exponents of one and two digits are written.
	share := rapid.OneOf(rapid.SampledFrom([]float64{0, 1, 0.1, 1e-7, -3e-9, 1e21, 5e-324, 2.5e-10}), rapid.Float64Range(0, 1))
	value := rapid.OneOf(rapid.SampledFrom([]float32{0, 1, 0.1, 1e-7, 1e21, 1e-45}), rapid.Float32Range(0, 1))
	count := rapid.IntRange(0, 3)
	figures := func() Figures {
		return Figures{share.Draw(t, "auc"), share.Draw(t, "precision"), share.Draw(t, "recall"), share.Draw(t, "f1")}
	}
	points := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Point { return Point{value.Draw(t, "x"), value.Draw(t, "y")} }), 0, 2)
	steps := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) CurvePoint {
		return CurvePoint{value.Draw(t, "threshold"), count.Draw(t, "found"), count.Draw(t, "wrong")}
	}), 0, 2)
	m := Metrics{
		Folds: count.Draw(t, "folds"), Inputs: count.Draw(t, "inputs"), Others: count.Draw(t, "others"),
		Precision: share.Draw(t, "promised"), Macro: figures(), Checked: count.Draw(t, "checked"),
	}
	for range count.Draw(t, "concepts") {
		m.Concepts = append(m.Concepts, ConceptMetric{
			Figures: figures(), Evaluated: rapid.Bool().Draw(t, "evaluated"), Positives: count.Draw(t, "positives"),
			Negatives: count.Draw(t, "negatives"), AgainstBackground: rapid.Bool().Draw(t, "background"), Unrelated: share.Draw(t, "unrelated"),
			CutOff: share.Draw(t, "cut-off"), Supported: share.Draw(t, "supported"),
			AtCutOff: PrecisionRecall{share.Draw(t, "precision at"), share.Draw(t, "recall at")},
			Curve:    steps.Draw(t, "curve"), ROC: points.Draw(t, "roc"),
		})
		m.Confusion = append(m.Confusion, rapid.SliceOfN(count, 0, 2).Draw(t, "row"))
	}
	if rapid.Bool().Draw(t, "empty") {
		m.Weakest = []Weakness{}
	}
	for range count.Draw(t, "weakest") {
		m.Weakest = append(m.Weakest, Weakness{
			Example: count.Draw(t, "example"), Concept: count.Draw(t, "concept"), Label: int8(rapid.IntRange(-1, 1).Draw(t, "label")),
			Value: value.Draw(t, "value"), Labelled: count.Draw(t, "said"), LabelledValue: value.Draw(t, "said value"),
		})
	}
	return m
}

// TestMetricsRejects checks that figures that JSON cannot express, and texts other than metrics, are errors.
func TestMetricsRejects(t *testing.T) {
	for _, x := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		m := Metrics{Macro: Figures{F1: x}}
		if b, err := m.MarshalJSON(); err == nil {
			t.Errorf("the figure %v is written: %s", x, b)
		}
	}
	for _, text := range []string{
		"", "{", "[]", `{"folds":"2"}`, `{"concepts":{}}`, `{"concepts":[1]}`, `{"confusion":[1]}`, `{"confusion":[[0.5]]}`,
		`{"weakest":[{"label":200}]}`, `{"macro":1}`, `{"concepts":[{"roc":[[1]]}]}`, `{"concepts":[{"roc":[[1,2,3]]}]}`,
	} {
		var m Metrics
		if err := m.UnmarshalJSON([]byte(text)); err == nil {
			t.Errorf("%s is read as %+v", text, m)
		}
	}
}
