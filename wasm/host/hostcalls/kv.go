package hostcalls

import (
	"bytes"
	"context"
	"errors"
	"iter"
	"math"

	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/wasm/abi"
)

// MaxOpen is the maximum number of scans, and of snapshots, that an instance may hold open in the store.
const MaxOpen = 256

// ErrTooMany is the error of a guest that keeps opening scans or snapshots.
var ErrTooMany = errors.New("too many open scans or snapshots")

// scan is a scan that is asked for its records a few at a time.
type scan struct {
	snapshot   uint32 // 0: of the store
	next       func() (key, value []byte, ok bool)
	stop       func()
	key, value []byte // the next record, while there is one; borrowed from the store until next
	more       bool
	err        error // what the store said at the end
}

// advance goes to the next record.
func (s *scan) advance() { s.key, s.value, s.more = s.next() }

// number is one that nothing has yet; mu is held.
func (h *Host) number() uint32 {
	for {
		h.last = (h.last + 1) & math.MaxInt32
		if h.last != 0 && h.snapshots[h.last] == nil && h.scans[h.last] == nil {
			return h.last
		}
	}
}

// reader returns the snapshot with a number; 0: the store.
func (h *Host) reader(snapshot uint32) (kv.Reader, error) {
	if h.Store == nil {
		return nil, ErrNotProvided
	}
	if snapshot == 0 {
		return h.Store, nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if s, ok := h.snapshots[snapshot]; ok {
		return s, nil
	}
	return nil, kv.ErrClosed
}

// Open returns how many snapshots and scans the guest holds open.
func (h *Host) Open() (snapshots, scans int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.snapshots), len(h.scans)
}

// Close ends all scans, then all snapshots. The store stays open.
func (h *Host) Close() (err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, s := range h.scans {
		s.stop()
	}
	for _, s := range h.snapshots {
		err = errors.Join(err, s.Close())
	}
	clear(h.scans)
	clear(h.snapshots)
	return err
}

// KVGet reads a record.
func (h *Host) KVGet(snapshot uint32, key, dst []byte) int64 {
	r, err := h.reader(snapshot)
	var value []byte
	if err == nil {
		value, err = r.Get(key)
	}
	return put(dst, value, err)
}

// KVScan opens a scan, which shows the store as it is now, and returns its number. A nil hi reaches to the end.
func (h *Host) KVScan(snapshot uint32, lo, hi []byte, back bool) int64 {
	r, err := h.reader(snapshot)
	h.mu.Lock()
	defer h.mu.Unlock()
	if err == nil && len(h.scans) >= MaxOpen {
		err = ErrTooMany
	}
	if err != nil {
		return put(nil, nil, err)
	}
	s := &scan{snapshot: snapshot}
	walk := r.Scan
	if back {
		walk = r.ScanBack
	}
	lo, hi = bytes.Clone(lo), bytes.Clone(hi)
	s.next, s.stop = iter.Pull2(func(yield func(key, value []byte) bool) { s.err = walk(lo, hi, yield) })
	s.advance()
	n := h.number()
	h.scans[n] = s
	return int64(n)
}

// KVNext fills dst with the next records of a scan, as many as fit, each as [abi.NextRecord] reads it.
func (h *Host) KVNext(scan uint32, dst []byte) int64 {
	h.mu.Lock()
	s, ok := h.scans[scan]
	h.mu.Unlock()
	if !ok {
		return put(nil, nil, kv.ErrClosed)
	}
	n := 0
	for ; s.more; s.advance() {
		size := abi.RecordHead + len(s.key) + len(s.value)
		if size > len(dst)-n {
			if n == 0 {
				n = size // nothing is written: ask with this much
			}
			break
		}
		n = len(abi.AppendRecord(dst[:n], s.key, s.value))
	}
	if n == 0 && s.err != nil {
		return put(nil, nil, s.err)
	}
	return int64(n)
}

// KVEnd ends a scan.
func (h *Host) KVEnd(scan uint32) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if s, ok := h.scans[scan]; ok {
		s.stop()
		delete(h.scans, scan)
	}
}

// KVSnapshot opens a snapshot and returns its number. It panics for a guest that has too many, since it returns no error.
func (h *Host) KVSnapshot() uint32 {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.Store == nil || len(h.snapshots) >= MaxOpen {
		panic(ErrTooMany)
	}
	n := h.number()
	h.snapshots[n] = h.Store.Snapshot()
	return n
}

// KVRelease closes a snapshot with its scans.
func (h *Host) KVRelease(snapshot uint32) {
	h.mu.Lock()
	defer h.mu.Unlock()
	s, ok := h.snapshots[snapshot]
	if !ok {
		return
	}
	for number, open := range h.scans {
		if open.snapshot == snapshot {
			open.stop()
			delete(h.scans, number)
		}
	}
	delete(h.snapshots, snapshot)
	if err := s.Close(); err != nil {
		h.Services.Log.Error("cannot close snapshot", "error", err)
	}
}

// batch reads a batch and refuses one that writes outside of the bounds.
func (h *Host) batch(data []byte) (*kv.Batch, error) {
	if h.Store == nil {
		return nil, ErrNotProvided
	}
	b, err := kv.ParseBatch(data)
	if err == nil {
		err = h.bounds.check(b)
	}
	return b, err
}

// KVApply writes a batch.
func (h *Host) KVApply(batch []byte) int32 {
	b, err := h.batch(batch)
	if err == nil {
		err = h.Store.Apply(b)
	}
	return did(err)
}

// KVCommit writes a batch, which outlives a crash when it returns.
func (h *Host) KVCommit(batch []byte) int32 {
	b, err := h.batch(batch)
	if err == nil {
		err = kv.Sync(h.Store, b)
	}
	return did(err)
}

// KVRoom reports whether the store takes writes.
func (h *Host) KVRoom() int32 {
	if h.Store == nil {
		return did(ErrNotProvided)
	}
	return did(h.Store.Room())
}

// compacter is a store that keeps what was deleted until it compacts.
type compacter interface {
	Compact(ctx context.Context, lo, hi []byte) error
}

// KVCompact frees the space of deleted records between lo and hi; a nil hi reaches to the end.
func (h *Host) KVCompact(lo, hi []byte) int32 {
	if store, ok := h.Store.(compacter); ok {
		return did(store.Compact(h.Context, bytes.Clone(lo), bytes.Clone(hi)))
	}
	return 0
}
