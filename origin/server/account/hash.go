package account

import (
	"context"
	"encoding/base64"
	"fmt"
	"strings"
	"sync/atomic"

	"github.com/alexedwards/argon2id"
	"golang.org/x/crypto/argon2"

	"github.com/sightline-dev/sightline/core/api"
)

// cost is the cost of hashing one password: 19 MB of memory and two passes (OWASP's second choice for argon2id).
var cost = &argon2id.Params{Memory: 19 << 10, Iterations: 2, Parallelism: 1, SaltLength: 16, KeyLength: 32}

// nobody returns a hash that no password matches, with the same cost. It is compared for unknown email addresses.
func nobody() string {
	zeros := func(n uint32) string { return base64.RawStdEncoding.EncodeToString(make([]byte, n)) }
	return fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=%d$%s$%s", argon2.Version, cost.Memory, cost.Iterations, cost.Parallelism, zeros(cost.SaltLength), zeros(cost.KeyLength))
}

const (
	maxHashing = 2  // passwords hashed at once, with 38 MB in total
	maxWaiting = 64 // callers that wait, for about three seconds
)

// gate limits the number of passwords that are hashed at once.
type gate struct {
	turn    chan struct{}
	waiting chan struct{}
	done    *atomic.Int64 // number of hashed passwords, for tests
}

func newGate() gate {
	return gate{make(chan struct{}, maxHashing), make(chan struct{}, maxWaiting), new(atomic.Int64)}
}

// enter waits for a turn. The caller must call leave. If too many callers wait, the error is api.ErrBusy; otherwise it is the context's.
func (g *gate) enter(ctx context.Context) (leave func(), err error) {
	select {
	case g.waiting <- struct{}{}:
	default:
		return nil, fmt.Errorf("%w: too many sign-ins at once; try again", api.ErrBusy)
	}
	defer func() { <-g.waiting }()
	select {
	case g.turn <- struct{}{}:
		g.done.Add(1)
		return func() { <-g.turn }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// hash returns the stored form of a password. It uses the parameters and the salt of the hash like. If like is empty, the salt is new.
func (g *gate) hash(ctx context.Context, password, like string) (string, error) {
	leave, err := g.enter(ctx)
	if err != nil {
		return "", err
	}
	defer leave()
	if like == "" {
		return argon2id.CreateHash(password, cost)
	}
	p, salt, _, err := argon2id.DecodeHash(like)
	if err != nil {
		return "", err
	}
	key := argon2.IDKey([]byte(password), salt, p.Iterations, p.Memory, p.Parallelism, p.KeyLength)
	return saltOf(like) + base64.RawStdEncoding.EncodeToString(key), nil
}

// saltOf returns the parameters and the salt of a hash, without the key.
func saltOf(hash string) string { return hash[:strings.LastIndexByte(hash, '$')+1] }

// same reports whether a password matches a hash. An empty hash matches no password and takes as long.
func (g *gate) same(ctx context.Context, password, hash string) (bool, error) {
	leave, err := g.enter(ctx)
	if err != nil {
		return false, err
	}
	defer leave()
	known := hash != ""
	if !known {
		hash = nobody()
	}
	same, err := argon2id.ComparePasswordAndHash(password, hash)
	return same && known, err
}
