package node

import (
	"crypto/ed25519"

	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/origin/server/token"
)

var _ token.PeerKeys = (*replicaSet)(nil)

// Signer implements [token.PeerKeys]: signers are the origin, this edge and the other edges of an application. Each may sign for the
// applications whose app records have its key.
func (c *replicaSet) Signer(kid string) (token.Signer, bool) {
	var s token.Signer
	may := map[string]bool{}
	add := func(app, issuer string, key [32]byte) {
		switch {
		case issuer == "":
		case s.Public == nil:
			s = token.Signer{Public: key[:], Issuer: issuer, MayIssue: func(app string) bool { return may[app] }}
			may[app] = true
		case s.Issuer == issuer && s.Public.Equal(ed25519.PublicKey(key[:])):
			may[app] = true
		}
	}
	for _, one := range c.all() {
		one.mu.Lock()
		t := one.trust
		one.mu.Unlock()
		if kid == c.identity.ID {
			add(one.app, token.EdgeIssuer(kid), [32]byte(c.identity.key().Public().(ed25519.PublicKey)))
			continue
		}
		if key, ok := keyOf(t.Keys, kid); ok {
			add(one.app, t.Issuer, key)
		}
		if key, ok := keyOf(t.Peers, kid); ok {
			add(one.app, token.EdgeIssuer(kid), key)
		}
	}
	return s, s.Public != nil
}

func keyOf(keys []log.PublicKey, kid string) (key [32]byte, ok bool) {
	for i := range keys {
		if keys[i].ID == kid {
			return keys[i].Key, true
		}
	}
	return key, false
}

// Delegate implements [token.PeerKeys]: this edge issues tokens of the origin's applications with its enrolled key.
func (c *replicaSet) Delegate(app string) (token.Delegate, bool) {
	if c.of(app) == nil {
		return token.Delegate{}, false
	}
	return token.Delegate{ID: c.identity.ID, Issuer: token.EdgeIssuer(c.identity.ID), Private: c.identity.key()}, true
}
