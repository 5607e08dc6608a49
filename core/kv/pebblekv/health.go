//go:build !wasip1

package pebblekv

import (
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"syscall"

	"github.com/cockroachdb/pebble/v2"

	"github.com/sightline-dev/sightline/core/kv"
)

// health is the state of the store: whether it has failed, is damaged, or has no space. Pebble may call its methods while it holds any of
// its locks.
type health struct {
	log     *slog.Logger
	fatal   func(error)
	free    func() (int64, error) // or nil
	least   int64                 // bytes that must be free for Room
	last    int64                 // bytes that new batches leave free for the log and the tables once the ballast was released
	reserve func() error          // creates the ballast file again

	mu      sync.Mutex
	changed sync.Cond // signals changes of the fields below
	failed  error     // kv.ErrFailed with its cause; permanent
	damaged error     // kv.ErrCorrupt with its cause; permanent
	short   bool      // the last check found less than the required free space
	low     bool      // the disk was full, and the ballast was released
	out     bool      // … and a write still failed for lack of space
	serving bool      // Open is about to return
	closing bool
	moves   uint64 // number of memtables that were filled or flushed
}

func newHealth(o *Options) *health {
	h := &health{log: o.Logger, fatal: o.Fatal, free: o.Free, least: o.Watermark, last: o.Ballast / 2, reserve: func() error { return nil }}
	h.changed.L = &h.mu
	return h
}

// fail stops the store permanently.
func (h *health) fail(cause error) {
	h.mu.Lock()
	shouldReport := h.failed == nil && h.serving
	if h.failed == nil {
		h.failed = fmt.Errorf("%w: %w", kv.ErrFailed, cause)
	}
	h.changed.Broadcast()
	h.mu.Unlock()
	if shouldReport {
		h.log.Error("the store failed: it rejects all writes until it is opened again", "err", cause)
		h.fatal(cause)
	}
}

// damage records that stored bytes have changed. It ignores the error in a failed store, which lacks files that it could not write.
func (h *health) damage(cause error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.failed != nil {
		return
	}
	if h.damaged == nil {
		h.damaged = fmt.Errorf("%w: %w", kv.ErrCorrupt, cause)
	}
	h.log.Error("the store is damaged", "err", cause)
}

// background handles an error of a flush or a compaction. Pebble retries it at once.
func (h *health) background(err error) {
	switch {
	case errors.Is(err, errClosing):
	case !h.isServing():
		h.fail(err) // Pebble's Open would retry forever
	case errors.Is(err, syscall.ENOSPC):
		h.mu.Lock()
		h.low, h.out = true, true
		h.changed.Broadcast()
		h.mu.Unlock()
		h.log.Error("the disk is full: rejecting writes", "err", err)
	case pebble.IsCorruptionError(err):
		h.damage(err)
	default:
		h.fail(err)
	}
}

// diskFull records that a write found no space, and that the ballast has just been released.
func (h *health) diskFull() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.low = true
	h.log.Error("the disk is full: the reserved space was released")
}

// serve marks the store as serving, just before Open returns. It returns the error if the store has already failed.
func (h *health) serve() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.serving = h.failed == nil
	return h.failed
}

func (h *health) isServing() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.serving
}

// failure returns nil, or kv.ErrFailed with its cause.
func (h *health) failure() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.failed
}

// writable returns nil if Pebble may get a batch. A log that finds no space fails the store, so new batches do not get the last space.
func (h *health) writable() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.failed == nil && h.low && !h.out && h.free != nil {
		free, err := h.free()
		if err != nil {
			return fmt.Errorf("free space: %w", err)
		}
		if free < h.last {
			return errNoSpace
		}
	}
	if h.failed == nil && h.out {
		return errNoSpace
	}
	return h.failed
}

// room returns nil if the store accepts more data. Once there is space again, it ends the state of a full disk.
func (h *health) room() error {
	free, known := int64(0), false
	if h.free != nil {
		n, err := h.free()
		if err != nil {
			return fmt.Errorf("free space: %w", err)
		}
		free, known = n, true
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.failed != nil:
		return h.failed
	case h.damaged != nil:
		return h.damaged
	case known && free < h.least:
		if !h.short {
			h.short = true
			h.log.Error("the disk is nearly full: rejecting writes", "free", free, "required", h.least)
		}
		return fmt.Errorf("%w: %d bytes free, %d required", kv.ErrFull, free, h.least)
	case !h.low:
		h.spacious(free)
		return nil
	}
	if err := h.reserve(); err != nil && known {
		return fmt.Errorf("%w: reserve space: %w", kv.ErrFull, err)
	}
	h.low, h.out = false, false
	h.changed.Broadcast()
	h.spacious(free)
	if !known { // without Free this only ends the wait: the next call shows the result
		return fmt.Errorf("%w: trying again", kv.ErrFull)
	}
	return nil
}

// spacious records that there is enough space. The caller holds mu.
func (h *health) spacious(free int64) {
	if h.short {
		h.short = false
		h.log.Info("the disk has space again: accepting writes", "free", free)
	}
}

var errNoSpace = fmt.Errorf("%w: waiting for space", kv.ErrFull)

var errClosing = errors.New("store is closing")

// waitSpace blocks a flush or a compaction that would fail and be retried again and again. It returns once there is space. After a failure
// of the store it blocks until closing. It returns an error on closing.
func (h *health) waitSpace() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	for (h.out || h.failed != nil) && !h.closing {
		h.changed.Wait()
	}
	if h.out || h.failed != nil {
		return errClosing
	}
	return nil
}

// countMove records that a memtable was filled or flushed.
func (h *health) countMove() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.moves++
	h.changed.Broadcast()
}

// moveCount returns the number of memtables that were filled or flushed.
func (h *health) moveCount() uint64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.moves
}

// waitMove blocks a writer until the number of moves differs from count, or an error ends the wait.
func (h *health) waitMove(count uint64) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	for h.moves == count && !h.out && h.failed == nil && !h.closing {
		h.changed.Wait()
	}
	switch {
	case h.failed != nil:
		return h.failed
	case h.closing:
		return kv.ErrClosed
	case h.out:
		return errNoSpace
	}
	return nil
}

func (h *health) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closing = true
	h.changed.Broadcast()
}
