// Package kv is the ordered key-value store that everything durable stands on: the port
// [Store], the [Batch] that changes one, and the [Overlay] that shows a store with a batch
// still under construction.
//
//	fold ──Put, Delete──▶ Overlay ──Get, Scan──▶ pending ops over the base, as if applied
//	                         │
//	                       Batch ──Apply──▶ Store    visible, whole, in order
//	                             └─Commit─▶   … and wait() until it outlives a crash
//
// Durability is a prefix: after a crash the store holds the first n batches it was given, for
// some n that reaches at least to the last batch whose wait returned nil. So a batch that may
// be computed again is applied, and one that was promised to somebody is committed.
//
// The port is implemented three times: in memory ([memkv]), on Pebble ([pebblekv], native
// targets) and lent by a host to its guest. Package kvtest holds all of them to this page, crashes included.
// It is no cache, knows nothing of what is kept in it, and has no transactions: each part
// of the store has one writer, and readers take a snapshot.
//
// [memkv]: https://pkg.go.dev/github.com/sightline-dev/sightline/core/kv/memkv
// [pebblekv]: https://pkg.go.dev/github.com/sightline-dev/sightline/core/kv/pebblekv
package kv

import "errors"

// ErrNotFound is returned by Get for a key that the store does not hold.
var ErrNotFound = errors.New("no such key")

// ErrClosed is returned by a store or a snapshot that has been closed.
var ErrClosed = errors.New("store is closed")

// ErrFull is returned by Room, Apply and Commit while the store takes no more data because
// its disk is nearly full. Reading and deleting go on, and writing returns with space.
var ErrFull = errors.New("store is full")

// ErrCorrupt is returned when stored bytes are damaged. What is returned without it is right.
var ErrCorrupt = errors.New("store is damaged")

// ErrFailed is returned by every write, and every wait, after the store could not make one
// durable. Nothing more is ever acknowledged: only opening it again tells what was kept.
var ErrFailed = errors.New("store stopped after a failed write")

// ErrForeign is returned by Open for a folder that holds something else than our store.
var ErrForeign = errors.New("not a Sightline store")

// ErrNewer is returned by Open for a store that a newer version has written.
var ErrNewer = errors.New("store was written by a newer version")

// ErrInUse is returned by Open for a store that another process, or this one, has open.
var ErrInUse = errors.New("store is in use")

// ErrBatch is returned by ParseBatch for bytes that are no batch.
var ErrBatch = errors.New("malformed batch")

// Reader is what a store, a snapshot and an overlay have in common. Keys are ordered as
// bytes.Compare orders them. Arguments are borrowed until the call returns.
type Reader interface {
	// Get returns the value of key as the caller's own copy, never nil, or ErrNotFound.
	Get(key []byte) ([]byte, error)

	// Scan calls yield for the keys lo ≤ key < hi in ascending order until it returns false;
	// a nil lo is the first key, a nil hi reaches to the end. Key and value are borrowed until yield returns.
	// The scan shows one moment, its beginning, whatever yield or others write meanwhile.
	Scan(lo, hi []byte, yield func(key, value []byte) bool) error

	// ScanBack is Scan in descending order of the same keys.
	ScanBack(lo, hi []byte, yield func(key, value []byte) bool) error
}

// Writer is what a [Batch] and an [Overlay] have in common. Arguments are copied.
type Writer interface {
	// Put sets the value of key. The key is not empty and does not begin with [End].
	Put(key, value []byte)

	// Delete removes key; a key that is not there is no error.
	Delete(key []byte)

	// DeleteRange removes the keys lo ≤ key < hi, at a cost that does not depend on their
	// number; a nil hi reaches to the end. What is put into the range later is there.
	DeleteRange(lo, hi []byte)
}

// Store is the port. Its methods may be called concurrently.
type Store interface {
	Reader

	// Apply makes the batch visible, whole, after all batches applied before. It outlives a
	// crash as soon as a later Commit does, or earlier: a crash keeps a prefix of the batches.
	// After ErrFull nothing of the batch is there. The batch is borrowed until Apply returns.
	Apply(b *Batch) error

	// Commit is Apply; the returned wait returns nil once the batch, and all before it,
	// outlive a crash; an empty batch is one, too. wait must be called once, from any goroutine. Commits of several
	// goroutines share syncs. When wait returns an error the batch may or may not outlive a crash.
	Commit(b *Batch) (wait func() error, err error)

	// Snapshot returns the store as it is now, to be read for as long as it is open.
	Snapshot() Snapshot

	// Room returns ErrFull while the store asks for no more data. Deleting remains allowed.
	Room() error

	// Close makes durable what was applied and closes the store. Snapshots still open must not be read after it.
	Close() error
}

// Sync commits a batch and returns once it outlives a crash. Its errors are those of Store.Commit and of its wait.
func Sync(s Store, b *Batch) error {
	wait, err := s.Commit(b)
	if err != nil {
		return err
	}
	return wait()
}

// Snapshot is a store at one moment. Its methods may be called concurrently.
type Snapshot interface {
	Reader

	// Close releases it. It is called once, after all reads have returned.
	Close() error
}
