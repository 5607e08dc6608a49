//go:build !wasip1

package pebblekv

import (
	"fmt"

	"github.com/cockroachdb/pebble/v2"
)

// Checkpoint makes the folder dir, which must not exist, on the same file system, with the
// store as it is now: durable, sealed, and to be opened by [Open]. Tables are linked and not copied, so
// it costs little time and space. Reads and writes go on meanwhile.
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

// Metrics is what a store says of itself.
type Metrics struct {
	DiskBytes uint64 // all files
	LogBytes  uint64 // logs that a start would replay
	ReadAmp   int    // tables that a Get may have to ask
}

// Metrics returns the figures of this moment, all zero once the store is closed.
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
	}
}
