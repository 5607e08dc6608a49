// Package blob stores pictures by the SHA-256 of their bytes, and gives some of them public names.
//
//	bytes ──Put──▶ hash ──▶ 3f/3f9a…  one file, written once, never changed      [Blobs]
//	                 ▲
//	name ────────────┘      128 random bits → hash, content type, expiry         [HostedNames]
//
// A blob is immutable, and the same in every store. Nobody can guess a public name, and a name may expire. Blobs are stored
// in memory ([NewMemory]) or in a folder ([OpenFolder]) over a small file system port ([FS]). The paths of a folder contain only hashes and
// hex digits that the package generates: no id of a request ever reaches a path.
//
// Every reader of a blob checks its hash, so a damaged file causes an error and never shows a picture. The idea of a content-addressed
// folder comes from git and restic. The store is not a cache, has no order and does not interpret pictures. Other packages decide who may
// read a blob.
package blob

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
)

// ErrNotFound is returned for a hash that is not stored, and for a name that is unknown or has expired.
var ErrNotFound = errors.New("no such blob")

// ErrHash is returned by Put when the bytes do not have the expected hash.
var ErrHash = errors.New("bytes do not have the expected hash")

// ErrCorrupt is returned when stored bytes no longer have their hash.
var ErrCorrupt = errors.New("stored blob is damaged")

// ErrTooLarge is returned by Put for more bytes than the store accepts for a blob.
var ErrTooLarge = errors.New("blob too large")

// ErrUnavailable is returned by a store on another machine if that machine does not answer, or refuses the request. The blob may exist.
var ErrUnavailable = errors.New("the store of pictures does not answer; try again")

// Hash is the SHA-256 of a blob's bytes. The zero hash means "none".
type Hash [sha256.Size]byte

// ParseHash reads 64 lower-case hex digits.
func ParseHash(s string) (Hash, error) {
	var h Hash
	if !isHex(s, len(h)) {
		return Hash{}, fmt.Errorf("hash %q: want %d lower-case hex digits", s, 2*len(h))
	}
	_, err := hex.Decode(h[:], []byte(s))
	return h, err
}

// String returns 64 lower-case hex digits.
func (h Hash) String() string { return hex.EncodeToString(h[:]) }

// IsZero reports whether h is the zero Hash, which means no blob.
func (h Hash) IsZero() bool { return h == Hash{} }

// isHex reports whether s is n bytes in lower-case hex.
func isHex(s string, n int) bool {
	if len(s) != 2*n {
		return false
	}
	for i := range len(s) {
		if c := s[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

// Blobs is the interface of a store of blobs. [Memory] and [Folder] implement it, and
// package blobtest tests every implementation. Methods may be called concurrently.
type Blobs interface {
	// Put stores the bytes of r and returns their hash. It reads r to its end. If want is neither zero nor that
	// hash, Put stores nothing and returns ErrHash. If r fails, Put stores nothing and returns the error wrapped.
	// It does not write bytes that are already stored.
	Put(ctx context.Context, r io.Reader, want Hash) (Hash, error)

	// Get returns the bytes of a blob, checked against the hash. The caller owns them.
	Get(ctx context.Context, h Hash) ([]byte, error)

	// Open returns a reader of the blob's bytes, which the caller closes. If the bytes do not have their hash, the last Read returns
	// ErrCorrupt instead of io.EOF, so the caller must not use them before io.EOF. A reader stays valid if the blob is deleted meanwhile.
	Open(ctx context.Context, h Hash) (io.ReadCloser, error)

	// Has reports whether the blob is stored, without reading it.
	Has(ctx context.Context, h Hash) (bool, error)

	// Len returns the number of bytes of a blob, without reading them.
	Len(ctx context.Context, h Hash) (int64, error)

	// Delete deletes the blob. If it is not stored, Delete returns nil.
	Delete(ctx context.Context, h Hash) error

	// Each calls yield with every stored hash, starting at from, in ascending order. If yield returns an error, Each stops and returns it.
	// Blobs that are added or deleted meanwhile may be missing or included.
	Each(ctx context.Context, from Hash, yield func(Hash) error) error
}
