package token

import (
	"context"
	"crypto/ed25519"

	"github.com/MicahParks/jwkset"

	"github.com/sightline-dev/sightline/core/api"
)

// Path is the URL path of the public halves of the signing keys, in the format of RFC 7517.
const Path = "/.well-known/jwks.json"

// publish sets r.public to the public halves of r.keys.
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
		r.public = []byte(`{"keys":[]}`) // the library returns null for no keys
		return nil
	}
	var err error
	r.public, err = set.JSONPublic(context.Background())
	return err
}

// Refuser answers rejected requests.
type Refuser interface {
	Refuse(r *api.Request, err error) api.Response
}

// JWKSHandler answers requests for the published keys. The host mounts it at [Path].
type JWKSHandler struct {
	Tokens *Tokens
	Refuser
}

// Serve answers r. Clients can cache the answer for an hour, because a key is published a day before it signs.
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
	if err != nil { // no key exists yet, and the ring cannot create one
		return p.Refuse(r, err)
	}
	return api.Response{
		Status: 200, ContentType: "application/json; charset=UTF-8", Body: keys.public,
		Header: []api.Field{{Name: "Cache-Control", Value: "public, max-age=3600"}},
	}
}
