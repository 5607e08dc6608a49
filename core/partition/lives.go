package partition

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/log"
)

// A site and a sequence name one operation only while nothing takes operations back. An older image of a replica's disk
// does: it issues sequences again that its origin has. Each opening of a replica's store is therefore a life with a
// random name, and both sides note in which life each operation was made:
//
//	life/SITE FIRST     name of the life that made the operations from FIRST on
//
//	image ── 31 32 33 …  life a ─▶ origin: 31 32 33 by a
//	  └───── 31 32       life b ─▶ origin: not the life that made 31: the histories part after 30
//
// A replica whose history parts from its origin's takes another site and sends again what it made since ([Partition.Renew]).
//
// An image with the memory of the process, as a snapshot of a virtual machine has it, continues the same life. Pull then finds
// another operation in the log than the replica made. A replica that gets the state as a snapshot, without the operation, does not.

// ErrLife is returned by AcceptOf for operations of a life that does not follow the one that the log has of the site.
var ErrLife = errors.New("operations come from a different life of the replica")

// Life is the life of a replica's store that made the operations of a site from First to the next Life's.
type Life struct{ First, ID uint64 }

// lifeBytes is a life in the store, under life/SITE FIRST.
//
//field:message
type lifeBytes struct {
	id uint64 `wire:"1,fixed"`
}

const (
	lifeName   = "life/"
	openedName = "opened" // epoch of the outbox when the store was opened last
)

func lifeKey(app catalog.AppID, site log.Site, first uint64) []byte {
	return dotKey(app, lifeName, log.Dot{Site: site, Seq: first})
}

// lifeAt returns the life that made an operation of a site; zero: nobody noted it.
func (p *Partition) lifeAt(site log.Site, seq uint64) (l Life, err error) {
	err = p.o.Store.ScanBack(lifeKey(p.o.App, site, 0), lifeKey(p.o.App, site, seq+1), func(key, value []byte) bool {
		l = readLife(key, value)
		return false
	})
	return l, err
}

// readLife reads a life from its key and its value.
func readLife(key, value []byte) Life {
	x, _ := decodeLifeBytes(value)
	return Life{First: binary.BigEndian.Uint64(key[len(key)-8:]), ID: x.id}
}

func putLife(w kv.Writer, app catalog.AppID, site log.Site, l Life) {
	w.Put(lifeKey(app, site, l.First), encodeLifeBytes(nil, &lifeBytes{l.ID}))
}

// Lives returns the lives that made the operations of a site from one to another, as far as they are noted.
func (p *Partition) Lives(site log.Site, from, to uint64) (lives []Life, err error) {
	if from > to {
		return nil, nil
	}
	l, err := p.lifeAt(site, from)
	if err == nil && l.ID != 0 {
		lives = append(lives, l)
	}
	if err == nil {
		err = p.o.Store.Scan(lifeKey(p.o.App, site, from+1), lifeKey(p.o.App, site, to+1), func(key, value []byte) bool {
			lives = append(lives, readLife(key, value))
			return true
		})
	}
	return lives, err
}

// bySite returns the lives of each site, in their order.
func bySite(lives []SiteLife) map[log.Site][]Life {
	of := map[log.Site][]Life{}
	for _, l := range lives {
		of[l.Site] = append(of[l.Site], l.Life)
	}
	return of
}

// lifeOf is the life among some that made an operation; 0: it is not known.
func lifeOf(lives []Life, seq uint64) (id uint64) {
	for _, l := range lives {
		if l.First > seq {
			break
		}
		id = l.ID
	}
	return id
}

// noteLife notes that this life makes the operation that is appended next.
func (p *Partition) noteLife(b *kv.Batch, site log.Site, first uint64) {
	putLife(b, p.o.App, site, Life{First: first, ID: p.life()})
}

// life is the name of the life that began when the partition was opened; 0: none.
func (p *Partition) life() uint64 { return binary.BigEndian.Uint64(p.o.Epoch[:8]) }

// openLife finds out whether the store was restored from a backup since it was opened last: then its outbox has another
// epoch.
func (p *Partition) openLife() error {
	if p.replica == nil {
		return nil
	}
	epoch := p.log.Epoch()
	was, err := p.o.Store.Get(p.o.App.LocalKey(openedName))
	if err == nil {
		p.replica.restored = string(was) != string(epoch[:])
		return nil
	}
	if !isMissing(err) {
		return err
	}
	var b kv.Batch
	b.Put(p.o.App.LocalKey(openedName), epoch[:])
	return p.o.Store.Apply(&b)
}

// IsRestored reports whether the replica was restored from a backup and writes as the site of before: it has to take
// another one, since the replica that was backed up may be in use.
func (p *Partition) IsRestored() bool {
	defer p.locks.take(reading).unlock()
	return p.replica != nil && p.replica.restored && p.replica.site != 0
}

// Fork compares a replica's own operations up to issued with those that its origin has of the site, which are had, made by
// the lives theirs. It returns the last one that both have. forked reports that the origin has others after it.
func (p *Partition) Fork(issued, had uint64, theirs []Life) (last uint64, forked bool, err error) {
	_, confirmed := p.Outbox()
	site := p.Site()
	if p.replica == nil || site == 0 {
		return 0, false, nil
	}
	lock := p.locks.take(reading)
	parted := p.replica.parted
	lock.unlock()
	if parted != 0 {
		return parted - 1, true, nil
	}
	last = min(had, issued)
	from := max(min(confirmed, last), 1)
	ours, err := p.Lives(site, from, last)
	if err != nil {
		return 0, false, err
	}
	for seq := from; seq <= last; seq++ {
		mine, yours := lifeOf(ours, seq), lifeOf(theirs, seq)
		if mine != 0 && yours != 0 && mine != yours || had > issued && mine != 0 && yours == 0 {
			return seq - 1, true, nil
		}
	}
	return last, had > issued, nil
}

// renewal is that a replica takes another site.
type renewal struct {
	site  log.Site
	last  uint64    // last operation of the old site that stays as it is
	epoch log.Epoch // of the log that has the operations up to last; zero: the replica does not wait for them
}

// Renew has a replica write as another site. The origin has its operations up to last in the log of an epoch. The later ones are issued
// again as the new site's, in their order, once those up to last came back with that log or a snapshot of it; until then Site
// is the old one, and nothing may be pushed. With the zero epoch they are issued at once: the replica gets nothing more, and is emptied
// once it has sent them. Closing the partition forgets a renewal that has not ended. Errors: ErrReplica, ErrSite and those of kv.
func (p *Partition) Renew(site log.Site, last uint64, epoch log.Epoch) error {
	defer p.locks.take(appending | folding).unlock()
	if err := p.whyClosed(); err != nil {
		return err
	}
	r := p.replica
	switch {
	case r == nil:
		return ErrReplica
	case site == 0, site == log.Origin, site == r.site:
		return fmt.Errorf("site %d instead of %d: %w", site, r.site, ErrSite)
	}
	lock := p.locks.take(showing)
	r.renewal = &renewal{site: site, last: last, epoch: epoch}
	lock.unlock()
	err := p.foldAll()
	if err == nil {
		m := p.newMix()
		if err = m.undo(); err == nil {
			err = m.finish()
		}
	}
	if err != nil {
		p.forget()
		return fmt.Errorf("renew: %w", err)
	}
	return nil
}

// Renewing reports whether a Renew waits for the log.
func (p *Partition) Renewing() bool {
	defer p.locks.take(reading).unlock()
	return p.replica != nil && p.replica.renewal != nil
}

// lastLocal is the last of our site's operations up to one that stays ours in the log.
func (r *replica) lastLocal(seq uint64) uint64 {
	if r.renewal != nil {
		return min(seq, r.renewal.last)
	}
	return seq
}

// renewedOutbox is a replica's outbox under another site.
type renewedOutbox struct {
	ops       []log.Op
	restarted func() // of the log
}

// renew moves the operations that the origin lacks to the new site, if it is time to.
func (m *pullBatch) renew() error {
	p, r := m.p, m.p.replica
	switch {
	case r.renewal == nil:
		return nil
	case r.renewal.epoch == (log.Epoch{}):
	case m.confirmed < r.renewal.last, r.renewal.last > 0 && m.note.cursor.Epoch != r.renewal.epoch:
		return nil // they are not in the state yet
	}
	old, site := m.note.site, r.renewal.site
	after := max(r.renewal.last, p.log.Floor()-1)
	if err := m.leave(r.renewal.last); err != nil {
		return err
	}
	x := &renewedOutbox{}
	var failed error
	err := p.log.Read(after+1, func(e log.Entry) bool {
		op := e.Op
		op.Dot = log.Dot{Site: site, Seq: uint64(len(x.ops)) + 1}
		log.Rename(op.Body, func(d log.Dot) log.Dot {
			if d.Site == old && d.Seq > after {
				return log.Dot{Site: site, Seq: d.Seq - after}
			}
			return d
		})
		x.ops = append(x.ops, op)
		for _, key := range []func(catalog.AppID, log.Dot) []byte{tokenKey, nameKey} {
			value, err := p.tx.Get(key(p.o.App, e.Op.Dot))
			if err == nil {
				p.tx.Put(key(p.o.App, op.Dot), value)
				p.tx.Delete(key(p.o.App, e.Op.Dot))
			} else if !isMissing(err) {
				failed = err
			}
		}
		return failed == nil && e.Seq < p.seq
	})
	if after >= p.seq {
		err = nil // there are none
	}
	if err = errors.Join(err, failed); err != nil {
		return err
	}
	x.restarted = p.log.Restart(p.tx, x.ops)
	if len(x.ops) > 0 && p.life() != 0 {
		putLife(p.tx, p.o.App, site, Life{First: 1, ID: p.life()})
	}
	epoch := p.log.Epoch()
	p.tx.Put(p.o.App.LocalKey(openedName), epoch[:])
	m.note.site, m.note.acked, m.confirmed, m.note.older = site, nil, 0, m.note.older-min(after, m.note.older)
	m.renewed = x
	return nil
}
