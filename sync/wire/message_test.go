package wire_test

import (
	"bytes"
	"errors"
	"os"
	"reflect"
	"runtime"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"google.golang.org/protobuf/encoding/protowire"
	"pgregory.net/rapid"

	"github.com/sightline-dev/sightline/core/log/field"
	"github.com/sightline-dev/sightline/core/log/logtest"
	"github.com/sightline-dev/sightline/sync/wire"
)

// message has the methods that all messages share.
type message interface{ Encode() []byte }

// codec has the functions of one message type: one returns an empty message, one decodes a message.
type codec struct {
	name   string
	empty  func() message
	decode func([]byte) (message, error)
}

// codecOf returns the codec of message type M.
func codecOf[M any, P interface {
	*M
	message
}](name string, decode func([]byte) (M, error),
) codec {
	return codec{
		name:  name,
		empty: func() message { return P(new(M)) },
		decode: func(data []byte) (message, error) {
			m, err := decode(data)
			return P(&m), err
		},
	}
}

var codecs = []codec{
	codecOf("session", wire.DecodeSession),
	codecOf("offered", wire.DecodeSessionReply),
	codecOf("derived", wire.DecodeDerived),
	codecOf("object", wire.DecodeObject),
	codecOf("register", wire.DecodeAppRecord),
	codecOf("entries", wire.DecodeEntriesFrame),
	codecOf("checkpoint", wire.DecodeCheckpoint),
	codecOf("keepalive", wire.DecodeKeepalive),
	codecOf("end", wire.DecodeEnd),
	codecOf("push", wire.DecodePush),
	codecOf("pushed", wire.DecodePushed),
	codecOf("back", wire.DecodeBack),
	codecOf("taken back", wire.DecodeTakenBack),
	codecOf("manifest", wire.DecodeManifest),
	codecOf("digest", wire.DecodeDigest),
	codecOf("have", wire.DecodeHaveRequest),
	codecOf("had", wire.DecodeHaveReply),
	codecOf("refusal", wire.DecodeRefusal),
	codecOf("dates request", wire.DecodeDatesRequest),
	codecOf("dates", wire.DecodeDates),
}

// fill sets the fields of a message to random values. It adds fields of a later version to each
// Extra.
func fill(t *rapid.T, m message) {
	logtest.Fill(t, m)
	extend(t, reflect.ValueOf(m).Elem())
	switch m := m.(type) {
	case *wire.Object:
		m.Size, m.Offset = uint64(len(m.Data))+10, 10
	case *wire.Back:
		for i := range m.Frames {
			m.Frames[i] = append([]byte{}, m.Frames[i]...) // an encoder drops a nil element
		}
	}
}

func extend(t *rapid.T, v reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).Name == "Extra" {
				v.Field(i).SetBytes(later(t))
			} else {
				extend(t, v.Field(i))
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			extend(t, v.Index(i))
		}
	}
}

// later draws encoded fields with numbers that no version uses yet.
func later(t *rapid.T) []byte {
	var extra []byte
	if rapid.Bool().Draw(t, "varint") {
		extra = protowire.AppendVarint(protowire.AppendTag(extra, 1000, protowire.VarintType), rapid.Uint64().Draw(t, "later"))
	}
	if rapid.Bool().Draw(t, "bytes") {
		extra = protowire.AppendString(protowire.AppendTag(extra, 2000, protowire.BytesType), rapid.String().Draw(t, "later"))
	}
	return extra
}

func TestMessages(t *testing.T) {
	for _, c := range codecs {
		t.Run(c.name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				want := c.empty()
				fill(t, want)
				data := want.Encode()
				got, err := c.decode(data)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
					t.Fatalf("(-want +got):\n%s", diff)
				}
				if again := got.Encode(); !bytes.Equal(again, data) {
					t.Fatalf("encoded again %x, was %x", again, data)
				}
			})
		})
	}
}

// TestCutMessages cuts every message at every byte. The first part is invalid, or lacks the later fields, and never causes a panic.
func TestCutMessages(t *testing.T) {
	for _, c := range codecs {
		t.Run(c.name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				msg := c.empty()
				fill(t, msg)
				data := msg.Encode()
				for n := range data {
					m, err := c.decode(data[:n])
					if err != nil && !errors.Is(err, wire.ErrFormat) {
						t.Fatalf("cut at %d: %v, want ErrFormat", n, err)
					}
					if err == nil && n > 0 && !bytes.HasPrefix(data, m.Encode()) {
						t.Fatalf("cut at %d: read %x from %x", n, m.Encode(), data[:n])
					}
				}
			})
		})
	}
}

// TestMessageMemory decodes messages with very long lists. An empty element is two bytes when encoded,
// but may take two hundred in memory.
func TestMessageMemory(t *testing.T) {
	n := 1 << 18
	if testing.Short() {
		n = 1 << 15
	}
	for _, c := range codecs {
		for number := protowire.Number(1); number <= 24; number++ {
			element := protowire.AppendBytes(protowire.AppendTag(nil, number, protowire.BytesType), nil)
			data := append([]byte{field.Version}, bytes.Repeat(element, n)...)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := c.decode(data)
			runtime.ReadMemStats(&after)
			if err != nil && !errors.Is(err, wire.ErrFormat) {
				t.Errorf("%s, field %d: %v, want ErrFormat", c.name, number, err)
			}
			if memory := after.TotalAlloc - before.TotalAlloc; memory > 24<<20 {
				t.Errorf("%s, field %d: %d bytes of memory for %d", c.name, number, memory, len(data))
			}
		}
	}
}

// TestCodecs fails if codecs lacks a message. The fuzz target and the tests of memory, cuts and golden bytes use codecs.
func TestCodecs(t *testing.T) {
	source, err := os.ReadFile("codec_gen.go")
	if err != nil {
		t.Fatal(err)
	}
	if n := bytes.Count(source, []byte("\nfunc decode")); n != len(codecs) {
		t.Errorf("%d messages have a decoder, and %d are in codecs", n, len(codecs))
	}
}

func FuzzMessages(f *testing.F) {
	for i, c := range codecs {
		f.Add(uint8(i), c.empty().Encode())
	}
	f.Add(uint8(0), (&wire.Session{Max: 1, Require: []string{"a"}, Apps: []wire.Position{{App: "b", Seq: 4}}}).Encode())
	f.Add(uint8(1), (&wire.SessionReply{Grants: []wire.Grant{{Do: wire.DoTail}}, Links: []wire.Link{{Name: "keys"}}, Limits: wire.Limits{PushOps: 1}}).Encode())
	f.Add(uint8(9), (&wire.Push{Writer: 2, For: []wire.Delegation{{First: 1, Last: 2, Scopes: []string{"c"}}}}).Encode())
	f.Add(uint8(9), (&wire.Push{Writer: 2, Tokens: []wire.Tokens{{First: 1, Last: 2, Client: "c", Generation: 3}}}).Encode())
	f.Add(uint8(11), (&wire.Back{App: "b", Frames: [][]byte{{1}, nil}}).Encode())
	f.Add(uint8(14), (&wire.Digest{Seq: 4, Digest: [32]byte{1}}).Encode())
	f.Fuzz(func(t *testing.T, which uint8, data []byte) {
		c := codecs[int(which)%len(codecs)]
		first, err := c.decode(data)
		if err != nil {
			if !errors.Is(err, wire.ErrFormat) {
				t.Fatalf("%s: %v, want ErrFormat", c.name, err)
			}
			return
		}
		encoded := first.Encode()
		second, err := c.decode(encoded)
		if err != nil {
			t.Fatalf("%s: what was read cannot be read again: %v", c.name, err)
		}
		if again := second.Encode(); !bytes.Equal(again, encoded) {
			t.Fatalf("%s: encoded %x, then %x", c.name, encoded, again)
		}
	})
}
