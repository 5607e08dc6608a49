package partition

import (
	"bytes"
	"crypto/hmac"
	"encoding/binary"
	"errors"

	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/log/field"
)

// An origin does not notice that its disk was rolled back to an older image: the log has the same epoch. Its replicas do, since they have
// pulled more of it, and an entry that the log sealed proves it:
//
//	image ─ 1 … 50
//	log   ─ 1 … 50 ─ 51 52        written since the rollback
//	kept       … 50 ─ 51 … 90 ◆   of the same epoch, sealed
//
// The log takes another epoch, and then takes back what it lacks, as one that was restored from a backup ([Partition.TakeBack]). Until then it
// may have named operations as lost ones are named. Such a lost operation gets another name, and those that it takes back, or that replicas
// made before, mean it by that:
//
//	rolled/SITE         1 last operation of a site of the log when the rollback was found, 2 when that was
//	renamed/SITE SEQ    1 site and 2 sequence that a lost operation has now

const (
	rolledName  = "rolled/"
	renamedName = "renamed/"
)

// rolled are the names of lost operations that the log has used again.
type rolled struct {
	sites map[log.Site]uint64 // last operations of sites of the log when a rollback was found
	names map[log.Dot]log.Dot // by those that they had
	at    log.HLC             // when the last rollback was found
}

// rolledBack reads what is noted of rollbacks.
func (p *Partition) rolledBack() (r rolled, err error) {
	r.sites, r.names = map[log.Site]uint64{}, map[log.Dot]log.Dot{}
	var failed error
	lo, hi := under(p.o.App, rolledName)
	err = p.o.Store.Scan(lo, hi, func(key, value []byte) bool {
		site, d := log.Site(binary.BigEndian.Uint32(key[len(key)-4:])), field.Decode(value)
		for d.Next() {
			switch d.Number {
			case 1:
				r.sites[site] = d.Uint()
			case 2:
				r.at = max(r.at, log.HLC(d.Uint()))
			}
		}
		failed = d.Err()
		return failed == nil
	})
	if err = errors.Join(err, failed); err != nil || len(r.sites) == 0 {
		return r, err
	}
	lo, hi = under(p.o.App, renamedName)
	err = p.o.Store.Scan(lo, hi, func(key, value []byte) bool {
		var to log.Dot
		d := field.Decode(value)
		for d.Next() {
			switch d.Number {
			case 1:
				to.Site = log.Site(d.Uint32())
			case 2:
				to.Seq = d.Uint()
			}
		}
		r.names[dotOf(key)], failed = to, d.Err()
		return failed == nil
	})
	return r, errors.Join(err, failed)
}

func putRenamed(w kv.Writer, app catalog.AppID, from, to log.Dot) {
	var e field.Encoder
	e.Uint(1, uint64(to.Site))
	e.Uint(2, to.Seq)
	w.Put(dotKey(app, renamedName, from), e.Bytes(nil))
}

// rename has an operation name lost operations by the names that they have now.
func (r *rolled) rename(op *log.Op) {
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

// usedAgain reports whether the log has used the name of a lost operation again. chain is the chain after its entry.
func (r *rolled) usedAgain(p *Partition, op *log.Op, seq uint64, chain log.Chain) (bool, error) {
	last, noted := r.sites[op.Dot.Site]
	if !noted || op.Dot.Seq > last {
		return false, nil
	}
	if seq <= p.log.Appended() {
		have, err := p.log.Chain(seq)
		if errors.Is(err, log.ErrTrimmed) || err == nil && have == chain {
			return false, nil
		}
		if err != nil {
			return false, err
		}
	}
	data, same := log.Encode(nil, op), true
	_, err := p.log.About(op.Dot, func(e log.Entry) bool {
		if e.Op.Dot == op.Dot {
			same = bytes.Equal(log.Encode(nil, &e.Op), data)
		}
		return true
	})
	return !same, err
}

// RolledBack gives the log another epoch if entries of the present one, which it sealed, prove that it had more than it has. It reports
// whether it did. A process does so at most once, since nobody can roll back a disk that a process uses. Errors: those of kv.
func (p *Partition) RolledBack(b *Back) (bool, error) {
	p.appending.Lock()
	defer p.appending.Unlock()
	if err := p.whyClosed(); err != nil {
		return false, err
	}
	if p.replica != nil || p.o.App == catalog.Control || p.o.Epoch == (log.Epoch{}) || p.log.Epoch() == p.o.Epoch || len(b.Entries) == 0 {
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
	if to <= p.log.Appended() {
		have, err := p.log.Chain(to)
		if errors.Is(err, log.ErrTrimmed) || err == nil && have == chain {
			return false, nil
		}
		if err != nil {
			return false, err
		}
	}
	return true, p.anotherLife()
}

// anotherLife gives the log the epoch of this process, and its own site. The caller holds p.appending.
func (p *Partition) anotherLife() error {
	old := log.Op{Dot: log.Dot{Site: p.o.Site, Seq: p.last}, At: p.clock.Next()}
	var e field.Encoder
	e.Uint(1, old.Dot.Seq)
	e.Uint(2, uint64(old.At))
	var b kv.Batch
	b.Put(binary.BigEndian.AppendUint32(p.o.App.LocalKey(rolledName), uint32(old.Dot.Site)), e.Bytes(nil))
	if err := p.o.Store.Apply(&b); err != nil {
		return err
	}
	if err := p.log.Renew(p.o.Epoch); err != nil { // syncs the note, too
		return err
	}
	p.visible.Lock()
	p.o.Site, p.last = restoredSite(p.o.Epoch), 0
	p.visible.Unlock()
	p.hear([]log.Op{old})
	return nil
}

// RenewLog gives the log the epoch of this process, for the register of a data folder whose disk was rolled back. Errors: those of kv.
func (p *Partition) RenewLog() error {
	p.appending.Lock()
	defer p.appending.Unlock()
	if err := p.whyClosed(); err != nil {
		return err
	}
	if p.log.Epoch() == p.o.Epoch {
		return nil
	}
	return p.log.Renew(p.o.Epoch)
}

// restoredSite is the site of a log of an epoch that was restored from a backup.
func restoredSite(epoch log.Epoch) log.Site {
	return log.Site(binary.BigEndian.Uint32(epoch[:]) | RestoredSites)
}
