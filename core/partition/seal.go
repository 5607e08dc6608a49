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

// openSealed reads or creates the key of the log's seals, and gives this life of the origin its own site. Replicas may have operations of
// an earlier life that the log lacks after a restore or a rollback of its disk. No life may use the names of those operations for others. A
// log without seals cannot take entries back. It gets its own site only if it was restored.
func (p *Partition) openSealed() error {
	if p.replica != nil || p.o.App == catalog.Control {
		return nil
	}
	if err := p.openSeal(); err != nil {
		return err
	}
	_, restored := p.log.BackupHead()
	switch {
	case p.sealKey != nil && p.o.Epoch != (log.Epoch{}) && p.o.Epoch != p.log.Epoch():
		p.o.Site = lifeSite(p.o.Epoch)
	case restored:
		p.o.Site = lifeSite(p.log.Epoch())
	}
	return nil
}

// lifeSite returns the site of an origin's life that begins with an epoch. The life that created the log uses log.Origin instead.
func lifeSite(epoch log.Epoch) log.Writer {
	return log.Writer(binary.BigEndian.Uint32(epoch[:])) | log.RestoredSites
}

// openSeal reads or creates the key of the log's seals.
func (p *Partition) openSeal() error {
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
	if errors.Is(err, kv.ErrFull) { // the next Open creates the key
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
func (p *Partition) Seal(seq uint64, chain log.Chain) []byte {
	if p.sealKey == nil {
		return nil
	}
	h := hmac.New(sha256.New, p.sealKey)
	h.Write(p.o.App[:])
	h.Write(binary.BigEndian.AppendUint64(nil, seq))
	h.Write(chain[:])
	return h.Sum(nil)
}
