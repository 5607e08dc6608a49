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
// the fewest scopes that suffice. For advice at the creation of a key, see [SuggestedScopes].
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

// These errors reject credentials: HTTP status 401. ErrQuota, ErrRate, ErrWritesSuspended and ErrKeysUnverified reject valid ones.
var (
	// ErrNoCredentials is returned for a request without a usable Authorization header.
	ErrNoCredentials = errors.New("send your API key in the header Authorization: Key YOUR_KEY")
	// ErrKeyUnknown is returned for a malformed key and for a key without a record. Clients read its text.
	ErrKeyUnknown = errors.New("invalid key")
	// ErrToken is returned for a token that was not issued here, or was revoked.
	ErrToken = errors.New("invalid token")
	// ErrExpired is returned for an expired token. Clients read its text and request a new token.
	ErrExpired = errors.New("expired token")
	// ErrClient is returned for a client id and a secret that match no client.
	ErrClient = errors.New("invalid client ID or secret")
	// ErrSession is returned for a session token without an open session.
	ErrSession = errors.New("invalid session token")
	// ErrLogin is returned for an email address and a password that match no account.
	ErrLogin = errors.New("invalid email or password")
	// ErrQuota is returned when an account has no calls left: HTTP status 402.
	ErrQuota = errors.New("no calls left")
	// ErrRate is returned when a caller sends too many calls in a short time: HTTP status 429.
	ErrRate = errors.New("too many requests")
	// ErrWritesSuspended is returned for a write at a replica whose copy of the application's keys is too old for writes:
	// HTTP status 507.
	ErrWritesSuspended = errors.New("writes are temporarily disabled here")
	// ErrKeysUnverified is returned for every call at a replica whose copy of the keys is too old for any call: HTTP status 503.
	ErrKeysUnverified = errors.New("keys cannot be verified here at the moment")
)

// Claims is the content of an access token. The token grants scope All of one application until it expires, the generation of its client
// changes or its session ends.
type Claims struct {
	App        string `wire:"1"` // 32 hex digits
	Client     string `wire:"2"` // id of the client that the token was issued to
	Generation uint64 `wire:"3"` // generation of the client; a new secret or a revocation begins another
	Page       bool   `wire:"4"` // the token was issued to a page of this program, whose reads do not count as calls of the account
	Session    string `wire:"5"` // id of the session of the page, with which the token ends; empty: it does not depend on a session

	Expires time.Time // end of the token's life, set by reading a token; zero if the host does not report it
}

// Principal is an authenticated caller: a key, a token or a session, and its application.
type Principal struct {
	App      string // 32 hex digits; empty for a session that acts for its account alone
	Account  string // account of the session; empty if the caller has no session
	Maker    string // account of the session, of the key's creator or of the owner of the token's application; empty for the operator
	By       string // signature of the caller's operations: the start of the key's hash, "token" or "session"
	Scopes   Set
	Bucket   Hash   // key under which rate limiters count its calls
	Page     bool   // the call comes from one of our pages, according to its token or the host
	Caller   string // account or application of the request, see api.Application.Caller; only api.Service.Identify sets it
	Operator bool   // the credential belongs to the operator; its rate has a separate limit, by default none

	Client     string // id of the token's client; empty if the caller sent no token
	Generation uint64 // client generation in the token
}

// Hash is the SHA-256 of a key's text.
type Hash = [sha256.Size]byte

// keyLength is the number of hex digits of a key.
const keyLength = 32

// HashKey returns the hash under which the store has a key.
func HashKey(key string) Hash { return sha256.Sum256([]byte(key)) }

// NewKey makes a key of 32 lower-case hex digits from 128 bits of random.
func NewKey(random io.Reader) (string, error) {
	var b [keyLength / 2]byte
	if _, err := io.ReadFull(random, b[:]); err != nil {
		return "", fmt.Errorf("random source: %w", err)
	}
	return hex.EncodeToString(b[:]), nil
}

// ByKey returns the signature of the operations of a key's callers. h is the key's hash.
func ByKey(h Hash) string { return hex.EncodeToString(h[:8]) }

// Key reads the value of an Authorization header and returns the hash of its key. The scheme
// matches in any case, as HTTP requires.
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

// maxTokenBytes is more than the length of the longest token that a host issues.
const maxTokenBytes = 4096

// Bearer returns the access token in the value of an Authorization header. ok is false for another scheme. A token that is too long
// becomes the empty token.
func Bearer(authorization string) (token string, ok bool) {
	token, ok = credential(authorization, "Bearer")
	if len(token) > maxTokenBytes {
		token = ""
	}
	return token, ok
}

// maxBasicBytes is the maximum length of the base64 text of an id and a secret.
const maxBasicBytes = 512

// Basic returns the id and the hash of the secret in the value of an Authorization header. ok is false for another scheme. A malformed
// value gives an empty id and the hash of an empty secret, which callers reject like any other pair.
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

// Same reports whether two hashes are equal. Its time does not depend on their content.
func Same(a, b Hash) bool { return subtle.ConstantTimeCompare(a[:], b[:]) == 1 }
