// Package kv is the ordered key-value store under all durable data: the port [Store], the [Batch] that changes one, and the [Overlay]
// that shows a store with an unfinished batch.
//
//	fold ──Put, Delete──▶ Overlay ──Get, Scan──▶ pending ops over the base, as if applied
//	                         │
//	                       Batch ──Apply──▶ Store    visible, complete, in order
//	                             └─Commit─▶   … and wait() until it is durable
//
// Durability is a prefix: after a crash the store has the first n batches, where n includes at least the last batch whose wait returned
// nil. So a caller uses Apply for a batch that it can compute again, and Commit for a batch that it acknowledges.
//
// In a cluster other machines decide the order of all Commits, and whether a machine may write. A Commit then becomes visible as late as its
// wait returns, and a later Apply may be visible before it:
//
//	Commit a ─────────── decided ─ visible ─ wait returns
//	     Apply b ─ visible                                     a reader in between sees b without a
//
// So a caller waits for a Commit before it, or anyone who gets its lock next, reads what the batch has; or keeps that in memory. No key gets
// an Apply while a Commit of it waits.
//
// There are three implementations: in memory ([memkv]), on Pebble ([pebblekv], native targets) and the host's store for a guest. Package
// kvtest checks all of them against this page, including crashes. A store is not a cache, does not interpret its data, and has no
// transactions: each part of the store has one writer, and readers take a snapshot.
//
// [memkv]: https://pkg.go.dev/github.com/sightline-dev/sightline/core/kv/memkv
// [pebblekv]: https://pkg.go.dev/github.com/sightline-dev/sightline/core/kv/pebblekv
package kv

import "errors"

// ErrNotFound is returned by Get for a key that the store does not hold.
var ErrNotFound = errors.New("no such key")

// ErrClosed is returned by a store or a snapshot that has been closed.
var ErrClosed = errors.New("store is closed")

// ErrFull is returned by Room, Apply and Commit while the store accepts no more data because its disk is nearly full. Reads and deletions
// still work, and writes do again when there is space.
var ErrFull = errors.New("store is full")

// ErrCorrupt is returned if stored bytes are damaged. Results returned without it are correct.
var ErrCorrupt = errors.New("store is damaged")

// ErrFailed is returned by every write, and every wait, after the store failed to make a write durable. Nothing is acknowledged
// afterwards. The store must be opened again to find out what it has.
var ErrFailed = errors.New("store stopped after a failed write")

// ErrFollows is returned by Commit and by wait on a machine whose batches another machine decides now: the batch was not written and never
// will be.
var ErrFollows = errors.New("another machine writes")

// ErrForeign is returned by Open for a folder whose content is not a Sightline store.
var ErrForeign = errors.New("not a Sightline store")

// ErrNewer is returned by Open for a store that a newer version has written.
var ErrNewer = errors.New("store was written by a newer version")

// ErrInUse is returned by Open for a store that another process, or this one, has open.
var ErrInUse = errors.New("store is in use")

// ErrBatch is returned by ParseBatch for bytes that are not a valid batch.
var ErrBatch = errors.New("malformed batch")

// Reader has the methods that a store, a snapshot and an overlay share. The order of keys is that of bytes.Compare. Arguments are
// borrowed until the call returns.
type Reader interface {
	// Get returns the value of key as the caller's own copy, never nil, or ErrNotFound.
	Get(key []byte) ([]byte, error)

	// Scan calls yield for the keys lo ≤ key < hi in ascending order until yield returns false. A nil lo means the first key, a nil hi the
	// end. Key and value are borrowed until yield returns. The scan shows the data of the moment when it began, even if yield or others
	// write meanwhile.
	Scan(lo, hi []byte, yield func(key, value []byte) bool) error

	// ScanBack is Scan in descending order of the same keys.
	ScanBack(lo, hi []byte, yield func(key, value []byte) bool) error
}

// Writer has the methods that a [Batch] and an [Overlay] share. Arguments are copied.
type Writer interface {
	// Put sets the value of key. The key is not empty and does not begin with [End].
	Put(key, value []byte)

	// Delete removes key. It does nothing if key does not exist.
	Delete(key []byte)

	// DeleteRange removes the keys lo ≤ key < hi, at a cost that does not depend on their number; a nil hi is the end. It does not affect
	// later writes to the range.
	DeleteRange(lo, hi []byte)
}

// Store is an ordered key-value store. Its methods may be called concurrently.
type Store interface {
	Reader

	// Apply makes the batch visible at once, completely, after all batches applied before. The batch is durable as soon as a later Commit is, or
	// earlier: a crash keeps a prefix of the batches. After ErrFull the store has no part of it. The batch is borrowed until Apply
	// returns.
	Apply(b *Batch) error

	// Commit is Apply with a wait: wait returns nil once the batch, and all before it, are visible and survive a crash. This also applies to
	// an empty batch. The batch may become visible as late as that, after batches that were applied later; of two Commits the first one is
	// visible first. The caller calls wait at most once, from any goroutine; a later Commit reports what an unused wait would report. Commits
	// of several goroutines share syncs. If wait returns an error other than ErrFollows, the batch may or may not survive a crash.
	Commit(b *Batch) (wait func() error, err error)

	// Snapshot returns the present content of the store. The caller can read it until it closes it.
	Snapshot() Snapshot

	// Room returns ErrFull while callers should add no more data. Deleting remains allowed.
	Room() error

	// Close makes all applied batches durable and closes the store. Callers must not read open snapshots afterwards.
	Close() error
}

// CommitAndWait commits a batch and returns once it is visible and outlives a crash. Its errors are those of Store.Commit and of its wait.
func CommitAndWait(s Store, b *Batch) error {
	wait, err := s.Commit(b)
	if err != nil {
		return err
	}
	return wait()
}

// Snapshot is the content of a store at one moment. Its methods may be called concurrently.
type Snapshot interface {
	Reader

	// Close releases the snapshot. The caller calls it once, after all its reads have returned.
	Close() error
}
