package wire_test

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/sync/compress"
	"github.com/sightline-dev/sightline/sync/wire"
)

// traffic generates realistic operations of an application with 100,000 inputs and 400 concepts: two
// edges and the origin write with four keys, about one operation every 40 ms.
type traffic struct {
	rng      *rand.Rand
	next     [4]uint64
	at       uint64
	keys     []string
	concepts []string
}

func newTraffic(seed uint64) *traffic {
	t := &traffic{rng: rand.New(rand.NewPCG(seed, 7)), next: [4]uint64{0, 70_000, 20_000, 10_000}, at: 1_790_000_000_000}
	for range 4 {
		t.keys = append(t.keys, t.hex(16))
	}
	for i := range 400 {
		t.concepts = append(t.concepts, fmt.Sprintf("concept-%03d", i))
	}
	return t
}

func (t *traffic) bytes(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(t.rng.Uint32())
	}
	return b
}

func (t *traffic) hex(n int) string { return hex.EncodeToString(t.bytes(n)) }

func (t *traffic) op(body log.Body) log.Op {
	site := 1 + t.rng.IntN(3)
	t.next[site]++
	t.at += uint64(t.rng.ExpFloat64() * 40)
	return log.Op{
		Dot: log.Dot{Writer: log.Writer(site), Seq: t.next[site]}, At: log.HLC(t.at << 16), Body: body,
		By: t.keys[t.rng.IntN(4)], Rules: 4,
	}
}

func (t *traffic) labels() []log.Label {
	list := make([]log.Label, 1+t.rng.IntN(5))
	for i := range list {
		list[i] = log.Label{Concept: t.concepts[t.rng.IntN(len(t.concepts))], Value: log.True}
		if t.rng.IntN(8) == 0 {
			list[i].Value = log.Value(t.rng.IntN(2))
		}
	}
	return list
}

// input returns a random input that was created long ago.
func (t *traffic) input() log.Dot {
	site := 1 + t.rng.IntN(3)
	return log.Dot{Writer: log.Writer(site), Seq: 1 + t.rng.Uint64N(t.next[site])}
}

// patch returns a change of labels. The maker of a removal sees the label; other labels are new.
func (t *traffic) patch() log.Op {
	b := &log.InputLabels{Input: t.input(), Labels: t.labels()}
	for i, l := range b.Labels {
		if l.Value == log.Removed {
			at := log.HLC((t.at - t.rng.Uint64N(4_000_000)) << 16)
			b.Seen.Add(i, log.Seen{log.Stamp{At: at, Writer: log.Writer(1 + t.rng.IntN(3))}.Name()})
		}
	}
	return t.op(b)
}

func (t *traffic) create() log.Op {
	c := &log.InputCreate{
		ID: t.hex(16), ContentType: "image/jpeg", Labels: t.labels(),
		Meta: fmt.Appendf(nil, `{"source":"camera-%d","shot":%d}`, t.rng.IntN(8), t.rng.IntN(100_000)),
		Geo:  &log.Point{Longitude: t.degrees(360), Latitude: t.degrees(180)},
	}
	copy(c.Blob[:], t.bytes(32))
	copy(c.Hosted[:], t.bytes(16))
	return t.op(c)
}

func (t *traffic) fetch() log.Op {
	f := &log.InputFetched{Input: t.input(), Code: 30000, ContentType: "image/png"}
	if copy(f.Blob[:], t.bytes(32)); t.rng.IntN(8) == 0 {
		*f = log.InputFetched{Input: f.Input, Code: 30002, Detail: "Download failed"}
	}
	return t.op(f)
}

func (t *traffic) remove() log.Op { return t.op(&log.InputDelete{Input: t.input()}) }

// degrees returns a coordinate with six decimals, as people write them.
func (t *traffic) degrees(span float64) float64 {
	return math.RoundToEven((t.rng.Float64()-0.5)*span*1e6) / 1e6
}

// cost is the size of an operation in bytes: in the log, in a frame, and in a compressed frame.
type cost struct{ log, frame, sent float64 }

// measure returns the mean cost of an operation in frames of n operations each.
func measure(t testing.TB, frames, n int, op func() log.Op) (c cost) {
	t.Helper()
	per := 1 / float64(frames*n)
	for i := range uint64(frames) {
		ops := make([]log.Op, n)
		for k := range ops {
			ops[k] = op()
			c.log += float64(len(log.Encode(nil, &ops[k]))) * per
		}
		m := wire.Entries{Epoch: log.Epoch{1: 2}, Chain: log.Chain{5: 7}, From: i * uint64(n), To: (i + 1) * uint64(n), Rows: log.EncodeRows(ops)}
		frame := wire.AppendFrame(nil, wire.TypeEntries, m.Encode())
		c.frame += float64(len(frame)) * per
		var sent bytes.Buffer
		if _, err := compress.NewWriter(&sent).Write(frame); err != nil {
			t.Fatal(err)
		}
		c.sent += float64(sent.Len()) * per
	}
	return c
}

// random returns op with other concepts: concepts many, with ids of 32 random digits.
func random(concepts int, op func(*traffic) log.Op) func(*traffic) log.Op {
	var current *traffic
	return func(t *traffic) log.Op {
		if t != current {
			current, t.concepts = t, nil
			for range concepts {
				t.concepts = append(t.concepts, t.hex(16))
			}
		}
		return op(t)
	}
}

// TestSizes compares the compressed size of operations with limits. The sizes are the same on every machine.
func TestSizes(t *testing.T) {
	tests := []struct {
		name  string
		n     int // operations in a frame
		op    func(*traffic) log.Op
		limit float64
	}{
		{"label change", wire.MaxOps, (*traffic).patch, 28},
		{"label change, few", 64, (*traffic).patch, 33},
		{"label change, 40 random ids", wire.MaxOps, random(40, (*traffic).patch), 28},
		{"label change, 100 random ids", wire.MaxOps, random(100, (*traffic).patch), 32},
		{"label change, 400 random ids", wire.MaxOps, random(400, (*traffic).patch), 43},
		{"new input", wire.MaxOps, (*traffic).create, 128},
		{"new input, few", 64, (*traffic).create, 135},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tr := newTraffic(1)
			c := measure(t, 4, tt.n, func() log.Op { return tt.op(tr) })
			t.Logf("bytes: %.1f in the log, %.1f in a frame, %.1f sent", c.log, c.frame, c.sent)
			if c.sent > tt.limit {
				t.Errorf("%.1f bytes are sent, want at most %.1f", c.sent, tt.limit)
			}
		})
	}
}
