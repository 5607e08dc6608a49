//go:build !wasip1

package partition_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/index"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/kv/memkv"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/partition"
)

// BenchmarkPull measures a replica with an index and pending operations. It pulls the creates of 20,000 inputs with labels, metadata and
// places, in runs as a stream brings them.
func BenchmarkPull(b *testing.B) {
	const inputs = 20_000
	source := memkv.New()
	fill(b, source, inputs)
	origin := open(b, source)
	stores := map[string]func() kv.Store{
		"pebble": func() kv.Store { return pebbleInMemory(b) },
		"memkv":  func() kv.Store { return memkv.New() },
	}
	for _, name := range []string{"pebble", "memkv"} {
		for _, x := range []struct{ run, pending int }{{512, 0}, {2048, 0}, {512, 100}} {
			var runs []partition.Run
			for at := (partition.Cursor{}); at.Seq < inputs; at.Seq = runs[len(runs)-1].To {
				runs = append(runs, run(b, origin, at, x.run))
			}
			b.Run(fmt.Sprintf("%s/run=%d/pending=%d", name, x.run, x.pending), func(b *testing.B) {
				var used time.Duration
				for b.Loop() {
					b.StopTimer()
					p := readyToPull(b, stores[name](), x.pending)
					b.StartTimer()
					before := processorTime(b)
					for _, r := range runs {
						if _, err := p.Pull(context.Background(), r); err != nil {
							b.Fatal(err)
						}
					}
					used += processorTime(b) - before
				}
				if used > 0 {
					b.ReportMetric(float64(b.N*inputs)/used.Seconds(), "inputs/cpu-s")
				}
				b.ReportMetric(float64(b.N*inputs)/b.Elapsed().Seconds(), "inputs/s")
			})
		}
	}
}

// readyToPull returns a replica with some pending operations.
func readyToPull(b *testing.B, store kv.Store, pending int) *testReplica {
	p, err := partition.OpenReplica(partition.Options{
		Store: store, App: app, Clock: clock, Index: &index.Options{Space: plainSpace}, Epoch: opening(),
	}, partition.ReplicaOptions{})
	if err != nil {
		b.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(2, 2))
	for i := range pending {
		if _, err := p.Submit(context.Background(), "key", []log.Body{usual(rng, 1<<24+i)}, nil); err != nil {
			b.Fatal(err)
		}
	}
	return &testReplica{store: store, Replica: p}
}

// BenchmarkRebase measures a replica with an index that installs a snapshot of 20,000 inputs, without and with derived records.
func BenchmarkRebase(b *testing.B) {
	const inputs = 20_000
	source := memkv.New()
	fill(b, source, inputs)
	origin := open(b, source)
	var batch kv.Batch
	err := catalog.Read(source, app).Inputs(0, func(in catalog.Input) bool {
		catalog.PutDerived(&batch, app, plainSpace.Base, in.Blob, in.Crop, derivedOf(in.Blob))
		return true
	})
	if err == nil {
		err = source.Apply(&batch)
	}
	if err != nil {
		b.Fatal(err)
	}
	for name, base := range map[string][32]byte{"vectors=none": {}, "vectors=all": plainSpace.Base} {
		b.Run(name, func(b *testing.B) {
			x, err := origin.Export(base)
			if err != nil {
				b.Fatal(err)
			}
			var used time.Duration
			for b.Loop() {
				b.StopTimer()
				p := readyToPull(b, pebbleInMemory(b), 10)
				b.StartTimer()
				before := processorTime(b)
				if err := p.Rebase(context.Background(), x.Snapshot); err != nil {
					b.Fatal(err)
				}
				used += processorTime(b) - before
			}
			if used > 0 {
				b.ReportMetric(float64(b.N*inputs)/used.Seconds(), "inputs/cpu-s")
			}
			if err := x.Close(); err != nil {
				b.Fatal(err)
			}
		})
	}
}

// BenchmarkDeleteAllPending measures the deletion of all 20,000 inputs of a replica, while it is pending.
func BenchmarkDeleteAllPending(b *testing.B) {
	const inputs = 20_000
	source := memkv.New()
	fill(b, source, inputs)
	origin := open(b, source)
	for b.Loop() {
		b.StopTimer()
		p := readyToPull(b, pebbleInMemory(b), 0)
		p.pull(b, origin, inputs)
		b.StartTimer()
		if _, err := p.Submit(context.Background(), "key", []log.Body{&log.InputDeleteAll{}}, nil); err != nil {
			b.Fatal(err)
		}
	}
}
