package token

import (
	"context"
	"crypto/ed25519"

	"github.com/MicahParks/jwkset"

	"github.com/sightline-dev/sightline/core/api"
)

// Path is the path of the public halves of the signing keys, in the form of RFC 7517.
const Path = "/.well-known/jwks.json"

// publish makes the public set.
func (r *ring) publish() error {
	set := jwkset.NewMemoryStorage()
	for i := range r.keys {
		k, err := jwkset.NewJWKFromKey(r.keys[i].private.Public().(ed25519.PublicKey), jwkset.JWKOptions{
			Metadata: jwkset.JWKMetadataOptions{ALG: jwkset.AlgEdDSA, KID: r.keys[i].ID, USE: jwkset.UseSig},
		})
		if err != nil {
			return err
		}
		if err := set.KeyWrite(context.Background(), k); err != nil {
			return err
		}
	}
	if len(r.keys) == 0 {
		r.public = []byte(`{"keys":[]}`) // the library would say null
		return nil
	}
	var err error
	r.public, err = set.JSONPublic(context.Background())
	return err
}

// Refuser answers what is not let through.
type Refuser interface {
	Refuse(r *api.Request, err error) api.Response
}

// JWKSHandler answers requests for the published keys. The host mounts it at [Path].
type JWKSHandler struct {
	Tokens *Tokens
	Refuser
}

// Serve answers r. Copies may be kept for an hour: a key is published a day before it signs.
func (p JWKSHandler) Serve(_ context.Context, r *api.Request) api.Response {
	if r.Path != Path {
		return p.Refuse(r, api.ErrPath)
	}
	if r.Method != "GET" {
		res := p.Refuse(r, api.ErrMethod)
		res.Header = append(res.Header, api.Field{Name: "Allow", Value: "GET, HEAD"})
		return res
	}
	keys, err := p.Tokens.turn(p.Tokens.o.Now())
	if err != nil { // there is none yet, and none can be made
		return p.Refuse(r, err)
	}
	return api.Response{
		Status: 200, ContentType: "application/json; charset=UTF-8", Body: keys.public,
		Header: []api.Field{{Name: "Cache-Control", Value: "public, max-age=3600"}},
	}
}
