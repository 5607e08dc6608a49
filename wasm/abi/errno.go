package abi

import (
	"errors"

	"github.com/sightline-dev/sightline/core/auth"
	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/kv"
)

// Errno is the number of an import's error. An import that returns a length returns the number negated.
type Errno int32

// The numbers.
const (
	OK           Errno = 0
	KeyNotFound  Errno = 1
	StoreClosed  Errno = 2
	StoreFull    Errno = 3
	Damaged      Errno = 4
	WriteFailed  Errno = 5
	BadToken     Errno = 6
	TokenExpired Errno = 7
	BlobNotFound Errno = 8
	Other        Errno = 9
)

// ErrHost is the error for [Other] and for unknown numbers.
var ErrHost = errors.New("host error")

var errnos = []struct {
	err error
	no  Errno
}{
	{kv.ErrNotFound, KeyNotFound},
	{kv.ErrClosed, StoreClosed},
	{kv.ErrFull, StoreFull},
	{kv.ErrFailed, WriteFailed},
	{kv.ErrCorrupt, Damaged},
	{auth.ErrExpired, TokenExpired},
	{auth.ErrToken, BadToken},
	{blob.ErrNotFound, BlobNotFound},
	{blob.ErrCorrupt, Damaged},
}

// ErrnoOf returns the number of an error. It returns OK for nil, and Other for an error without a number.
func ErrnoOf(err error) Errno {
	if err == nil {
		return OK
	}
	for _, row := range errnos {
		if errors.Is(err, row.err) {
			return row.no
		}
	}
	return Other
}

// Err returns the error for a number, or nil for OK.
func (n Errno) Err() error {
	if n == OK {
		return nil
	}
	for _, row := range errnos {
		if row.no == n {
			return row.err
		}
	}
	return ErrHost
}
