package wire_test

import (
	"bytes"
	"errors"
	"runtime"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protowire"
	"pgregory.net/rapid"

	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/log/field"
	"github.com/sightline-dev/sightline/core/log/logtest"
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
		block := log.EncodeRows(want)
		got, err := wire.DecodeOps(block)
		if err != nil {
			t.Fatal(err)
		}
		sameBytes(t, want, got)
		if again := log.EncodeRows(got); !bytes.Equal(again, block) {
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
		got, err := wire.DecodeOps(log.EncodeRows(ops))
		if err != nil {
			t.Fatal(err)
		}
		sameBytes(t, ops, got)
	}
}

func TestEntriesFollow(t *testing.T) {
	tr := newTraffic(5)
	var entries []log.Entry
	for i := range 30 {
		entries = append(entries, log.Entry{Seq: 101 + uint64(i), Op: tr.patch()})
	}
	got, err := log.DecodeRows(logtest.Rows(entries), 100)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(entries, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestCutBlock cuts a block at every byte. Only a block that is cut after an operation is valid: the number of operations is in the message.
func TestCutBlock(t *testing.T) {
	tr := newTraffic(4)
	ops := []log.Op{tr.patch(), tr.create(), tr.fetch(), tr.remove(), tr.patch(), {Body: &log.Horizon{At: 5}}}
	ops[0].Extra.Op = protowire.AppendVarint(protowire.AppendTag(nil, 9, protowire.VarintType), 300)
	block, whole := log.EncodeRows(ops), map[int]int{}
	for i := range ops {
		whole[len(log.EncodeRows(ops[:i]))] = i
	}
	for n := range block {
		got, err := wire.DecodeOps(block[:n])
		if want, ok := whole[n]; ok && (err != nil || len(got) != want) || !ok && !errors.Is(err, wire.ErrFormat) {
			t.Fatalf("cut at %d of %d: %d operations, %v", n, len(block), len(got), err)
		}
	}
}

// TestFlippedBlock flips each bit of a block. The block is invalid, or contains operations that
// can be encoded again.
func TestFlippedBlock(t *testing.T) {
	tr := newTraffic(6)
	block := log.EncodeRows([]log.Op{tr.patch(), tr.create(), tr.fetch(), tr.remove(), {Body: &log.Horizon{At: 5}}})
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
		if !errors.Is(err, wire.ErrFormat) {
			t.Fatalf("%v, want ErrFormat", err)
		}
		return
	}
	second, err := wire.DecodeOps(log.EncodeRows(first))
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
	good := log.EncodeRows([]log.Op{{Dot: log.Dot{Writer: 2, Seq: 1}, At: 3 << 16, Body: &log.InputDelete{}}})
	for name, data := range map[string][]byte{
		"an empty row":                  {0},
		"another version":               {1, 2},
		"a length without an end":       {0x80},
		"a length of more than 64 bits": bytes.Repeat([]byte{0xff}, 11),
		"a row longer than the block":   append([]byte{200, 1}, good...),
		"an operation without a body":   {3, field.Version, 1 << 3, 7},
		"more than a block holds":       bytes.Repeat(good, wire.MaxOps+1),
	} {
		if ops, err := wire.DecodeOps(data); !errors.Is(err, wire.ErrFormat) {
			t.Errorf("%s: %d operations, %v, want ErrFormat", name, len(ops), err)
		}
	}
	if ops, err := wire.DecodeOps(bytes.Repeat(good, wire.MaxOps)); err != nil || len(ops) != wire.MaxOps {
		t.Errorf("a full block: %d operations, %v", len(ops), err)
	}
}

// TestBlockMemory: the largest block of a frame takes a bounded amount of memory, also if it decodes to many labels.
func TestBlockMemory(t *testing.T) {
	op := log.Op{Dot: log.Dot{Writer: 1, Seq: 1}, Body: &log.InputLabels{Labels: make([]log.Label, wire.MaxBody/2/wire.MaxOps-8)}}
	block := bytes.Repeat(log.EncodeRows([]log.Op{op}), wire.MaxOps)
	if len(block) > wire.MaxBody {
		t.Fatalf("block of %d bytes, want at most %d", len(block), wire.MaxBody)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	got, err := wire.DecodeOps(block)
	runtime.ReadMemStats(&after)
	if err != nil || len(got) != wire.MaxOps {
		t.Fatalf("%d operations, %v, want %d", len(got), err, wire.MaxOps)
	}
	if memory := after.TotalAlloc - before.TotalAlloc; memory > 16<<20 {
		t.Errorf("%d bytes of memory for the largest block, want at most 16 MiB", memory)
	}
}

func FuzzDecodeOps(f *testing.F) {
	tr := newTraffic(9)
	for _, body := range logtest.Bodies() {
		f.Add(log.EncodeRows([]log.Op{{Dot: log.Dot{Writer: 1, Seq: 1}, At: 1 << 16, By: "key", Body: body}}))
	}
	ops := []log.Op{tr.patch(), tr.create(), tr.fetch(), tr.remove()}
	ops[1].Extra.Op = protowire.AppendVarint(protowire.AppendTag(nil, 9, protowire.VarintType), 300)
	f.Add(log.EncodeRows(ops))
	f.Fuzz(func(t *testing.T, data []byte) { checkBlock(t, data) })
}
