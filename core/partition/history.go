package partition

import (
	"errors"

	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/log"
)

// History yields the operations that made or concern an input, newest first, until yield returns false. input is the dot of the operation
// that made it. A partition with a log yields those of the log. A replica stores only operations of its outbox, and yields those. An entry's
// Seq is its place in the log; 0: a replica does not know it. complete reports whether these are all operations on the input. History reads
// every entry after the first of them, each of some hundred bytes.
func (p *Partition) History(input log.Dot, yield func(log.Entry) bool) (complete bool, err error) {
	// All operations in the state are appended by now. History also yields appended operations that are not folded yet.
	complete, err = p.log.About(input, func(e log.Entry) bool {
		if e.Op.Dot != input && Subject(e.Op.Body) != input {
			return true
		}
		if p.replica != nil {
			e.Seq = 0
		}
		return yield(e)
	})
	if p.replica != nil {
		// Others may have written to a confirmed input, too.
		_, settled := p.Outbox()
		complete = complete && p.Position(input) > settled
	}
	return complete, err
}

// LastDeletion returns the last operation that deleted the input with an ID: an operation of the log, of this replica, or one that the
// replica pulled lately. An entry's Seq is its place in the log; 0: a replica does not know it. known is false if no such operation is
// stored here.
func (p *Partition) LastDeletion(id string) (by log.Entry, known bool, err error) {
	if by, known, err = p.loggedDeletion(id); err != nil || p.replica == nil {
		return by, known, err
	}
	pulled, noted, err := p.deletion(id)
	if err == nil && noted && (!known || pulled.Op.Dot != by.Op.Dot && pulled.Op.At > by.Op.At) {
		return pulled, true, nil
	}
	return by, known, err
}

// loggedDeletion returns the last deletion of an input in the log, or in the outbox.
func (p *Partition) loggedDeletion(id string) (by log.Entry, known bool, err error) {
	creation, known, err := p.log.MadeInput(id)
	if err != nil {
		return log.Entry{}, false, err
	}
	dot := creation.Op.Dot
	if !known && p.replica != nil {
		dot, known, err = p.confirmedInput(id)
	}
	if err != nil || !known {
		return log.Entry{}, false, err
	}
	known = false
	err = p.log.Deletions(dot, creation.Seq, func(e log.Entry) bool {
		by, known = e, true // the oldest one deleted the input, and it comes last
		return true
	})
	if p.replica != nil {
		by.Seq = 0
	}
	return by, known, err
}

// confirmedInput returns the dot of the input with an ID in the confirmed state of a replica, before its pending operations.
func (p *Partition) confirmedInput(id string) (log.Dot, bool, error) {
	v := p.View()
	in, err := catalog.Read(catalog.Before(v.snapshot, p.o.App), p.o.App).InputByID(id)
	err = errors.Join(err, v.Close())
	if errors.Is(err, catalog.ErrNotFound) {
		return log.Dot{}, false, nil
	}
	return in.Dot, err == nil, err
}
