package token

import (
	"crypto/ed25519"
	"encoding/base64"
	"strings"

	"github.com/sightline-dev/sightline/core/log"
)

// PeerKeys provides the keys outside this ring. An edge verifies the tokens of its origin and of other edges by their keys. It signs tokens
// for the origin's applications with the key that it enrolled, and the origin verifies them by this key.
//
//	origin: ring ────────▶ tokens of all applications          ◀── edges verify them by the keys in their app records
//	edge: enrolled key ──▶ tokens of the origin's applications ◀── the origin and other edges with a replica verify them
//	edge: ring ──────────▶ tokens of its own applications
type PeerKeys interface {
	// Signer returns the holder of the key with the id kid, or false if no peer has this key.
	Signer(kid string) (Signer, bool)

	// Delegate returns the key with which this server signs the tokens of an application, or false if the ring signs them.
	Delegate(app string) (Delegate, bool)
}

// Signer is a peer whose tokens this server accepts.
type Signer struct {
	Public   ed25519.PublicKey
	Issuer   string                // issuer in its tokens
	MayIssue func(app string) bool // reports whether it may issue tokens of an application
}

// Delegate is a key that signs tokens instead of the ring's key.
type Delegate struct {
	ID      string // id of the key, as in the headers of tokens
	Issuer  string
	Private ed25519.PrivateKey
}

// EdgeIssuer returns the issuer in the tokens of an edge. The edge's id is also the id of its key.
func EdgeIssuer(edge string) string { return "urn:sightline:edge:" + edge }

// TrustPeer makes t accept tokens that o's signers have signed, and sign with the keys that o delegates.
func (t *Tokens) TrustPeer(o PeerKeys) { t.peers.Store(&o) }

// peerKeys returns the keys of peers, or nil if TrustPeer was not called.
func (t *Tokens) peerKeys() PeerKeys {
	if o := t.peers.Load(); o != nil {
		return *o
	}
	return nil
}

// Issuer returns the issuer in the tokens of this server.
func (t *Tokens) Issuer() string { return t.o.Issuer }

// Public returns the public halves of the signing keys, oldest first. They include earlier keys whose tokens may still be valid, and the
// next key. Public creates a key if none exists or the next one is due, so that edges know a key before its first token exists. It returns
// an error only if there is no key.
func (t *Tokens) Public() ([]log.PublicKey, error) {
	r, err := t.turn(t.o.Now())
	if err != nil {
		return nil, err
	}
	var keys []log.PublicKey
	for i := range r.keys {
		keys = append(keys, log.PublicKey{ID: r.keys[i].ID, Key: [32]byte(r.keys[i].private.Public().(ed25519.PublicKey))})
	}
	return keys, nil
}

// The header of a token has exactly one form, so that no token has two texts.
const (
	headStart = `{"alg":"EdDSA","kid":"`
	headEnd   = `","typ":"JWT"}`
	maxKey    = 64 // maximum length of a key's id in bytes
)

// KeyID returns the id of the key that a token names. It returns an empty id for a text that cannot be a token. It verifies nothing.
func KeyID(token string) string {
	if len(token) > maxLength || !plain(token) {
		return ""
	}
	header, _, _ := strings.Cut(token, ".")
	return kidOf(header)
}

// kidOf returns the id of the key in a token's header. It returns an empty id for a header of another form.
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
