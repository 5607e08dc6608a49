package onnx

import (
	"fmt"
	"math"
)

func (r *reader) appendValue(vs []Value, f field, what string) ([]Value, error) {
	b, err := f.message()
	if err != nil {
		return nil, err
	}
	if err := r.count(len(vs)+1, what); err != nil {
		return nil, err
	}
	v, err := r.value(b)
	return append(vs, v), err
}

// value reads a ValueInfoProto, which must be of a tensor type.
func (r *reader) value(b []byte) (v Value, err error) {
	err = fields(b, func(f field) (err error) {
		switch f.num {
		case 1:
			v.Name, err = f.text()
		case 2:
			b, err = f.message()
			if err == nil {
				err = fields(b, func(f field) error { return r.valueType(&v, f) })
			}
		}
		return err
	})
	switch {
	case err != nil:
		return v, err
	case v.Name == "":
		return v, fmt.Errorf("%w: an input or output without a name", ErrFormat)
	case v.Type.Size() == 0:
		return v, fmt.Errorf("%w: %q is not a tensor of a supported type (%v)", ErrFormat, v.Name, v.Type)
	}
	return v, nil
}

// valueType reads one field of a TypeProto.
func (r *reader) valueType(v *Value, f field) error {
	if f.num != 1 {
		if f.num == 6 {
			return nil // denotation
		}
		return fmt.Errorf("%w: %q is not a tensor", ErrFormat, v.Name)
	}
	b, err := f.message()
	if err != nil {
		return err
	}
	return fields(b, func(f field) error {
		switch f.num {
		case 1:
			t, err := f.integer()
			if t < 0 || t > math.MaxInt32 {
				return fmt.Errorf("%w: element type %d", ErrFormat, t)
			}
			v.Type = DType(t)
			return err
		case 2:
			b, err := f.message()
			if err != nil {
				return err
			}
			if v.Shape != nil {
				return fmt.Errorf("%w: %q has two shapes", ErrFormat, v.Name)
			}
			v.Shape = []int{}
			return fields(b, func(f field) error { return r.valueDim(v, f) })
		}
		return nil
	})
}

func (r *reader) valueDim(v *Value, f field) error {
	if f.num != 1 {
		return nil
	}
	b, err := f.message()
	if err != nil {
		return err
	}
	if len(v.Shape) >= r.limits.Rank {
		return fmt.Errorf("%w: %q has more than %d dimensions", ErrLimit, v.Name, r.limits.Rank)
	}
	dim := int64(-1)
	err = fields(b, func(f field) (err error) {
		if f.num == 1 {
			dim, err = f.integer()
		}
		return err
	})
	if err != nil {
		return err
	}
	if dim < -1 || dim > math.MaxInt32 {
		return fmt.Errorf("%w: %q has a dimension of %d", ErrShape, v.Name, dim)
	}
	v.Shape = append(v.Shape, int(dim))
	return nil
}
