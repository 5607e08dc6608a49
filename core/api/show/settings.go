package show

import (
	"bytes"
	"slices"
	"strconv"

	"github.com/sightline-dev/sightline/core/api/call"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/jsonio"
	"github.com/sightline-dev/sightline/core/lang"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/log/form"
)

// setting is one field of a custom model's output_config.
type setting struct {
	name  string
	empty string // value that answers show if it is not set; empty: none
	check func(call.Object, string) error
}

// settings are the fields that can be stored with a model. Answers repeat all of them unchanged. max_concepts, min_value and
// select_concepts are the defaults of its predictions. The first two and hyper_parameters affect its training. The others have no effect.
var settings = []setting{
	{"concepts_mutually_exclusive", "false", is(call.Object.Flag)},
	{"closed_environment", "false", is(call.Object.Flag)},
	{"max_concepts", "0", is(readCount)},
	{"min_value", "0", is(readShare)},
	{"language", "", isLanguage},
	{settingHyper, "", isHyper},
	{settingSelected, "", is(readRefs)},
	{"sample_ms", "", isWhole},
	{"existing_model_id", "", is(call.Object.Text)},
	{"training_timeout", "", isWhole},
}

const (
	settingSelected  = "select_concepts"
	settingHyper     = "hyper_parameters" // a JSON text, or a structure, which requests and answers call settingStructure
	settingStructure = "hyper_params"
)

// nameIn returns the name of the member of o that sets the setting.
func (s *setting) nameIn(o call.Object) (string, error) {
	switch {
	case s.name != settingHyper || !o.Has(settingStructure):
		return s.name, nil
	case o.Has(s.name):
		return "", call.Refusef(call.ErrModelArgument, "%s: use either %s or %s, not both.", o.MemberPath(settingStructure), settingHyper, settingStructure)
	}
	return settingStructure, nil
}

// shownName returns the name of the member that shows a setting with a stored value.
func shownName(name string, value []byte) string {
	if name == settingHyper && len(value) > 0 && value[0] == '{' {
		return settingStructure
	}
	return name
}

// ReadSettings reads the fields of an output_config that a request sets, in the order of
// the table. It copies the values.
func ReadSettings(o call.Object) ([]log.Setting, error) {
	var set []log.Setting
	for _, s := range settings {
		name, err := s.nameIn(o)
		if err != nil {
			return nil, err
		}
		if !o.Has(name) {
			continue
		}
		raw := o.Get(name).Raw()
		if len(raw) > call.MaxSettingBytes {
			return nil, call.Refusef(call.ErrModelArgument, "%s: must be at most %d bytes.", o.MemberPath(name), call.MaxSettingBytes)
		}
		if err := s.check(o, name); err != nil {
			return nil, asArgument(err)
		}
		if name == settingStructure && raw[0] == '[' { // [] is an empty object
			raw = []byte("{}")
		}
		set = append(set, log.Setting{Name: s.name, JSON: s.form(o, raw)})
	}
	return set, nil
}

// form returns the stored form of a value. It converts 1 and 0 to true and false for flags, and returns nil
// for the value that answers show if the setting is not set. Other values are unchanged.
func (s *setting) form(o call.Object, raw []byte) []byte {
	form := bytes.Clone(raw)
	if s.empty == "false" {
		on, _ := o.Flag(s.name)
		form = strconv.AppendBool(nil, on)
	}
	if string(form) == s.empty {
		return nil
	}
	return form
}

// is returns a check that calls a reader and returns its error.
func is[T any](read func(call.Object, string) (T, error)) func(call.Object, string) error {
	return func(o call.Object, name string) error {
		_, err := read(o, name)
		return err
	}
}

func isHyper(o call.Object, name string) error {
	var text string
	var err error
	if name == settingStructure {
		var inner call.Object
		inner, err = o.Object(name)
		text = string(inner.Value.Raw())
	} else {
		text, err = o.Text(name)
	}
	if err != nil {
		return err
	}
	if _, err := form.Precision(text); err != nil {
		return call.Refusef(call.ErrModelArgument, "%s: %s.", o.MemberPath(name), err)
	}
	return nil
}

func isWhole(o call.Object, name string) error {
	n, err := o.Integer(name)
	if err == nil && n < 0 {
		err = call.Refusef(call.ErrModelArgument, "%s: must be an integer of at least 0.", o.MemberPath(name))
	}
	return err
}

func isLanguage(o call.Object, name string) error {
	code, err := o.Text(name)
	if err == nil && code != "" && !lang.Valid(code) {
		err = call.Refusef(call.ErrModelArgument, "%s: unsupported language %q.", o.MemberPath(name), code)
	}
	return err
}

// settingValues are the settings of a model or version, by name.
type settingValues map[string][]byte

func settingsOf(all []catalog.Setting) settingValues {
	s := make(settingValues, len(all))
	for i := range all {
		if all[i].JSON != nil {
			s[all[i].Name] = all[i].JSON
		}
	}
	return s
}

// write writes an output_config: fields with an empty value always, the others only if they are set.
func (s settingValues) write(w *jsonio.Writer) {
	w.ObjectMember("output_config")
	for _, known := range settings {
		value := s[known.name]
		if value == nil {
			value = []byte(known.empty)
		}
		if len(value) > 0 {
			w.Name(shownName(known.name, value))
			w.Raw(value)
		}
	}
	w.End('}')
}

// object returns the settings as an object like a request's, without the language, which each call
// specifies.
func (s settingValues) object(doc *jsonio.Doc) (call.Object, error) {
	var w jsonio.Writer
	w.Object()
	for _, known := range settings {
		if value := s[known.name]; value != nil && known.name != "language" {
			w.Name(known.name)
			w.Raw(value)
		}
	}
	w.End('}')
	if err := doc.Parse(w.Bytes(), jsonio.Limits{}); err != nil {
		return call.Object{}, err
	}
	return call.AsObject(doc.Root(), "output_config")
}

// ResetSettings returns settings that reset those in set to their defaults.
func ResetSettings(set []log.Setting) []log.Setting {
	out := slices.Clone(set)
	for i := range out {
		out[i].JSON = nil
	}
	return out
}
