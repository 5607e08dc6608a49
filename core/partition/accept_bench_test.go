//go:build !wasip1

package partition_test

import (
	"fmt"
	"testing"

	"github.com/sightline-dev/sightline/core/fold"
	"github.com/sightline-dev/sightline/core/kv/pebblekv"
	"github.com/sightline-dev/sightline/core/kv/pebblekv/pebbletest"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/partition"
)

// onDisk opens a partition without an index, on Pebble in memory.
func onDisk(b *testing.B) *partition.Origin {
	store, err := pebblekv.Open("data", pebblekv.Options{FS: pebbletest.New()})
	if err != nil {
		b.Fatal(err)
	}
	p := open(b, store)
	b.Cleanup(func() {
		if err := store.Close(); err != nil {
			b.Error(err)
		}
	})
	return p
}

// BenchmarkAccept accepts blocks of another writer's operations: creates of inputs, and labels.
func BenchmarkAccept(b *testing.B) {
	for _, n := range []int{1, 64, 512} {
		b.Run(fmt.Sprintf("ops=%d", n), func(b *testing.B) {
			p := onDisk(b)
			seq := uint64(1)
			for b.Loop() {
				bodies := make([]log.Body, n)
				for i := range bodies {
					if i%2 == 0 {
						bodies[i] = create(fmt.Sprint(seq + uint64(i)))
					} else {
						bodies[i] = &log.InputLabels{Input: log.Dot{Writer: edge, Seq: seq + uint64(i) - 1}, Labels: []log.Label{{Concept: "cat", Value: log.True}}}
					}
				}
				accept(b, p, writerOps(edge, seq, bodies...))
				seq += uint64(n)
			}
			b.ReportMetric(float64(b.N*n)/b.Elapsed().Seconds(), "ops/s")
		})
	}
}

// BenchmarkExport lists a snapshot of 20,000 inputs and creates the tree of their digests.
func BenchmarkExport(b *testing.B) {
	p := onDisk(b)
	large(b, p, 0, 20_000)
	b.Run("export", func(b *testing.B) {
		size := uint64(0)
		for b.Loop() {
			x, err := p.Export(network)
			if err != nil {
				b.Fatal(err)
			}
			size = 0
			for _, c := range x.Chunks {
				size += c.Size
			}
			if err := x.Close(); err != nil {
				b.Fatal(err)
			}
		}
		b.SetBytes(int64(size))
	})
	b.Run("digest", func(b *testing.B) {
		v := p.View()
		defer v.Close()
		for b.Loop() {
			if _, err := fold.Digest(v.KV(), app); err != nil {
				b.Fatal(err)
			}
		}
	})
}
