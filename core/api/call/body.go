package call

import (
	"fmt"
	"iter"
	"strconv"
	"strings"
	"unicode"

	"github.com/sightline-dev/sightline/core/jsonio"
)

// Object is a JSON object as requests send it: absent, null and [] are empty objects, and
// a member that is null is absent.
type Object struct {
	Value jsonio.Value
	Path  string // "data.image", for errors; empty for the body itself
}

// AsObject returns a value as an object; path names it in errors.
func AsObject(v jsonio.Value, path string) (Object, error) {
	switch k := v.Kind(); {
	case k == jsonio.Object:
		return Object{v, path}, nil
	case k == jsonio.Absent, k == jsonio.Null, k == jsonio.Array && v.Len() == 0:
		return Object{Path: path}, nil
	default:
		return Object{}, wrongKind(path, k, "object")
	}
}

func wrongKind(path string, got jsonio.Kind, want string) error {
	return fmt.Errorf("%s: %w: %s, expected %s", path, jsonio.ErrType, got, want)
}

// At is the path of a member.
func (o Object) At(name string) string {
	if o.Path == "" {
		return name
	}
	return o.Path + "." + name
}

// Wrap names the member that an error is about.
func (o Object) Wrap(name string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", o.At(name), err)
}

// Get returns a member, absent where it is null.
func (o Object) Get(name string) jsonio.Value {
	v := o.Value.Get(name)
	if v.Kind() == jsonio.Null {
		return jsonio.Value{}
	}
	return v
}

// Has reports whether the object has a member that is not null.
func (o Object) Has(name string) bool { return o.Get(name).Kind() != jsonio.Absent }

// Object returns a member that is an object, an empty one when absent.
func (o Object) Object(name string) (Object, error) {
	return AsObject(o.Get(name), o.At(name))
}

// Objects yields the elements of an array of objects; an absent array has none.
func (o Object) Objects(name string) (iter.Seq2[Object, error], int, error) {
	v, err := o.array(name)
	if err != nil {
		return nil, 0, err
	}
	return func(yield func(Object, error) bool) {
		i := 0
		for e := range v.Elems() {
			if !yield(AsObject(e, o.At(name)+"["+strconv.Itoa(i)+"]")) {
				return
			}
			i++
		}
	}, v.Len(), nil
}

// array returns a member that is an array; an empty object is an empty one.
func (o Object) array(name string) (jsonio.Value, error) {
	v := o.Get(name)
	if k := v.Kind(); k != jsonio.Array && k != jsonio.Absent && (k != jsonio.Object || v.Len() > 0) {
		return v, wrongKind(o.At(name), k, "array")
	}
	return v, nil
}

// Some is objects of which there must be 1 to most; its errors are kind's.
func (o Object) Some(name string, most int, kind error) (iter.Seq2[Object, error], int, error) {
	elements, n, err := o.Objects(name)
	if err != nil {
		return nil, 0, Refuse(kind, err)
	}
	if most == 1 && n != 1 {
		return nil, 0, Refusef(kind, "%s: send one element, not %d.", name, n)
	}
	if n == 0 || n > most {
		return nil, 0, Refusef(kind, "Send 1 to %d %s, not %d.", most, name, n)
	}
	return elements, n, nil
}

// Text returns a string member, "" when absent.
func (o Object) Text(name string) (string, error) { return member(o, name, jsonio.Value.Str) }

// Integer returns a whole number, 0 when absent.
func (o Object) Integer(name string) (int64, error) { return member(o, name, jsonio.Value.Int) }

// Number returns a number, 0 when absent.
func (o Object) Number(name string) (float64, error) { return member(o, name, jsonio.Value.Float) }

// member returns a member as a type, the zero value when absent.
func member[T any](o Object, name string, as func(jsonio.Value) (T, error)) (value T, err error) {
	if o.Has(name) {
		value, err = as(o.Get(name))
	}
	return value, o.Wrap(name, err)
}

// Read reads a member, such as with [Object.Text], unless an earlier one had an error. It sets err to its own.
func Read[T any](err *error, read func(name string) (T, error), name string) (value T) {
	if *err == nil {
		value, *err = read(name)
	}
	return value
}

// Refuse is err with another kind, for the status table, and its own words; nil for none.
func Refuse(kind, err error) error {
	if err == nil {
		return nil
	}
	return &fault{kind, err.Error()}
}

// Refusef is an error of a kind, for the status table, with words for the caller.
func Refusef(kind error, format string, args ...any) error {
	return &fault{kind, fmt.Sprintf(format, args...)}
}

// ID returns a member that is an id, "" when absent.
func (o Object) ID(name string) (string, error) {
	id, err := o.Text(name)
	if err == nil && (len(id) > MaxIDBytes || strings.ContainsFunc(id, unicode.IsControl)) {
		err = Refusef(ErrInput, "%s: must be at most %d bytes, without control characters.", o.At(name), MaxIDBytes)
	}
	return id, err
}

// Flag returns a member that is true or false, false when absent.
func (o Object) Flag(name string) (bool, error) { return o.truth(name, false) }

// Truth returns a member that is true or false, true when absent.
func (o Object) Truth(name string) (bool, error) { return o.truth(name, true) }

// truth returns a member that is true, false, or a number that equals 1 or 0.
func (o Object) truth(name string, absent bool) (bool, error) {
	v := o.Get(name)
	switch v.Kind() {
	case jsonio.Absent:
		return absent, nil
	case jsonio.Number:
		f, err := v.Float()
		if err == nil && f != 0 && f != 1 {
			err = Refusef(jsonio.ErrType, "expected true, false, 1 or 0")
		}
		return f == 1, o.Wrap(name, err)
	}
	b, err := v.Bool()
	return b, o.Wrap(name, err)
}

// Texts returns an array of strings, nil when absent.
func (o Object) Texts(name string) ([]string, error) {
	v, err := o.array(name)
	if err != nil {
		return nil, err
	}
	all := make([]string, 0, v.Len())
	for e := range v.Elems() {
		s, err := e.Str()
		if err != nil {
			return nil, o.Wrap(name, err)
		}
		all = append(all, s)
	}
	return all, nil
}
