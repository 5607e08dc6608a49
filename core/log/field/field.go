// Package field writes and reads the fields of a message in the protobuf wire format, without
// reflection: operations, records and manifests are such messages after a version byte.
//
//	1       version, 1
//	then for each field, in ascending order of its number as we write them:
//	1..5    tag: number << 3 | wire type
//	…       varint, 4 or 8 bytes little-endian, or a length and bytes
//
// A field whose value is zero is not written. Unknown fields are kept and written after the others, so that a record of a later
// version passes through an older one unchanged. A message inside a message keeps them only if its struct has a field for them.
//
// The wire format is that of Protocol Buffers, read and written with protowire. The package has only the types that our messages
// need. The command gen generates the codecs that call it from the tags of structs.
package field

import (
	"errors"
	"fmt"
	"math"

	"google.golang.org/protobuf/encoding/protowire"
)

// ErrFormat is returned for bytes that are not a message, and for a message of a newer version.
var ErrFormat = errors.New("malformed record")

// Version is the first byte of a message.
const Version = 1

// Encoder writes one message. The zero value is ready.
type Encoder struct{ buf []byte }

// Reset starts another message in buf's memory.
func (e *Encoder) Reset(buf []byte) { e.buf = append(buf[:0], Version) }

// Bytes returns the message, with the unknown fields that its reader kept.
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

// Bool writes true; false is its absence.
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

// Element writes s, which may be empty: an element of a list.
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

// Open begins a message inside this one, which Close ends:
//
//	at := e.Open(3)
//	e.Uint(1, x)
//	e.Close(at)
func (e *Encoder) Open(number int) (at int) {
	e.tag(number, protowire.BytesType)
	e.buf = append(e.buf, 0)
	return len(e.buf)
}

// Close writes the length of the message that began at at.
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

// Append adds fields that are encoded already.
func (e *Encoder) Append(fields []byte) { e.buf = append(e.buf, fields...) }

// Decoder reads the fields of one message, as generated code does:
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
// A method that reads a field of another type returns zero, and Err returns the error.
type Decoder struct {
	Number int // of the field

	rest  []byte
	typ   protowire.Type
	num   uint64 // of a field that is a number
	buf   []byte // of a field that has a length
	whole []byte // tag and value
	extra []byte
	err   error
}

// Outer is the rest of a message whose inner message is being read.
type Outer struct{ rest, extra []byte }

// Decode reads a message that an Encoder wrote. Bytes that it returns share the memory of data.
func Decode(data []byte) *Decoder {
	if len(data) == 0 || data[0] != Version {
		return &Decoder{err: fmt.Errorf("%w: version", ErrFormat)}
	}
	return &Decoder{rest: data[1:]}
}

// Fields reads fields without a version before them.
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
	d.whole, d.rest = d.rest[:n+size], d.rest[n+size:]
	return true
}

// Err returns ErrFormat, wrapped, for a malformed message, once Next has returned false.
func (d *Decoder) Err() error { return d.err }

// Extra returns the fields that were kept.
func (d *Decoder) Extra() []byte { return d.extra }

// Keep keeps a field that the reader does not know.
func (d *Decoder) Keep() { d.extra = append(d.extra, d.whole...) }

// Malformed makes Err report an invalid value.
func (d *Decoder) Malformed(what string) { d.fail(what) }

func (d *Decoder) fail(what string) bool {
	if d.err == nil {
		d.err = fmt.Errorf("%w: %s", ErrFormat, what)
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

// Fixed64 returns eight bytes as a number.
func (d *Decoder) Fixed64() uint64 {
	if !d.is(protowire.Fixed64Type) {
		return 0
	}
	return d.num
}

// Float returns eight bytes as a number.
func (d *Decoder) Float() float64 { return math.Float64frombits(d.Fixed64()) }

// Float32 returns four bytes as a number.
func (d *Decoder) Float32() float32 {
	if !d.is(protowire.Fixed32Type) {
		return 0
	}
	return math.Float32frombits(uint32(d.num))
}

// Text returns a string of any bytes.
func (d *Decoder) Text() string {
	if !d.is(protowire.BytesType) {
		return ""
	}
	return string(d.buf)
}

// Raw returns bytes, never nil, borrowed from the message.
func (d *Decoder) Raw() []byte {
	if !d.is(protowire.BytesType) {
		return []byte{}
	}
	if d.buf == nil {
		return []byte{}
	}
	return d.buf[:len(d.buf):len(d.buf)]
}

// Hash copies bytes to dst, which has their length.
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

// Open begins the message inside the current field, which Close ends. Errors in it are those of the whole message. It takes no
// memory, since a hostile message may have an inner one for every two bytes:
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

// Close continues with the message around the one that Open began. It is not inlined: at 110 places that would make the module 31 KB
// larger.
//
//go:noinline
func (d *Decoder) Close(at Outer) { d.rest, d.extra = at.rest, at.extra }
