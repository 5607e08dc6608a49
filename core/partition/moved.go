package partition

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/fold"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/log"
)

// A replica whose site a restored log does not know takes another one, and sends the operations that the log lacks again. Another replica
// may have pulled the same operations, and need not return them:
//
//	moved/SITE        last operation that keeps its name

const movedName = "moved/"

func movedKey(app catalog.AppID, site log.Writer) []byte {
	return binary.BigEndian.AppendUint32(app.LocalKey(movedName), uint32(site))
}

// Moves records that a replica takes another site. The replica sends its operations of site again that follow last, or follow the log's
// last one if that comes first. Moves returns the last operation of site in the log. Errors: ErrReplica and those of kv.
func (p *Partition) Moves(site log.Writer, last uint64) (had uint64, err error) {
	defer p.locks.take(appending).unlock()
	if err := p.whyClosed(); err != nil {
		return 0, err
	}
	if p.replica != nil {
		return 0, ErrReplica
	}
	h, err := p.siteProgress(site)
	if err != nil {
		return 0, err
	}
	last = min(last, h.seq)
	if before, moved, err := p.lastBeforeMove(site); err != nil || moved && before == last {
		return h.seq, err
	}
	var b kv.Batch
	b.Put(movedKey(p.o.App, site), binary.BigEndian.AppendUint64(nil, last))
	var failed error
	err = p.o.Store.Scan(earlyKey(p.o.App, log.Dot{Writer: site, Seq: last + 1}), earlyKey(p.o.App, log.Dot{Writer: site + 1}), func(_, value []byte) bool {
		var op log.Op
		if op, failed = log.Decode(bytes.Clone(value)); failed == nil {
			failed = p.listDeletion(&b, &op)
		}
		return failed == nil
	})
	if err := errors.Join(err, failed); err != nil {
		return 0, err
	}
	return h.seq, kv.Sync(p.o.Store, &b)
}

// deletesMoved is the reason for listing a deletion: another life of the replica may have used the name that it deletes.
const deletesMoved = "what it deletes is lost; its replica may have sent that again as another site"

// listDeletion lists a deletion of a thing that the log lacks, because the replica that made the thing takes another site. When a replica
// returns the thing, the deletion is removed from the list.
func (p *Partition) listDeletion(b *kv.Batch, op *log.Op) error {
	c := Conflict{Op: *op, Verdict: fold.Verdict{Code: fold.Gone, Detail: lostFor + deletesMoved}}
	var err error
	if c.ID, err = p.NameOf(op.Body); err == nil {
		p.PutConflict(b, &c)
	}
	return err
}

// lastBeforeMove returns the last operation that keeps the site's name. moved is false if the site's replica has not taken another site.
func (p *Partition) lastBeforeMove(site log.Writer) (last uint64, moved bool, err error) {
	data, err := p.o.Store.Get(movedKey(p.o.App, site))
	switch {
	case isMissing(err):
		return 0, false, nil
	case err == nil && len(data) != 8:
		err = fmt.Errorf("%w: note of a site of %d bytes", kv.ErrCorrupt, len(data))
	}
	if err != nil {
		return 0, false, err
	}
	return binary.BigEndian.Uint64(data), true, nil
}

// sentAgain returns the log's name of an operation that its replica moved to another site. The dot is zero if the log lacks the operation.
// moved reports whether the log lacks the operation under its old name, and the replica has moved it.
func (p *Partition) sentAgain(op *log.Op) (as log.Dot, moved bool, err error) {
	h, err := p.siteProgress(op.Dot.Writer)
	if err != nil || op.Dot.Seq <= h.seq {
		return as, false, err
	}
	last, moved, err := p.lastBeforeMove(op.Dot.Writer)
	if err != nil || !moved {
		return as, false, err
	}
	err = p.log.Read(p.log.Floor(), func(e log.Entry) bool {
		if isMoved(op, &e.Op, last) {
			as = e.Op.Dot
		}
		return as == (log.Dot{})
	})
	return as, true, err
}

// isMoved reports whether now is the operation was under its new name, after its replica moved those after last to another site.
func isMoved(was, now *log.Op, last uint64) bool {
	if now.Dot.Writer == was.Dot.Writer || now.Dot.Seq != was.Dot.Seq-last {
		return false
	}
	same, err := log.Decode(log.Encode(nil, was))
	if err != nil {
		return false
	}
	same.Dot, same.At, same.Made = now.Dot, now.At, now.Made
	log.Rename(same.Body, func(d log.Dot) log.Dot {
		if d.Writer == was.Dot.Writer && d.Seq > last {
			return log.Dot{Writer: now.Dot.Writer, Seq: d.Seq - last}
		}
		return d
	})
	return bytes.Equal(log.Encode(nil, &same), log.Encode(nil, now))
}

// findReturned finds the earlier version of op, which its replica sends again as another site, if another replica returned it before. That
// version is a conflict, and the log lacks its name.
func (p *Partition) findReturned(op *log.Op) (was log.Op, found bool, err error) {
	var failed error
	lo, hi := under(p.o.App, movedName)
	err = p.o.Store.Scan(lo, hi, func(key, value []byte) bool {
		if len(value) != 8 {
			return true
		}
		last := binary.BigEndian.Uint64(value)
		dot := log.Dot{Writer: log.Writer(binary.BigEndian.Uint32(key[len(key)-4:])), Seq: last + op.Dot.Seq}
		h, err := p.siteProgress(dot.Writer)
		if err == nil && dot.Seq <= h.seq {
			return true
		}
		var c Conflict
		if err == nil {
			c, err = p.Conflict(dot)
		}
		if errors.Is(err, catalog.ErrNotFound) {
			return true
		}
		was, failed = c.Op, err
		found = err == nil && isMoved(&c.Op, op, last)
		return err == nil && !found
	})
	return was, found, errors.Join(err, failed)
}

// meets removes the earlier version of op from the conflicts. It records that other operations with its old name mean its new one. If one
// of them is an earlier deletion, meets returns it.
func (p *Partition) meets(op *log.Op, b *kv.Batch) (e earlier, err error) {
	was, found, err := p.findReturned(op)
	if err != nil || !found {
		return e, err
	}
	putRenamed(b, p.o.App, &was, op.Dot)
	b.Delete(conflictKey(p.o.App, was.Dot))
	return p.earlyAs(&was, op.Dot)
}

// earlyAs is early for an operation whose new name is name.
func (p *Partition) earlyAs(was *log.Op, name log.Dot) (e earlier, err error) {
	if e, err = p.early(was, false); e.kill != nil {
		log.Rename(e.kill.Body, func(log.Dot) log.Dot { return name })
	}
	return e, err
}
