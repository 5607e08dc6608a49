package form

import (
	"fmt"

	"github.com/sightline-dev/sightline/core/jsonio"
	"github.com/sightline-dev/sightline/core/lang"
	"github.com/sightline-dev/sightline/core/log"
)

// Limits of a model's output_config.
const (
	MaxSettingBytes = 64 << 10 // one field
	MaxConcepts     = 200      // max_concepts
	MaxSelected     = 1000     // select_concepts
)

// settings are the fields of a model's output_config, and the checks of their values.
var settings = map[string]func(jsonio.Value) bool{
	"concepts_mutually_exclusive": isFlag,
	"closed_environment":          isFlag,
	"max_concepts":                func(v jsonio.Value) bool { return isWhole(v, MaxConcepts) },
	"min_value":                   isShare,
	"language":                    isLanguage,
	"hyper_parameters":            isHyper,
	"select_concepts":             areRefs,
	"sample_ms":                   func(v jsonio.Value) bool { return isWhole(v, 1<<63-1) },
	"existing_model_id":           func(v jsonio.Value) bool { return v.Kind() == jsonio.String },
	"training_timeout":            func(v jsonio.Value) bool { return isWhole(v, 1<<63-1) },
}

// isSetting reports whether an operation can write a setting. A setting without a value returns to its default.
func isSetting(s *log.Setting) bool {
	check, known := settings[s.Name]
	if !known || s.JSON == nil || len(s.JSON) > MaxSettingBytes {
		return known && s.JSON == nil
	}
	var d jsonio.Doc
	return d.Parse(s.JSON, jsonio.Limits{}) == nil && check(d.Root())
}

func isFlag(v jsonio.Value) bool { return v.Kind() == jsonio.True || v.Kind() == jsonio.False }

func isWhole(v jsonio.Value, limit int64) bool {
	n, err := v.Int()
	return err == nil && n >= 0 && n <= limit
}

func isShare(v jsonio.Value) bool {
	f, err := v.Float()
	return err == nil && f >= 0 && f <= 1
}

func isLanguage(v jsonio.Value) bool {
	code, err := v.Str()
	return err == nil && (code == "" || lang.Valid(code))
}

func isHyper(v jsonio.Value) bool {
	if k := v.Kind(); k != jsonio.String && k != jsonio.Object {
		return false
	}
	_, err := RequestedPrecision(v)
	return err == nil
}

// RequestedPrecision is [Precision] for a setting: a JSON text, or the same as a structure.
func RequestedPrecision(v jsonio.Value) (float64, error) {
	text, err := v.Str()
	if err != nil {
		text = string(v.Raw())
	}
	return Precision(text)
}

// areRefs reports whether v is a list of references to concepts: objects with an id or a name. An empty list or object is none.
func areRefs(v jsonio.Value) bool {
	if isEmpty(v) {
		return true
	}
	if v.Kind() != jsonio.Array || v.Len() > MaxSelected {
		return false
	}
	for ref := range v.Elems() {
		_, wrongID := textOf(ref.Get("id"))
		_, wrongName := textOf(ref.Get("name"))
		if ref.Kind() != jsonio.Object && ref.Kind() != jsonio.Null && !isEmpty(ref) || wrongID != nil || wrongName != nil {
			return false
		}
	}
	return true
}

// isEmpty reports whether v is [] or {}, which mean the same, because some clients cannot tell them apart.
func isEmpty(v jsonio.Value) bool {
	return (v.Kind() == jsonio.Array || v.Kind() == jsonio.Object) && v.Len() == 0
}

// textOf returns the text of a member that may be absent or null.
func textOf(v jsonio.Value) (string, error) {
	if k := v.Kind(); k == jsonio.Absent || k == jsonio.Null {
		return "", nil
	}
	return v.Str()
}

// Range of a promised precision.
const (
	minPrecision = 0.5
	maxPrecision = 0.99
)

// Precision returns the precision that cut-offs promise by a model's hyper-parameters, a JSON text. It returns 0 if they
// specify none, like those of other services. It returns an error for a precision out of range.
func Precision(hyperParameters string) (float64, error) {
	var d jsonio.Doc
	if d.Parse([]byte(hyperParameters), jsonio.Limits{}) != nil {
		return 0, nil
	}
	promised := d.Root().Get("precision")
	if promised.Kind() == jsonio.Absent {
		return 0, nil
	}
	p, err := promised.Float()
	if err != nil || p < minPrecision || p > maxPrecision {
		return 0, fmt.Errorf("precision must be a number from %v to %v", minPrecision, maxPrecision)
	}
	return p, nil
}
