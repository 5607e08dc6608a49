package field_test

import (
	"bytes"
	"errors"
	"math"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/sightline-dev/sightline/core/log/field"
)

func TestValues(t *testing.T) {
	var e field.Encoder
	e.Uint(1, 0)
	e.Bool(2, false)
	e.Fixed64(3, 0)
	e.Float(4, 0)
	e.Float32(5, 0)
	e.Text(6, "")
	e.Raw(7, nil)
	e.Hash(8, make([]byte, 4))
	if got := e.Bytes(nil); !bytes.Equal(got, []byte{field.Version}) {
		t.Errorf("zero values are written: %x", got)
	}
	e.Reset(nil)
	e.Uint(1, math.MaxUint64)
	e.Bool(2, true)
	e.Fixed64(3, 5)
	e.Float(4, -0.5)
	e.Float32(5, 1.5)
	e.Text(6, "\xff")
	e.Raw(7, []byte{})
	e.Hash(8, []byte{0, 1})
	e.Element(9, "")
	e.Uint(10, 77)
	e.Append(protowire.AppendVarint(protowire.AppendTag(nil, 11, protowire.VarintType), 9))
	d := field.Decode(e.Bytes(nil))
	check := map[int]func() bool{
		1:  func() bool { return d.Uint() == math.MaxUint64 },
		2:  d.Bool,
		3:  func() bool { return d.Fixed64() == 5 },
		4:  func() bool { return d.Float() == -0.5 },
		5:  func() bool { return d.Float32() == 1.5 },
		6:  func() bool { return d.Text() == "\xff" },
		7:  func() bool { p := d.Raw(); return p != nil && len(p) == 0 },
		8:  func() bool { var h [2]byte; d.Hash(h[:]); return h == [2]byte{0, 1} },
		9:  func() bool { return d.Text() == "" },
		10: func() bool { return d.Uint32() == 77 },
		11: func() bool { return d.Int() == 9 },
	}
	n := 0
	for d.Next() {
		if n++; !check[d.Number]() {
			t.Errorf("field %d is another", d.Number)
		}
	}
	if d.Err() != nil || n != len(check) {
		t.Errorf("%d fields, %v, want %d", n, d.Err(), len(check))
	}
}

// TestNesting writes messages just below and above each size at which the length prefix grows.
func TestNesting(t *testing.T) {
	for _, n := range []int{0, 1, 120, 127, 128, 129, 16383, 16384, 1 << 21} {
		var e field.Encoder
		outer := e.Open(1)
		inner := e.Open(2)
		e.Append(protowire.AppendBytes(protowire.AppendTag(nil, 3, protowire.BytesType), make([]byte, n)))
		e.Close(inner)
		e.Uint(4, 5)
		e.Close(outer)
		d := field.Decode(e.Bytes(nil))
		got, after := -1, uint64(0)
		for d.Next() {
			first := d.Open()
			for d.Next() {
				if d.Number == 4 {
					after = d.Uint()
					continue
				}
				second := d.Open()
				for d.Next() {
					got = len(d.Raw())
				}
				d.Close(second)
			}
			d.Close(first)
		}
		if d.Err() != nil || got != n || after != 5 {
			t.Errorf("%d bytes come back as %d, then %d, %v", n, got, after, d.Err())
		}
	}
}

// TestExtraInside: unknown fields of a message stay separate from those of the message inside it.
func TestExtraInside(t *testing.T) {
	var e field.Encoder
	e.Text(9, "before")
	at := e.Open(1)
	e.Text(9, "inside")
	e.Close(at)
	e.Text(9, "after")
	d := field.Decode(e.Bytes(nil))
	var inside []byte
	for d.Next() {
		if d.Number == 9 {
			d.Keep()
			continue
		}
		at := d.Open()
		for d.Next() {
			d.Keep()
		}
		inside = d.Extra()
		d.Close(at)
	}
	if got := string(inside); got != "J\x06inside" || d.Err() != nil {
		t.Errorf("kept %q of the message inside, %v", got, d.Err())
	}
	if got := string(d.Extra()); got != "J\x06beforeJ\x05after" {
		t.Errorf("kept %q", got)
	}
}

// TestExtra: unknown fields are encoded after the known ones.
func TestExtra(t *testing.T) {
	data := []byte{field.Version}
	data = protowire.AppendVarint(protowire.AppendTag(data, 1, protowire.VarintType), 7)
	extra := protowire.AppendString(protowire.AppendTag(nil, 100, protowire.BytesType), "later")
	extra = protowire.AppendFixed32(protowire.AppendTag(extra, 101, protowire.Fixed32Type), 1)
	d := field.Decode(append(data, extra...))
	for d.Next() {
		if d.Number != 1 {
			d.Keep()
		}
	}
	if !bytes.Equal(d.Extra(), extra) || d.Err() != nil {
		t.Errorf("kept %x, %v, want %x", d.Extra(), d.Err(), extra)
	}
	var e field.Encoder
	e.Uint(1, 7)
	if got := e.Bytes(d.Extra()); !bytes.Equal(got, append(data, extra...)) {
		t.Errorf("written again: %x", got)
	}
}

func TestMalformed(t *testing.T) {
	varint := func(v uint64) []byte { return protowire.AppendVarint([]byte{field.Version, 1 << 3}, v) }
	text := []byte{field.Version, 1<<3 | 2, 1, 'x'}
	tests := []struct {
		name string
		data []byte
		read func(d *field.Decoder)
	}{
		{"no version", nil, nil},
		{"newer version", []byte{2}, nil},
		{"tag", []byte{1, 0xff}, nil},
		{"field number 0", []byte{1, 0}, nil},
		{"group", []byte{1, 1<<3 | 3, 1<<3 | 4}, nil},
		{"cut varint", []byte{1, 1 << 3, 0x80}, nil},
		{"cut fixed", []byte{1, 1<<3 | 1, 0}, nil},
		{"cut bytes", []byte{1, 1<<3 | 2, 9, 0}, nil},
		{"number of 33 bits", varint(1 << 32), func(d *field.Decoder) { d.Uint32() }},
		{"number of 32 bits", varint(1 << 31), func(d *field.Decoder) { d.Int() }},
		{"boolean 2", varint(2), func(d *field.Decoder) { d.Bool() }},
		{"text for a number", text, func(d *field.Decoder) { d.Uint() }},
		{"text for 8 bytes", text, func(d *field.Decoder) { d.Float() }},
		{"text for 4 bytes", text, func(d *field.Decoder) { d.Float32() }},
		{"number for text", varint(1), func(d *field.Decoder) { d.Text() }},
		{"number for bytes", varint(1), func(d *field.Decoder) { d.Raw() }},
		{"number for a hash", varint(1), func(d *field.Decoder) { d.Hash(make([]byte, 1)) }},
		{"number for a message", varint(1), func(d *field.Decoder) { d.Open() }},
		{"short hash", text, func(d *field.Decoder) { d.Hash(make([]byte, 2)) }},
		{"in a message", text, func(d *field.Decoder) {
			at := d.Open()
			d.Next()
			d.Close(at)
		}},
		{"said so", text, func(d *field.Decoder) { d.Malformed("it") }},
	}
	for _, tt := range tests {
		d := field.Decode(tt.data)
		for d.Next() {
			if tt.read != nil {
				tt.read(d)
			}
		}
		if !errors.Is(d.Err(), field.ErrFormat) {
			t.Errorf("%s: %v, want ErrFormat", tt.name, d.Err())
		}
	}
}
