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

// cost is that of one password: 19 MB, twice over (OWASP's second choice for argon2id).
var cost = &argon2id.Params{Memory: 19 << 10, Iterations: 2, Parallelism: 1, SaltLength: 16, KeyLength: 32}

// nobody is a hash of no password, at the cost of one: what is compared for unknown addresses.
func nobody() string {
	zeros := func(n uint32) string { return base64.RawStdEncoding.EncodeToString(make([]byte, n)) }
	return fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=%d$%s$%s", argon2.Version, cost.Memory, cost.Iterations, cost.Parallelism, zeros(cost.SaltLength), zeros(cost.KeyLength))
}

const (
	mostHashing = 2  // at a time: 38 MB
	mostWaiting = 64 // for their turn, some three seconds of it
)

// gate lets few hash passwords at a time.
type gate struct {
	turn    chan struct{}
	waiting chan struct{}
	done    *atomic.Int64 // how many passwords were hashed, for tests
}

func newGate() gate {
	return gate{make(chan struct{}, mostHashing), make(chan struct{}, mostWaiting), new(atomic.Int64)}
}

// enter waits for a turn. The error is api.ErrBusy when too many wait, or the context's.
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

// hash returns what a password is kept as. Parameters and salt are those of the hash like; if that is empty, the salt is new.
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

// saltOf returns the parameters and the salt of a hash: all of it but the key.
func saltOf(hash string) string { return hash[:strings.LastIndexByte(hash, '$')+1] }

// same reports whether a password is that of a hash; an empty hash is nobody's and takes as long.
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
