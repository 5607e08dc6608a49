package partition

import (
	"bytes"
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
// Each life of an origin writes as its own site, so no name of a lost operation is used again. Older programs wrote as the same site until
// then, and may have given new operations the names of lost ones. Such a lost operation gets another name. Operations that the log takes
// back, or that replicas made before, then refer to it by the new name:
//
//	renamed/SITE SEQ AT   new dot of a lost operation

const renamedName = "renamed/"

// renamedTo is the new name of a lost operation.
//
//field:message
type renamedTo struct {
	to log.Dot `wire:"+0"`
}

// reusedNames is the names of lost operations that the log has used again.
type reusedNames struct {
	names map[log.Dot]log.Dot // new names by old names
	seen  map[lostOp]log.Dot
}

// rolledBack reads the stored new names of lost operations.
func (p *Partition) rolledBack() (r reusedNames, err error) {
	r.names, r.seen = map[log.Dot]log.Dot{}, map[lostOp]log.Dot{}
	var failed error
	lo, hi := under(p.o.App, renamedName)
	err = p.o.Store.Scan(lo, hi, func(key, value []byte) bool {
		var x renamedTo
		x, failed = decodeRenamedTo(value)
		lost := lostOp{dotOf(key[:len(key)-8]), log.HLC(binary.BigEndian.Uint64(key[len(key)-8:]))}
		r.names[lost.dot], r.seen[lost] = x.to, x.to
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
			r.names[op.Dot] = as
		}
	}
	for i := range ops {
		r.rename(&ops[i])
	}
	return err
}

// lostOp identifies a lost operation. Another operation may have the same dot, but not the same clock.
type lostOp struct {
	dot log.Dot
	at  log.HLC
}

func putRenamed(w kv.Writer, app catalog.AppID, from lostOp, to log.Dot) {
	w.Put(binary.BigEndian.AppendUint64(dotKey(app, renamedName, from.dot), uint64(from.at)), encodeRenamedTo(nil, &renamedTo{to}))
}

// rename replaces in op the names of lost operations by their new names.
func (r *reusedNames) rename(op *log.Op) {
	if len(r.names) == 0 {
		return
	}
	log.Rename(op.Body, func(d log.Dot) log.Dot {
		if to, ok := r.names[d]; ok {
			return to
		}
		return d
	})
}

// sameNames returns the log's operations, without the dots in them, that have the same names as entries that the origin made. Only the
// origin uses a name twice. renamed has the entries that the log contains under a new name, which another lost log gave them.
func (p *Partition) sameNames(entries []log.Entry) (found map[log.Dot][]byte, renamed map[lostOp]log.Dot, err error) {
	found, renamed = map[log.Dot][]byte{}, map[lostOp]log.Dot{}
	byClock := map[log.HLC][]int{}
	for i := range entries {
		if op := &entries[i].Op; op.Dot.Site.IsOrigin() {
			found[op.Dot] = nil
			byClock[op.At] = append(byClock[op.At], i)
		}
	}
	if len(found) == 0 || p.log.Floor() > p.log.Head() {
		return nil, renamed, nil
	}
	err = p.log.Read(p.log.Floor(), func(e log.Entry) bool {
		if _, wanted := found[e.Op.Dot]; wanted {
			found[e.Op.Dot] = nameless(log.Encode(nil, &e.Op))
		}
		if e.Op.Dot.Site < log.RestoredSites {
			return true
		}
		for _, i := range byClock[e.Op.At] {
			op := entries[i].Op
			name := op.Dot
			op.Dot = e.Op.Dot
			if name != op.Dot && bytes.Equal(nameless(log.Encode(nil, &op)), nameless(log.Encode(nil, &e.Op))) {
				renamed[lostOp{name, op.At}] = op.Dot
			}
		}
		return true
	})
	return found, renamed, err
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
		if last, err := p.lastOf(d.Site); err != nil || d.Seq > last {
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
