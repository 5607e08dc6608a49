package partition

import (
	"errors"

	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/log"
)

// History yields the operations of the log that made or concern an input, newest first, until yield returns false. complete reports whether
// these are all operations on the input, which has a dot. History reads every entry after the first of them, each of some hundred bytes.
//
// It also yields those that are not folded yet. All operations in the state are appended by now.
func (p *Partition) History(input log.Dot, yield func(log.Entry) bool) (complete bool, err error) {
	return p.log.About(input, func(e log.Entry) bool { return e.Op.Dot != input && log.SubjectDot(e.Op.Body) != input || yield(e) })
}

// History is [Partition.History] for the operations of the outbox. An entry's Seq is 0: a replica does not know its place in the log.
func (p *Replica) History(input log.Dot, yield func(log.Entry) bool) (complete bool, err error) {
	complete, err = p.Partition.History(input, func(e log.Entry) bool {
		e.Seq = 0
		return yield(e)
	})
	_, settled := p.Outbox() // others may have written to a confirmed input, too
	return complete && p.Position(input) > settled, err
}

// LastDeletion returns the last operation of the log that deleted the input with an ID. known is false if the log has none.
func (p *Origin) LastDeletion(id string) (by log.Entry, known bool, err error) {
	creation, known, err := p.log.FindInputCreate(id)
	if err != nil || !known {
		return by, false, err
	}
	return lastDeletion(p.log, creation.Op.Dot, creation.Seq)
}

// LastDeletion returns the last operation that deleted the input with an ID: an operation of this replica, or one that the replica pulled
// lately. An entry's Seq is its place in the log; 0: a replica does not know it. known is false if no such operation is stored here.
func (p *Replica) LastDeletion(id string) (by log.Entry, known bool, err error) {
	creation, known, err := p.log.FindInputCreate(id)
	dot := creation.Op.Dot
	if err == nil && !known {
		dot, known, err = p.confirmedInput(id)
	}
	if err == nil && known {
		by, known, err = lastDeletion(p.log, dot, creation.Seq)
		by.Seq = 0
	}
	if err != nil {
		return log.Entry{}, false, err
	}
	pulled, noted, err := p.deletion(id)
	if err == nil && noted && (!known || pulled.Op.Dot != by.Op.Dot && pulled.Op.At > by.Op.At) {
		return pulled, true, nil
	}
	return by, known, err
}

// lastDeletion returns the last deletion of an input in a log or outbox, after an entry.
func lastDeletion(l *log.Store, input log.Dot, after uint64) (by log.Entry, known bool, err error) {
	err = l.Deletions(input, after, func(e log.Entry) bool {
		by, known = e, true // the oldest one deleted the input, and it comes last
		return true
	})
	return by, known, err
}

// confirmedInput returns the dot of the input with an ID in the confirmed state of a replica, before its pending operations.
func (p *Replica) confirmedInput(id string) (log.Dot, bool, error) {
	v := p.View()
	in, err := catalog.Read(catalog.WithoutPending(v.snapshot, p.o.App), p.o.App).InputByID(id)
	err = errors.Join(err, v.Close())
	if errors.Is(err, catalog.ErrNotFound) {
		return log.Dot{}, false, nil
	}
	return in.Dot, err == nil, err
}
