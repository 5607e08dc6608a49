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

// MaxOpen is the maximum number of open scans of an instance, and also of open snapshots.
const MaxOpen = 256

// ErrTooMany is returned if a guest has MaxOpen scans or snapshots open and opens another.
var ErrTooMany = errors.New("too many open scans or snapshots")

// scan is an open scan of a guest, which requests a few records at a time.
type scan struct {
	snapshot   uint32 // number of its snapshot; 0: it reads the store
	next       func() (key, value []byte, ok bool)
	stop       func()
	key, value []byte // next record, if more is set; valid until the call of next
	more       bool
	err        error // error with which the store ended the scan
}

// advance reads the next record.
func (s *scan) advance() { s.key, s.value, s.more = s.next() }

// number returns an unused number above 0 for a snapshot or a scan. The caller holds mu.
func (h *Host) number() uint32 {
	for {
		h.last = (h.last + 1) & math.MaxInt32
		if h.last != 0 && h.snapshots[h.last] == nil && h.scans[h.last] == nil {
			return h.last
		}
	}
}

// reader returns the snapshot with a number, or the store for 0.
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

// Open returns the numbers of the guest's open snapshots and scans.
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

// KVGet reads the value of a key from a snapshot, or from the store if snapshot is 0.
func (h *Host) KVGet(snapshot uint32, key, dst []byte) int64 {
	r, err := h.reader(snapshot)
	var value []byte
	if err == nil {
		value, err = r.Get(key)
	}
	return put(dst, value, err)
}

// KVScan opens a scan of a snapshot, or of the current store if snapshot is 0, and returns its number. A nil hi means no upper bound.
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
				n = size // dst is too small for one record: return the required size
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

// KVSnapshot opens a snapshot and returns its number. It cannot return an error, so it panics if the guest has too many snapshots or the
// host provides no store.
func (h *Host) KVSnapshot() uint32 {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.Store == nil {
		panic(ErrNotProvided)
	}
	if len(h.snapshots) >= MaxOpen {
		panic(ErrTooMany)
	}
	n := h.number()
	h.snapshots[n] = h.Store.Snapshot()
	return n
}

// KVRelease closes a snapshot and its scans.
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

// batch parses a batch. It returns an error if the batch writes outside the bounds.
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

// KVCommit writes a batch. The batch is durable when KVCommit returns.
func (h *Host) KVCommit(batch []byte) int32 {
	b, err := h.batch(batch)
	if err == nil {
		err = kv.CommitAndWait(h.Store, b)
	}
	return did(err)
}

// KVRoom returns the number of the error of [kv.Store.Room], or 0 if the store accepts more data.
func (h *Host) KVRoom() int32 {
	if h.Store == nil {
		return did(ErrNotProvided)
	}
	return did(h.Store.Room())
}

// compacter is a store that frees the space of deleted records only when Compact is called.
type compacter interface {
	Compact(ctx context.Context, lo, hi []byte) error
}

// KVCompact frees the space of deleted records between lo and hi. A nil hi means no upper bound.
func (h *Host) KVCompact(lo, hi []byte) int32 {
	if store, ok := h.Store.(compacter); ok {
		return did(store.Compact(h.Context, bytes.Clone(lo), bytes.Clone(hi)))
	}
	return 0
}
