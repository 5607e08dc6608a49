// Package auth authenticates the caller of a request and determines its permissions.
//
//	Authorization: Key <32 hex digits> ──SHA-256──▶ key record ─────────────┐
//	Authorization: Bearer <token> ──host──▶ claims ──generation──▶ client ──┼─▶ Principal:
//	X-Clarifai-Session-Token ──host──▶ account ──▶ its application ─────────┘   application, scopes
//
// A key is 128 random bits, shown once when it is made. The store keeps only its hash, which finds the key and does
// not reveal it. So a copy of the store gives no access. The same holds for the secret of a client, of 256 bits.
// Texts of errors never repeat a secret.
//
// # Scopes
//
// Each row of the route table in package api has a [Need]: the scopes without which a call is refused, and those without
// which its answer omits the data of their kind. One rule decides: a call is refused without a scope that permits its action,
// and without the Get of its subject. The Gets of other things only add to the answer.
//
//	call                     refused without                          left out without
//	predict                  Predict                                  Models:Get: of the model all but id and type
//	add inputs               Inputs:Add, Inputs:Get, Predict          Concepts:Get: concepts
//	read inputs, status      Inputs:Get                               Concepts:Get: concepts, edits of a source
//	patch inputs             Inputs:Add or :Patch, Inputs:Get         Concepts:Get: concepts
//	delete inputs            Inputs:Add, Inputs:Delete, Inputs:Get
//	an input's outputs       Inputs:Get, Concepts:Get                 Models:Get: as in predict
//	 …, patched              the same, Inputs:Add or :Patch           the same
//	read, search concepts    Concepts:Get
//	add, patch concepts      Concepts:Add (or :Patch), Concepts:Get
//	read, search models      Models:Get                               Concepts:Get: concepts, select_concepts
//	create, patch, train     Models:Add, :Get, :Train (patch: :Patch) Concepts:Get: the same
//	delete models, versions  Models:Add, Models:Delete, Models:Get
//	a model's inputs         Models:Get, Inputs:Get                   Concepts:Get: concepts
//	ask for an evaluation    Models:Get                               Inputs:Get: total_input_count
//	read an evaluation       Models:Get, Concepts:Get                 Inputs:Get: the same, test_set
//	search                   Search, Predict, Inputs:Get              Concepts:Get: concepts of the hits
//	feedback                 Predict:Feedback
//	 … on a search           Search, Search:Feedback
//	read workflows           Workflows:Get                            Models:Get: of a step's model all but the id
//	create, delete           the same, Workflows:Add, for a delete    the same
//	                         Workflows:Delete too
//	run a workflow           Predict, Workflows:Get                   Models:Get: as in predict
//	public workflows         nothing
//
// The published lists name more Gets for some calls (Concepts:Get for predict, Models:Get for a
// search); the answers to those calls have no field that needs them. The error of a refused call names
// the fewest scopes that suffice. Needs are advice at a key's creation: see [Needs].
package auth

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
)

// Errors of credentials: HTTP status 401. ErrQuota, ErrRate, ErrWritesSuspended and ErrKeysUnverified concern valid ones.
var (
	// ErrNoCredentials is returned for a request without a usable Authorization header.
	ErrNoCredentials = errors.New("send your API key in the header Authorization: Key YOUR_KEY")
	// ErrKeyUnknown is returned for a key that lets nobody in, well-formed or not. Clients read its text.
	ErrKeyUnknown = errors.New("invalid key")
	// ErrToken is returned for a token that was not issued here, or was revoked.
	ErrToken = errors.New("invalid token")
	// ErrExpired is returned for a token whose time is over. Clients read its text and renew.
	ErrExpired = errors.New("expired token")
	// ErrClient is returned for a client id and secret that are not a pair of ours.
	ErrClient = errors.New("invalid client ID or secret")
	// ErrSession is returned for a session token that is not open.
	ErrSession = errors.New("invalid session token")
	// ErrLogin is returned for an e-mail address and a password that are not an account's.
	ErrLogin = errors.New("invalid email or password")
	// ErrQuota is returned when an account may make no more calls: HTTP status 402.
	ErrQuota = errors.New("no calls left")
	// ErrRate is returned for too many calls at a time: HTTP status 429.
	ErrRate = errors.New("too many requests")
	// ErrWritesSuspended is returned for a call that would write where the keys that are known are too old for that:
	// HTTP status 507.
	ErrWritesSuspended = errors.New("writes are temporarily disabled here")
	// ErrKeysUnverified is returned where they are too old for any call: HTTP status 503.
	ErrKeysUnverified = errors.New("keys cannot be verified here at the moment")
)

// Claims is the content of an access token. The token has scope All of one application, until it expires or the client has another
// generation.
type Claims struct {
	App        string `wire:"1"` // 32 hex digits
	Client     string `wire:"2"` // id of the client that it was issued to
	Generation uint64 `wire:"3"` // of the client: a new secret, or a revocation, makes another
	Page       bool   `wire:"4"` // issued to a page of this program: its reads do not count as calls of the account

	Expires time.Time // of a token that was read; zero: the host does not say
}

// Principal is an authenticated caller: a key, a token or a session, and its application.
type Principal struct {
	App     string // 32 hex digits; empty: a session that speaks for its account alone
	Account string // account of the session; empty: it is not a session
	Maker   string // account whose session it is, that made the key, or that owns the token's application; empty: the operator's
	By      string // what operations are signed with: the start of the key's hash, "token" or "session"
	Scopes  Set
	Bucket  Hash   // what its rate is counted by
	Page    bool   // the call comes from one of our pages, by its token or the host
	Caller  string // whom a request is for, as api.Application.Caller; set by api.Service.Identify alone
	Free    bool   // the operator's: its rate has its own limit, by default none

	Client     string // whose token it is; empty: none was shown
	Generation uint64 // of that token
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

// By returns the signature of a key's operations.
func By(h Hash) string { return hex.EncodeToString(h[:8]) }

// Key reads the value of an Authorization header and returns the hash of its key. Schemes
// match in any case, as HTTP wants it.
func Key(authorization string) (Hash, error) {
	key, ok := credential(authorization, "Key")
	switch {
	case !ok:
		return Hash{}, ErrNoCredentials
	case len(key) != keyLength || strings.Trim(key, "0123456789abcdef") != "":
		return Hash{}, ErrKeyUnknown
	}
	return HashKey(key), nil
}

// maxTokenBytes is beyond the longest token that a host issues.
const maxTokenBytes = 4096

// Bearer reads the value of an Authorization header; ok: it has an access token. A value that is too long gives the empty token.
func Bearer(authorization string) (token string, ok bool) {
	token, ok = credential(authorization, "Bearer")
	if len(token) > maxTokenBytes {
		token = ""
	}
	return token, ok
}

// maxBasicBytes bounds an id and a secret together.
const maxBasicBytes = 512

// Basic reads the value of an Authorization header; ok: it is Basic authentication. A malformed value gives an empty id and secret, which
// are refused like any others.
func Basic(authorization string) (id string, secret Hash, ok bool) {
	text, ok := credential(authorization, "Basic")
	if len(text) > maxBasicBytes {
		text = ""
	}
	pair, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		pair = nil
	}
	user, password, _ := strings.Cut(string(pair), ":")
	return user, HashKey(password), ok
}

// credential returns the part after a scheme, which matches in any case.
func credential(authorization, scheme string) (rest string, ok bool) {
	first, rest, ok := strings.Cut(strings.TrimSpace(authorization), " ")
	return strings.TrimSpace(rest), ok && strings.EqualFold(first, scheme)
}

// Same compares two hashes in a time that does not depend on them.
func Same(a, b Hash) bool { return subtle.ConstantTimeCompare(a[:], b[:]) == 1 }
