// Package auth says for whom a request speaks, and what that one may do.
//
//	Authorization: Key <32 hex digits> ──SHA-256──▶ key record ─────────────┐
//	Authorization: Bearer <token> ──host──▶ claims ──generation──▶ client ──┼─▶ Principal:
//	X-Clarifai-Session-Token ──host──▶ account ──▶ its application ─────────┘   application, scopes
//
// A key is 128 random bits, shown once when it is made; what is kept is its hash, which
// tells nothing of it and is what it is found by. So a copy of the store lets nobody in. The
// same holds for the secret of a client, of 256 bits. Texts of errors never repeat a secret.
//
// # Scopes
//
// Each row of the route table in package api has a [Need]: which scopes refuse a call when they
// are missing, and which only leave what is of their kind out of its answer. That is decided by
// one rule: a call is refused without a scope that lets it act, and without the Get of what
// it is about; the Gets of other things only say what else the answer shows.
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

// Errors of credentials: HTTP status 401. ErrQuota, ErrRate, ErrAged and ErrStale are of good ones.
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
	// ErrAged is returned for a call that would write where the keys that are known are too old for that:
	// HTTP status 507.
	ErrAged = errors.New("writes are temporarily disabled here")
	// ErrStale is returned where they are too old for any call: HTTP status 503.
	ErrStale = errors.New("keys cannot be verified here at the moment")
)

// Claims are what an access token says: it stands for scope All of one application, until it
// expires or the client's generation is another.
type Claims struct {
	App        string `wire:"1"` // 32 hex digits
	Client     string `wire:"2"` // id of the client that it was issued to
	Generation uint64 `wire:"3"` // of the client: a new secret, or a revocation, makes another
	Page       bool   `wire:"4"` // issued to a page of this program: its reads do not count as calls of the account

	Expires time.Time // of a token that was read; zero: the host does not say
}

// Principal is who asks: a key, a token or a session, and the application it speaks for.
type Principal struct {
	App     string // 32 hex digits; empty: a session that speaks for its account alone
	Account string // whose session it is; empty: it is none
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

// By is what operations are signed with for a key.
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

// Bearer reads the value of an Authorization header; ok where it shows an access token. What is
// too long to be one is the empty token.
func Bearer(authorization string) (token string, ok bool) {
	token, ok = credential(authorization, "Bearer")
	if len(token) > maxTokenBytes {
		token = ""
	}
	return token, ok
}

// maxBasicBytes bounds an id and a secret together.
const maxBasicBytes = 512

// Basic reads the value of an Authorization header; ok where it is of Basic authentication.
// What is malformed comes back as an empty id and secret, to be looked up and found wanting
// like any other.
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

// credential is what stands behind a scheme, which matches in any case.
func credential(authorization, scheme string) (rest string, ok bool) {
	first, rest, ok := strings.Cut(strings.TrimSpace(authorization), " ")
	return strings.TrimSpace(rest), ok && strings.EqualFold(first, scheme)
}

// Same compares two hashes in a time that does not depend on them.
func Same(a, b Hash) bool { return subtle.ConstantTimeCompare(a[:], b[:]) == 1 }
