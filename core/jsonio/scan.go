package jsonio

import (
	"fmt"
	"math"
)

// Var is a variable for the member called Name of an object. To is a *string, *bool, *int, *int8, *int64, *float32, *float64, or a
// func(Value) error, which reads the member.
type Var struct {
	Name string
	To   any
}

// Scan sets variables to the members of an object. Absent members and those that are null leave their variables as they are. It skips
// members without a variable. Errors: those of the conversions, with the name; [ErrType] if v is not an object.
func (v Value) Scan(vars ...Var) error {
	return v.scan(vars, func(string) error { return nil })
}

// ScanAll is [Value.Scan] for an object that may have no other members. Otherwise it returns [ErrUnknown].
func (v Value) ScanAll(vars ...Var) error {
	return v.scan(vars, func(string) error { return ErrUnknown })
}

func (v Value) scan(vars []Var, other func(name string) error) error {
	if v.Kind() != Object {
		return v.typeError(Object)
	}
members:
	for name, member := range v.Members() {
		for _, known := range vars {
			if known.Name != name {
				continue
			}
			if err := member.set(known.To); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			continue members
		}
		if err := other(name); err != nil {
			return fmt.Errorf("%.80q: %w", name, err)
		}
	}
	return nil
}

// set sets the variable at an address.
func (v Value) set(to any) (err error) {
	if v.Kind() == Null {
		return nil
	}
	switch to := to.(type) {
	case *string:
		*to, err = v.Str()
	case *bool:
		*to, err = v.Bool()
	case *int:
		err = setInt(to, v, math.MaxInt)
	case *int8:
		err = setInt(to, v, math.MaxInt8)
	case *int64:
		*to, err = v.Int()
	case *float32:
		*to, err = v.Float32()
	case *float64:
		*to, err = v.Float()
	case func(Value) error:
		err = to(v)
	default:
		panic(fmt.Sprintf("jsonio: no conversion to %T", to))
	}
	return err
}

// setInt sets a variable whose maximum value is limit.
func setInt[T int | int8](to *T, v Value, limit int64) error {
	n, err := v.Int()
	if err == nil && (n > limit || n < -limit-1) {
		err = &Error{Offset: v.Offset(), Err: ErrNumber}
	}
	*to = T(n)
	return err
}

// ScanList returns the elements of an array, which read reads one by one. The list is not nil for an array. ScanList returns nil for null,
// and [ErrType] for other values.
func ScanList[T any](v Value, read func(v Value, to *T) error) ([]T, error) {
	if v.Kind() == Null {
		return nil, nil
	}
	if v.Kind() != Array {
		return nil, v.typeError(Array)
	}
	all := make([]T, 0, v.Len())
	for element := range v.Elems() {
		var x T
		if err := read(element, &x); err != nil {
			return nil, fmt.Errorf("element %d: %w", len(all), err)
		}
		all = append(all, x)
	}
	return all, nil
}
