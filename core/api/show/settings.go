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
	"github.com/sightline-dev/sightline/core/training"
)

// setting is one field of an own model's output_config.
type setting struct {
	name  string
	empty string // what answers show where it is not set; empty: nothing
	check func(call.Object, string) error
}

// settings are those that can be stored with a model. All are echoed as they were given;
// max_concepts, min_value and select_concepts hold for its predictions where a call says
// nothing, the first two and hyper_parameters decide how it is trained, and the others only wait to be read.
var settings = []setting{
	{"concepts_mutually_exclusive", "false", isBool},
	{"closed_environment", "false", isBool},
	{"max_concepts", "0", isCount},
	{"min_value", "0", isShare},
	{"language", "", isLanguage},
	{"hyper_parameters", "", isHyper},
	{settingSelected, "", isRefs},
	{"sample_ms", "", isWhole},
	{"existing_model_id", "", isText},
	{"training_timeout", "", isWhole},
}

// settingSelected is the one that names concepts.
const settingSelected = "select_concepts"

// ReadSettings reads the fields of an output_config that a request sets, in the order of
// the table. The values are copies.
func ReadSettings(o call.Object) ([]log.Setting, error) {
	var set []log.Setting
	for _, s := range settings {
		if !o.Has(s.name) {
			continue
		}
		raw := o.Get(s.name).Raw()
		if len(raw) > call.MaxSettingBytes {
			return nil, call.Refusef(call.ErrModelArgument, "%s: must be at most %d bytes.", o.At(s.name), call.MaxSettingBytes)
		}
		if err := s.check(o, s.name); err != nil {
			if call.StatusOf(err).Code != codeModelArgument {
				err = call.Refuse(call.ErrModelArgument, err)
			}
			return nil, err
		}
		set = append(set, log.Setting{Name: s.name, JSON: s.form(o, raw)})
	}
	return set, nil
}

// form is how a value is kept: as it was given, but 1 and 0 as true and false where those
// are meant, and what is shown without a value as none.
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

func isBool(o call.Object, name string) error {
	_, err := o.Flag(name)
	return err
}

func isText(o call.Object, name string) error {
	_, err := o.Text(name)
	return err
}

func isHyper(o call.Object, name string) error {
	text, err := o.Text(name)
	if err != nil {
		return err
	}
	if _, err := training.Precision(text); err != nil {
		return call.Refusef(call.ErrModelArgument, "%s: %s.", o.At(name), err)
	}
	return nil
}

func isWhole(o call.Object, name string) error {
	n, err := o.Integer(name)
	if err == nil && n < 0 {
		err = call.Refusef(call.ErrModelArgument, "%s: must be an integer of at least 0.", o.At(name))
	}
	return err
}

func isCount(o call.Object, name string) error {
	_, err := readCount(o, name)
	return err
}

func isShare(o call.Object, name string) error {
	_, err := readShare(o, name)
	return err
}

func isLanguage(o call.Object, name string) error {
	code, err := o.Text(name)
	if err == nil && code != "" && !lang.Valid(code) {
		err = call.Refusef(call.ErrModelArgument, "%s: unsupported language %q.", o.At(name), code)
	}
	return err
}

func isRefs(o call.Object, name string) error {
	refs, n, err := o.Objects(name)
	if err != nil {
		return err
	}
	if n > call.MaxSelected {
		return call.Refusef(call.ErrModelArgument, "%s: at most %d concepts are allowed.", o.At(name), call.MaxSelected)
	}
	for ref, err := range refs {
		if err != nil {
			return err
		}
		for _, part := range []string{"id", "name"} {
			if _, err := ref.Text(part); err != nil {
				return err
			}
		}
	}
	return nil
}

// given are the settings of a model or version, by name.
type given map[string][]byte

func settingsOf(all []catalog.Setting) given {
	s := make(given, len(all))
	for i := range all {
		if all[i].JSON != nil {
			s[all[i].Name] = all[i].JSON
		}
	}
	return s
}

// write writes an output_config: some fields always, the others where they are set.
func (s given) write(w *jsonio.Writer) {
	w.Object()
	for _, known := range settings {
		value := s[known.name]
		if value == nil {
			value = []byte(known.empty)
		}
		if len(value) > 0 {
			w.Name(known.name)
			w.Raw(value)
		}
	}
	w.End('}')
}

// object is the settings as a request would say them, but the language: that is for each
// call to say.
func (s given) object(doc *jsonio.Doc) (call.Object, error) {
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

// Unset turns what a removing patch calls true into back to its default.
func Unset(set []log.Setting) []log.Setting {
	out := slices.Clone(set)
	for i := range out {
		if string(out[i].JSON) == "true" {
			out[i].JSON = nil
		}
	}
	return out
}
