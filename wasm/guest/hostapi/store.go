package hostapi

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"sync/atomic"

	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/wasm/abi"
)

// firstChunk is the size in bytes of a scan's first request. It is small because most scans end after a record or two. Each further request
// is four times as large, up to abi.OnceBufferBytes.
const firstChunk = 1 << 10

// Store is the host's store. It is safe for concurrent use if the imports are.
type Store struct {
	reader
	from   Imports
	closed atomic.Bool
}

var _ kv.Store = (*Store)(nil)

// NewStore returns the store that the imports kv_* provide.
func NewStore(from Imports) *Store {
	s := &Store{from: from}
	s.reader = reader{s, 0}
	return s
}

// do calls an import of the store. If the store is closed, do returns kv.ErrClosed instead.
func (s *Store) do(call func() int32) error {
	if s.closed.Load() {
		return kv.ErrClosed
	}
	return did(call())
}

// Apply implements [kv.Store].
func (s *Store) Apply(b *kv.Batch) error {
	return s.do(func() int32 { return s.from.KVApply(b.Bytes()) })
}

// Commit implements [kv.Store]. The batch is durable when Commit returns, so wait does nothing.
func (s *Store) Commit(b *kv.Batch) (wait func() error, err error) {
	if err := s.do(func() int32 { return s.from.KVCommit(b.Bytes()) }); err != nil {
		return nil, err
	}
	return func() error { return nil }, nil
}

// Snapshot implements [kv.Store].
func (s *Store) Snapshot() kv.Snapshot {
	if s.closed.Load() {
		return &snapshot{reader{s, released}}
	}
	return &snapshot{reader{s, s.from.KVSnapshot()}}
}

// Room implements [kv.Store].
func (s *Store) Room() error { return s.do(s.from.KVRoom) }

// Compact frees the space of deleted records between lo and hi.
func (s *Store) Compact(_ context.Context, lo, hi []byte) error {
	return s.do(func() int32 { return s.from.KVCompact(lo, hi) })
}

// Close implements [kv.Store]. The host's store stays open.
func (s *Store) Close() error {
	if s.closed.Swap(true) {
		return kv.ErrClosed
	}
	return nil
}

// reader reads the snapshot with number at. The number 0 means the current store.
type reader struct {
	s  *Store
	at uint32
}

// over reports whether the snapshot is closed, or for number 0 the store.
func (r reader) over() bool { return r.at == released || r.at == 0 && r.s.closed.Load() }

// Get implements [kv.Reader].
func (r reader) Get(key []byte) ([]byte, error) {
	if r.over() {
		return nil, kv.ErrClosed
	}
	room := rooms.Get().(*[abi.OnceBufferBytes]byte)
	defer rooms.Put(room)
	got, err := fill(room[:], func(dst []byte) int64 { return r.s.from.KVGet(r.at, key, dst) })
	return bytes.Clone(got), err
}

// Scan implements [kv.Reader].
func (r reader) Scan(lo, hi []byte, yield func(key, value []byte) bool) error {
	return r.scan(lo, hi, false, yield)
}

// ScanBack implements [kv.Reader].
func (r reader) ScanBack(lo, hi []byte, yield func(key, value []byte) bool) error {
	return r.scan(lo, hi, true, yield)
}

func (r reader) scan(lo, hi []byte, back bool, yield func(key, value []byte) bool) error {
	if r.over() {
		return kv.ErrClosed
	}
	if hi != nil && bytes.Compare(lo, hi) >= 0 {
		return nil
	}
	s := r.s
	n := s.from.KVScan(r.at, lo, hi, back)
	if n < 0 {
		return abi.Errno(-n).Err()
	}
	scan := uint32(n)
	defer s.from.KVEnd(scan)
	room := rooms.Get().(*[abi.OnceBufferBytes]byte) // nested scans need one each
	defer rooms.Put(room)
	for n := firstChunk; ; n = min(4*n, len(room)) {
		chunk, err := fill(room[:n], func(dst []byte) int64 { return s.from.KVNext(scan, dst) })
		if err != nil || len(chunk) == 0 {
			return err
		}
		for len(chunk) > 0 {
			var key, value []byte
			if key, value, chunk, err = abi.NextRecord(chunk); err != nil {
				return fmt.Errorf("%w: %w", kv.ErrFailed, err)
			}
			if !yield(key, value) {
				return nil
			}
		}
	}
}

// snapshot is a snapshot that the host holds open under a number.
type snapshot struct{ reader }

// released is the number of a snapshot that is closed, or that was opened after the store was closed.
const released = math.MaxUint32

// Close implements [kv.Snapshot].
func (s *snapshot) Close() error {
	if s.at == released {
		return kv.ErrClosed
	}
	s.s.from.KVRelease(s.at)
	s.at = released
	return nil
}
