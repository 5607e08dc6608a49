//go:build !wasip1

package pebblekv

import (
	"encoding/binary"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/sightline-dev/sightline/core/kv"
)

// recordBytes is the size of an input's record with its embedding.
const recordBytes = 1168

// BenchmarkCommit commits records with random keys durably, in batches of 1 or 128, on files of the disk and in memory. It runs our store
// and a Pebble with default options in turns. "times-pebble" is our rate divided by Pebble's.
func BenchmarkCommit(b *testing.B) {
	disks := []struct {
		name string
		make func(b *testing.B) (vfs.FS, string)
	}{
		{"disk", func(b *testing.B) (vfs.FS, string) { return vfs.Default, b.TempDir() }},
		{"memory", func(*testing.B) (vfs.FS, string) { return vfs.NewMem(), "data" }},
	}
	for _, disk := range disks {
		for _, n := range []int{1, 128} {
			b.Run(fmt.Sprintf("%s/batch=%d", disk.name, n), func(b *testing.B) {
				fsys, dir := disk.make(b)
				commitInTurns(b, fsys, dir, n)
			})
		}
	}
}

func commitInTurns(b *testing.B, fsys vfs.FS, dir string, n int) {
	s, err := Open(dir+"/ours", Options{FS: fsys})
	if err != nil {
		b.Fatal(err)
	}
	quiet := Options{Logger: slog.New(slog.DiscardHandler)}
	db, err := pebble.Open(dir+"/pebble", &pebble.Options{
		FS: fsys, FormatMajorVersion: pebble.FormatNewest, MemTableSize: 32 << 20, Logger: logger{&Store{options: quiet}},
	})
	if err != nil {
		b.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(1, 1))
	value := make([]byte, recordBytes-16)
	for i := range value {
		value[i] = byte(rng.Uint32())
	}
	keys := make([][16]byte, n)
	batch := &kv.Batch{}
	ours := func() error {
		batch.Reset()
		for i := range keys {
			batch.Put(keys[i][:], value)
		}
		wait, err := s.Commit(batch)
		if err != nil {
			return err
		}
		return wait()
	}
	theirs := func() error {
		pb := db.NewBatch()
		for i := range keys {
			if err := pb.Set(keys[i][:], value, nil); err != nil {
				return err
			}
		}
		return pb.Commit(pebble.Sync)
	}
	var took [2]time.Duration
	calls := []func() error{ours, theirs}
	for turn := 0; b.Loop(); turn++ {
		for i := range keys {
			binary.BigEndian.PutUint64(keys[i][:], rng.Uint64())
			binary.BigEndian.PutUint64(keys[i][8:], rng.Uint64())
		}
		for i := range calls {
			which := (turn + i) % 2 // the two take turns at being first
			start := b.Elapsed()
			if err := calls[which](); err != nil {
				b.Fatal(err)
			}
			took[which] += b.Elapsed() - start
		}
	}
	records := float64(n * b.N)
	b.ReportMetric(records/took[0].Seconds(), "records/s")
	b.ReportMetric(records/took[1].Seconds(), "records/s-pebble")
	b.ReportMetric(took[1].Seconds()/took[0].Seconds(), "times-pebble")
	if err := s.Close(); err != nil {
		b.Fatal(err)
	}
	if err := db.Close(); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkRead reads a store of 100,000 records, which is larger than its cache.
func BenchmarkRead(b *testing.B) {
	const records = 100_000
	s, err := Open(b.TempDir(), Options{})
	if err != nil {
		b.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(1, 1))
	value := make([]byte, recordBytes-16)
	key := func(i int) []byte {
		return binary.BigEndian.AppendUint64([]byte("record--"), uint64(i)*0x9e3779b97f4a7c15)
	}
	batch := &kv.Batch{}
	for i := range records {
		for j := range value {
			value[j] = byte(rng.Uint32())
		}
		if batch.Put(key(i), value); batch.Len() == 128 {
			if err := s.Apply(batch); err != nil {
				b.Fatal(err)
			}
			batch.Reset()
		}
	}
	b.Run("get", func(b *testing.B) {
		for b.Loop() {
			if _, err := s.Get(key(rng.IntN(records / 2))); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("get missing", func(b *testing.B) {
		for b.Loop() {
			if _, err := s.Get(key(records + rng.IntN(records))); err == nil {
				b.Fatal("found")
			}
		}
	})
	b.Run("scan 100", func(b *testing.B) {
		for b.Loop() {
			n := 0
			if err := s.Scan(key(rng.IntN(records)), nil, func(_, _ []byte) bool { n++; return n < 100 }); err != nil {
				b.Fatal(err)
			}
		}
	})
	if err := s.Close(); err != nil {
		b.Fatal(err)
	}
}
