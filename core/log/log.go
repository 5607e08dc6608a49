package log

import (
	"errors"

	"github.com/sightline-dev/sightline/core/kv"
)

// ErrTrimmed is returned by Read for entries that the log no longer has. A reader that needs them reads a snapshot of the state instead.
var ErrTrimmed = errors.New("log was trimmed past this entry")

// Epoch is the random name of an opening of a log, and of the entries that it appended.
type Epoch [16]byte

// Chain is the digest of a log up to an entry: SHA-256 of the previous chain and the entry's bytes, cut to 16 bytes. Before the first entry
// it is the first epoch. Two logs with the same chain at an entry have the same entries up to it.
type Chain [16]byte

// Log is one partition's log. Entries count from 1 without gaps and never change. Its methods are safe for concurrent use. [Store] is the
// log on a kv store, and package logtest tests any other implementation against this page.
type Log interface {
	// EpochOf returns the epoch of an entry seq ≤ Head, with the last entry of that epoch.
	EpochOf(seq uint64) Mark

	// Append adds operations at the end, all or none, in a row. It writes also, which may be nil, to the local store before readers see
	// them. wait returns nil once they are durable, and until then no reader sees them; the caller calls it once. If wait returns an error,
	// they may or may not be durable, and the log rejects later appends. Append borrows the operations until it returns. Errors: those of
	// kv.
	Append(ops []Op, also *kv.Batch) (first uint64, wait func() error, err error)

	// Head returns the last entry that survives a crash, 0 for none. Readers see entries up to it.
	Head() uint64

	// Floor returns the first entry that the log still has, or will have.
	Floor() uint64

	// Read yields the entries, starting at from, up to Head as it was when Read began, until yield returns false. yield may keep the
	// entries. Errors: ErrTrimmed below Floor, kv.ErrCorrupt if an entry is missing or has changed.
	Read(from uint64, yield func(Entry) bool) error

	// Chain returns the chain up to an entry seq ≤ Head, or 0. It returns ErrTrimmed below Floor - 1.
	Chain(seq uint64) (Chain, error)

	// Tail calls moved each time after Head has moved, from the goroutine that moved it. moved must not wait; it calls Head for the new
	// value. stop ends the calls, but one may still be running.
	Tail(moved func()) (stop func())

	// Trim deletes the entries below an entry, which is at most Head + 1.
	Trim(below uint64) error
}
