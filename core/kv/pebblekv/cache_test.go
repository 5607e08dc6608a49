//go:build !wasip1

package pebblekv

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/sightline-dev/sightline/core/kv"
)

// TestCacheFloor: blocks keep their share of the cache, also when all memtables are full and Pebble keeps another one for reuse.
func TestCacheFloor(t *testing.T) {
	o := Options{FS: vfs.NewMem(), CacheBytes: 8 << 20, MemTableBytes: 2 << 20}
	s := open(t, o)
	rng := rand.NewChaCha8([32]byte{1})
	key := func(i int) []byte { return binary.BigEndian.AppendUint32(nil, uint32(i)) }
	read := func(n int) {
		t.Helper()
		for i := 0; i < n; i += 4 { // of each block
			if _, err := s.Get(key(i)); err != nil {
				t.Fatal(err)
			}
		}
	}
	written, most := 0, uint64(0)
	for range 40 { // of 1 MiB
		for range 256 {
			value := make([]byte, 4096) // does not compress
			_, _ = rng.Read(value)
			var b kv.Batch
			b.Put(key(written), value)
			if err := s.Apply(&b); err != nil {
				t.Fatal(err)
			}
			written++
		}
		most = max(most, s.db.Metrics().MemTable.Size+s.db.Metrics().MemTable.ZombieSize)
		if flushed := written - 12<<8; flushed > 16<<8 { // more than the cache has
			read(flushed)
			if m := s.db.Metrics(); m.BlockCache.Size < o.CacheBytes {
				t.Fatalf("after %d MiB: blocks have %d bytes of the cache, want at least %d; memtables have %d", written>>8, m.BlockCache.Size, o.CacheBytes, m.MemTable.Size)
			}
		}
	}
	if least := uint64(2 * o.MemTableBytes); most < least {
		t.Errorf("memtables had at most %d bytes, so the test shows nothing: want %d", most, least)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}
