package log

import (
	"errors"

	"github.com/sightline-dev/sightline/core/kv"
)

// ErrTrimmed is returned by Read for entries that the log no longer has. A reader that needs them
// takes a snapshot of the state instead.
var ErrTrimmed = errors.New("log was trimmed past this entry")

// Epoch is the random name of a log's life. It changes when a log is restored from a backup.
type Epoch [16]byte

// Chain is the digest of a log up to an entry: SHA-256 of the chain before it and its bytes,
// cut to 16 bytes. Before the first entry it is the epoch. Two logs that agree in one agree
// in all before it.
type Chain [16]byte

// Log is one partition's log. Entries count from 1 without gaps and never change. A method
// may be called concurrently with others. [Store] is the log on a kv store, and package
// logtest holds any other to this page.
type Log interface {
	// Epoch is the log's.
	Epoch() Epoch

	// Append adds operations at the end, all or none, in a row. It writes also, which may be nil, to the local store before they can be
	// read. wait returns nil once they are durable, and until then no reader sees them; the caller calls it once. If it returns an error,
	// they may or may not be durable, and the log accepts nothing afterwards. Append borrows the operations until it returns. Errors: those of kv.
	Append(ops []Op, also *kv.Batch) (first uint64, wait func() error, err error)

	// Head is the last entry that outlives a crash, 0 for none: as far as anyone can read.
	Head() uint64

	// Floor is the first entry that the log still has, or will have.
	Floor() uint64

	// Read yields the entries, starting at one, up to Head as it was when Read began, until yield returns false. yield may keep the
	// entries. Errors: ErrTrimmed below Floor, kv.ErrCorrupt when an entry is missing or has changed.
	Read(from uint64, yield func(Entry) bool) error

	// Chain returns the chain up to an entry at most Head, or 0. Errors: ErrTrimmed more than
	// one below Floor.
	Chain(seq uint64) (Chain, error)

	// Tail calls moved each time after Head has moved, from whichever goroutine moved it;
	// moved does not wait and asks Head where it is. stop ends it; a call may be under way.
	Tail(moved func()) (stop func())

	// Trim drops the entries below one that is at most Head + 1.
	Trim(below uint64) error
}
