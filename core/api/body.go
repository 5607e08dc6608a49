package api

import (
	"fmt"
	"iter"
	"strconv"

	"github.com/sightline-dev/sightline/core/jsonio"
)

// object is a JSON object as requests send it: absent, null and [] are empty objects, and
// a member that is null is absent.
type object struct {
	v    jsonio.Value
	path string // "data.image", for errors; empty for the body itself
}

func asObject(v jsonio.Value, path string) (object, error) {
	switch k := v.Kind(); {
	case k == jsonio.Object:
		return object{v, path}, nil
	case k == jsonio.Absent, k == jsonio.Null, k == jsonio.Array && v.Len() == 0:
		return object{path: path}, nil
	default:
		return object{}, wrongKind(path, k, "object")
	}
}

func wrongKind(path string, got jsonio.Kind, want string) error {
	return fmt.Errorf("%s: %w: %s, expected %s", path, jsonio.ErrType, got, want)
}

// at is the path of a member.
func (o object) at(name string) string {
	if o.path == "" {
		return name
	}
	return o.path + "." + name
}

func (o object) wrap(name string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", o.at(name), err)
}

func (o object) get(name string) jsonio.Value {
	v := o.v.Get(name)
	if v.Kind() == jsonio.Null {
		return jsonio.Value{}
	}
	return v
}

func (o object) has(name string) bool { return o.get(name).Kind() != jsonio.Absent }

func (o object) object(name string) (object, error) {
	return asObject(o.get(name), o.at(name))
}

// objects yields the elements of an array of objects; an absent array has none.
func (o object) objects(name string) (iter.Seq2[object, error], int, error) {
	v := o.get(name)
	if k := v.Kind(); k != jsonio.Array && k != jsonio.Absent && (k != jsonio.Object || v.Len() > 0) {
		return nil, 0, wrongKind(o.at(name), k, "array")
	}
	return func(yield func(object, error) bool) {
		i := 0
		for e := range v.Elems() {
			if !yield(asObject(e, o.at(name)+"["+strconv.Itoa(i)+"]")) {
				return
			}
			i++
		}
	}, v.Len(), nil
}

// some is objects of which there must be 1 to most; its errors are kind's.
func (o object) some(name string, most int, kind error) (iter.Seq2[object, error], int, error) {
	elements, n, err := o.objects(name)
	if err != nil {
		return nil, 0, refuse(kind, err)
	}
	if most == 1 && n != 1 {
		return nil, 0, refusef(kind, "%s: send one element, not %d.", name, n)
	}
	if n == 0 || n > most {
		return nil, 0, refusef(kind, "Send 1 to %d %s, not %d.", most, name, n)
	}
	return elements, n, nil
}

// text returns a string member, "" when absent.
func (o object) text(name string) (string, error) {
	v := o.get(name)
	if v.Kind() == jsonio.Absent {
		return "", nil
	}
	s, err := v.Str()
	return s, o.wrap(name, err)
}

// integer returns a whole number, 0 when absent.
func (o object) integer(name string) (int64, error) {
	v := o.get(name)
	if v.Kind() == jsonio.Absent {
		return 0, nil
	}
	n, err := v.Int()
	return n, o.wrap(name, err)
}

// number returns a number, 0 when absent.
func (o object) number(name string) (float64, error) {
	v := o.get(name)
	if v.Kind() == jsonio.Absent {
		return 0, nil
	}
	f, err := v.Float()
	return f, o.wrap(name, err)
}

// refuse is err with another kind, for the status table, and its own words.
func refuse(kind, err error) error { return &fault{kind, err.Error()} }

func refusef(kind error, format string, args ...any) error {
	return &fault{kind, fmt.Sprintf(format, args...)}
}
