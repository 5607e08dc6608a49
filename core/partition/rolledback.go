package partition

import (
	"crypto/hmac"
	"errors"

	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/log"
)

// An origin does not notice that its disk was rolled back to an older image: the log has the same epoch. Its replicas notice it, since they
// have pulled more of the log, and an entry that the log sealed proves it:
//
//	image ─ 1 … 50
//	log   ─ 1 … 50 ─ 51 52        written since the rollback
//	stored     … 50 ─ 51 … 90 ◆   of the same epoch, sealed
//
// A trimmed log counts as having a trimmed entry if it has an operation of that name.
//
// The log takes another epoch, and then takes back the lacking entries, like a log that was restored from a backup ([Partition.TakeBack]).

// RolledBack gives the log another epoch if b proves a rollback: entries of the present epoch, or a place in it, that the log sealed and
// lacks. It reports whether it did. A process does so at most once, since nobody can roll back a disk that a process uses. Errors: those of
// kv.
func (p *Partition) RolledBack(b *StoredRun) (bool, error) {
	defer p.locks.take(appending).unlock()
	if err := p.whyClosed(); err != nil {
		return false, err
	}
	if p.replica != nil || p.o.App == catalog.Control || p.o.Epoch == (log.Epoch{}) || p.log.Epoch() == p.o.Epoch {
		return false, nil
	}
	if err := p.log.Settle(); err != nil {
		return false, err
	}
	to, chain := b.From, b.Before
	for i := range b.Entries {
		to, chain = to+1, chain.Next(log.Encode(nil, &b.Entries[i].Op))
	}
	if b.Seal == nil || !hmac.Equal(b.Seal, p.Seal(to, chain)) {
		return false, nil
	}
	if to <= p.log.LastSeq() {
		have, err := p.log.Chain(to)
		lacks := have != chain
		if errors.Is(err, log.ErrTrimmed) {
			lacks, err = p.lacks(b.Entries)
		}
		if err != nil || !lacks {
			return false, err
		}
	}
	return true, p.log.Renew(p.o.Epoch)
}

// lacks reports whether the log lacks an operation with the name of one of the entries. Of trimmed entries the log knows only the names.
func (p *Partition) lacks(entries []log.Entry) (bool, error) {
	for i := range entries {
		d := entries[i].Op.Dot
		if n, err := p.names(d.Writer); err != nil || !n.Has(d.Seq) {
			return err == nil, err
		}
	}
	return false, nil
}

// RenewLog gives the log the epoch of this process, for the app record of a data folder whose disk was rolled back. Errors: those of kv.
func (p *Partition) RenewLog() error {
	defer p.locks.take(appending).unlock()
	if err := p.whyClosed(); err != nil {
		return err
	}
	if p.log.Epoch() == p.o.Epoch {
		return nil
	}
	return p.log.Renew(p.o.Epoch)
}
