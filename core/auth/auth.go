// Package auth says for whom a request speaks.
//
//	Authorization: Key <32 hex digits> ──SHA-256──▶ key record ──▶ Principal: application, scopes
//
// A key is 128 random bits, shown once when it is made; what is kept is its hash, which
// tells nothing of it and is what it is found by. So a copy of the store lets nobody in.
// What a principal may do stands in the route table of package api.
package auth

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"
)

// Errors of credentials. All mean HTTP status 401 but those below them.
var (
	// ErrNoCredentials is returned for a request without a usable Authorization header.
	ErrNoCredentials = errors.New("an Authorization header with \"Key\" and an API key is needed")
	// ErrKeyFormat is returned for a key that cannot be one. Clients read its text.
	ErrKeyFormat = errors.New("Invalid format of key.") //lint:ignore ST1005 the interface's words
	// ErrKeyUnknown is returned for a key that lets nobody in. Clients read its text.
	ErrKeyUnknown = errors.New("invalid key")
	// ErrToken is returned for a token that was not issued here, or was revoked.
	ErrToken = errors.New("invalid token")
	// ErrExpired is returned for a token whose time is over. Clients read its text and renew.
	ErrExpired = errors.New("expired token")
	// ErrClient is returned for a client id and secret that are not a pair of ours.
	ErrClient = errors.New("invalid client id or secret")
	// ErrSession is returned for a session token that is not open.
	ErrSession = errors.New("invalid session token")
	// ErrLogin is returned for an e-mail address and a password that are not an account's.
	ErrLogin = errors.New("invalid e-mail address or password")
	// ErrQuota is returned when an account may make no more calls: HTTP status 402.
	ErrQuota = errors.New("no calls left")
	// ErrRate is returned for too many calls at a time: HTTP status 429.
	ErrRate = errors.New("too many requests")
)

// Claims are what an access token says: it stands for scope All of one application, until it
// expires or the client's generation is another.
type Claims struct {
	App        string // 32 hex digits
	Client     string // id of the client that it was issued to
	Generation uint64 // of the client: a new secret, or a revocation, makes another
}

// Principal is who asks: a key and the application it belongs to.
type Principal struct {
	App    string // 32 hex digits
	By     string // what operations are signed with: the start of the key's hash
	Scopes Set
}

// Hash is the SHA-256 of a key's text.
type Hash = [sha256.Size]byte

// keyLength is that of a key in hex digits.
const keyLength = 32

// HashKey returns the hash that a key is kept as.
func HashKey(key string) Hash { return sha256.Sum256([]byte(key)) }

// NewKey makes a key of 32 lower-case hex digits from 128 bits of random.
func NewKey(random io.Reader) (string, error) {
	var b [keyLength / 2]byte
	if _, err := io.ReadFull(random, b[:]); err != nil {
		return "", fmt.Errorf("random source: %w", err)
	}
	return hex.EncodeToString(b[:]), nil
}

// By is what operations are signed with for a key.
func By(h Hash) string { return hex.EncodeToString(h[:8]) }

// Key reads the value of an Authorization header and returns the hash of its key. Schemes
// match in any case, as HTTP wants it.
func Key(authorization string) (Hash, error) {
	scheme, key, ok := strings.Cut(strings.TrimSpace(authorization), " ")
	key = strings.TrimSpace(key)
	switch {
	case ok && strings.EqualFold(scheme, "Bearer"):
		return Hash{}, ErrToken
	case !ok || !strings.EqualFold(scheme, "Key"):
		return Hash{}, ErrNoCredentials
	case len(key) != keyLength || strings.Trim(key, "0123456789abcdef") != "":
		return Hash{}, ErrKeyFormat
	}
	return HashKey(key), nil
}
