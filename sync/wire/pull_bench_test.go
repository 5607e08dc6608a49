package wire_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/index"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/kv/memkv"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/log/logtest"
	"github.com/sightline-dev/sightline/core/partition"
	"github.com/sightline-dev/sightline/sync/wire"
)

var benchApp = catalog.AppID{7}

// stores are the stores that a replica can use.
var stores = map[string]func(b *testing.B) kv.Store{
	"memkv": func(*testing.B) kv.Store { return memkv.New() },
}

// BenchmarkPull measures a replica that catches up: it reads messages of 512 entries from frames, decodes them, and folds them with the
// index into an empty store. There are two sorts of inputs: imported ones, with a URL and a few labels; and those of cameras, each with
// different metadata and a place.
func BenchmarkPull(b *testing.B) {
	const inputs = 20 * wire.MaxOps
	tr := newTraffic(1)
	kinds := []struct {
		name string
		op   func() log.Op
	}{{"imported", tr.importedInput}, {"camera", tr.create}}
	for _, kind := range kinds {
		frames := framesOf(inputs, kind.op)
		for name, store := range stores {
			b.Run(kind.name+"/"+name, func(b *testing.B) {
				var used time.Duration
				for b.Loop() {
					b.StopTimer()
					p := newReplica(b, store(b))
					b.StartTimer()
					before := processorTime()
					pullFrames(b, p, frames)
					used += processorTime() - before
				}
				b.ReportMetric(float64(b.N*inputs)/used.Seconds(), "inputs/cpu-s")
				b.ReportMetric(float64(len(frames))/inputs, "B/input")
			})
		}
	}
}

// importedInput returns an input as an import sends it: from a URL, with two labels, and every third with a place.
func (t *traffic) importedInput() log.Op {
	c := &log.InputCreate{
		ID: t.hex(16), ContentType: "image/jpeg", URL: "https://pictures.example/" + t.hex(8) + ".jpg",
		Meta: []byte(`{"album":"holiday","n":17}`),
	}
	copy(c.Blob[:], t.bytes(len(blob.Hash{})))
	copy(c.Hosted[:], t.bytes(16))
	for range 2 {
		c.Labels = append(c.Labels, log.Label{Concept: t.concepts[t.rng.IntN(len(t.concepts))], Value: log.True})
	}
	if t.rng.IntN(3) == 0 {
		c.Geo = &log.Point{Longitude: t.degrees(360), Latitude: t.degrees(180)}
	}
	return t.op(c)
}

func newReplica(b *testing.B, store kv.Store) *partition.Replica {
	p, err := partition.OpenReplica(partition.Options{
		Store: store, App: benchApp, Clock: func() time.Time { return time.UnixMilli(1_790_000_000_000) },
		Index: &index.Options{Space: index.Space{Base: [32]byte{1}, Concepts: []string{"ai_a", "ai_b"}}},
	}, partition.ReplicaOptions{})
	if err != nil {
		b.Fatal(err)
	}
	return p
}

// framesOf is the stream of n operations of a log that begins.
func framesOf(n int, op func() log.Op) (stream []byte) {
	epoch := log.Epoch{3}
	chain := log.Chain(epoch)
	next := map[log.Writer]uint64{}
	for from := 0; from < n; from += wire.MaxOps {
		entries := make([]log.Entry, wire.MaxOps)
		before := chain
		for i := range entries {
			o := op()
			next[o.Dot.Writer]++
			o.Dot.Seq = next[o.Dot.Writer]
			entries[i] = log.Entry{Seq: uint64(from + i + 1), Op: o}
			chain = chain.Next(log.Encode(nil, &o))
		}
		e := wire.Entries{Epoch: epoch, From: uint64(from), To: uint64(from + wire.MaxOps), Chain: chain, Rows: logtest.Rows(entries), Before: before}
		stream = wire.AppendFrame(stream, wire.TypeEntries, e.Encode())
	}
	return stream
}

// pullFrames does with a stream what a replica does.
func pullFrames(b *testing.B, p *partition.Replica, stream []byte) {
	var in wire.Reader
	for len(stream) > 0 {
		n := min(len(stream), 64<<10)
		if _, err := in.Write(stream[:n]); err != nil {
			b.Fatal(err)
		}
		stream = stream[n:]
		for {
			f, ok, err := in.Next()
			if err != nil {
				b.Fatal(err)
			}
			if !ok {
				break
			}
			if err := pullFrame(p, f.Body); err != nil {
				b.Fatal(err)
			}
		}
	}
	if !in.Idle() {
		b.Fatal("half a frame")
	}
}

func pullFrame(p *partition.Replica, body []byte) error {
	e, err := wire.DecodeEntriesFrame(body)
	if err != nil {
		return err
	}
	entries, err := log.DecodeRows(e.Rows, e.From)
	if err != nil {
		return err
	}
	if uint64(len(entries)) != e.To-e.From {
		return fmt.Errorf("%d entries from %d to %d", len(entries), e.From, e.To)
	}
	_, err = p.Pull(context.Background(), partition.Run{
		Frame: partition.Frame{Epoch: e.Epoch, From: e.From, To: e.To, Chain: e.Chain, Before: e.Before, Rows: e.Rows}, Entries: entries,
	})
	return err
}
