package wire_test

import (
	"encoding/hex"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/sync/wire"
)

// traffic makes operations as an application of 100,000 inputs and 400 concepts sees them: two
// edges and the origin write, four keys ask, and a change comes each 40 ms or so.
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
		Dot: log.Dot{Site: log.Site(site), Seq: t.next[site]}, At: log.HLC(t.at << 16), Body: body,
		By: t.keys[t.rng.IntN(4)],
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

// input is one of those that were created long ago.
func (t *traffic) input() log.Dot {
	site := 1 + t.rng.IntN(3)
	return log.Dot{Site: log.Site(site), Seq: 1 + t.rng.Uint64N(t.next[site])}
}

func (t *traffic) patch() log.Op {
	return t.op(&log.InputLabels{Input: t.input(), Labels: t.labels()})
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

// degrees is a place as people write them, with six digits.
func (t *traffic) degrees(span float64) float64 {
	return math.RoundToEven((t.rng.Float64()-0.5)*span*1e6) / 1e6
}

// cost is what an operation costs in a stream of frames of 512, in bytes.
type cost struct {
	raw          float64 // as it is
	first, later float64 // compressed, a frame at a time: in the first frame, and in those after it
	seam         float64 // in the first frame, with the compressor's block ended at the seam
}

func measure(t testing.TB, n int, op func() log.Op) (c cost) {
	t.Helper()
	whole, parted := newMeter(t), newMeter(t)
	per := 1 / float64(wire.MaxOps)
	for i := range n {
		ops := make([]log.Op, wire.MaxOps)
		for k := range ops {
			ops[k] = op()
		}
		m := wire.Entries{
			Epoch: log.Epoch{1: 2}, Chain: log.Chain{5: 7}, Block: wire.EncodeOps(ops),
			From: uint64(i) * wire.MaxOps, To: uint64(i+1) * wire.MaxOps,
		}
		frame := wire.AppendFrame(nil, wire.TypeEntries, m.Encode())
		c.raw += float64(len(frame)) * per / float64(n)
		whole.send(frame)
		seam := wire.Seam(frame)
		parted.send(frame[:seam])
		parted.send(frame[seam:])
		if i == 0 {
			c.first, c.seam = float64(whole.n)*per, float64(parted.n)*per
		}
	}
	c.later = (float64(whole.n)*per - c.first) / max(float64(n-1), 1)
	return c
}

// meter counts the bytes of a compressed stream that is flushed after each part.
type meter struct {
	t testing.TB
	z *zstd.Encoder
	n int
}

func newMeter(t testing.TB) *meter {
	t.Helper()
	m := &meter{t: t}
	z, err := zstd.NewWriter(m, zstd.WithEncoderConcurrency(1))
	if err != nil {
		t.Fatal(err)
	}
	m.z = z
	return m
}

func (m *meter) Write(p []byte) (int, error) {
	m.n += len(p)
	return len(p), nil
}

func (m *meter) send(part []byte) {
	m.t.Helper()
	if _, err := m.z.Write(part); err != nil {
		m.t.Fatal(err)
	}
	if err := m.z.Flush(); err != nil {
		m.t.Fatal(err)
	}
}

// TestSizes holds what operations cost on the wire to the bars. Bytes are the same everywhere.
func TestSizes(t *testing.T) {
	tests := []struct {
		name string
		op   func(*traffic) log.Op
		most float64
	}{
		{"label change", (*traffic).patch, 16},
		{"new input", (*traffic).create, 90},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tr := newTraffic(1)
			c := measure(t, 8, func() log.Op { return tt.op(tr) })
			t.Logf("bytes: %.1f as it is; compressed %.1f in the first frame, %.1f in a later one; %.1f with a seam", c.raw, c.first, c.later, c.seam)
			if c.first > tt.most || c.seam > tt.most {
				t.Errorf("%.1f bytes, %.1f with a seam, want at most %.1f", c.first, c.seam, tt.most)
			}
		})
	}
}
