package train

import (
	"fmt"
	"math"
	"strconv"

	"github.com/sightline-dev/sightline/core/jsonio"
)

// MarshalJSON returns the metrics as encoding/json writes their fields. The bytes are part of stored manifests, whose hashes are their
// names. This package does not use encoding/json, which is 4 % of the module that pages download. Errors: a figure that is not finite.
func (m *Metrics) MarshalJSON() ([]byte, error) {
	w := writer{}
	w.Object()
	w.int("folds", m.Folds)
	w.someInt("inputs", m.Inputs)
	w.someInt("others", m.Others)
	w.someFloat("promised_precision", m.Precision)
	writeList(&w, "concepts", m.Concepts, w.concept)
	w.ObjectMember("macro")
	w.figures(&m.Macro)
	w.End('}')
	writeList(&w, "confusion", m.Confusion, func(row *[]int) {
		writeElements(&w, *row, func(n *int) { w.Int(int64(*n)) })
	})
	writeList(&w, "weakest", m.Weakest, w.weakness)
	w.someInt("checked", m.Checked)
	w.End('}')
	return w.Bytes(), w.err
}

// writer writes members as encoding/json does.
type writer struct {
	jsonio.Writer
	err error // error for the first figure that is not finite
}

func (w *writer) int(name string, n int) {
	w.Name(name)
	w.Int(int64(n))
}

// someInt writes a number unless it is 0.
func (w *writer) someInt(name string, n int) {
	if n != 0 {
		w.int(name, n)
	}
}

func (w *writer) float(name string, x float64) {
	w.Name(name)
	w.number(x, 64)
}

// someFloat writes a figure unless it is 0.
func (w *writer) someFloat(name string, x float64) {
	if x != 0 {
		w.float(name, x)
	}
}

func (w *writer) float32(name string, x float32) {
	w.Name(name)
	w.number(float64(x), 32)
}

// number writes a figure. It differs from [jsonio.Writer.Float] in exponents of one digit: 1e-7, not 1e-07.
func (w *writer) number(x float64, bits int) {
	if (math.IsNaN(x) || math.IsInf(x, 0)) && w.err == nil {
		w.err = fmt.Errorf("metrics have the figure %v", x)
	}
	format, size := byte('f'), math.Abs(x)
	small, large := size < 1e-6, size >= 1e21
	if bits == 32 {
		small, large = float32(size) < 1e-6, float32(size) >= 1e21
	}
	if size != 0 && (small || large) {
		format = 'e'
	}
	b := strconv.AppendFloat(nil, x, format, -1, bits)
	if n := len(b); format == 'e' && n >= 4 && b[n-4] == 'e' && b[n-3] == '-' && b[n-2] == '0' {
		b[n-2] = b[n-1]
		b = b[:n-1]
	}
	w.Raw(b)
}

// writeList writes a list with a name, or null if it is nil.
func writeList[T any](w *writer, name string, all []T, element func(*T)) {
	w.Name(name)
	writeElements(w, all, element)
}

func writeElements[T any](w *writer, all []T, element func(*T)) {
	if all == nil {
		w.Null()
		return
	}
	w.Array()
	for i := range all {
		element(&all[i])
	}
	w.End(']')
}

// figures writes the members of figures. The caller writes the object.
func (w *writer) figures(f *Figures) {
	w.float("roc_auc", f.ROCAUC)
	w.float("precision", f.Precision)
	w.float("recall", f.Recall)
	w.float("f1", f.F1)
}

func (w *writer) concept(c *ConceptMetric) {
	w.Object()
	w.figures(&c.Figures)
	w.Name("evaluated")
	w.Bool(c.Evaluated)
	w.int("positives", c.Positives)
	w.int("negatives", c.Negatives)
	if c.AgainstBackground {
		w.Name("against_background")
		w.Bool(true)
	}
	w.float("unrelated", c.Unrelated)
	w.someFloat("cut_off", c.CutOff)
	w.someFloat("supported_precision", c.Supported)
	if c.AtCutOff != (PrecisionRecall{}) {
		w.ObjectMember("at_cut_off")
		w.float("precision", c.AtCutOff.Precision)
		w.float("recall", c.AtCutOff.Recall)
		w.End('}')
	}
	if len(c.Curve) > 0 {
		writeList(w, "curve", c.Curve, func(s *CurvePoint) {
			w.Object()
			w.float32("threshold", s.Threshold)
			w.int("found", s.Found)
			w.int("wrong", s.Wrong)
			w.End('}')
		})
	}
	if len(c.ROC) > 0 {
		writeList(w, "roc", c.ROC, func(p *Point) {
			w.Array()
			w.number(float64(p[0]), 32)
			w.number(float64(p[1]), 32)
			w.End(']')
		})
	}
	w.End('}')
}

func (w *writer) weakness(x *Weakness) {
	w.Object()
	w.int("example", x.Example)
	w.int("concept", x.Concept)
	w.int("label", int(x.Label))
	w.float32("value", x.Value)
	w.someInt("said", x.Labelled)
	if x.LabelledValue != 0 {
		w.float32("said_value", x.LabelledValue)
	}
	w.End('}')
}

// UnmarshalJSON reads what MarshalJSON of this or of an older program wrote. It sets the fields that data has. Errors: those of jsonio.
func (m *Metrics) UnmarshalJSON(data []byte) error {
	var d jsonio.Doc
	if err := d.Parse(data, jsonio.Limits{Members: len(data)}); err != nil {
		return err
	}
	return d.Root().Scan(
		jsonio.Var{Name: "folds", To: &m.Folds},
		jsonio.Var{Name: "inputs", To: &m.Inputs},
		jsonio.Var{Name: "others", To: &m.Others},
		jsonio.Var{Name: "promised_precision", To: &m.Precision},
		jsonio.Var{Name: "concepts", To: list(&m.Concepts, scanConcept)},
		jsonio.Var{Name: "macro", To: func(v jsonio.Value) error { return v.Scan(figures(&m.Macro)...) }},
		jsonio.Var{Name: "confusion", To: list(&m.Confusion, func(v jsonio.Value, row *[]int) error {
			return list(row, scanInt)(v)
		})},
		jsonio.Var{Name: "weakest", To: list(&m.Weakest, scanWeakness)},
		jsonio.Var{Name: "checked", To: &m.Checked},
	)
}

// list returns a function that decodes a list into to.
func list[T any](to *[]T, read func(jsonio.Value, *T) error) func(jsonio.Value) error {
	return func(v jsonio.Value) (err error) {
		*to, err = jsonio.ScanList(v, read)
		return err
	}
}

func figures(f *Figures) []jsonio.Var {
	return []jsonio.Var{
		{Name: "roc_auc", To: &f.ROCAUC},
		{Name: "precision", To: &f.Precision},
		{Name: "recall", To: &f.Recall},
		{Name: "f1", To: &f.F1},
	}
}

func scanConcept(v jsonio.Value, c *ConceptMetric) error {
	return v.Scan(append(
		figures(&c.Figures),
		jsonio.Var{Name: "evaluated", To: &c.Evaluated},
		jsonio.Var{Name: "positives", To: &c.Positives},
		jsonio.Var{Name: "negatives", To: &c.Negatives},
		jsonio.Var{Name: "against_background", To: &c.AgainstBackground},
		jsonio.Var{Name: "unrelated", To: &c.Unrelated},
		jsonio.Var{Name: "cut_off", To: &c.CutOff},
		jsonio.Var{Name: "supported_precision", To: &c.Supported},
		jsonio.Var{Name: "at_cut_off", To: func(v jsonio.Value) error {
			at := &c.AtCutOff
			return v.Scan(jsonio.Var{Name: "precision", To: &at.Precision}, jsonio.Var{Name: "recall", To: &at.Recall})
		}},
		jsonio.Var{Name: "curve", To: list(&c.Curve, func(v jsonio.Value, s *CurvePoint) error {
			return v.Scan(
				jsonio.Var{Name: "threshold", To: &s.Threshold},
				jsonio.Var{Name: "found", To: &s.Found},
				jsonio.Var{Name: "wrong", To: &s.Wrong},
			)
		})},
		jsonio.Var{Name: "roc", To: list(&c.ROC, scanPoint)},
	)...)
}

func scanWeakness(v jsonio.Value, w *Weakness) error {
	return v.Scan(
		jsonio.Var{Name: "example", To: &w.Example},
		jsonio.Var{Name: "concept", To: &w.Concept},
		jsonio.Var{Name: "label", To: &w.Label},
		jsonio.Var{Name: "value", To: &w.Value},
		jsonio.Var{Name: "said", To: &w.Labelled},
		jsonio.Var{Name: "said_value", To: &w.LabelledValue},
	)
}

func scanInt(v jsonio.Value, to *int) error {
	n, err := v.Int()
	*to = int(n)
	return err
}

func scanPoint(v jsonio.Value, p *Point) error {
	i := 0
	for x := range v.Elems() {
		f, err := x.Float32()
		if err != nil {
			return err
		}
		if i < len(p) {
			p[i] = f
		}
		i++
	}
	if i != len(p) {
		return fmt.Errorf("a point of %d numbers: %w", i, jsonio.ErrType)
	}
	return nil
}
