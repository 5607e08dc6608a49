package identity

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
)

// Secret is 32 random bytes: the cluster's key, or the secret of a join token. In JSON it is base64. Printing it hides it, so that no log has it.
type Secret [32]byte

// NewSecret reads a secret from random.
func NewSecret(random io.Reader) (s Secret, err error) {
	if _, err = io.ReadFull(random, s[:]); err != nil {
		return Secret{}, fmt.Errorf("random source: %w", err)
	}
	return s, nil
}

// Hash returns the SHA-256 of the secret. A server stores it instead of the secret. It needs no salt, because the secret is random.
func (s Secret) Hash() [sha256.Size]byte { return sha256.Sum256(s[:]) }

// String returns a text without the secret.
func (Secret) String() string { return "(secret)" }

// GoString returns a text without the secret.
func (Secret) GoString() string { return "(secret)" }

// MarshalText implements [encoding.TextMarshaler].
func (s Secret) MarshalText() ([]byte, error) { return base64.StdEncoding.AppendEncode(nil, s[:]), nil }

// UnmarshalText implements [encoding.TextUnmarshaler].
func (s *Secret) UnmarshalText(text []byte) error {
	b, err := base64.StdEncoding.Strict().AppendDecode(nil, text)
	if err != nil || len(b) != len(s) {
		return fmt.Errorf("secret is not base64 of %d bytes", len(s))
	}
	copy(s[:], b)
	return nil
}

// idBytes is the length of a cluster's or node's ID in bytes. Its text has twice as many hex digits.
const idBytes = 8

// NewID returns 16 random hex digits.
func NewID(random io.Reader) (string, error) {
	var b [idBytes]byte
	if _, err := io.ReadFull(random, b[:]); err != nil {
		return "", fmt.Errorf("random source: %w", err)
	}
	return hex.EncodeToString(b[:]), nil
}

// isID reports whether id is 16 lower-case hex digits.
func isID(id string) bool {
	b, err := hex.DecodeString(id)
	return err == nil && len(b) == idBytes && hex.EncodeToString(b) == id
}

// EtcdID is etcd's ID of a cluster. etcd draws it when the first member starts. In JSON it is 16 hex digits. 0: unknown.
type EtcdID uint64

// String returns 16 hex digits.
func (id EtcdID) String() string { return fmt.Sprintf("%016x", uint64(id)) }

// MarshalText implements [encoding.TextMarshaler].
func (id EtcdID) MarshalText() ([]byte, error) { return []byte(id.String()), nil }

// UnmarshalText implements [encoding.TextUnmarshaler].
func (id *EtcdID) UnmarshalText(text []byte) error {
	b, err := hex.DecodeString(string(text))
	if err != nil || len(b) != idBytes {
		return errors.New("ID of etcd is not 16 hex digits")
	}
	*id = EtcdID(binary.BigEndian.Uint64(b))
	return nil
}
