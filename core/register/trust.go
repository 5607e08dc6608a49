package register

import (
	"context"
	"slices"

	"github.com/sightline-dev/sightline/core/log"
)

// PutTokenKeys stores the public keys of the host's access tokens and the issuer that the tokens name. Edges verify
// tokens with them. If the same keys and issuer are stored already, PutTokenKeys writes nothing. Its errors are those of the store.
func (r *Register) PutTokenKeys(ctx context.Context, issuer string, keys []log.PublicKey) error {
	t, err := r.Reader().Trust()
	if err != nil || t.Issuer == issuer && slices.Equal(t.Keys, keys) {
		return err
	}
	return r.submit(ctx, "", nil, &log.TokenKeys{Issuer: issuer, Keys: keys})
}
