package partition

import (
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
	key, err := p.o.Store.Get(p.o.App.LocalKey(sealName))
	if err == nil {
		p.sealKey = append([]byte(nil), key...)
		return nil
	}
	if !isMissing(err) || p.o.Secret == [32]byte{} {
		return ignoreMissing(err)
	}
	var b kv.Batch
	b.Put(p.o.App.LocalKey(sealName), p.o.Secret[:])
	err = kv.Sync(p.o.Store, &b)
	if errors.Is(err, kv.ErrFull) { // the next opening creates the key
		return nil
	}
	p.sealKey = append([]byte(nil), p.o.Secret[:]...)
	return err
}

func ignoreMissing(err error) error {
	if isMissing(err) {
		return nil
	}
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
