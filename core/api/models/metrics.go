package models

import (
	"cmp"
	"errors"
	"fmt"
	"math"

	"github.com/sightline-dev/sightline/core/api/call"
	"github.com/sightline-dev/sightline/core/api/show"
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
	statusEvaluated    = call.Status{Code: 21300, Description: "Model was successfully evaluated."}
	statusNotEvaluated = call.Status{Code: 21302, Description: "Model has not yet been evaluated."}
	statusEvaluating   = call.Status{Code: 21303, Description: "Model is queued for evaluation."}
)

// Evaluate requests the evaluation of a trained version. Training already evaluated the version, so there
// is nothing to do, but clients expect the status of a queued evaluation.
func Evaluate(x *call.Call) error {
	v, m, err := show.CustomModel(x)
	if err != nil {
		return err
	}
	if _, err := show.TrainedVersion(v, &m); err != nil {
		return err
	}
	e, err := newEvaluation(x, v, m.Version)
	if err != nil {
		return err
	}
	return x.OK(func(w *jsonio.Writer) {
		w.Name("model_version")
		show.WriteVersion(w, m.Version, func() {
			e.writeDigest(w)
			w.ObjectMember("metrics")
			call.WriteStatus(w, statusEvaluating, "")
			w.End('}')
			e.writeInputCount(w)
		})
	})
}

// inputs returns the number of labelled inputs that the version was evaluated on. For versions of older programs, and
// versions without an evaluation, it returns the number of labelled inputs in the training set.
func (e *evaluation) inputs() int {
	if e.Inputs > 0 {
		return e.Inputs
	}
	n := 0
	for i := range e.manifest.Inputs {
		if len(e.manifest.Inputs[i].Labels) > 0 {
			n++
		}
	}
	return n
}

// writeDigest writes the digest of the version's training, if the request asks for it.
func (e *evaluation) writeDigest(w *jsonio.Writer) {
	if e.x.AsksFor(call.ShowDigest) {
		writeDigest(w, e.manifest.Digest)
	}
}

func (e *evaluation) writeInputCount(w *jsonio.Writer) {
	if n := e.inputs(); n > 0 && e.x.Shows(auth.InputsGet) {
		show.WriteInt(w, "total_input_count", n)
	}
}

// Metrics answers with a version and its evaluation on pictures that were not in its training.
func Metrics(x *call.Call) error {
	v, m, err := show.ModelOfPath(x)
	if err != nil {
		return err
	}
	if m.Public != nil {
		return call.Refusef(call.ErrModelArgument, "model_id '%s' is public and has no evaluation.", m.Public.ID)
	}
	if m.Version.Code != catalog.VersionTrained {
		return answerUnevaluated(x, m.Version, "")
	}
	e, err := newEvaluation(x, v, m.Version)
	if err != nil {
		return err
	}
	if x.AsksFor(call.ShowSightline) {
		if e.since, err = sinceBefore(v, m.Custom, m.Version, &e.manifest); err != nil {
			return err
		}
	}
	if e.Folds == 0 {
		return answerUnevaluated(x, m.Version, e.manifest.UnevaluatedReason())
	}
	return x.OK(func(w *jsonio.Writer) {
		w.Name("model_version")
		show.WriteVersion(w, m.Version, func() {
			e.writeDigest(w)
			e.write(w)
			e.writeInputCount(w)
		})
	})
}

// answerUnevaluated answers with a version that has no metrics. why is the reason.
func answerUnevaluated(x *call.Call, version *catalog.Version, why string) error {
	return x.OK(func(w *jsonio.Writer) {
		w.Name("model_version")
		show.WriteVersion(w, version, func() {
			w.ObjectMember("metrics")
			call.WriteStatus(w, statusNotEvaluated, why)
			w.End('}')
		})
	})
}

// evaluation is the metrics of a trained version, with the names of their concepts.
type evaluation struct {
	x        *call.Call
	manifest catalog.Manifest
	train.Metrics
	concepts []show.Concept
	places   map[string]int // indices in concepts, by id
	weakest  []weakInput
	since    *since // comparison with the previous version; nil for the first version
}

// weakInput is an existing input with a label to check.
type weakInput struct {
	train.Weakness
	input catalog.Input
}

func newEvaluation(x *call.Call, v *partition.View, version *catalog.Version) (*evaluation, error) {
	e := &evaluation{x: x}
	var err error
	if e.manifest, err = v.Manifest(version); err != nil {
		return nil, err
	}
	if err := e.UnmarshalJSON(e.manifest.Metrics); err != nil {
		return nil, fmt.Errorf("%w: metrics of version %q: %w", call.ErrInternal, version.ID, err)
	}
	n := len(version.Concepts)
	if len(e.Concepts) != n || len(e.Confusion) != n+1 {
		return nil, fmt.Errorf("%w: metrics of version %q have %d concepts", call.ErrInternal, version.ID, len(e.Concepts))
	}
	if e.concepts, err = show.ConceptsNamed(x, v, version.Concepts, lang.English); err != nil {
		return nil, err
	}
	e.places = make(map[string]int, n)
	for i, id := range version.Concepts {
		e.places[id] = i
	}
	for _, weak := range e.Weakest {
		if !weak.InRange(len(e.manifest.Inputs), n) {
			continue // a replica trained it before the origin checked its results
		}
		if e.Checked == 0 && (e.Concepts[weak.Concept].Positives < train.MinChecked || !weak.Contradicts()) {
			continue // an older program listed labels whatever the difference
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
	w.ObjectMember("metrics")
	call.WriteStatus(w, statusEvaluated, "")
	e.writeSummary(w)
	e.writeConfusion(w)
	e.writeCounts(w)
	w.List("binary_metrics", len(e.Concepts), func(i int) { e.writeConcept(w, i) })
	if e.x.Shows(auth.InputsGet) {
		w.List("test_set", len(e.weakest), func(i int) { e.writeWeak(w, &e.weakest[i]) })
	}
	if e.x.AsksFor(call.ShowSightline) {
		e.writeExtension(w)
	}
	w.End('}')
}

// writeExtension writes figures for which the interface defines no keys.
func (e *evaluation) writeExtension(w *jsonio.Writer) {
	w.ObjectMember("sightline")
	show.WriteInt(w, "folds", e.Folds)
	show.WriteInt(w, "inputs", e.inputs())
	show.WriteInt(w, "other_inputs", e.inputs()-e.countLabelled())
	if e.Precision > 0 {
		show.WriteFloat32(w, "promised_precision", e.Precision)
	}
	show.WriteInt(w, "min_checked_pictures", cmp.Or(e.Checked, train.MinChecked))
	w.List("concepts", len(e.Concepts), func(i int) { e.writeCutOff(w, i) })
	w.Name("confusion_counts")
	w.Array()
	e.cells(func(_, _, n, _ int) { w.Int(int64(n)) })
	w.End(']')
	if e.since != nil && e.x.Shows(auth.InputsGet) {
		e.since.write(w)
	}
	w.End('}')
}

// countLabelled returns the number of inputs with a label for a concept of the version.
func (e *evaluation) countLabelled() int {
	if e.Inputs > 0 {
		return e.Inputs - e.Others
	}
	n := 0
	for i := range e.manifest.Inputs {
		for _, l := range e.manifest.Inputs[i].Labels {
			if _, ours := e.places[l.Concept]; ours {
				n++
				break
			}
		}
	}
	return n
}

// writeCutOff writes the metrics of one concept at its cut-off.
func (e *evaluation) writeCutOff(w *jsonio.Writer, i int) {
	m := &e.Concepts[i]
	w.Object()
	show.WriteText(w, "id", e.concepts[i].ID)
	share := func(name string, value float64) {
		show.WriteFloat32(w, name, value)
	}
	if m.CutOff > 0 {
		share("cut_off", m.CutOff)
	}
	if m.AtCutOff.Recall > 0 || m.Curve != nil {
		share("precision", m.AtCutOff.Precision)
		share("recall", m.AtCutOff.Recall)
	}
	if m.Curve != nil {
		share("supported_precision", m.Supported)
	}
	show.WriteTrue(w, "against_background", m.AgainstBackground)
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
	w.ObjectMember("summary")
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
		show.WriteFloat32(w, f.name, f.value)
	}
	w.End('}')
}

// cells calls yield for each cell of the confusion matrix that answers show: cells with a count, and the
// diagonal. sum is the sum of the row. Rows without a count are omitted.
func (e *evaluation) cells(yield func(row, column, n, sum int)) {
	for row, counts := range e.Confusion {
		sum := 0
		for _, n := range counts {
			sum += n
		}
		for column, n := range counts {
			if sum > 0 && (n > 0 || row == column) {
				yield(row, column, n, sum)
			}
		}
	}
}

// writeConfusion writes the shares of each concept's labels that were predicted as each concept. An entry without
// actual counts predictions without a label, and one without predicted counts labels without a prediction.
func (e *evaluation) writeConfusion(w *jsonio.Writer) {
	w.ObjectMember("confusion_matrix")
	w.Name("matrix")
	w.Array()
	e.cells(func(row, column, n, sum int) {
		w.Object()
		if column < len(e.concepts) {
			show.WriteText(w, "predicted", e.concepts[column].ID)
		}
		if row < len(e.concepts) {
			show.WriteText(w, "actual", e.concepts[row].ID)
		}
		show.WriteFloat32(w, "value", float64(n)/float64(sum))
		w.End('}')
	})
	w.End(']')
	w.List("concept_ids", len(e.concepts), func(i int) { w.String(e.concepts[i].ID) })
	w.End('}')
}

func (e *evaluation) writeCounts(w *jsonio.Writer) {
	w.ObjectMember("label_counts")
	w.Objects("positive_label_counts", len(e.Concepts), func(i int) {
		w.Text("concept_name", e.concepts[i].Name)
		if n := e.Concepts[i].Positives; n > 0 {
			show.WriteInt(w, "count", n)
		}
	})
	w.End('}')
}

// writeConcept writes the evaluation of one concept.
func (e *evaluation) writeConcept(w *jsonio.Writer, i int) {
	m := &e.Concepts[i]
	w.Object()
	for _, n := range []struct {
		name  string
		value int
	}{{"num_pos", m.Positives}, {"num_neg", m.Negatives}, {"num_tot", m.Positives + m.Negatives}} {
		show.WriteInt(w, n.name, n.value)
	}
	show.WriteFloat32(w, "roc_auc", m.ROCAUC)
	show.WriteFloat32(w, "f1", m.F1)
	w.Name("concept")
	show.WriteConcept(e.x, w, &e.concepts[i], show.ReadForm)
	fpr, tpr, precision, thresholds := curvesOf(m)
	writeCurve(w, "roc_curve", curve{"fpr", fpr}, curve{"tpr", tpr}, curve{"thresholds", thresholds})
	if m.Curve == nil && m.Evaluated { // an older program stored one point
		tpr, precision, thresholds = []float32{float32(m.Recall)}, []float32{float32(m.Precision)}, []float32{train.Threshold}
	}
	writeCurve(w, "precision_recall_curve", curve{"recall", tpr}, curve{"precision", precision}, curve{"thresholds", thresholds})
	w.End('}')
}

// curvesOf returns the points of a concept's curves by falling threshold. Metrics of an older program have no thresholds.
func curvesOf(m *train.ConceptMetric) (fpr, tpr, precision, thresholds []float32) {
	for _, s := range m.Curve {
		found, wrong := float64(s.Found), float64(m.NegativeWeight()*float64(s.Wrong))
		fpr = append(fpr, float32(float64(s.Wrong)/float64(m.Negatives)))
		tpr = append(tpr, float32(found/float64(m.Positives)))
		precision = append(precision, float32(found/(found+wrong)))
		thresholds = append(thresholds, s.Threshold)
	}
	for _, p := range m.ROC {
		fpr, tpr = append(fpr, p[0]), append(tpr, p[1])
	}
	return fpr, tpr, precision, thresholds
}

// curve is one coordinate of the points of a curve.
type curve struct {
	name   string
	values []float32
}

func writeCurve(w *jsonio.Writer, name string, coordinates ...curve) {
	w.ObjectMember(name)
	for _, c := range coordinates {
		w.Floats(c.name, c.values)
	}
	w.End('}')
}

// writeWeak writes a weak input: the values of a head that was not trained on it, and the users' labels. The concept of the weakness comes
// first in both lists. Then follow the concept with the highest value, if it is another, and the other labels, positive ones first.
func (e *evaluation) writeWeak(w *jsonio.Writer, weak *weakInput) {
	w.Object()
	w.Text("id", weak.input.ID)
	w.Text("url", show.AddressOf(e.x, &weak.input))
	w.Name("predicted_concepts")
	w.Array()
	e.writeOutcome(w, weak.Concept, weak.Value)
	if weak.LabelledValue > 0 && weak.Labelled != weak.Concept {
		e.writeOutcome(w, weak.Labelled, weak.LabelledValue)
	}
	w.End(']')
	w.Name("ground_truth_concepts")
	w.Array()
	truth := float32(0)
	if weak.Label == train.True {
		truth = 1
	}
	e.writeOutcome(w, weak.Concept, truth)
	for _, value := range []log.Value{log.True, log.False} {
		for _, l := range e.manifest.Inputs[weak.Example].Labels {
			place, ours := e.places[l.Concept]
			if ours && l.Value == value && place != weak.Concept {
				e.writeOutcome(w, place, float32(value-log.False))
			}
		}
	}
	w.End(']')
	w.End('}')
}

// writeOutcome writes the value or the label of a concept of the version.
func (e *evaluation) writeOutcome(w *jsonio.Writer, place int, value float32) {
	c := &e.concepts[place]
	w.Object()
	w.Text("id", c.ID)
	w.Text("name", c.Name)
	show.WriteFloat32(w, "value", value)
	show.WriteAppOf(e.x, w, c)
	w.End('}')
}
