package log

import "errors"

// ErrTrimmed is returned by Read for entries that the log no longer has. A reader that needs them reads a snapshot of the state instead.
var ErrTrimmed = errors.New("log was trimmed past this entry")

// Epoch is the random name of an opening of a log, and of the entries that it appended.
type Epoch [16]byte

// Chain is the digest of a log up to an entry: SHA-256 of the previous chain and the entry's bytes, cut to 16 bytes. Before the first entry
// it is the first epoch. Two logs with the same chain at an entry have the same entries up to it.
type Chain [16]byte
