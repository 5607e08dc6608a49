package identity

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// ErrToken is returned for a text that is not a join token.
var ErrToken = errors.New("wrong token: it is incomplete or was mistyped; copy the whole line that 'sightline cluster token' printed")

// Token lets a machine join a cluster. The node at Address accepts its secret once, and for a limited time; the caller of this package stores
// both. Anyone who has the token and reaches that node can become a node.
type Token struct {
	Address   Address     // node that created the token
	Authority Fingerprint // fingerprint of the cluster's authority
	Secret    Secret
}

// Text form of a token: the prefix, and then in base64 (RFC 4648 §5, without padding):
//
//	offset  length  content
//	0       1       version, 1
//	1       32      fingerprint of the authority
//	33      32      secret
//	65      n       HOST:PORT
//	65+n    4       start of the SHA-256 of the prefix and of everything before
const (
	tokenPrefix  = "sightline-join-"
	tokenVersion = 1
	tokenHost    = 1 + len(Fingerprint{}) + len(Secret{})
	tokenSum     = 4
	maxToken     = 512 // characters
)

// NewToken creates a token for the node of a file. The caller stores the hash of its secret before it shows the token.
func (f *File) NewToken(random io.Reader) (Token, error) {
	a, err := ParseAuthority(f.Cluster.Authority)
	if err != nil {
		return Token{}, err
	}
	secret, err := NewSecret(random)
	if err != nil {
		return Token{}, err
	}
	return Token{f.Node.Address, a.Fingerprint(), secret}, nil
}

// Text returns the token as one line of letters, digits, hyphens and underscores, without a line break. It has the secret.
func (t Token) Text() string {
	b := slices.Concat([]byte{tokenVersion}, t.Authority[:], t.Secret[:], []byte(t.Address.String()))
	return tokenPrefix + base64.RawURLEncoding.EncodeToString(append(b, sumOf(b)...))
}

// ParseToken parses the output of [Token.Text]. It ignores spaces and line breaks around it. For other texts it returns ErrToken, and for a token
// of a newer version an error that names the fix.
func ParseToken(text string) (Token, error) {
	rest, ok := strings.CutPrefix(strings.TrimSpace(text), tokenPrefix)
	if !ok || len(rest) > maxToken || strings.ContainsAny(rest, "\r\n") { // base64 ignores line breaks
		return Token{}, ErrToken
	}
	b, err := base64.RawURLEncoding.Strict().DecodeString(rest)
	if err != nil || len(b) <= tokenSum {
		return Token{}, ErrToken
	}
	b, sum := b[:len(b)-tokenSum], b[len(b)-tokenSum:]
	switch {
	case !bytes.Equal(sum, sumOf(b)):
		return Token{}, ErrToken
	case b[0] != tokenVersion:
		return Token{}, fmt.Errorf("token has version %d and this program knows %d: install the cluster's version of sightline", b[0], tokenVersion)
	case len(b) < tokenHost:
		return Token{}, ErrToken
	}
	var t Token
	copy(t.Authority[:], b[1:])
	copy(t.Secret[:], b[1+len(t.Authority):])
	t.Address, err = ParseAddress(string(b[tokenHost:]))
	if err != nil || t.Address.String() != string(b[tokenHost:]) {
		return Token{}, ErrToken
	}
	return t, nil
}

func sumOf(b []byte) []byte {
	sum := sha256.Sum256(slices.Concat([]byte(tokenPrefix), b))
	return sum[:tokenSum]
}
