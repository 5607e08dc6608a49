package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"

	"github.com/sightline-dev/sightline/core/auth"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/jsonio"
	"github.com/sightline-dev/sightline/core/lang"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/partition"
	"github.com/sightline-dev/sightline/core/train"
)

// Statuses of an evaluation.
var (
	statusEvaluated    = status{code: 21300, description: "Model was successfully evaluated."}
	statusNotEvaluated = status{code: 21302, description: "Model has not yet been evaluated."}
	statusEvaluating   = status{code: 21303, description: "Model is queued for evaluation."}
)

// evaluateVersion asks for the evaluation of a trained version. It came with the training,
// so there is nothing to be done, but clients want to hear that it is queued.
func evaluateVersion(x *exchange) error {
	v := x.view()
	defer v.Close()
	m, err := x.ownModel(v)
	if err != nil {
		return err
	}
	if _, err := trainedVersion(v, &m); err != nil {
		return err
	}
	manifest, err := v.Manifest(m.version)
	if err != nil {
		return err
	}
	x.ok(func(w *jsonio.Writer) {
		w.Name("model_version")
		writeVersion(w, m.version, func() {
			w.Name("metrics")
			w.Object()
			w.Name("status")
			writeStatus(w, statusEvaluating, "")
			w.End('}')
			x.writeInputCount(w, m.version, &manifest)
		})
	})
	return nil
}

func (x *exchange) writeInputCount(w *jsonio.Writer, version *catalog.Version, m *catalog.Manifest) {
	n, taught := int64(0), teaches(version)
	for i := range m.Inputs {
		if taught(&m.Inputs[i]) {
			n++
		}
	}
	if n > 0 && x.shows(auth.InputsGet) {
		w.Name("total_input_count")
		w.Int(n)
	}
}

// readMetrics answers with a version and how well it does on pictures that it has not seen.
func readMetrics(x *exchange) error {
	v := x.view()
	defer v.Close()
	m, err := x.model(v)
	if err != nil {
		return err
	}
	if m.public != nil {
		return refusef(ErrModelArgument, "model_id '%s' is public and has no evaluation.", m.public.ID)
	}
	if m.version.Code != catalog.VersionTrained {
		x.unevaluated(m.version, "")
		return nil
	}
	e, err := x.evaluation(v, m.version)
	if err != nil {
		return err
	}
	before, err := sinceBefore(v, m.own, m.version, &e.manifest)
	if err != nil {
		return err
	}
	if e.Folds == 0 {
		x.unevaluated(m.version, "Evaluation needs a concept with two different pictures, and pictures without it.")
		return nil
	}
	x.ok(func(w *jsonio.Writer) {
		w.Name("model_version")
		writeVersion(w, m.version, func() {
			writeDigest(w, e.manifest.Digest)
			w.Name("metrics")
			e.write(w)
			x.writeInputCount(w, m.version, &e.manifest)
			if before != nil && x.shows(auth.InputsGet) {
				before.write(w)
			}
		})
	})
	return nil
}

// unevaluated answers with a version that has no metrics.
func (x *exchange) unevaluated(version *catalog.Version, why string) {
	x.ok(func(w *jsonio.Writer) {
		w.Name("model_version")
		writeVersion(w, version, func() {
			w.Name("metrics")
			w.Object()
			w.Name("status")
			writeStatus(w, statusNotEvaluated, why)
			w.End('}')
		})
	})
}

// evaluation is the metrics of a trained version with the names of what they are about.
type evaluation struct {
	x        *exchange
	manifest catalog.Manifest
	train.Metrics
	concepts []named
	places   map[string]int // of them, by id
	weakest  []weakInput
}

// weakInput is a judgement to look at, of an input that is still there.
type weakInput struct {
	train.Weakness
	input catalog.Input
}

func (x *exchange) evaluation(v *partition.View, version *catalog.Version) (*evaluation, error) {
	e := &evaluation{x: x}
	var err error
	if e.manifest, err = v.Manifest(version); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(e.manifest.Metrics, &e.Metrics); err != nil {
		return nil, fmt.Errorf("%w: metrics of version %q: %w", ErrInternal, version.ID, err)
	}
	n := len(version.Concepts)
	if len(e.Concepts) != n || len(e.Confusion) != n+1 {
		return nil, fmt.Errorf("%w: metrics of version %q have %d concepts", ErrInternal, version.ID, len(e.Concepts))
	}
	if e.concepts, err = x.conceptsNamed(v, version.Concepts, lang.English); err != nil {
		return nil, err
	}
	e.places = make(map[string]int, n)
	for i, id := range version.Concepts {
		e.places[id] = i
	}
	for _, weak := range e.Weakest {
		if weak.Example >= len(e.manifest.Inputs) || weak.Concept >= n {
			continue
		}
		in, err := v.InputByDot(e.manifest.Inputs[weak.Example].Dot)
		if errors.Is(err, catalog.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		e.weakest = append(e.weakest, weakInput{weak, in})
	}
	return e, nil
}

func (e *evaluation) write(w *jsonio.Writer) {
	w.Object()
	w.Name("status")
	writeStatus(w, statusEvaluated, "")
	count(w, "folds", uint64(e.Folds))
	w.Name("summary")
	e.writeSummary(w)
	w.Name("confusion_matrix")
	e.writeConfusion(w)
	w.Name("label_counts")
	e.writeCounts(w)
	w.Name("binary_metrics")
	w.Array()
	for i := range e.Concepts {
		e.writeConcept(w, i)
	}
	w.End(']')
	if e.x.shows(auth.InputsGet) {
		w.Name("test_set")
		w.Array()
		for i := range e.weakest {
			e.writeWeak(w, &e.weakest[i])
		}
		w.End(']')
	}
	w.End('}')
}

func (e *evaluation) writeSummary(w *jsonio.Writer) {
	spread := func(mean float64, of func(*train.ConceptMetric) float64) float64 {
		n, sum := 0, 0.0
		for i := range e.Concepts {
			if c := &e.Concepts[i]; c.Evaluated {
				d := of(c) - mean
				n++
				sum += float64(d * d)
			}
		}
		return math.Sqrt(sum / float64(max(1, n)))
	}
	w.Object()
	for _, f := range []struct {
		name  string
		value float64
	}{
		{"macro_avg_roc_auc", e.Macro.ROCAUC},
		{"macro_std_roc_auc", spread(e.Macro.ROCAUC, func(c *train.ConceptMetric) float64 { return c.ROCAUC })},
		{"macro_avg_f1_score", e.Macro.F1},
		{"macro_std_f1_score", spread(e.Macro.F1, func(c *train.ConceptMetric) float64 { return c.F1 })},
		{"macro_avg_precision", e.Macro.Precision},
		{"macro_avg_recall", e.Macro.Recall},
	} {
		w.Name(f.name)
		w.Float32(float32(f.value))
	}
	w.End('}')
}

// writeConfusion writes for each concept what share of the inputs that show it are taken for
// what. An entry without actual is of inputs that show none of the concepts, one without
// predicted of inputs taken for none.
func (e *evaluation) writeConfusion(w *jsonio.Writer) {
	w.Object()
	w.Name("matrix")
	w.Array()
	for row, counts := range e.Confusion {
		sum := 0
		for _, n := range counts {
			sum += n
		}
		for column, n := range counts {
			if n == 0 && row != column || sum == 0 {
				continue
			}
			w.Object()
			if column < len(e.concepts) {
				w.Name("predicted")
				w.String(e.concepts[column].id)
			}
			if row < len(e.concepts) {
				w.Name("actual")
				w.String(e.concepts[row].id)
			}
			w.Name("value")
			w.Float32(float32(float64(n) / float64(sum)))
			w.Name("count")
			w.Int(int64(n))
			w.End('}')
		}
	}
	w.End(']')
	w.Name("concept_ids")
	w.Array()
	for i := range e.concepts {
		w.String(e.concepts[i].id)
	}
	w.End(']')
	w.End('}')
}

func (e *evaluation) writeCounts(w *jsonio.Writer) {
	w.Object()
	w.Name("positive_label_counts")
	w.Array()
	for i := range e.Concepts {
		w.Object()
		w.Name("concept_name")
		w.String(e.concepts[i].name)
		if n := e.Concepts[i].Positives; n > 0 {
			w.Name("count")
			w.Int(int64(n))
		}
		w.End('}')
	}
	w.End(']')
	w.End('}')
}

// writeConcept writes how well one concept is told. Precision and recall are those at the
// one threshold that counts as present.
func (e *evaluation) writeConcept(w *jsonio.Writer, i int) {
	m := &e.Concepts[i]
	w.Object()
	for _, n := range []struct {
		name  string
		value int
	}{{"num_pos", m.Positives}, {"num_neg", m.Negatives}, {"num_tot", m.Positives + m.Negatives}} {
		w.Name(n.name)
		w.Int(int64(n.value))
	}
	w.Name("roc_auc")
	w.Float32(float32(m.ROCAUC))
	w.Name("f1")
	w.Float32(float32(m.F1))
	if m.CutOff > 0 {
		w.Name("cut_off")
		w.Float32(float32(m.CutOff))
		if m.AtCutOff.Recall > 0 {
			writeCounted(w, "at_cut_off", m.AtCutOff)
		}
		writeROC(w, m.ROC)
	}
	w.Name("concept")
	e.x.writeConcept(w, &e.concepts[i], known)
	w.Name("precision_recall_curve")
	w.Object()
	for _, point := range []struct {
		name  string
		value float64
	}{{"recall", m.Recall}, {"precision", m.Precision}, {"thresholds", train.Threshold}} {
		w.Name(point.name)
		w.Array()
		w.Float32(float32(point.value))
		w.End(']')
	}
	w.End('}')
	w.End('}')
}

// writeCounted writes what counting from some value on gives.
func writeCounted(w *jsonio.Writer, name string, c train.Counted) {
	w.Name(name)
	w.Object()
	w.Name("precision")
	w.Float32(float32(c.Precision))
	w.Name("recall")
	w.Float32(float32(c.Recall))
	w.End('}')
}

// writeROC writes the points of a curve: false alarms, then what is found, as shares.
func writeROC(w *jsonio.Writer, roc []train.Point) {
	w.Name("roc")
	w.Array()
	for _, p := range roc {
		w.Array()
		w.Float32(p[0])
		w.Float32(p[1])
		w.End(']')
	}
	w.End(']')
}

// writeWeak writes a judgement: what a head that has not seen the input says, and what users said of it. The concept
// that is judged comes first in both, then, where that is another one, what the head takes the input for, and what
// else users said, what it shows first.
func (e *evaluation) writeWeak(w *jsonio.Writer, weak *weakInput) {
	w.Object()
	w.Name("id")
	w.String(weak.input.ID)
	w.Name("url")
	w.String(e.x.addressOf(&weak.input))
	w.Name("predicted_concepts")
	w.Array()
	e.writeSaid(w, weak.Concept, weak.Value)
	if weak.SaidValue > 0 && weak.Said != weak.Concept && weak.Said < len(e.concepts) {
		e.writeSaid(w, weak.Said, weak.SaidValue)
	}
	w.End(']')
	w.Name("ground_truth_concepts")
	w.Array()
	truth := float32(0)
	if weak.Label == train.True {
		truth = 1
	}
	e.writeSaid(w, weak.Concept, truth)
	for _, value := range []log.Value{log.True, log.False} {
		for _, l := range e.manifest.Inputs[weak.Example].Labels {
			place, ours := e.places[l.Concept]
			if ours && l.Value == value && place != weak.Concept {
				e.writeSaid(w, place, float32(value-log.False))
			}
		}
	}
	w.End(']')
	w.End('}')
}

// writeSaid writes what is said of a concept of the version.
func (e *evaluation) writeSaid(w *jsonio.Writer, place int, value float32) {
	c := &e.concepts[place]
	w.Object()
	w.Name("id")
	w.String(c.id)
	w.Name("name")
	w.String(c.name)
	w.Name("value")
	w.Float32(value)
	w.Name("app_id")
	e.x.writeApp(w, c.public)
	w.End('}')
}
