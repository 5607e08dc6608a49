// Package field writes and reads the fields of messages in the protobuf wire format, without reflection. Operations, records and manifests
// are such messages, after a version byte.
//
//	1       version, 1
//	then for each field, in the ascending order of numbers in which Encoder writes them:
//	1..5    tag: number << 3 | wire type
//	…       varint, 4 or 8 bytes little-endian, or a length and bytes
//
// A zero field is not written. Unknown fields are stored and written after the others, so that a record of a later version passes through
// an older one unchanged. A nested message keeps unknown fields only if its struct has a field for them.
//
// The wire format is that of Protocol Buffers, read and written with protowire. The package has only the types that our messages need. The
// command gen generates codecs that call the package, from the tags of structs.
package field

import (
	"errors"
	"fmt"
	"math"

	"google.golang.org/protobuf/encoding/protowire"
)

// ErrFormat is returned for bytes that are not a message, and for a message of a newer version of the format.
var ErrFormat = errors.New("malformed record")

// Version is the first byte of a message.
const Version = 1

// Encoder writes one message. The zero value is ready for use.
type Encoder struct{ buf []byte }

// Reset starts another message, which reuses the memory of buf.
func (e *Encoder) Reset(buf []byte) { e.buf = append(buf[:0], Version) }

// Bytes returns the message followed by extra, the unknown fields that its reader stored. The message shares the encoder's memory.
func (e *Encoder) Bytes(extra []byte) []byte {
	if len(e.buf) == 0 {
		e.buf = append(e.buf, Version)
	}
	e.buf = append(e.buf, extra...)
	return e.buf
}

func (e *Encoder) tag(number int, t protowire.Type) {
	if len(e.buf) == 0 {
		e.buf = append(e.buf, Version)
	}
	e.buf = protowire.AppendTag(e.buf, protowire.Number(number), t)
}

// Uint writes v as a varint, unless it is 0.
func (e *Encoder) Uint(number int, v uint64) {
	if v != 0 {
		e.tag(number, protowire.VarintType)
		e.buf = protowire.AppendVarint(e.buf, v)
	}
}

// Bool writes v, unless it is false.
func (e *Encoder) Bool(number int, v bool) {
	if v {
		e.Uint(number, 1)
	}
}

// Fixed64 writes v as eight bytes, unless it is 0.
func (e *Encoder) Fixed64(number int, v uint64) {
	if v != 0 {
		e.tag(number, protowire.Fixed64Type)
		e.buf = protowire.AppendFixed64(e.buf, v)
	}
}

// Float writes the bits of v, unless they are 0.
func (e *Encoder) Float(number int, v float64) { e.Fixed64(number, math.Float64bits(v)) }

// Float32 writes the bits of v, unless they are 0.
func (e *Encoder) Float32(number int, v float32) {
	if bits := math.Float32bits(v); bits != 0 {
		e.tag(number, protowire.Fixed32Type)
		e.buf = protowire.AppendFixed32(e.buf, bits)
	}
}

// Text writes s, unless it is empty.
func (e *Encoder) Text(number int, s string) {
	if s != "" {
		e.Element(number, s)
	}
}

// Element writes s, even if it is empty, as an element of a list.
func (e *Encoder) Element(number int, s string) {
	e.tag(number, protowire.BytesType)
	e.buf = protowire.AppendString(e.buf, s)
}

// Raw writes p, unless it is nil.
func (e *Encoder) Raw(number int, p []byte) {
	if p != nil {
		e.tag(number, protowire.BytesType)
		e.buf = protowire.AppendBytes(e.buf, p)
	}
}

// Hash writes p, unless all its bytes are 0.
func (e *Encoder) Hash(number int, p []byte) {
	for _, c := range p {
		if c != 0 {
			e.Raw(number, p)
			return
		}
	}
}

// Open begins a nested message. Close ends it:
//
//	at := e.Open(3)
//	e.Uint(1, x)
//	e.Close(at)
func (e *Encoder) Open(number int) (at int) {
	e.tag(number, protowire.BytesType)
	e.buf = append(e.buf, 0)
	return len(e.buf)
}

// Close writes the length of the nested message that began at at.
func (e *Encoder) Close(at int) {
	n := len(e.buf) - at
	if n < 0x80 {
		e.buf[at-1] = byte(n)
		return
	}
	size := protowire.SizeVarint(uint64(n))
	for range size - 1 {
		e.buf = append(e.buf, 0)
	}
	copy(e.buf[at+size-1:], e.buf[at:at+n])
	protowire.AppendVarint(e.buf[:at-1], uint64(n))
}

// Append appends encoded fields.
func (e *Encoder) Append(fields []byte) { e.buf = append(e.buf, fields...) }

// Decoder reads the fields of one message. Generated code uses it like this:
//
//	d := field.Decode(data)
//	for d.Next() {
//		switch d.Number {
//		case 1:
//			x = d.Uint()
//		default:
//			d.Keep()
//		}
//	}
//	return d.Err()
//
// A method that reads a field of another type returns zero, and makes Err return an error.
type Decoder struct {
	Number int // number of the current field

	rest  []byte
	typ   protowire.Type
	num   uint64 // value of a numeric field
	buf   []byte // value of a field with a length
	raw   []byte // tag and value of the current field
	extra []byte
	err   error
}

// Outer is the unread part of a message while the reader reads a nested message.
type Outer struct{ rest, extra []byte }

// Decode returns a decoder of a message that an Encoder wrote. Results of Raw share the memory of data.
func Decode(data []byte) *Decoder {
	if len(data) == 0 || data[0] != Version {
		return &Decoder{err: fmt.Errorf("%w: version", ErrFormat)}
	}
	return &Decoder{rest: data[1:]}
}

// Fields returns a decoder of fields without a version byte before them.
func Fields(data []byte) *Decoder { return &Decoder{rest: data} }

// Next reads the next field. It returns false after the last one, and after an error.
func (d *Decoder) Next() bool {
	if d.err != nil || len(d.rest) == 0 {
		return false
	}
	number, typ, n := protowire.ConsumeTag(d.rest)
	if n < 0 {
		return d.fail("tag")
	}
	value := d.rest[n:]
	var size int
	switch typ {
	case protowire.VarintType:
		d.num, size = protowire.ConsumeVarint(value)
	case protowire.Fixed64Type:
		d.num, size = protowire.ConsumeFixed64(value)
	case protowire.Fixed32Type:
		var v uint32
		v, size = protowire.ConsumeFixed32(value)
		d.num = uint64(v)
	case protowire.BytesType:
		d.buf, size = protowire.ConsumeBytes(value)
	default:
		return d.fail("wire type")
	}
	if size < 0 {
		return d.fail("field")
	}
	d.Number, d.typ = int(number), typ
	d.raw, d.rest = d.rest[:n+size], d.rest[n+size:]
	return true
}

// Err returns ErrFormat, wrapped, for a malformed message, once Next has returned false.
func (d *Decoder) Err() error { return d.err }

// Extra returns the fields that Keep has stored.
func (d *Decoder) Extra() []byte { return d.extra }

// Keep stores the current field, because the reader does not know it.
func (d *Decoder) Keep() { d.extra = append(d.extra, d.raw...) }

// Malformed makes Err report an invalid value.
func (d *Decoder) Malformed(detail string) { d.fail(detail) }

func (d *Decoder) fail(detail string) bool {
	if d.err == nil {
		d.err = fmt.Errorf("%w: %s", ErrFormat, detail)
	}
	return false
}

func (d *Decoder) is(t protowire.Type) bool {
	return d.typ == t || d.fail("type of a field")
}

// Uint returns a varint.
func (d *Decoder) Uint() uint64 {
	if !d.is(protowire.VarintType) {
		return 0
	}
	return d.num
}

// Uint32 returns a varint of at most 32 bits.
func (d *Decoder) Uint32() uint32 {
	v := d.Uint()
	if v > math.MaxUint32 {
		d.fail("number")
	}
	return uint32(v)
}

// Int returns a varint between 0 and 2³¹ − 1.
func (d *Decoder) Int() int {
	v := d.Uint()
	if v > math.MaxInt32 {
		d.fail("number")
		return 0
	}
	return int(v)
}

// Bool returns a varint that is 0 or 1.
func (d *Decoder) Bool() bool {
	v := d.Uint()
	if v > 1 {
		d.fail("boolean")
	}
	return v == 1
}

// Fixed64 returns the number in eight bytes.
func (d *Decoder) Fixed64() uint64 {
	if !d.is(protowire.Fixed64Type) {
		return 0
	}
	return d.num
}

// Float returns the floating-point number in eight bytes.
func (d *Decoder) Float() float64 { return math.Float64frombits(d.Fixed64()) }

// Float32 returns four bytes as a number.
func (d *Decoder) Float32() float32 {
	if !d.is(protowire.Fixed32Type) {
		return 0
	}
	return math.Float32frombits(uint32(d.num))
}

// Text returns a string, which may not be valid UTF-8.
func (d *Decoder) Text() string {
	if !d.is(protowire.BytesType) {
		return ""
	}
	return string(d.buf)
}

// Raw returns bytes, never nil, which share the memory of the message.
func (d *Decoder) Raw() []byte {
	if !d.is(protowire.BytesType) {
		return []byte{}
	}
	if d.buf == nil {
		return []byte{}
	}
	return d.buf[:len(d.buf):len(d.buf)]
}

// Hash copies the field's bytes to dst. Err reports an error if their lengths differ.
func (d *Decoder) Hash(dst []byte) {
	if !d.is(protowire.BytesType) {
		return
	}
	if len(d.buf) != len(dst) {
		d.fail("hash")
		return
	}
	copy(dst, d.buf)
}

// Open begins the nested message in the current field. Close ends it. Err also reports errors of the nested message. Open allocates no
// memory, since a hostile message may have a nested one for every two bytes:
//
//	at := d.Open()
//	for d.Next() {
//	}
//	d.Close(at)
func (d *Decoder) Open() Outer {
	at := Outer{d.rest, d.extra}
	d.rest, d.extra = nil, nil
	if d.is(protowire.BytesType) {
		d.rest = d.buf
	}
	return at
}

// Close continues with the message around the nested one that Open began. It is not inlined: at 110 calls that would make the module 31 KB
// larger.
//
//go:noinline
func (d *Decoder) Close(at Outer) { d.rest, d.extra = at.rest, at.extra }
