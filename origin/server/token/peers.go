package token

import (
	"crypto/ed25519"
	"encoding/base64"
	"strings"

	"github.com/sightline-dev/sightline/core/log"
)

// PeerKeys has the keys outside this ring. An edge verifies the tokens of its origin and of other edges by their keys. It issues tokens of
// the origin's applications with the key that it enrolled, by which the origin verifies them.
//
//	origin: ring ──────▶ tokens of all applications ◀── read at edges, by the keys in their registers
//	edge: own key ─────▶ tokens of those it holds   ◀── read at the origin, and at others that hold them
//	edge: own ring ────▶ tokens of its own applications
type PeerKeys interface {
	// Signer is the holder of a key, by the id that tokens name. false: there is none.
	Signer(kid string) (Signer, bool)

	// Delegate is the key with which the tokens of an application are issued here. false: the ring's is.
	Delegate(app string) (Delegate, bool)
}

// Signer is somebody else whose tokens are good here.
type Signer struct {
	Public ed25519.PublicKey
	Issuer string                // as its tokens name it
	May    func(app string) bool // whether it may issue those of an application
}

// Delegate is a key that issues tokens instead of the ring's.
type Delegate struct {
	ID      string // that tokens name
	Issuer  string
	Private ed25519.PrivateKey
}

// EdgeIssuer is how the tokens that an edge issues name it. The id of the edge is that of its key.
func EdgeIssuer(edge string) string { return "urn:sightline:edge:" + edge }

// TrustPeer makes t accept tokens that are signed by o's keys, and sign with keys that o delegates.
func (t *Tokens) TrustPeer(o PeerKeys) { t.peers.Store(&o) }

// peerKeys returns the others; nil: there are none.
func (t *Tokens) peerKeys() PeerKeys {
	if o := t.peers.Load(); o != nil {
		return *o
	}
	return nil
}

// Issuer is how tokens name the server.
func (t *Tokens) Issuer() string { return t.o.Issuer }

// Public are the public halves of the signing keys, the oldest first: those that sign, that have signed tokens which
// may live, and the next.
func (t *Tokens) Public() []log.PublicKey {
	r := t.ring.Load()
	var keys []log.PublicKey
	for i := range r.keys {
		keys = append(keys, log.PublicKey{ID: r.keys[i].ID, Key: [32]byte(r.keys[i].private.Public().(ed25519.PublicKey))})
	}
	return keys
}

// A header of a token has one form, so there are no two texts of one token.
const (
	headStart = `{"alg":"EdDSA","kid":"`
	headEnd   = `","typ":"JWT"}`
	maxKey    = 64 // of a key's id
)

// kidOf is the key that a token's header names; empty: it is not a header as we write it.
func kidOf(header string) string {
	if len(header) > base64.RawURLEncoding.EncodedLen(len(headStart)+maxKey+len(headEnd)) {
		return ""
	}
	text, err := base64.RawURLEncoding.Strict().DecodeString(header)
	if err != nil {
		return ""
	}
	rest, begins := strings.CutPrefix(string(text), headStart)
	kid, ends := strings.CutSuffix(rest, headEnd)
	if !begins || !ends || strings.Trim(kid, "0123456789abcdef") != "" {
		return ""
	}
	return kid
}
