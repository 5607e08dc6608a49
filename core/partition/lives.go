package partition

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/log"
)

// A site and a sequence number name one operation only while no disk is rolled back. A replica whose disk is an older image issues sequence
// numbers again that its origin has. Each opening of a replica's store is therefore a life with a random name, and both sides record in
// which life each operation was made:
//
//	life/SITE FIRST     name of the life that made the operations starting at FIRST
//
//	image ── 31 32 33 …  life a ─▶ origin: 31 32 33 by a
//	  └───── 31 32       life b ─▶ origin: not the life that made 31: the histories diverge after 30
//
// A replica whose history diverges from its origin's takes another site and sends its later operations again ([Partition.Renew]).
//
// An image that includes the memory of the process, such as a virtual machine's snapshot, continues the same life. Pull then finds an
// operation in the log that this replica has not made. A replica that installs a state snapshot without that operation cannot notice it.

// ErrLife is returned by AcceptOf for operations of a life that does not continue the site's operations in the log.
var ErrLife = errors.New("operations come from a different life of the replica")

// Life is a life of a replica's store. It made its site's operations starting at First, up to the next Life's First.
type Life struct{ First, ID uint64 }

// lifeBytes is a life as it is stored under life/SITE FIRST.
//
//field:message
type lifeBytes struct {
	id uint64 `wire:"1,fixed"`
}

const (
	lifeName   = "life/"
	openedName = "opened" // epoch of the outbox when the store was last opened
)

func lifeKey(app catalog.AppID, site log.Writer, first uint64) []byte {
	return dotKey(app, lifeName, log.Dot{Writer: site, Seq: first})
}

// lifeAt returns the life that made an operation of a site; zero: not recorded.
func (p *Partition) lifeAt(site log.Writer, seq uint64) (l Life, err error) {
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

func putLife(w kv.Writer, app catalog.AppID, site log.Writer, l Life) {
	w.Put(lifeKey(app, site, l.First), encodeLifeBytes(nil, &lifeBytes{l.ID}))
}

// Lives returns the recorded lives that made the operations from to to of a site.
func (p *Partition) Lives(site log.Writer, from, to uint64) (lives []Life, err error) {
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

// bySite returns the lives of each site, in the order of lives.
func bySite(lives []SiteLife) map[log.Writer][]Life {
	of := map[log.Writer][]Life{}
	for _, l := range lives {
		of[l.Site] = append(of[l.Site], l.Life)
	}
	return of
}

// lifeOf returns the ID of the life that made operation seq; 0: unknown.
func lifeOf(lives []Life, seq uint64) (id uint64) {
	for _, l := range lives {
		if l.First > seq {
			break
		}
		id = l.ID
	}
	return id
}

// noteLife records that the current life makes the operations starting at first.
func (p *Partition) noteLife(b *kv.Batch, site log.Writer, first uint64) {
	putLife(b, p.o.App, site, Life{First: first, ID: p.life()})
}

// life returns the name of the life that began when the partition was opened; 0: none.
func (p *Partition) life() uint64 { return binary.BigEndian.Uint64(p.o.Epoch[:8]) }

// openLife checks whether the store was restored from a backup since it was last opened. Its outbox then has another epoch.
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

// IsRestored reports whether the replica was restored from a backup and still writes as its previous site. It has to take another one,
// since the replica that was backed up may be in use.
func (p *Partition) IsRestored() bool {
	defer p.locks.take(reading).unlock()
	return p.replica != nil && p.replica.restored && p.replica.site != 0
}

// Fork compares a replica's local operations up to issued with the origin's operations of the same site. had is the origin's last one, and
// theirs has the lives that made them. The result last is the last operation that both have. forked reports whether the origin has
// different operations after it.
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

// renewal is a replica's change to another site.
type renewal struct {
	site  log.Writer
	last  uint64    // last operation of the old site that keeps its name
	epoch log.Epoch // epoch of the log that has the operations up to last; zero: the replica does not wait for them
}

// Renew makes the replica write as another site. The origin's log of the epoch has its operations up to last. The replica issues the later
// ones again as the new site, in their order, once it has pulled those up to last from that log or a snapshot of it. Until then Site
// returns the old site, and the caller must not push. With the zero epoch it issues them at once: the replica pulls nothing more, and is
// emptied once it has sent them. Closing the partition forgets an unfinished renewal. Errors: ErrReplica, ErrSite and those of kv.
func (p *Partition) Renew(site log.Writer, last uint64, epoch log.Epoch) error {
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
		err = p.refold()
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

// lastLocal returns the last of our site's operations up to seq that keeps its name in the log.
func (r *replica) lastLocal(seq uint64) uint64 {
	if r.renewal != nil {
		return min(seq, r.renewal.last)
	}
	return seq
}

// renewedOutbox is a replica's outbox under another site.
type renewedOutbox struct {
	ops       []log.Op
	restarted func() // updates the log once the batch is written
}

// renew moves the operations that the origin lacks to the new site, once the replica has pulled the earlier ones.
func (m *pullBatch) renew() error {
	p, r := m.p, m.p.replica
	switch {
	case r.renewal == nil:
		return nil
	case r.renewal.epoch == (log.Epoch{}):
	case m.confirmed < r.renewal.last, r.renewal.last > 0 && m.note.cursor.Epoch != r.renewal.epoch:
		return nil // the state lacks some of the earlier operations
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
		op.Dot = log.Dot{Writer: site, Seq: uint64(len(x.ops)) + 1}
		log.Rename(op.Body, func(d log.Dot) log.Dot {
			if d.Writer == old && d.Seq > after {
				return log.Dot{Writer: site, Seq: d.Seq - after}
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
		err = nil // there are no operations to move
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
