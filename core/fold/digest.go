package fold

import (
	"crypto/sha256"
	"encoding/binary"
	"hash"

	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/kv"
)

// Digest returns the SHA-256 of an application's whole state. Equal logs give equal digests, wherever, and in however many runs, they were
// folded.
func Digest(r kv.Reader, app catalog.AppID) ([32]byte, error) {
	s := NewDigester()
	err := catalog.Read(r, app).StateTables(func(key, value []byte) bool {
		s.Add(key, value)
		return true
	})
	return s.Sum(), err
}

// Digester computes a [Digest] from the keys and values of a state, in the order in which [catalog.Reader.StateTables] yields them. It
// hashes each byte string with its length.
type Digester struct {
	h      hash.Hash
	length [binary.MaxVarintLen64]byte
}

// NewDigester returns a Digester that has no data yet.
func NewDigester() *Digester { return &Digester{h: sha256.New()} }

// Add adds the next key, without the application's id, and its value.
func (s *Digester) Add(key, value []byte) {
	s.add(key)
	s.add(value)
}

func (s *Digester) add(p []byte) {
	s.h.Write(s.length[:binary.PutUvarint(s.length[:], uint64(len(p)))])
	s.h.Write(p)
}

// Sum returns the digest of the pairs so far.
func (s *Digester) Sum() (out [32]byte) {
	s.h.Sum(out[:0])
	return out
}
