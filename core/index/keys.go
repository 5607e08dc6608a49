package index

import (
	"crypto/sha256"
	"encoding/binary"
)

// The layout below catalog.AppID.IndexPrefix. Numbers are big-endian, postings are as in posting.go;
// hash is the first 16 bytes of a SHA-256.
//
//	f                            → format, one byte
//	p kind hash chunk            → posting, by kind and subject:
//	    L                          all live inputs, in the order of creation
//	    R                          inputs at 30000
//	    T F   concept id           labelled true, labelled false
//	    G                          inputs with a place
//	    M     metadata term        W  metadata without terms       A  ambiguous metadata
//	e hash of concept, ord       → float32: an edited prediction, 0 if removed
//	g cell ord                   → latitude, longitude: places by leaf cell of S2
//	q block                      → places as (256, 3) int32 unit vectors in units of 2⁻³¹, by ordinal; missing ones are zero
//	s base …                       data of one base model:
//	    a chunk                  → posting: analysed inputs
//	    p concept chunk          → posting: inputs in whose stored predictions the concept is present
//	    v ord                    → embedding, then the present concepts, as little-endian uint16
//	    w ord                    → the row of a removed input that may still be in the graph's pages
//	    c concept block          → column: (1024) little-endian float32, the stored values; not in a store in memory
//	    k block                  → (1024) bits: inputs whose values are in the columns
//	    n                        → number of the last intent
//	    i seq N                  → ordinal whose node in the graph must be updated
//	    g …                        the graph, see package hnsw
const (
	sectionFormat  = 'f'
	sectionPosting = 'p'
	sectionEdit    = 'e'
	sectionCell    = 'g'
	sectionPlaces  = 'q'
	sectionSpace   = 's'

	spaceAnalysed = 'a'
	spacePresent  = 'p'
	spaceRow      = 'v'
	spaceLeft     = 'w'
	spaceColumn   = 'c'
	spaceCovered  = 'k'
	spaceLast     = 'n'
	spaceIntent   = 'i'
	spaceGraph    = 'g'
)

// Kinds of postings.
const (
	kindLive      = 'L'
	kindReady     = 'R'
	kindTrue      = 'T'
	kindFalse     = 'F'
	kindPlace     = 'G'
	kindMeta      = 'M'
	kindWide      = 'W'
	kindAmbiguous = 'A'
)

const hashBytes = 16

// term names a posting that does not depend on a base model: its kind and the hash of its subject.
type term [1 + hashBytes]byte

// plain returns the term of a kind without a subject.
func plain(kind byte) term { return term{kind} }

func hashTerm(kind byte, subject string) term {
	t := term{kind}
	sum := sha256.Sum256([]byte(subject))
	copy(t[1:], sum[:])
	return t
}

// key joins bytes into a new key.
func key(parts ...[]byte) []byte {
	n := 0
	for _, p := range parts {
		n += len(p)
	}
	k := make([]byte, 0, n+4)
	for _, p := range parts {
		k = append(k, p...)
	}
	return k
}

func (x *Index) section(s byte) []byte { return key(x.prefix, []byte{s}) }

// posting returns the prefix of a posting's chunks.
func (x *Index) posting(t term) []byte { return key(x.prefix, []byte{sectionPosting}, t[:]) }

// edits returns the prefix of the edited predictions of a concept.
func (x *Index) edits(concept string) []byte {
	sum := sha256.Sum256([]byte(concept))
	return key(x.prefix, []byte{sectionEdit}, sum[:hashBytes])
}

func numberedKey(prefix []byte, n uint32) []byte {
	return binary.BigEndian.AppendUint32(append(make([]byte, 0, len(prefix)+4), prefix...), n)
}

// lastNumber returns the number at the end of a key.
func lastNumber(k []byte) uint32 {
	if len(k) < 4 {
		return 0
	}
	return binary.BigEndian.Uint32(k[len(k)-4:])
}
