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

// A log seals its entries for its replicas, with a key that only its store and the backups of that have:
//
//	seal   the key
const sealName = "seal"

// RestoredSites is the first site of logs that were restored from a backup. Leased sites count from 2.
const RestoredSites = 1 << 31

// openRestored gives a log that was restored from a backup its own site, since its replicas may have operations of the
// site of before that the backup lacks, and reads or begins the key of the log's seals.
func (p *Partition) openRestored() error {
	if p.replica != nil || p.o.App == catalog.Control {
		return nil
	}
	if _, restored := p.log.Renewed(); restored {
		p.o.Site = restoredSite(p.log.Epoch())
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
	wait, err := p.o.Store.Commit(&b)
	if err == nil {
		err = wait()
	}
	if errors.Is(err, kv.ErrFull) { // the next opening begins one
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

// Seal returns a code by which this log, and one that is restored from its backup, knows its entries up to seq again; nil:
// the log has no key. Its replicas keep it with the entries.
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
