package partition

import (
	"crypto/hmac"
	"encoding/binary"
	"errors"
	"slices"

	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/kv"
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
// Each life of an origin writes as its own site, so no name of a lost operation is used again. A lost operation that its replica has sent
// again as another site has another name. Operations that the log takes back, or that replicas made before, then refer to it by the new name:
//
//	renamed/SITE SEQ AT   new dot of a lost operation

const renamedName = "renamed/"

// renamedTo is the new name of a lost operation.
//
//field:message
type renamedTo struct {
	to log.Dot `wire:"+0"`
}

// newNames is the new names of lost operations, by their old names.
type newNames map[log.Dot]log.Dot

// rolledBack reads the stored new names of lost operations.
func (p *Partition) rolledBack() (r newNames, err error) {
	r = newNames{}
	var failed error
	lo, hi := under(p.o.App, renamedName)
	err = p.o.Store.Scan(lo, hi, func(key, value []byte) bool {
		var x renamedTo
		x, failed = decodeRenamedTo(value)
		r[log.KeyDot(key[:len(key)-8])] = x.to
		return failed == nil
	})
	return r, errors.Join(err, failed)
}

// ResolveNames replaces in ops the names of lost operations by their new names. A replica made ops before it knew of a rollback of the
// disk. back are entries that the caller will take back with ops. The log may have one of them under the name of another site.
func (p *Partition) ResolveNames(ops []log.Op, back ...log.Entry) error {
	if _, restored := p.log.BackupHead(); !restored {
		return nil
	}
	r, err := p.rolledBack()
	for i := range back {
		op := &back[i].Op
		if err != nil || !slices.ContainsFunc(ops, func(x log.Op) bool { return Subject(x.Body) == op.Dot }) {
			continue
		}
		var as log.Dot
		if as, _, err = p.sentAgain(op); as != (log.Dot{}) {
			r[op.Dot] = as
		}
	}
	for i := range ops {
		r.rename(&ops[i])
	}
	return err
}

// putRenamed records the new name of op.
func putRenamed(w kv.Writer, app catalog.AppID, op *log.Op, to log.Dot) {
	w.Put(binary.BigEndian.AppendUint64(dotKey(app, renamedName, op.Dot), uint64(op.At)), encodeRenamedTo(nil, &renamedTo{to}))
}

// rename replaces in op the names of lost operations by their new names.
func (r newNames) rename(op *log.Op) {
	if len(r) == 0 {
		return
	}
	log.Rename(op.Body, func(d log.Dot) log.Dot {
		if to, ok := r[d]; ok {
			return to
		}
		return d
	})
}

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
		if last, err := p.lastOf(d.Writer); err != nil || d.Seq > last {
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
