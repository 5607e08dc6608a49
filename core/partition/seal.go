package partition

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"errors"

	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/log"
)

// A log seals its entries for its replicas, with a key that only its store and its backups have:
//
//	seal   the key
const sealName = "seal"

// openSeal reads or creates the key of the log's seals. A log without seals cannot take entries back.
func (p *Origin) openSeal() error {
	if p.o.App == catalog.Control {
		return nil
	}
	key, err := kv.Find(p.o.Store, p.o.App.LocalKey(sealName))
	if err == nil && key == nil && p.o.Secret != [32]byte{} {
		key = p.o.Secret[:]
		var b kv.Batch
		b.Put(p.o.App.LocalKey(sealName), key)
		if err = kv.Sync(p.o.Store, &b); errors.Is(err, kv.ErrFull) { // the next opening creates the key
			return nil
		}
	}
	p.sealKey = bytes.Clone(key)
	return err
}

// Seal returns a code by which this log, or one restored from its backup, recognizes its entries up to seq; nil: the log has no key. Its
// replicas store the code with the entries.
func (p *Origin) Seal(seq uint64, chain log.Chain) []byte {
	if p.sealKey == nil {
		return nil
	}
	h := hmac.New(sha256.New, p.sealKey)
	h.Write(p.o.App[:])
	h.Write(binary.BigEndian.AppendUint64(nil, seq))
	h.Write(chain[:])
	return h.Sum(nil)
}
