package call

import (
	"fmt"
	"iter"
	"strconv"

	"github.com/sightline-dev/sightline/core/jsonio"
	"github.com/sightline-dev/sightline/core/log/form"
)

// Object is a JSON object in a request. Absent, null and [] are empty objects. A member that
// is null counts as absent.
type Object struct {
	Value jsonio.Value
	Path  string // path for errors, such as "data.image"; empty for the body itself
}

// AsObject returns a value as an object. path is the object's path for errors.
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

// MemberPath returns the path of a member.
func (o Object) MemberPath(name string) string {
	if o.Path == "" {
		return name
	}
	return o.Path + "." + name
}

// Wrap adds the path of a member to err. It returns nil for nil.
func (o Object) Wrap(name string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", o.MemberPath(name), err)
}

// Get returns a member. A null member is absent.
func (o Object) Get(name string) jsonio.Value {
	v := o.Value.Get(name)
	if v.Kind() == jsonio.Null {
		return jsonio.Value{}
	}
	return v
}

// Has reports whether the object has a member that is not null.
func (o Object) Has(name string) bool { return o.Get(name).Kind() != jsonio.Absent }

// Object returns a member that is an object. An absent member is an empty object.
func (o Object) Object(name string) (Object, error) {
	return AsObject(o.Get(name), o.MemberPath(name))
}

// Objects returns the elements of an array of objects and their number. An absent array has none. Each element has its own error.
func (o Object) Objects(name string) (iter.Seq2[Object, error], int, error) {
	v, err := o.array(name)
	if err != nil {
		return nil, 0, err
	}
	return func(yield func(Object, error) bool) {
		i := 0
		for e := range v.Elems() {
			if !yield(AsObject(e, o.MemberPath(name)+"["+strconv.Itoa(i)+"]")) {
				return
			}
			i++
		}
	}, v.Len(), nil
}

// array returns a member that is an array. An empty object is an empty array.
func (o Object) array(name string) (jsonio.Value, error) {
	v := o.Get(name)
	if k := v.Kind(); k != jsonio.Array && k != jsonio.Absent && (k != jsonio.Object || v.Len() > 0) {
		return v, wrongKind(o.MemberPath(name), k, "array")
	}
	return v, nil
}

// LimitedObjects is like Objects for an array of 1 to limit elements. Its errors have the given kind.
func (o Object) LimitedObjects(name string, limit int, kind error) (iter.Seq2[Object, error], int, error) {
	elements, n, err := o.Objects(name)
	if err != nil {
		return nil, 0, Refuse(kind, err)
	}
	if limit == 1 && n != 1 {
		return nil, 0, Refusef(kind, "%s: send one element, not %d.", name, n)
	}
	if n == 0 || n > limit {
		return nil, 0, Refusef(kind, "Send 1 to %d %s, not %d.", limit, name, n)
	}
	return elements, n, nil
}

// Text returns a string member, or "" if it is absent.
func (o Object) Text(name string) (string, error) { return member(o, name, jsonio.Value.Str) }

// Integer returns an integer member, or 0 if it is absent.
func (o Object) Integer(name string) (int64, error) { return member(o, name, jsonio.Value.Int) }

// Number returns a number member, or 0 if it is absent.
func (o Object) Number(name string) (float64, error) { return member(o, name, jsonio.Value.Float) }

// member converts a member with as. It returns the zero value if the member is absent.
func member[T any](o Object, name string, as func(jsonio.Value) (T, error)) (value T, err error) {
	if o.Has(name) {
		value, err = as(o.Get(name))
	}
	return value, o.Wrap(name, err)
}

// Read reads a member with a function such as [Object.Text], unless *err is set. It sets *err to the error of read.
func Read[T any](err *error, read func(name string) (T, error), name string) (value T) {
	if *err == nil {
		value, *err = read(name)
	}
	return value
}

// Refuse returns an error of a kind, for the status table, with the text of err. It returns nil if err is nil.
func Refuse(kind, err error) error {
	if err == nil {
		return nil
	}
	return &fault{kind, err.Error()}
}

// Refusef returns an error of a kind, for the status table, with a text for the caller.
func Refusef(kind error, format string, args ...any) error {
	return &fault{kind, fmt.Sprintf(format, args...)}
}

// ID returns a member that is an id, or "" if it is absent.
func (o Object) ID(name string) (string, error) {
	id, err := o.Text(name)
	if err == nil && !form.IsText(id, MaxIDBytes) {
		err = Refusef(ErrInput, "%s: must be at most %d bytes, without control characters.", o.MemberPath(name), MaxIDBytes)
	}
	return id, err
}

// Flag returns a member that is true or false. An absent member is false.
func (o Object) Flag(name string) (bool, error) { return o.truth(name, false) }

// FlagOrTrue returns a member that is true or false. An absent member is true.
func (o Object) FlagOrTrue(name string) (bool, error) { return o.truth(name, true) }

// truth returns a member that is true, false, or a number that equals 1 or 0. It returns absent for an absent member.
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

// Texts returns an array of strings, empty if it is absent.
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
