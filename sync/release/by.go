package release

import (
	"bytes"
	"crypto/ed25519"

	"github.com/sightline-dev/sightline/core/log/field"
)

// By is the key that a signed manifest says it is signed with, for whoever has learnt none yet and hears this from
// the origin itself. The error is field.ErrFormat.
func By(signed []byte) (ed25519.PublicKey, error) {
	var by []byte
	d := field.Decode(signed)
	for d.Next() {
		if d.Number == 2 {
			by = d.Raw()
		}
	}
	if len(by) != ed25519.PublicKeySize {
		d.Malformed("key")
	}
	return bytes.Clone(by), d.Err()
}
