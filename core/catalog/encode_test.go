package catalog

import (
	"bytes"
	"errors"
	"flag"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protowire"
	"pgregory.net/rapid"

	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/log/field"
	"github.com/sightline-dev/sightline/core/log/logtest"
	"github.com/sightline-dev/sightline/core/predict/raster"
	"github.com/sightline-dev/sightline/core/testkit"
)

// later is an unknown field, as a later version may write.
var later = Extra(protowire.AppendString(protowire.AppendTag(nil, 500, protowire.BytesType), "later"))

// roundTrip encodes a record with random fields and decodes it.
func roundTrip[T any](t *testing.T, encode func([]byte, *T) []byte, decode func([]byte) (T, error), extra func(*T) *Extra) {
	t.Helper()
	rapid.Check(t, func(t *rapid.T) {
		var want T
		logtest.Fill(t, &want)
		*extra(&want) = nil
		if rapid.Bool().Draw(t, "later") {
			*extra(&want) = slices.Clone(later)
		}
		got, err := decode(encode(nil, &want))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("(-want +got):\n%s", diff)
		}
	})
}

var update = flag.Bool("update", false, "rewrite testdata from what is encoded now")

// goldenOf adds a record with all fields set.
func goldenOf[T any](g *testkit.Golden, name string, encode func([]byte, *T) []byte, decode func([]byte) (T, error)) {
	var x T
	logtest.Set(&x)
	g.Add(name, encode(nil, &x), again(decode, encode))
}

// TestGolden compares the encoding of a record of each kind with the bytes in existing stores.
func TestGolden(t *testing.T) {
	var g testkit.Golden
	goldenOf(&g, "header", encodeHeader, decodeHeader)
	goldenOf(&g, "input", encodeInput, decodeInput)
	goldenOf(&g, "concept", encodeConcept, decodeConcept)
	goldenOf(&g, "model", encodeModel, decodeModel)
	goldenOf(&g, "version", encodeVersion, decodeVersion)
	goldenOf(&g, "workflow", encodeWorkflow, decodeWorkflow)
	goldenOf(&g, "feedback", encodeFeedback, decodeFeedback)
	goldenOf(&g, "app", encodeApp, decodeApp)
	goldenOf(&g, "key", encodeKey, decodeKey)
	goldenOf(&g, "client", encodeClient, decodeClient)
	goldenOf(&g, "edge", encodeEdge, decodeEdge)
	goldenOf(&g, "site", encodeSite, decodeSite)
	goldenOf(&g, "trust", encodeTrust, decodeTrust)
	goldenOf(&g, "derived", encodeDerivedData, decodeDerivedData)
	goldenOf(&g, "manifest", encodeManifest, decodeManifest)
	goldenOf(&g, "register", encodeRegisterBytes, decodeRegisterBytes)
	g.Check(t, "testdata/golden.txt", *update)
}

func TestRecords(t *testing.T) {
	t.Run("header", func(t *testing.T) {
		roundTrip(t, encodeHeader, decodeHeader, func(h *Header) *Extra { return &h.Extra })
	})
	t.Run("input", func(t *testing.T) {
		roundTrip(t, encodeInput, decodeInput, func(in *Input) *Extra { return &in.Extra })
	})
	t.Run("concept", func(t *testing.T) {
		roundTrip(t, encodeConcept, decodeConcept, func(c *Concept) *Extra { return &c.Extra })
	})
	t.Run("model", func(t *testing.T) {
		roundTrip(t, encodeModel, decodeModel, func(m *Model) *Extra { return &m.Extra })
	})
	t.Run("version", func(t *testing.T) {
		roundTrip(t, encodeVersion, decodeVersion, func(v *Version) *Extra {
			v.RequestedAt = log.Dot{} // not stored in the record
			return &v.Extra
		})
	})
	t.Run("workflow", func(t *testing.T) {
		roundTrip(t, encodeWorkflow, decodeWorkflow, func(w *Workflow) *Extra { return &w.Extra })
	})
	t.Run("feedback", func(t *testing.T) {
		roundTrip(t, encodeFeedback, decodeFeedback, func(f *Feedback) *Extra { return &f.Extra })
	})
	t.Run("app", func(t *testing.T) { roundTrip(t, encodeApp, decodeApp, func(a *App) *Extra { return &a.Extra }) })
	t.Run("key", func(t *testing.T) { roundTrip(t, encodeKey, decodeKey, func(k *Key) *Extra { return &k.Extra }) })
	t.Run("client", func(t *testing.T) {
		roundTrip(t, encodeClient, decodeClient, func(c *Client) *Extra { return &c.Extra })
	})
	t.Run("edge", func(t *testing.T) { roundTrip(t, encodeEdge, decodeEdge, func(e *Edge) *Extra { return &e.Extra }) })
	t.Run("site", func(t *testing.T) { roundTrip(t, encodeSite, decodeSite, func(s *Site) *Extra { return &s.Extra }) })
	t.Run("trust", func(t *testing.T) { roundTrip(t, encodeTrust, decodeTrust, func(x *Trust) *Extra { return &x.Extra }) })
	t.Run("derived", func(t *testing.T) {
		roundTrip(t, encodeDerivedData, decodeDerivedData, func(x *DerivedData) *Extra { return &x.Extra })
	})
	t.Run("manifest", func(t *testing.T) {
		roundTrip(t, encodeManifest, decodeManifest, func(m *Manifest) *Extra { return &m.Extra })
	})
}

// TestCompact: a common record is small, because fields that were written at its creation have no separate stamps.
func TestCompact(t *testing.T) {
	born := log.Stamp{At: 1_700_000_000_000 << 16, Writer: 1}
	in := Input{
		Ord: 1000, Dot: log.Dot{Writer: 1, Seq: 5000}, ID: "0123456789abcdef0123456789abcdef", Created: born.At, Modified: born.At,
		By: "key", Blob: blob.Sum(nil), ContentType: "image/jpeg", Hosted: [16]byte{1}, Code: InputReady,
		Labels: []Label{{Label: log.Label{Concept: "cat", Value: log.True}, At: born}},
		Meta:   Meta{{JSON: []byte(`{"a":1}`), At: born}},
	}
	if n := len(encodeInput(nil, &in)); n > 176 {
		t.Errorf("a usual record takes %d bytes, want at most 176", n)
	}
}

func decoders() map[string]func([]byte) ([]byte, error) {
	return map[string]func([]byte) ([]byte, error){
		"header":   again(decodeHeader, encodeHeader),
		"input":    again(decodeInput, encodeInput),
		"concept":  again(decodeConcept, encodeConcept),
		"model":    again(decodeModel, encodeModel),
		"version":  again(decodeVersion, encodeVersion),
		"workflow": again(decodeWorkflow, encodeWorkflow),
		"feedback": again(decodeFeedback, encodeFeedback),
		"app":      again(decodeApp, encodeApp),
		"key":      again(decodeKey, encodeKey),
		"client":   again(decodeClient, encodeClient),
		"edge":     again(decodeEdge, encodeEdge),
		"site":     again(decodeSite, encodeSite),
		"trust":    again(decodeTrust, encodeTrust),
		"derived":  again(decodeDerivedData, encodeDerivedData),
		"manifest": again(decodeManifest, encodeManifest),
	}
}

func again[T any](decode func([]byte) (T, error), encode func([]byte, *T) []byte) func([]byte) ([]byte, error) {
	return func(data []byte) ([]byte, error) {
		x, err := decode(data)
		if err != nil {
			return nil, err
		}
		return encode(nil, &x), nil
	}
}

func TestMalformedRecords(t *testing.T) {
	for name, decode := range decoders() {
		for _, data := range [][]byte{nil, {2}, {1, 0xff}, {1, 1<<3 | 3}} {
			if _, err := decode(data); !errors.Is(err, field.ErrFormat) {
				t.Errorf("%s %x: %v, want ErrFormat", name, data, err)
			}
		}
	}
	if _, err := decodeDerivedData([]byte{1, 2<<3 | 2, 1, 0}); !errors.Is(err, field.ErrFormat) {
		t.Errorf("a quarter of a float: %v", err)
	}
}

func FuzzRecords(f *testing.F) {
	f.Add(encodeInput(nil, &Input{Ord: 1, Dot: log.Dot{Writer: 1, Seq: 1}, ID: "a", Created: 1, Code: InputReady, Crop: raster.Crop{Bottom: 1, Right: 1}}))
	f.Add(encodeModel(nil, &Model{Dot: log.Dot{Writer: 1, Seq: 1}, ID: "m", Concepts: []Member{{Concept: "c", In: true}}}))
	f.Add(encodeVersion(nil, &Version{Model: log.Dot{Writer: 1, Seq: 1}, ID: "v", Code: VersionQueued}))
	f.Add((&Manifest{Version: "v", Inputs: []TrainingInput{{Ord: 1, Labels: []log.Label{{Concept: "c", Value: log.True}}, ID: "i", Created: 1}}}).Marshal())
	f.Fuzz(func(t *testing.T, data []byte) {
		for name, decode := range decoders() {
			first, err := decode(data)
			if err != nil {
				continue
			}
			second, err := decode(first)
			if err != nil || !bytes.Equal(first, second) {
				t.Fatalf("%s: encoded %x, then %x, %v", name, first, second, err)
			}
		}
	})
}

// FuzzKeys checks the order and the ranges of keys that the tables rely on.
func FuzzKeys(f *testing.F) {
	f.Add([]byte("0123456789abcdef"), []byte("0123456789abcdeg"), uint32(1), uint32(256), "a", "b")
	f.Add(bytes.Repeat([]byte{0xff}, 16), make([]byte, 16), uint32(0), uint32(1<<32-1), "\xff", "")
	f.Fuzz(func(t *testing.T, a, b []byte, n, m uint32, id, other string) {
		if len(a) != 16 || len(b) != 16 {
			return
		}
		x, y := AppID(a), AppID(b)
		if got, want := bytes.Compare(x.uint32Key(tableInput, n), x.uint32Key(tableInput, m)), cmpUint(uint64(n), uint64(m)); got != want {
			t.Errorf("keys of %d and %d compare as %d", n, m, got)
		}
		if ordAt(x.uint32Key(tableInput, n)) != n {
			t.Errorf("the ordinal of a key is not %d", n)
		}
		if (string(x.stringKey(tableConcept, id)) == string(x.stringKey(tableConcept, other))) != (id == other) {
			t.Errorf("keys of %q and %q", id, other)
		}
		lo, hi := x.Range()
		key := y.stringKey(tableConcept, id)
		inside := bytes.Compare(lo, key) <= 0 && (hi == nil || bytes.Compare(key, hi) < 0)
		if inside != (x == y) {
			t.Errorf("a key of %v lies in the range of %v: %v", y, x, inside)
		}
		dot := log.Dot{Writer: log.Writer(n), Seq: uint64(m)}
		if got, err := dotOf(dot.AppendKey(nil)); err != nil || got != dot {
			t.Errorf("dot %v comes back as %v, %v", dot, got, err)
		}
		if parsed, err := ParseAppID(x.String()); (err == nil) != (x != Control) || err == nil && parsed != x {
			t.Errorf("ParseAppID(%v) = %v, %v", x, parsed, err)
		}
	})
}

func cmpUint(a, b uint64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

func TestParseAppID(t *testing.T) {
	for _, s := range []string{"", "0", "00000000000000000000000000000000", "0000000000000000000000000000000G", "0000000000000000000000000000000A", "000000000000000000000000000000001"} {
		if _, err := ParseAppID(s); !errors.Is(err, ErrNotFound) {
			t.Errorf("ParseAppID(%q): %v, want ErrNotFound", s, err)
		}
	}
}

func TestShortNumbers(t *testing.T) {
	for _, short := range [][]byte{nil, {1}, make([]byte, 20)} {
		if _, err := number4(short); err == nil {
			t.Errorf("number4(%x) is a number", short)
		}
		if _, err := number8(short); err == nil {
			t.Errorf("number8(%x) is a number", short)
		}
		if _, err := dotOf(short); err == nil {
			t.Errorf("dotOf(%x) is a dot", short)
		}
	}
}
