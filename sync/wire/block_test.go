package wire_test

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"runtime"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protowire"
	"pgregory.net/rapid"

	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/log/field"
	"github.com/sightline-dev/sightline/core/log/logtest"
	"github.com/sightline-dev/sightline/core/predict/raster"
	"github.com/sightline-dev/sightline/sync/wire"
)

// anyOp draws an operation of this version, or one with fields or a kind of a later version.
func anyOp(t *rapid.T) log.Op {
	op := logtest.Op(t)
	if rapid.IntRange(0, 3).Draw(t, "later") == 0 {
		op.Extra.Op, op.Extra.Body = later(t), later(t)
	}
	if rapid.IntRange(0, 9).Draw(t, "unknown") == 0 {
		op.Body, op.Extra.Body = &log.Unknown{Kind: log.Kind(rapid.IntRange(80, 2000).Draw(t, "kind")), Data: []byte(rapid.String().Draw(t, "data"))}, nil
	}
	if c, ok := op.Body.(*log.InputCreate); ok && rapid.Bool().Draw(t, "hex") {
		c.ID = rapid.StringMatching(`[0-9a-f]{32}`).Draw(t, "id")
	}
	return op
}

// sameBytes compares operations with cmp, and by the encodings that the log's hash chain covers.
func sameBytes(t interface {
	Helper()
	Fatalf(string, ...any)
}, want, got []log.Op,
) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("(-want +got):\n%s", diff)
	}
	for i := range want {
		if a, b := log.Encode(nil, &want[i]), log.Encode(nil, &got[i]); !bytes.Equal(a, b) {
			t.Fatalf("operation %d encodes to %x, was %x", i, b, a)
		}
	}
}

// TestBlock encodes operations of every kind into a block. The decoded operations are equal, and so is their encoding.
func TestBlock(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := make([]log.Op, rapid.IntRange(0, 20).Draw(t, "operations"))
		for i := range want {
			want[i] = anyOp(t)
		}
		block := wire.EncodeOps(want)
		got, err := wire.DecodeOps(block)
		if err != nil {
			t.Fatal(err)
		}
		sameBytes(t, want, got)
		if again := wire.EncodeOps(got); !bytes.Equal(again, block) {
			t.Fatalf("encoded again %x, was %x", again, block)
		}
	})
}

// TestTrafficBlock does what TestBlock does, with realistic operations in full blocks.
func TestTrafficBlock(t *testing.T) {
	tr := newTraffic(3)
	kinds := []func() log.Op{tr.patch, tr.create, tr.fetch, tr.remove}
	for round := range 8 {
		ops := make([]log.Op, wire.MaxOps)
		for i := range ops {
			ops[i] = kinds[(i*round)%len(kinds)]()
		}
		got, err := wire.DecodeOps(wire.EncodeOps(ops))
		if err != nil {
			t.Fatal(err)
		}
		sameBytes(t, ops, got)
	}
}

// TestExactValues: a block preserves values that a column could round.
func TestExactValues(t *testing.T) {
	negative := math.Copysign(0, -1)
	degrees := []float64{0, negative, 0.1, 0.1 + 0x1p-56, 52.520008, -180, 360, 360.0000001, 1e-6, 1e-7, 1e300, math.Inf(1), math.NaN(), math.Float64frombits(0x7ff8000000000123)}
	var ops []log.Op
	add := func(body log.Body) { ops = append(ops, log.Op{Body: body}) }
	for _, a := range degrees {
		for _, b := range degrees {
			add(&log.InputCreate{Geo: &log.Point{Longitude: a, Latitude: b}})
		}
		add(&log.InputCreate{Crop: raster.Crop{Top: a, Left: 0.25, Bottom: a, Right: 1}})
	}
	add(&log.InputCreate{Meta: []byte{}})
	add(&log.InputCreate{ID: "0123456789ABCDEF0123456789abcdef"})
	add(&log.InputCreate{ID: "0123456789abcdef0123456789abcdef"})
	add(&log.InputFetched{Code: math.MaxInt32})
	add(&log.InputLabels{Labels: []log.Label{{}, {}}, Input: log.Dot{Site: math.MaxUint32, Seq: math.MaxUint64}})
	for _, seq := range []uint64{math.MaxUint64, 0, 1 << 63, 1<<63 - 1, 5} {
		ops = append(ops, log.Op{Dot: log.Dot{Site: 9, Seq: seq}, At: log.HLC(seq), Body: &log.InputDelete{}})
	}
	got, err := wire.DecodeOps(wire.EncodeOps(ops))
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != len(ops) {
		t.Fatalf("%d operations, want %d", len(got), len(ops))
	}
	for i := range ops {
		if a, b := log.Encode(nil, &ops[i]), log.Encode(nil, &got[i]); !bytes.Equal(a, b) {
			t.Errorf("operation %d encodes to %x, was %x", i, b, a)
		}
	}
}

// TestManyLabels: a block preserves operations with more labels than the columns hold.
func TestManyLabels(t *testing.T) {
	var ops []log.Op
	for _, n := range []int{0, 1, 128, 129, 5000} {
		labels := make([]log.Label, n)
		for i := range labels {
			labels[i] = log.Label{Concept: fmt.Sprint(i % 300), Value: log.Value(i % 3)}
		}
		if n == 0 {
			labels = nil
		}
		ops = append(ops, log.Op{Body: &log.InputLabels{Labels: labels}}, log.Op{Body: &log.InputCreate{Labels: labels}})
	}
	got, err := wire.DecodeOps(wire.EncodeOps(ops))
	if err != nil {
		t.Fatal(err)
	}
	sameBytes(t, ops, got)
}

func TestEntriesFollow(t *testing.T) {
	tr := newTraffic(5)
	var entries []log.Entry
	for i := range 30 {
		entries = append(entries, log.Entry{Seq: 101 + uint64(i), Op: tr.patch()})
	}
	got, err := wire.DecodeEntries(wire.EncodeEntries(entries), 100)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(entries, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestCutBlock cuts a block at every byte. No cut block is valid.
func TestCutBlock(t *testing.T) {
	tr := newTraffic(4)
	ops := []log.Op{tr.patch(), tr.create(), tr.fetch(), tr.remove(), tr.patch(), {Body: &log.Horizon{At: 5}}}
	ops[0].Extra.Op = protowire.AppendVarint(protowire.AppendTag(nil, 9, protowire.VarintType), 300)
	block := wire.EncodeOps(ops)
	for n := range block {
		if got, err := wire.DecodeOps(block[:n]); !errors.Is(err, wire.ErrFormat) {
			t.Fatalf("cut at %d of %d: %d operations, %v, want ErrFormat", n, len(block), len(got), err)
		}
	}
}

// TestFlippedBlock flips each bit of a block. The block is invalid, or contains operations that
// can be encoded again.
func TestFlippedBlock(t *testing.T) {
	tr := newTraffic(6)
	block := wire.EncodeOps([]log.Op{tr.patch(), tr.create(), tr.fetch(), tr.remove(), {Body: &log.Horizon{At: 5}}})
	for i := range len(block) * 8 {
		flipped := bytes.Clone(block)
		flipped[i/8] ^= 1 << (i % 8)
		checkBlock(t, flipped)
	}
}

// checkBlock decodes data. If it is a block, its operations survive encoding and decoding, in a block and in a log.
func checkBlock(t *testing.T, data []byte) {
	t.Helper()
	first, err := wire.DecodeOps(data)
	if err != nil {
		if !errors.Is(err, wire.ErrFormat) && !errors.Is(err, wire.ErrTooLarge) {
			t.Fatalf("%v, want ErrFormat or ErrTooLarge", err)
		}
		return
	}
	second, err := wire.DecodeOps(wire.EncodeOps(first))
	if err != nil {
		t.Fatalf("what was read cannot be read again: %v", err)
	}
	for i := range first {
		a, b := log.Encode(nil, &first[i]), log.Encode(nil, &second[i])
		if !bytes.Equal(a, b) {
			t.Fatalf("operation %d encodes to %x, then %x", i, a, b)
		}
		// A log preserves the operation.
		again, err := log.Decode(a)
		if err != nil {
			t.Fatalf("operation %d cannot be kept in a log: %v", i, err)
		}
		if again.Dot != first[i].Dot || again.At != first[i].At || again.By != first[i].By {
			t.Fatalf("operation %d is %v %v %q in a log, was %v %v %q", i, again.Dot, again.At, again.By, first[i].Dot, first[i].At, first[i].By)
		}
	}
}

// TestForgedBlock decodes blocks that no encoder writes.
func TestForgedBlock(t *testing.T) {
	good := wire.EncodeOps([]log.Op{{Dot: log.Dot{Site: 2, Seq: 1}, At: 3 << 16, Body: &log.InputDelete{}}})
	column := func(number int, data ...byte) []byte {
		block := protowire.AppendBytes(protowire.AppendTag(bytes.Clone(good), protowire.Number(number), protowire.BytesType), data)
		block[len(good)-1]++ // one more column
		return block
	}
	if _, err := wire.DecodeOps(good); err != nil {
		t.Fatal(err)
	}
	count := func(n uint64) []byte {
		block := protowire.AppendVarint([]byte{field.Version, 1 << 3}, n)
		return protowire.AppendVarint(protowire.AppendTag(block, 63, protowire.VarintType), 1)
	}
	forged := func(extra []byte) []byte {
		return wire.EncodeOps([]log.Op{{Dot: log.Dot{Site: 2, Seq: 1}, Body: &log.InputDelete{}, Extra: log.Extra{Op: extra}}})
	}
	tests := []struct {
		name string
		data []byte
		want error
	}{
		{"nothing", nil, wire.ErrFormat},
		{"another version", []byte{2}, wire.ErrFormat},
		{"column that is not known", column(99, 1), wire.ErrFormat},
		{"column twice", column(2, 0, 1, 1), wire.ErrFormat},
		{"column that nothing needs", column(11, 1), wire.ErrFormat},
		{"more than a block holds", count(wire.MaxOps + 1), wire.ErrTooLarge},
		{"very many", count(1 << 31), wire.ErrFormat},
		{"no columns", count(3), wire.ErrFormat},
		{"no end", []byte{field.Version, 1 << 3, 0}, wire.ErrFormat},
		{"site of another in a later field", forged([]byte{1 << 3, 7}), wire.ErrFormat},
		{"later field cut short", forged([]byte{9<<3 | 2, 7}), wire.ErrFormat},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if ops, err := wire.DecodeOps(tt.data); !errors.Is(err, tt.want) {
				t.Errorf("%d operations, %v, want %v", len(ops), err, tt.want)
			}
		})
	}
}

// TestBlockMemory: a block of few bytes that decodes to many labels takes a bounded amount of memory.
func TestBlockMemory(t *testing.T) {
	labels := make([]log.Label, 128)
	for i := range labels {
		labels[i] = log.Label{Concept: "c", Value: log.True}
	}
	ops := make([]log.Op, wire.MaxOps)
	for i := range ops {
		ops[i] = log.Op{Dot: log.Dot{Site: 1, Seq: uint64(i + 1)}, Body: &log.InputLabels{Labels: labels}}
	}
	block := wire.EncodeOps(ops) // runs encode the maximum number of labels in few bytes
	if len(block) > 100 {
		t.Fatalf("block of %d bytes, want fewer than 100", len(block))
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	got, err := wire.DecodeOps(block)
	runtime.ReadMemStats(&after)
	if err != nil || len(got) != len(ops) {
		t.Fatalf("%d operations, %v, want %d", len(got), err, len(ops))
	}
	if memory := after.TotalAlloc - before.TotalAlloc; memory > 4<<20 {
		t.Errorf("%d bytes of memory for the largest block, want at most 4 MiB", memory)
	}
}

func FuzzDecodeOps(f *testing.F) {
	tr := newTraffic(9)
	for _, body := range logtest.Bodies() {
		f.Add(wire.EncodeOps([]log.Op{{Dot: log.Dot{Site: 1, Seq: 1}, At: 1 << 16, By: "key", Body: body}}))
	}
	ops := []log.Op{tr.patch(), tr.create(), tr.fetch(), tr.remove()}
	ops[1].Extra.Op = protowire.AppendVarint(protowire.AppendTag(nil, 9, protowire.VarintType), 300)
	f.Add(wire.EncodeOps(ops))
	f.Fuzz(func(t *testing.T, data []byte) { checkBlock(t, data) })
}
