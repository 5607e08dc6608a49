package wire_test

import (
	"testing"

	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/sync/wire"
)

// BenchmarkBlock encodes and decodes blocks of wire.MaxOps operations. It reports operations a second, and
// the size of a frame on the wire.
func BenchmarkBlock(b *testing.B) {
	for _, kind := range []struct {
		name string
		op   func(*traffic) log.Op
	}{{"label change", (*traffic).patch}, {"new input", (*traffic).create}} {
		tr := newTraffic(1)
		ops := make([]log.Op, wire.MaxOps)
		for i := range ops {
			ops[i] = kind.op(tr)
		}
		block := log.EncodeRows(ops)
		b.Run("encode/"+kind.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				log.EncodeRows(ops)
			}
			b.ReportMetric(float64(wire.MaxOps)*float64(b.N)/b.Elapsed().Seconds(), "ops/s")
		})
		b.Run("decode/"+kind.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := wire.DecodeOps(block); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(wire.MaxOps)*float64(b.N)/b.Elapsed().Seconds(), "ops/s")
			c := measure(b, 4, wire.MaxOps, func() log.Op { return kind.op(tr) })
			b.ReportMetric(c.frame, "B/op-frame")
			b.ReportMetric(c.sent, "B/op-sent")
		})
	}
}
