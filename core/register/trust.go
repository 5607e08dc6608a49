package register

import (
	"context"
	"slices"

	"github.com/sightline-dev/sightline/core/log"
)

// SignsWith stores which keys the host signs access tokens with, and which issuer they name. Hosts of copies
// check tokens with them. Keys that are stored already change nothing. Errors: those of the store.
func (r *Register) SignsWith(ctx context.Context, issuer string, keys []log.PublicKey) error {
	t, err := r.Read().Trust()
	if err != nil || t.Issuer == issuer && slices.Equal(t.Keys, keys) {
		return err
	}
	return r.submit(ctx, "", nil, &log.TokenKeys{Issuer: issuer, Keys: keys})
}
