package lines_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"math"
	"os"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/log/logtest"
	"github.com/sightline-dev/sightline/sync/lines"
	"github.com/sightline-dev/sightline/sync/wire"
)

// stream is one of each message.
func stream() []byte {
	at := func(millis uint64) log.HLC { return log.HLC(1_790_000_000_000+millis) << 16 }
	first := log.Dot{Site: 2, Seq: 41}
	ops := []log.Op{
		{Dot: first, At: at(0), By: "key", Body: &log.InputCreate{
			ID: "ramen", URL: "https://example.com/a.jpg", AllowDuplicate: true, Blob: blob.Hash{0xab}, ContentType: "image/jpeg",
			Labels: []log.Label{{Concept: "soup", Value: log.True}, {Concept: "cat"}},
			Meta:   []byte("{\n \"a\": [1, \"<b>\"]\n}"), Geo: &log.Point{Longitude: 13.404954, Latitude: math.NaN()},
		}},
		{Dot: log.Dot{Site: 2, Seq: 42}, At: at(3) + 7, Body: &log.ModelPatch{Model: first, Name: new(string)}},
		{Dot: log.Dot{Site: 2, Seq: 43}, At: at(3), Body: &log.OutputsPatch{Input: first, Edits: []log.OutputEdit{{Concept: "line\nbreak", Value: 0.1}}}},
		{Dot: log.Dot{Site: 2, Seq: 44}, At: at(3), Body: &log.Unknown{Kind: 999, Data: []byte{1, 2}}},
		{Dot: log.Dot{Site: 2, Seq: 45}, At: at(3), Body: &log.InputFetched{Input: first, Code: 30002, Detail: "Download failed"}},
	}
	messages := []struct {
		t wire.Type
		m interface{ Encode() []byte }
	}{
		{wire.TypeRegister, &wire.Register{App: "app", Seq: 9, Data: []byte{1, 0xff}}},
		{wire.TypeDerived, &wire.Derived{Base: [32]byte{1}, Records: []wire.DerivedRecord{{Blob: blob.Hash{2}, Record: []byte{3}}}}},
		{wire.TypeObject, &wire.Object{Hash: blob.Hash{3}, Size: 3, Data: []byte("abc")}},
		{wire.TypeEntries, &wire.Entries{Epoch: log.Epoch{4}, From: 1200, To: 1205, Chain: log.Chain{5}, Block: wire.EncodeOps(ops)}},
		{wire.TypeCheckpoint, &wire.Checkpoint{Epoch: log.Epoch{4}, To: 1205, Head: 1205, Stable: 1200, Now: 1_790_000_001_000}},
		{wire.TypeKeepalive, &wire.Keepalive{Now: 1_790_000_016_000, ExpiresIn: 884}},
		{200, &wire.End{}},
		{wire.TypeEnd, &wire.End{Why: wire.WhyDone}},
	}
	var out []byte
	for _, x := range messages {
		out = wire.AppendFrame(out, x.t, x.m.Encode())
	}
	return out
}

var update = flag.Bool("update", false, "write testdata/lines.txt instead of comparing it")

// TestLines holds the view to what it showed.
func TestLines(t *testing.T) {
	if *update {
		var shown bytes.Buffer
		if _, err := lines.NewWriter(&shown).Write(stream()); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile("testdata/lines.txt", shown.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile("testdata/lines.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, piece := range []int{1, 100, 1 << 20} {
		var got bytes.Buffer
		w := lines.NewWriter(&got)
		for rest := stream(); len(rest) > 0; {
			n := min(piece, len(rest))
			if m, err := w.Write(rest[:n]); m != n || err != nil {
				t.Fatalf("Write = %d, %v, want %d", m, err, n)
			}
			rest = rest[n:]
		}
		if !bytes.Equal(got.Bytes(), want) {
			t.Errorf("in pieces of %d:\n%swant\n%s", piece, got.Bytes(), want)
		}
	}
}

// TestEveryOperation shows any operation as one line of JSON.
func TestEveryOperation(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := wire.Entries{To: 1, Block: wire.EncodeOps([]log.Op{logtest.Op(t)})}
		line, err := lines.Append(nil, wire.Frame{Type: wire.TypeEntries, Body: m.Encode()})
		if err != nil {
			t.Fatal(err)
		}
		if !json.Valid(line) || bytes.Count(line, []byte{'\n'}) != 1 {
			t.Fatalf("not one line of JSON: %q", line)
		}
	})
}

// broken is a writer that fails, and counts flushes.
type broken struct{ flushes int }

var errBroken = errors.New("broken")

func (*broken) Write([]byte) (int, error) { return 0, errBroken }
func (b *broken) Flush() error            { b.flushes++; return nil }

func TestTrouble(t *testing.T) {
	below := &broken{}
	w := lines.NewWriter(below)
	if err := w.Flush(); err != nil || below.flushes != 1 {
		t.Errorf("Flush: %v, %d below, want 1", err, below.flushes)
	}
	if _, err := w.Write(stream()); !errors.Is(err, errBroken) {
		t.Errorf("Write: %v, want that of the writer below", err)
	}
	if err := lines.NewWriter(bufio.NewWriter(below)).Flush(); err != nil {
		t.Errorf("Flush of nothing: %v", err)
	}
	if err := lines.NewWriter(&strings.Builder{}).Flush(); err != nil {
		t.Errorf("Flush of what cannot be: %v", err)
	}
	for name, frame := range map[string][]byte{
		"no frame":   {0, 0, 0, 0, 0},
		"no message": wire.AppendFrame(nil, wire.TypeEnd, []byte{9}),
		"no entries": wire.AppendFrame(nil, wire.TypeEntries, []byte{9}),
		"no block":   wire.AppendFrame(nil, wire.TypeEntries, []byte{1, 5<<3 | 2, 1, 7}),
	} {
		if _, err := lines.NewWriter(&strings.Builder{}).Write(frame); !errors.Is(err, wire.ErrFormat) {
			t.Errorf("%s: %v, want ErrFormat", name, err)
		}
	}
}
