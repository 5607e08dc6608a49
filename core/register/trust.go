package register

import (
	"context"
	"slices"

	"github.com/sightline-dev/sightline/core/log"
)

// SignsWith says which keys the host signs access tokens with, and how they name it: whoever holds a copy
// reads tokens by them. What was said before needs no saying again. Errors: those of the store.
func (r *Register) SignsWith(ctx context.Context, issuer string, keys []log.PublicKey) error {
	t, err := r.Read().Trust()
	if err != nil || t.Issuer == issuer && slices.Equal(t.Keys, keys) {
		return err
	}
	return r.submit(ctx, "", nil, &log.TokenKeys{Issuer: issuer, Keys: keys})
}
