//go:build !wasip1

package partition_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/fold"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/kv/memkv"
	"github.com/sightline-dev/sightline/core/kv/pebblekv"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/partition"
)

// usual returns a typical input: two labels, small metadata, every third with a place.
func usual(rng *rand.Rand, i int) *log.InputCreate {
	b := &log.InputCreate{
		ID: fmt.Sprintf("%032x", i), Blob: blob.Sum(fmt.Appendf(nil, "%d", i)), ContentType: "image/jpeg",
		URL: fmt.Sprintf("https://pictures.example/%d.jpg", i), Hosted: [16]byte{1, byte(i), byte(i >> 8), byte(i >> 16)},
		Meta: []byte(`{"album":"holiday","n":17}`),
	}
	for range 2 {
		b.Labels = append(b.Labels, log.Label{Concept: fmt.Sprint("concept-", rng.IntN(400)), Value: log.True})
	}
	if i%3 == 0 {
		b.Geo = &log.Point{Longitude: rng.Float64() * 180, Latitude: rng.Float64() * 90}
	}
	return b
}

// BenchmarkSubmit writes inputs to a partition on Pebble in memory, some in each call.
func BenchmarkSubmit(b *testing.B) {
	for _, n := range []int{1, 128} {
		b.Run(fmt.Sprintf("creates=%d", n), func(b *testing.B) {
			store := pebbleInMemory(b)
			p, err := partition.OpenOrigin(partition.Options{Store: store, App: app, Clock: clock})
			if err != nil {
				b.Fatal(err)
			}
			rng := rand.New(rand.NewPCG(1, 1))
			next := 0
			for b.Loop() {
				bodies := make([]log.Body, n)
				for i := range bodies {
					bodies[i] = usual(rng, next)
					next++
				}
				if _, err := p.Submit(context.Background(), "key", bodies, nil); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(next)/b.Elapsed().Seconds(), "records/s")
		})
	}
}

func pebbleInMemory(b *testing.B) kv.Store {
	store, err := pebblekv.Open("data", pebblekv.Options{FS: vfs.NewMem()})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := store.Close(); err != nil {
			b.Error(err)
		}
	})
	return store
}

// BenchmarkLead makes an origin with 100,000 inputs follow, and lead again.
func BenchmarkLead(b *testing.B) {
	p, err := partition.OpenOrigin(partition.Options{Store: pebbleInMemory(b), App: app, Clock: clock})
	if err != nil {
		b.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(1, 1))
	for n := 0; n < 100_000; {
		bodies := make([]log.Body, 500)
		for i := range bodies {
			bodies[i] = usual(rng, n)
			n++
		}
		if _, err := p.Submit(context.Background(), "key", bodies, nil); err != nil {
			b.Fatal(err)
		}
	}
	for b.Loop() {
		if err := p.Follow(context.Background()); err != nil {
			b.Fatal(err)
		}
		if err := p.Lead(opening()); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkCatchUp opens a partition whose log has 20,000 inputs that its state lacks.
func BenchmarkCatchUp(b *testing.B) {
	const inputs = 20_000
	stores := map[string]func() kv.Store{
		"pebble": func() kv.Store { return pebbleInMemory(b) },
		"memkv":  func() kv.Store { return memkv.New() },
	}
	for name, open := range stores {
		b.Run(fmt.Sprintf("%s/inputs=%d", name, inputs), func(b *testing.B) {
			for b.Loop() {
				b.StopTimer()
				store := open()
				fill(b, store, inputs)
				b.StartTimer()
				p, err := partition.OpenOrigin(partition.Options{Store: store, App: app, Clock: clock})
				if err != nil {
					b.Fatal(err)
				}
				if v := p.View(); v.Seq() != inputs || v.Close() != nil {
					b.Fatalf("folded %d of %d", v.Seq(), inputs)
				}
			}
			b.ReportMetric(float64(b.N*inputs)/b.Elapsed().Seconds(), "inputs/s")
		})
	}
}

// fill appends n creates to a log.
func fill(b *testing.B, store kv.Store, n int) {
	l, err := log.Open(store, log.Options{Prefix: app.LogPrefix()})
	if err != nil {
		b.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(1, 1))
	for i := 0; i < n; {
		ops := make([]log.Op, 0, 128)
		for range min(128, n-i) {
			i++
			ops = append(ops, log.Op{Dot: log.Dot{Writer: 1, Seq: uint64(i)}, At: log.HLC(i) << 16, By: "key", Body: usual(rng, i)})
		}
		_, wait, err := l.Append(ops, nil)
		if err == nil {
			err = wait()
		}
		if err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkDigest takes the digest of the state of 100,000 inputs.
func BenchmarkDigest(b *testing.B) {
	const inputs = 100_000
	store := memkv.New()
	fill(b, store, inputs)
	if _, err := partition.OpenOrigin(partition.Options{Store: store, App: app, Clock: clock}); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := fold.Digest(store, app); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N*inputs)/b.Elapsed().Seconds(), "inputs/s")
}
