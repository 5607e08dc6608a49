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

func (t *traffic) patch() log.Op {
	site := 1 + t.rng.IntN(3)
	input := log.Dot{Site: log.Site(site), Seq: 1 + t.rng.Uint64N(t.next[site])}
	return t.op(&log.InputLabels{Input: input, Labels: t.labels()})
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

// degrees is a place as people write them, with six digits.
func (t *traffic) degrees(span float64) float64 {
	return math.RoundToEven((t.rng.Float64()-0.5)*span*1e6) / 1e6
}

// frames returns the bytes per operation of a stream of n frames, of 512 operations each: as
// they are, and compressed with a flush after each frame, of the first and of the later ones.
func frames(t testing.TB, n int, op func() log.Op) (raw, first, later float64) {
	t.Helper()
	var out counter
	z, err := zstd.NewWriter(&out, zstd.WithEncoderConcurrency(1))
	if err != nil {
		t.Fatal(err)
	}
	var plain, at int
	for i := range n {
		ops := make([]log.Op, wire.MaxOps)
		for k := range ops {
			ops[k] = op()
		}
		m := wire.Entries{Epoch: log.Epoch{1: 2}, From: uint64(i) * wire.MaxOps, To: uint64(i+1) * wire.MaxOps, Chain: log.Chain{5: 7}, Block: wire.EncodeOps(ops)}
		frame := wire.AppendFrame(nil, wire.TypeEntries, m.Encode())
		plain += len(frame)
		if _, err := z.Write(frame); err != nil {
			t.Fatal(err)
		}
		if err := z.Flush(); err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			at = int(out)
		}
	}
	per := 1 / float64(wire.MaxOps)
	return float64(plain) * per / float64(n), float64(at) * per, float64(int(out)-at) * per / max(float64(n-1), 1)
}

// counter counts bytes.
type counter int

func (c *counter) Write(p []byte) (int, error) {
	*c += counter(len(p))
	return len(p), nil
}

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
			raw, first, later := frames(t, 8, func() log.Op { return tt.op(tr) })
			t.Logf("bytes per operation: %.1f as they are, %.1f compressed in the first frame, %.1f in a later one", raw, first, later)
			if first > tt.most {
				t.Errorf("%.1f bytes in the first frame, want at most %.1f", first, tt.most)
			}
		})
	}
}
