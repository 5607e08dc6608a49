//go:build !wasip1

package pebblekv

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// Options are the settings and limits of a store. The zero value is a store on the operating system's files without limits of disk space.
type Options struct {
	FS     vfs.FS       // nil means the operating system's
	Logger *slog.Logger // nil logs nothing

	// Fatal is called once if the store fails, from any goroutine, with locks held. The process should exit at once without answering
	// requests, and restart. nil does nothing.
	Fatal func(error)

	// Free returns the free bytes of the disk for this process. If it is nil, the store notices a full disk only by a failed write.
	Free func() (int64, error)

	Watermark int64 // free bytes below which Room returns kv.ErrFull; 0 means 512 MiB
	Ballast   int64 // bytes that the store reserves for a full disk; 0 means none

	CacheBytes    int64 // bytes of uncompressed blocks, shared by all reads; 0 means MinCacheBytes. See cacheSize for the memory of both.
	MemTableBytes int   // bytes of a memtable; memory may have six; 0 means 32 MiB
	MaxOpenFiles  int   // 0 means 1,000
}

func (o *Options) setDefaults() {
	if o.FS == nil {
		o.FS = vfs.Default
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Fatal == nil {
		o.Fatal = func(error) {}
	}
	setDefault(&o.Watermark, 512<<20)
	setDefault(&o.CacheBytes, MinCacheBytes)
	setDefault(&o.MemTableBytes, 32<<20)
	setDefault(&o.MaxOpenFiles, 1000)
}

func setDefault[T int | int64](v *T, value T) {
	if *v <= 0 {
		*v = value
	}
}

// MinCacheBytes is the default size of the block cache, and the least one that the programs accept.
const MinCacheBytes = 64 << 20

// maxMemTables is the number of full memtables in memory at which writers wait.
const maxMemTables = 4

// cacheSize returns the size of Pebble's cache. Pebble takes the memory of memtables out of it, so blocks get what the memtables leave, and at
// least CacheBytes: writers wait at maxMemTables, another memtable may begin before that, and Pebble keeps one for reuse.
func (o *Options) cacheSize() int64 { return o.CacheBytes + (maxMemTables+2)*int64(o.MemTableBytes) }

// pebbleOptions returns Pebble's options for many small values and records of 0.5 to 3 KB.
func (s *Store) pebbleOptions(lock *pebble.Lock, mustExist bool) *pebble.Options {
	o := &pebble.Options{
		FS:                          s.disk,
		Lock:                        lock,
		ErrorIfNotExists:            mustExist,
		FormatMajorVersion:          pebble.FormatNewest,
		Logger:                      logger{s},
		EventListener:               s.events(),
		CacheSize:                   s.options.cacheSize(),
		MemTableSize:                uint64(s.options.MemTableBytes),
		MemTableStopWritesThreshold: 16 * maxMemTables, // never reached: makeRoom blocks writers before
		MaxOpenFiles:                s.options.MaxOpenFiles,
		L0CompactionThreshold:       4,
		L0StopWritesThreshold:       1000,
		LBaseMaxBytes:               64 << 20,
		WALBytesPerSync:             512 << 10,
		CompactionConcurrencyRange:  func() (int, int) { return 1, 2 },
	}
	for i := range o.Levels {
		o.Levels[i].BlockSize = 16 << 10
		o.Levels[i].IndexBlockSize = 64 << 10
		o.Levels[i].FilterPolicy = bloom.FilterPolicy(10)
		o.Levels[i].Compression = func() *sstable.CompressionProfile { return sstable.FastestCompression }
	}
	return o
}

// events returns the handlers of Pebble's background events.
func (s *Store) events() *pebble.EventListener {
	return &pebble.EventListener{
		BackgroundError: s.health.background,
		WALCreated:      func(pebble.WALCreateInfo) { s.health.countMove() },
		FlushEnd:        func(pebble.FlushInfo) { s.health.countMove() },
		DataCorruption: func(info pebble.DataCorruptionInfo) {
			s.health.damage(fmt.Errorf("%s: %w", info.Path, info.Details))
		},
		DiskSlow: func(info pebble.DiskSlowInfo) {
			s.options.Logger.Warn("disk is slow", "operation", info.OpType.String(), "file", info.Path, "duration", info.Duration)
		},
		WriteStallBegin: func(info pebble.WriteStallBeginInfo) {
			s.options.Logger.Warn("writes are waiting for the disk", "reason", info.Reason)
		},
		WriteStallEnd: func() { s.options.Logger.Warn("writes continue") },
	}
}

// logger writes Pebble's messages to slog. Its routine messages get the level debug.
type logger struct{ s *Store }

// Infof implements [pebble.Logger].
func (l logger) Infof(format string, args ...any) {
	if log := l.s.options.Logger; log.Enabled(context.Background(), slog.LevelDebug) {
		log.Debug("pebble", "says", fmt.Sprintf(format, args...))
	}
}

// Errorf implements [pebble.Logger].
func (l logger) Errorf(format string, args ...any) {
	l.s.options.Logger.Error("pebble", "says", fmt.Sprintf(format, args...))
}

// Fatalf implements [pebble.Logger]. Pebble does not expect it to return. It marks the store as failed.
func (l logger) Fatalf(format string, args ...any) {
	l.s.health.fail(fmt.Errorf(format, args...))
}
