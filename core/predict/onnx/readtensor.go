package onnx

import (
	"encoding/binary"
	"fmt"
	"math"

	"google.golang.org/protobuf/encoding/protowire"
)

// The fields of a TensorProto that may hold its elements.
const (
	fieldFloat  = 4
	fieldInt32  = 5
	fieldInt64  = 7
	fieldRaw    = 9
	fieldDouble = 10
	fieldUint64 = 11
)

// holders says which typed field holds a type's elements, by the schema's comments.
var holders = map[DType]protowire.Number{
	Float32: fieldFloat,
	Uint8:   fieldInt32, Int8: fieldInt32, Uint16: fieldInt32, Int16: fieldInt32, Int32: fieldInt32,
	Bool: fieldInt32, Float16: fieldInt32,
	Int64:   fieldInt64,
	Float64: fieldDouble,
	Uint32:  fieldUint64, Uint64: fieldUint64,
}

// tensor reads a TensorProto in two passes: what it declares, then, once that is known to be
// within the limits, its elements.
func (r *reader) tensor(b []byte) (*Tensor, error) {
	t := &Tensor{Shape: []int{}}
	var holder protowire.Number // the field present
	err := fields(b, func(f field) error {
		switch f.num {
		case 1:
			return f.numbers(protowire.VarintType, func(bits uint64) error { return r.dim(t, int64(bits)) })
		case 2:
			n, err := f.integer()
			if n < 0 || n > math.MaxInt32 {
				return fmt.Errorf("%w: element type %d", ErrFormat, n)
			}
			t.Type = DType(n)
			return err
		case 8:
			s, err := f.text()
			t.Name = s
			return err
		case 14:
			if n, err := f.integer(); err != nil || n == 0 {
				return err
			}
			return fmt.Errorf("%w: tensor %q stores its data outside the file", ErrFormat, t.Name)
		case 13:
			return fmt.Errorf("%w: tensor %q stores its data outside the file", ErrFormat, t.Name)
		case 3:
			return fmt.Errorf("%w: tensor %q is split into segments", ErrFormat, t.Name)
		case fieldFloat, fieldInt32, fieldInt64, fieldRaw, fieldDouble, fieldUint64, 6:
			if f.typ == protowire.BytesType && len(f.bytes) == 0 {
				return nil // an empty packed list is no data
			}
			if holder != 0 && (holder != f.num || f.num == fieldRaw) {
				return fmt.Errorf("%w: tensor %q has data in two fields", ErrFormat, t.Name)
			}
			holder = f.num
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return t, r.fill(t, b, holder)
}

func (r *reader) dim(t *Tensor, d int64) error {
	if len(t.Shape) >= r.limits.Rank {
		return fmt.Errorf("%w: tensor %q has more than %d dimensions", ErrLimit, t.Name, r.limits.Rank)
	}
	if d < 0 || d > math.MaxInt32 {
		return fmt.Errorf("%w: tensor %q has a dimension of %d", ErrShape, t.Name, d)
	}
	t.Shape = append(t.Shape, int(d))
	return nil
}

// fill reads the elements of t, whose shape and type are known, from message b.
func (r *reader) fill(t *Tensor, b []byte, holder protowire.Number) error {
	size := t.Type.Size()
	if size == 0 {
		return fmt.Errorf("%w: tensor %q has unsupported type %v", ErrFormat, t.Name, t.Type)
	}
	bytes, err := byteSize(t.Shape, t.Type)
	if err != nil {
		return fmt.Errorf("tensor %q: %w", t.Name, err)
	}
	if err := r.take(bytes, fmt.Sprintf("tensor %q", t.Name)); err != nil {
		return err
	}
	// One byte of the file holds at least one element, so a longer claim is false and takes no memory.
	if bytes/int64(size) > int64(len(b)) {
		return fmt.Errorf("%w: tensor %q has too little data for shape %v", ErrFormat, t.Name, t.Shape)
	}
	if holder != 0 && holder != fieldRaw && holder != holders[t.Type] {
		return fmt.Errorf("%w: tensor %q of type %v has its elements in field %d", ErrFormat, t.Name, t.Type, holder)
	}
	switch {
	case bytes == 0:
		t.Data = []byte{}
	case holder == fieldFloat || holder == fieldDouble || holder == fieldRaw:
		err = t.borrow(b, holder, int(bytes))
	default:
		err = t.decode(b, holder, int(bytes))
	}
	if err != nil {
		return err
	}
	if int64(len(t.Data)) != bytes || holder != 0 && bytes == 0 {
		return fmt.Errorf("%w: tensor %q has data whose length does not match shape %v", ErrFormat, t.Name, t.Shape)
	}
	if t.Type == Bool {
		for _, x := range t.Data {
			if x > 1 {
				return fmt.Errorf("%w: tensor %q has a bool with value %d", ErrFormat, t.Name, x)
			}
		}
	}
	return nil
}

// borrow takes elements whose wire form is their memory form: without a copy when they lie in one piece.
func (t *Tensor) borrow(b []byte, holder protowire.Number, bytes int) error {
	return fields(b, func(f field) error {
		if f.num != holder || f.typ == protowire.BytesType && len(f.bytes) == 0 {
			return nil
		}
		switch {
		case f.typ == protowire.BytesType && len(t.Data) == 0:
			t.Data = f.bytes[:len(f.bytes):len(f.bytes)]
		case f.typ == protowire.BytesType:
			t.Data = append(t.Data, f.bytes...)
		case f.typ == protowire.Fixed32Type && holder == fieldFloat:
			t.Data = binary.LittleEndian.AppendUint32(t.Data, uint32(f.bits))
		case f.typ == protowire.Fixed64Type && holder == fieldDouble:
			t.Data = binary.LittleEndian.AppendUint64(t.Data, f.bits)
		default:
			return fmt.Errorf("%w: tensor %q has elements of wire type %d", ErrFormat, t.Name, f.typ)
		}
		if len(t.Data) > bytes {
			return fmt.Errorf("%w: tensor %q has more data than shape %v needs", ErrFormat, t.Name, t.Shape)
		}
		return nil
	})
}

// decode takes elements written as varints.
func (t *Tensor) decode(b []byte, holder protowire.Number, bytes int) error {
	t.Data = make([]byte, 0, bytes)
	return fields(b, func(f field) error {
		if f.num != holder {
			return nil
		}
		return f.numbers(protowire.VarintType, func(bits uint64) error {
			if len(t.Data) >= bytes {
				return fmt.Errorf("%w: tensor %q has more data than shape %v needs", ErrFormat, t.Name, t.Shape)
			}
			if !t.append(bits) {
				return fmt.Errorf("%w: tensor %q has an element out of the range of %v", ErrFormat, t.Name, t.Type)
			}
			return nil
		})
	})
}

// append adds one element given as a varint and reports whether it is in range.
func (t *Tensor) append(bits uint64) bool {
	v := int64(int32(bits)) // as protobuf reads an int32
	in := func(lo, hi int64) bool { return lo <= v && v <= hi }
	ok := true
	switch t.Type {
	case Uint8, Bool:
		ok = in(0, math.MaxUint8)
		t.Data = append(t.Data, byte(v))
	case Int8:
		ok = in(math.MinInt8, math.MaxInt8)
		t.Data = append(t.Data, byte(v))
	case Uint16, Float16:
		ok = in(0, math.MaxUint16)
		t.Data = binary.LittleEndian.AppendUint16(t.Data, uint16(v))
	case Int16:
		ok = in(math.MinInt16, math.MaxInt16)
		t.Data = binary.LittleEndian.AppendUint16(t.Data, uint16(v))
	case Int32:
		t.Data = binary.LittleEndian.AppendUint32(t.Data, uint32(v))
	case Uint32:
		ok = bits <= math.MaxUint32
		t.Data = binary.LittleEndian.AppendUint32(t.Data, uint32(bits))
	default: // Int64, Uint64
		t.Data = binary.LittleEndian.AppendUint64(t.Data, bits)
	}
	return ok
}

// byteSize returns the bytes of a tensor of this shape, checked in 64 bits: past 2^46 it is an error,
// also where an empty dimension would make the product 0, so that partial products never overflow.
func byteSize(shape []int, t DType) (int64, error) {
	const most = int64(1) << 46
	n, empty := int64(t.Size()), false
	for _, d := range shape {
		switch {
		case d < 0:
			return 0, fmt.Errorf("%w: dimension %d of %v", ErrShape, d, shape)
		case d == 0:
			empty = true
		case n > most/int64(d):
			return 0, fmt.Errorf("%w: %v overflows", ErrShape, shape)
		default:
			n *= int64(d)
		}
	}
	if empty {
		return 0, nil
	}
	return n, nil
}
