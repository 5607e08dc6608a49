package onnx

import (
	"fmt"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"
)

// field is one field of a protobuf message; which of bytes and bits counts depends on typ.
type field struct {
	num   protowire.Number
	typ   protowire.Type
	bytes []byte // BytesType: borrowed
	bits  uint64 // VarintType, Fixed32Type, Fixed64Type
}

// fields calls f for every field of message b in order. Groups, which the schema does not use, are refused.
func fields(b []byte, f func(field) error) error {
	for len(b) > 0 {
		num, typ, n := protowire.ConsumeTag(b)
		if n < 0 {
			return fmt.Errorf("%w: bad field tag", ErrFormat)
		}
		b = b[n:]
		v := field{num: num, typ: typ}
		switch typ {
		case protowire.VarintType:
			v.bits, n = protowire.ConsumeVarint(b)
		case protowire.Fixed32Type:
			var x uint32
			x, n = protowire.ConsumeFixed32(b)
			v.bits = uint64(x)
		case protowire.Fixed64Type:
			v.bits, n = protowire.ConsumeFixed64(b)
		case protowire.BytesType:
			v.bytes, n = protowire.ConsumeBytes(b)
		default:
			return fmt.Errorf("%w: field %d has wire type %d", ErrFormat, num, typ)
		}
		if n < 0 {
			return fmt.Errorf("%w: field %d is cut short", ErrFormat, num)
		}
		b = b[n:]
		if err := f(v); err != nil {
			return err
		}
	}
	return nil
}

// message returns the bytes of an embedded message, string or bytes field.
func (f field) message() ([]byte, error) {
	if f.typ != protowire.BytesType {
		return nil, fmt.Errorf("%w: field %d is not bytes", ErrFormat, f.num)
	}
	return f.bytes, nil
}

// text returns a copy of a string field, which must be UTF-8 and of bounded length.
func (f field) text() (string, error) {
	b, err := f.message()
	if err != nil {
		return "", err
	}
	if len(b) > maxNameBytes {
		return "", fmt.Errorf("%w: a name of %d bytes, at most %d are allowed", ErrLimit, len(b), maxNameBytes)
	}
	if !utf8.Valid(b) {
		return "", fmt.Errorf("%w: a name is not UTF-8", ErrFormat)
	}
	return string(b), nil
}

// integer returns a varint field.
func (f field) integer() (int64, error) {
	if f.typ != protowire.VarintType {
		return 0, fmt.Errorf("%w: field %d is not an integer", ErrFormat, f.num)
	}
	return int64(f.bits), nil
}

// numbers calls f for every element of a repeated number field, packed or not; wire is the
// type of one element.
func (f field) numbers(wire protowire.Type, each func(bits uint64) error) error {
	if f.typ == wire {
		return each(f.bits)
	}
	b, err := f.message()
	if err != nil {
		return err
	}
	for len(b) > 0 {
		var bits uint64
		var n int
		switch wire {
		case protowire.Fixed32Type:
			var x uint32
			x, n = protowire.ConsumeFixed32(b)
			bits = uint64(x)
		case protowire.Fixed64Type:
			bits, n = protowire.ConsumeFixed64(b)
		default:
			bits, n = protowire.ConsumeVarint(b)
		}
		if n < 0 {
			return fmt.Errorf("%w: packed field %d is cut short", ErrFormat, f.num)
		}
		b = b[n:]
		if err := each(bits); err != nil {
			return err
		}
	}
	return nil
}
