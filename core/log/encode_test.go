package log_test

import (
	"bytes"
	"errors"
	"flag"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protowire"
	"pgregory.net/rapid"

	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/log/field"
	"github.com/sightline-dev/sightline/core/log/logtest"
	"github.com/sightline-dev/sightline/core/testkit"
)

var update = flag.Bool("update", false, "rewrite testdata from what is encoded now")

// TestGolden compares the encoding of an operation of each kind, with all fields set, with the bytes in existing logs and chains.
func TestGolden(t *testing.T) {
	var g testkit.Golden
	add := func(name string, op log.Op) {
		g.Add(name, log.Encode(nil, &op), func(data []byte) ([]byte, error) {
			op, err := log.Decode(data)
			if err != nil {
				return nil, err
			}
			return log.Encode(nil, &op), nil
		})
	}
	for _, body := range logtest.Bodies() {
		op := log.Op{Body: body}
		logtest.Set(&op)
		logtest.Set(body)
		if b, ok := body.(*log.InputDeleteAll); ok {
			add("input_delete_all by names with another clock", log.Op{Dot: op.Dot, At: 9, Made: 10, Body: &log.InputDeleteAll{Upto: b.Upto}})
			b.Upto = nil
		}
		add(log.KindOf(body).String(), op)
	}
	g.Check(t, "testdata/golden.txt", *update)
}

func TestEncodeDecode(t *testing.T) {
	for i, body := range logtest.Bodies() {
		t.Run(log.KindOf(body).String(), func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				want := logtest.OpOf(t, logtest.Bodies()[i])
				prefix := rapid.SliceOfN(rapid.Byte(), 0, 4).Draw(t, "prefix")
				data := log.Encode(bytes.Clone(prefix), &want)
				got, err := log.Decode(data[len(prefix):])
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Fatalf("(-want +got):\n%s", diff)
				}
			})
		})
	}
}

// TestLaterVersions: decoding and encoding keeps data of later versions: new fields of an operation and of a body, and bodies of unknown
// kinds.
func TestLaterVersions(t *testing.T) {
	op := log.Op{Dot: log.Dot{Writer: 1, Seq: 2}, At: 3, Body: &log.InputDelete{Input: log.Dot{Writer: 1, Seq: 1}}}
	op.Extra.Op = protowire.AppendVarint(protowire.AppendTag(nil, 9, protowire.VarintType), 300)
	op.Extra.Body = protowire.AppendString(protowire.AppendTag(nil, 12, protowire.BytesType), "new")
	later := log.Op{Dot: log.Dot{Writer: 1, Seq: 2}, At: 3, Body: &log.Unknown{Kind: 99, Data: []byte{1, 2, 3}}}
	empty := log.Op{Body: &log.Unknown{Kind: 99, Data: []byte{}}}
	ops := []log.Op{op, later, empty}
	for _, body := range logtest.Bodies() {
		op := log.Op{Dot: log.Dot{Writer: 1, Seq: 2}, Body: body}
		op.Extra.Body = protowire.AppendString(protowire.AppendTag(nil, 2000, protowire.BytesType), "new")
		ops = append(ops, op)
	}
	for _, want := range ops {
		data := log.Encode(nil, &want)
		got, err := log.Decode(data)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if again := log.Encode(nil, &got); !bytes.Equal(again, data) {
			t.Errorf("encoded again %x, was %x", again, data)
		}
	}
}

// TestMalformedBody: Decode returns a malformed body as log.Unknown, so that every fold refuses it.
func TestMalformedBody(t *testing.T) {
	bodies := map[string]log.Body{
		"text where a message is": &log.Unknown{Kind: 21, Data: protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), 1)},
		"value of a label":        &log.Unknown{Kind: 18, Data: []byte{0x12, 0x02, 0x10, 0x07}},
		"action":                  &log.Unknown{Kind: 19, Data: []byte{0x12, 0x02, 0x10, 0x07}},
		"hash too short":          &log.Unknown{Kind: 66, Data: []byte{0x0a, 0x01, 0x07}},
		"no field":                &log.Unknown{Kind: 16, Data: []byte{0xff}},
	}
	for name, body := range bodies {
		data := log.Encode(nil, &log.Op{Dot: log.Dot{Writer: 1, Seq: 1}, Body: body})
		got, err := log.Decode(data)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if diff := cmp.Diff(body, got.Body); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestMalformedOperation(t *testing.T) {
	for name, data := range map[string][]byte{
		"nothing":         {},
		"another version": {2, 8, 1},
		"no body":         {1, 8, 1},
		"cut":             {1, 8},
		"site too large":  append([]byte{1}, protowire.AppendVarint([]byte{8}, 1<<40)...),
	} {
		if _, err := log.Decode(data); !errors.Is(err, field.ErrFormat) {
			t.Errorf("%s: %v, want ErrFormat", name, err)
		}
	}
	defer func() {
		if recover() == nil {
			t.Error("a body of no kind was encoded")
		}
	}()
	log.Encode(nil, &log.Op{Body: struct{ log.Body }{&log.InputDelete{}}})
}

// TestDecodeMemory reads an operation with many nested messages. A hostile operation can have one in every two bytes, so Decode must not
// allocate a decoder for each.
func TestDecodeMemory(t *testing.T) {
	data := log.Encode(nil, &log.Op{Body: &log.InputLabels{Labels: make([]log.Label, 1000)}})
	if n := testing.AllocsPerRun(10, func() {
		if _, err := log.Decode(data); err != nil {
			t.Fatal(err)
		}
	}); n > 50 {
		t.Errorf("%v allocations for %d bytes, want at most 50", n, len(data))
	}
}

func FuzzDecode(f *testing.F) {
	for _, body := range logtest.Bodies() {
		f.Add(log.Encode(nil, &log.Op{Dot: log.Dot{Writer: 1, Seq: 1}, At: 1 << 16, By: "key", Body: body}))
	}
	f.Add(log.Encode(nil, &log.Op{Dot: log.Dot{Writer: 1, Seq: 1}, Body: &log.InputCreate{
		ID: "id", URL: "http://a/b", Meta: []byte(`{"a":[1]}`), Geo: &log.Point{Longitude: 1, Latitude: 2},
		Labels: []log.Label{{Concept: "cat", Value: log.True}},
	}}))
	f.Fuzz(func(t *testing.T, data []byte) {
		first, err := log.Decode(data)
		if err != nil {
			return
		}
		encoded := log.Encode(nil, &first)
		second, err := log.Decode(encoded)
		if err != nil {
			t.Fatalf("what was decoded cannot be read again: %v", err)
		}
		if again := log.Encode(nil, &second); !bytes.Equal(again, encoded) {
			t.Fatalf("encoded %x, then %x", encoded, again)
		}
	})
}

func TestHLC(t *testing.T) {
	at := time.Date(2026, 11, 21, 20, 0, 0, 123e6, time.UTC)
	h := log.HLC(at.UnixMilli()<<16 | 7)
	if !h.Time().Equal(at) || h.Time().Location() != time.UTC {
		t.Errorf("Time = %v, want %v", h.Time(), at)
	}
	a, b := log.Stamp{At: 1, Writer: 2}, log.Stamp{At: 2, Writer: 1}
	if !a.Less(b) || b.Less(a) || a.Less(a) || !a.Less(log.Stamp{At: 1, Writer: 3}) {
		t.Error("stamps are ordered by clock, then by site")
	}
}
