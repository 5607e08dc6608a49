package inputs

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sightline-dev/sightline/core/api/call"
	"github.com/sightline-dev/sightline/core/api/show"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/fold"
	"github.com/sightline-dev/sightline/core/jsonio"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/partition"
	"github.com/sightline-dev/sightline/core/predict"
)

// A call for the outputs of a pending input looks again after each lookPause, for at most analysisWait, whatever its host's clock does.
const (
	analysisWait = 1500 * time.Millisecond
	lookPause    = 50 * time.Millisecond
)

// Outputs answers with the one output of an input: what the general model predicted when the input was analysed, with later edits. Before
// the analysis the list is empty. Outputs waits for the analysis, because clients read the predictions right after they have added the
// input.
func Outputs(x *call.Call) error { return outputsWithin(x, int(analysisWait/lookPause)) }

// outputsWithin is Outputs. It pauses at most as many times as pauses.
func outputsWithin(x *call.Call, pauses int) error {
	v, in, err := inputOfPath(x)
	if err != nil {
		return err
	}
	if in.Code != catalog.InputPending || pauses == 0 || x.Host.Clock().Sub(x.Now) >= analysisWait {
		return answerOutputs(x, v, in)
	}
	return x.Ask([]call.Job{{Wait: lookPause}}, func(results []call.Result) error {
		if len(results) == 0 || results[0].Err != nil {
			return outputsWithin(x, 0)
		}
		return outputsWithin(x, pauses-1)
	})
}

func answerOutputs(x *call.Call, v *partition.View, in catalog.Input) error {
	m := x.Net.Models.General()
	derived, err := v.DerivedOfInput(x.Net.Base, &in)
	if in.Code != catalog.InputReady || errors.Is(err, catalog.ErrNotFound) {
		return x.OK(func(w *jsonio.Writer) { w.Texts("outputs", nil) })
	}
	if err != nil {
		return err
	}
	if len(derived.Values) != len(m.Concepts) {
		return fmt.Errorf("%w: %d values for %d concepts", call.ErrInternal, len(derived.Values), len(m.Concepts))
	}
	rows := applyEdits(m, derived.Values, in.Edits)
	lines := show.ConceptNames{X: x}
	for _, row := range rows {
		if err := lines.LookUp(v, row.id); err != nil {
			return err
		}
	}
	return x.OK(func(w *jsonio.Writer) {
		w.Name("outputs")
		w.Array()
		w.Object()
		w.Text("id", outputID(&in))
		call.WriteStatus(w, call.StatusOk, "")
		w.Text("created_at", show.Timestamp(in.Created.Time()))
		w.Name("model")
		show.WriteModel(x, w, &show.ModelInfo{Model: show.Model{Public: m}})
		w.Name("input")
		(&show.Media{ID: in.ID, URL: show.AddressOf(x, &in), Crop: in.Crop}).Write(w)
		w.ObjectMember("data")
		w.Objects("concepts", len(rows), func(i int) {
			row := rows[i]
			lines.Start(w, row.id)
			show.WriteFloat32(w, "value", row.value)
		})
		w.End('}')
		w.End('}')
		w.End(']')
	})
}

// PatchOutputs edits the stored predictions of an input. The action merge sets the values of
// concepts, and remove removes concepts. It ignores the model in the outputs, since clients send
// a version's id there.
func PatchOutputs(x *call.Call) error {
	action, err := show.ReadAction(x, map[string]show.Action{"merge": show.Merge, "remove": show.Remove})
	if err != nil {
		return err
	}
	_, in, err := inputOfPath(x)
	if err != nil {
		return err
	}
	edits, err := outputEdits(x, action)
	if err != nil {
		return err
	}
	if len(edits) > 0 {
		verdicts, err := x.Submit(nil, &log.OutputsPatch{Input: in.Dot, Edits: edits})
		if err != nil {
			return err
		}
		if verdicts[0].Code == fold.Gone {
			return call.UnknownIDError("input_id", in.ID)
		}
		if err := show.VerdictError(&verdicts[0]); err != nil {
			return err
		}
	}
	return Outputs(x)
}

// outputEdits reads outputs[].data.concepts.
func outputEdits(x *call.Call, action show.Action) ([]log.OutputEdit, error) {
	outputs, n, err := x.Body.Objects("outputs")
	if err != nil {
		return nil, err
	}
	if n == 0 {
		return nil, call.Refusef(call.ErrInput, "outputs is required.")
	}
	var edits []log.OutputEdit
	for o, err := range outputs {
		if err != nil {
			return nil, err
		}
		data, err := o.Object("data")
		if err != nil {
			return nil, err
		}
		list, _, err := data.Objects("concepts")
		if err != nil {
			return nil, err
		}
		for c, err := range list {
			if err != nil {
				return nil, err
			}
			edit, err := outputEdit(x, c, action)
			if err != nil {
				return nil, err
			}
			edits = slices.DeleteFunc(edits, func(e log.OutputEdit) bool { return e.Concept == edit.Concept })
			if edits = append(edits, edit); len(edits) > call.MaxLabels {
				return nil, call.Refusef(call.ErrInput, "%s: at most %d concepts are allowed.", data.MemberPath("concepts"), call.MaxLabels)
			}
		}
	}
	return edits, nil
}

func outputEdit(x *call.Call, o call.Object, action show.Action) (log.OutputEdit, error) {
	id, err := conceptRef(x, o)
	if err != nil {
		return log.OutputEdit{}, err
	}
	edit := log.OutputEdit{Concept: id, Value: 1, Removed: action == show.Remove}
	v := o.Get("value")
	switch v.Kind() {
	case jsonio.Absent, jsonio.True:
	case jsonio.False:
		edit.Value = 0
	default:
		f, err := v.Float()
		if err != nil {
			return edit, o.Wrap("value", err)
		}
		if f < 0 || f > 1 {
			return edit, call.Refusef(call.ErrInput, "%s: must be a number from 0 to 1.", o.MemberPath("value"))
		}
		edit.Value = float32(f)
	}
	return edit, nil
}

// conceptValue is a concept of an output and its value.
type conceptValue struct {
	id    string
	value float32
}

// outputID returns the id of a stored input's output, which is always the same.
func outputID(in *catalog.Input) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "output of %d %d", in.Dot.Writer, in.Dot.Seq))
	return hex.EncodeToString(sum[:16])
}

// applyEdits returns the concepts with the highest values at analysis, with the edits applied. They are
// sorted by descending value, and by id for equal values.
func applyEdits(m *predict.Model, values []float32, edits []catalog.Edit) []conceptValue {
	var rows []conceptValue
	for _, i := range m.Top(nil, values, call.ShownConcepts, 0) {
		rows = append(rows, conceptValue{m.Concepts[i].ID, values[i]})
	}
	for i := range edits {
		rows = slices.DeleteFunc(rows, func(r conceptValue) bool { return r.id == edits[i].Concept })
		if !edits[i].Removed {
			rows = append(rows, conceptValue{edits[i].Concept, edits[i].Value})
		}
	}
	slices.SortStableFunc(rows, func(a, b conceptValue) int {
		return cmp.Or(cmp.Compare(b.value, a.value), strings.Compare(a.id, b.id))
	})
	return rows
}
