//go:build !wasip1

package pebblekv

import (
	"fmt"

	"github.com/cockroachdb/pebble/v2"
)

// Checkpoint copies the current store to the folder dir, which must not exist, on the same file system. The copy is durable, sealed, and
// ready for [Open]. Checkpoint links tables instead of copying them, so it is fast and small. Reads and writes continue meanwhile.
func (s *Store) Checkpoint(dir string) error {
	if err := s.enter(); err != nil {
		return err
	}
	defer s.exit()
	if err := s.health.writable(); err != nil {
		return err
	}
	if err := s.db.Checkpoint(dir, pebble.WithFlushedWAL()); err != nil {
		return fmt.Errorf("checkpoint %s: %w", dir, translate(err))
	}
	if err := s.health.failure(); err != nil {
		return err
	}
	if err := seal(s.options.FS, dir); err != nil {
		return fmt.Errorf("checkpoint %s: seal: %w", dir, err)
	}
	return nil
}

// Metrics are measurements of a store.
type Metrics struct {
	DiskBytes uint64 // size of all files
	LogBytes  uint64 // size of the logs that a start would replay
	ReadAmp   int    // tables that a Get may have to read

	CacheBytes             int64 // size of the cached blocks
	CacheHits, CacheMisses int64 // blocks that reads found in the cache, and that they did not
}

// Metrics returns the current measurements. They are all zero once the store is closed.
func (s *Store) Metrics() Metrics {
	if s.enter() != nil {
		return Metrics{}
	}
	defer s.exit()
	m := s.db.Metrics()
	return Metrics{
		DiskBytes: m.DiskSpaceUsage(),
		LogBytes:  m.WAL.Size,
		ReadAmp:   m.ReadAmp(),

		CacheBytes: m.BlockCache.Size, CacheHits: m.BlockCache.Hits, CacheMisses: m.BlockCache.Misses,
	}
}
