// Package token issues and verifies access tokens: JSON Web Tokens (RFC 7519) with Ed25519 signatures and nothing else.
//
//	eyJhbGciOiJFZERTQSIsImtpZCI6…  .  eyJpc3MiOiJodHRwczovL…  .  signature, 86 characters
//	 {"alg":"EdDSA","kid":…,"typ":"JWT"}   iss sub aud exp nbf iat jti client_id gen
//
// A token is checked from the outside in, and nothing is parsed before its signature is verified:
//
//	length ─▶ alphabet ─▶ header ─▶ signature ─▶ JSON ─▶ issuer, audience, times
//	                        │
//	                        └ its text must equal the header of a known key
//
// So a token cannot choose an algorithm. It can name only a key of this server or of a trusted peer (see peers.go). No token has two texts.
// Its audience is its application, and nothing else. The signing keys are in a file of the data folder and not in the store. So a copy of
// the store gives no access, and a backup restored elsewhere signs with new keys. A key is published a day before it signs, signs for
// thirty days, and is valid until its last token has expired (see ring.go).
//
// Package core/auth checks the application and the revocation of a token.
package token

import (
	"crypto/ed25519"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/auth"
	"github.com/sightline-dev/sightline/core/blob"
)

// Lifetimes of tokens.
const (
	DefaultLife = 15 * time.Minute
	MaxLife     = 49 * time.Hour
)

const (
	skew = time.Minute // difference of two clocks that a token tolerates

	maxLength       = 2048 // bytes of a token
	maxIssuer       = 512  // bytes of an issuer
	signatureLength = 86   // 64 bytes as base64
)

// Options are the settings of [Tokens]. Issuer, FS, Now, Random and Log are required.
type Options struct {
	Issuer string           // the server's public URL; Read accepts other issuers only from peers
	Life   time.Duration    // lifetime of a token, from 1 s to MaxLife; 0: DefaultLife
	FS     blob.FS          // folder of the file of signing keys
	Now    func() time.Time // the clock
	Random io.Reader        // source of keys and token IDs; one goroutine at a time reads it
	Log    *slog.Logger     // log of new keys, and of keys that could not be stored
}

// Tokens issues and verifies tokens. It is safe for concurrent use.
type Tokens struct {
	o     Options
	ring  atomic.Pointer[ring]
	peers atomic.Pointer[PeerKeys] // nil if TrustPeer was not called

	mu    sync.Mutex // held while keys change and while o.Random is read
	retry time.Time  // earliest time of the next attempt to create a key
}

var _ api.Tokens = (*Tokens)(nil)

// Open reads the signing keys. If there is none, the first use creates one.
func Open(o Options) (*Tokens, error) {
	if o.Life == 0 {
		o.Life = DefaultLife
	}
	switch {
	case o.FS == nil || o.Now == nil || o.Random == nil || o.Log == nil:
		return nil, errors.New("token: FS, Now, Random and Log are required")
	case o.Issuer == "" || len(o.Issuer) > maxIssuer:
		return nil, fmt.Errorf("token: an issuer must have 1 to %d bytes", maxIssuer)
	case o.Life < time.Second || o.Life > MaxLife:
		return nil, fmt.Errorf("token: a lifetime of %v is not from 1s to %v", o.Life, MaxLife)
	}
	r, err := load(o.FS)
	if err != nil {
		return nil, err
	}
	t := &Tokens{o: o}
	t.ring.Store(r)
	return t, nil
}

// claims are a token's payload.
type claims struct {
	jwt.RegisteredClaims
	Client     string `json:"client_id"`
	Generation uint64 `json:"gen"`
	Page       bool   `json:"page,omitempty"`
	Session    string `json:"sid,omitempty"`
}

// endsInTime reports whether a token lives at most MaxLife, and skew for clocks, from its issue and from now. A peer that signs could choose
// another end, and its tokens would be valid for years.
func (c *claims) endsInTime(now time.Time) bool {
	if c.ExpiresAt == nil || c.IssuedAt == nil {
		return false
	}
	return c.ExpiresAt.Sub(c.IssuedAt.Time) <= MaxLife+skew && c.ExpiresAt.Sub(now) <= MaxLife+skew
}

// Issue implements [api.Tokens]. It creates a signing key if none exists or the next one is due.
func (t *Tokens) Issue(c auth.Claims) (token string, life time.Duration, err error) {
	now := t.o.Now()
	k, err := t.signing(c.App, now)
	if err != nil {
		return "", 0, err
	}
	var id [16]byte
	t.mu.Lock()
	_, err = io.ReadFull(t.o.Random, id[:])
	t.mu.Unlock()
	if err != nil {
		return "", 0, fmt.Errorf("random source: %w", err)
	}
	issued := now.Truncate(time.Second)
	expires := issued.Add(t.o.Life)
	if issued.Before(now) {
		expires = expires.Add(time.Second) // at least the lifetime that Issue returns
	}
	unsigned := jwt.NewWithClaims(jwt.SigningMethodEdDSA, claims{
		RegisteredClaims: jwt.RegisteredClaims{
			Issuer: k.Issuer, Subject: c.App, Audience: jwt.ClaimStrings{c.App}, ID: hex.EncodeToString(id[:]),
			ExpiresAt: jwt.NewNumericDate(expires), NotBefore: jwt.NewNumericDate(issued.Add(-skew)), IssuedAt: jwt.NewNumericDate(issued),
		},
		Client: c.Client, Generation: c.Generation, Page: c.Page, Session: c.Session,
	})
	unsigned.Header["kid"] = k.ID
	token, err = unsigned.SignedString(k.Private)
	if err == nil && len(token) > maxLength {
		err = fmt.Errorf("the token has %d bytes, which is too long", len(token))
	}
	return token, t.o.Life, err
}

// signing returns the key that now signs the tokens of an application.
func (t *Tokens) signing(app string, now time.Time) (Delegate, error) {
	if d, ok := t.delegate(app); ok {
		return d, nil
	}
	r, err := t.turn(now)
	if err != nil {
		return Delegate{}, err
	}
	k := r.signing(now)
	return Delegate{ID: k.ID, Issuer: t.o.Issuer, Private: k.private}, nil
}

// issuer returns the issuer in the tokens that this server issues for an application.
func (t *Tokens) issuer(app string) string {
	if d, ok := t.delegate(app); ok {
		return d.Issuer
	}
	return t.o.Issuer
}

// delegate returns the key of a peer that signs the tokens of an application. ok is false if t signs them itself.
func (t *Tokens) delegate(app string) (d Delegate, ok bool) {
	if o := t.peerKeys(); o != nil {
		return o.Delegate(app)
	}
	return Delegate{}, false
}

// Read implements [api.Tokens]. It accepts a page's token only at the server that issued it, since only that server knows whether the session
// of the page is open.
func (t *Tokens) Read(token string) (auth.Claims, error) {
	now := t.o.Now()
	payload, by, err := t.open(token, now)
	if err != nil {
		return auth.Claims{}, err
	}
	var c claims
	if json.Unmarshal(payload, &c) != nil {
		return auth.Claims{}, auth.ErrToken
	}
	// Expiry is checked last: Read returns ErrExpired only for a token that is otherwise valid.
	lives := jwt.NewValidator(jwt.WithExpirationRequired(), jwt.WithNotBeforeRequired(), jwt.WithIssuer(by.Issuer),
		jwt.WithAudience(c.Subject), jwt.WithTimeFunc(func() time.Time { return now }))
	err = lives.Validate(c)
	switch {
	case errors.Is(err, jwt.ErrTokenInvalidIssuer), errors.Is(err, jwt.ErrTokenInvalidAudience),
		errors.Is(err, jwt.ErrTokenNotValidYet), c.Subject == "" || len(c.Audience) != 1 || c.Client == "" || c.ID == "",
		by.MayIssue != nil && !by.MayIssue(c.Subject), c.Page && by.Issuer != t.issuer(c.Subject), !c.endsInTime(now):
		return auth.Claims{}, auth.ErrToken
	case errors.Is(err, jwt.ErrTokenExpired):
		return auth.Claims{}, auth.ErrExpired
	case err != nil:
		return auth.Claims{}, auth.ErrToken
	}
	return auth.Claims{App: c.Subject, Client: c.Client, Generation: c.Generation, Page: c.Page, Session: c.Session, Expires: c.ExpiresAt.Time}, nil
}

// open verifies the signature of token by a key of t or of a peer, and returns the payload and the signer. The error is ErrToken.
func (t *Tokens) open(token string, now time.Time) ([]byte, Signer, error) {
	if len(token) > maxLength || !plain(token) {
		return nil, Signer{}, auth.ErrToken
	}
	header, rest, _ := strings.Cut(token, ".")
	body, signature, _ := strings.Cut(rest, ".")
	by, ok := t.signer(header, now)
	if !ok || len(signature) != signatureLength {
		return nil, Signer{}, auth.ErrToken
	}
	encoding := base64.RawURLEncoding.Strict()
	signed, err := encoding.DecodeString(signature)
	if err != nil || jwt.SigningMethodEdDSA.Verify(token[:len(header)+1+len(body)], signed, by.Public) != nil {
		return nil, Signer{}, auth.ErrToken
	}
	payload, err := encoding.DecodeString(body)
	if err != nil {
		return nil, Signer{}, auth.ErrToken
	}
	return payload, by, nil
}

// signer returns the signer with the key that a token's header names.
func (t *Tokens) signer(header string, now time.Time) (Signer, bool) {
	if k := t.ring.Load().find(header, now); k != nil {
		return Signer{Public: k.private.Public().(ed25519.PublicKey), Issuer: t.o.Issuer}, true
	}
	o, kid := t.peerKeys(), kidOf(header)
	if o == nil || kid == "" {
		return Signer{}, false
	}
	s, ok := o.Signer(kid)
	return s, ok && len(s.Public) == ed25519.PublicKeySize && s.Issuer != "" && s.MayIssue != nil
}

// plain reports whether token consists of three parts of base64url characters. The base64 decoder
// alone ignores line ends, and so one token could have several texts.
func plain(token string) bool {
	dots := 0
	for i := range len(token) {
		switch c := token[i]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '-', c == '_':
		case c == '.':
			dots++
		default:
			return false
		}
	}
	return dots == 2
}
