package partition

import (
	"errors"

	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/log"
)

// History yields the operations that made or concern an input, by the operation that made it, newest first, until
// yield returns false: those of the log, and of a replica, which keeps no other's operations, its own as long as
// they are here. An entry's Seq is its place in the log; 0: a replica does not know it. whole says that these are
// all that there are. It costs a look at every entry after the first of them, at some hundred bytes each.
func (p *Partition) History(input log.Dot, yield func(log.Entry) bool) (whole bool, err error) {
	// All that the state shows is appended by now; what is appended and not yet folded is shown, too.
	whole, err = p.log.About(input, func(e log.Entry) bool {
		if e.Op.Dot != input && Subject(e.Op.Body) != input {
			return true
		}
		if p.replica != nil {
			e.Seq = 0
		}
		return yield(e)
	})
	if p.replica != nil {
		// What was confirmed others may have written of, too.
		_, confirmed := p.Outbox()
		whole = whole && input.Seq > confirmed
	}
	return whole, err
}

// Deleted returns the operation that deleted the input that had an id last: of the log, or of a replica's own as long as
// they are here, or one that it has pulled lately. An entry's Seq is its place in the log; 0: a replica does not know it.
// false: nobody here knows of one.
func (p *Partition) Deleted(id string) (by log.Entry, known bool, err error) {
	if by, known, err = p.deleted(id); err != nil || p.replica == nil {
		return by, known, err
	}
	pulled, noted, err := p.gone(id)
	if err == nil && noted && (!known || pulled.Op.Dot != by.Op.Dot && pulled.Op.At > by.Op.At) {
		return pulled, true, nil
	}
	return by, known, err
}

// deleted is Deleted of the log, or of the outbox.
func (p *Partition) deleted(id string) (by log.Entry, known bool, err error) {
	made, known, err := p.log.MadeInput(id)
	if err != nil {
		return log.Entry{}, false, err
	}
	dot := made.Op.Dot
	if !known && p.replica != nil {
		dot, known, err = p.confirmedInput(id)
	}
	if err != nil || !known {
		return log.Entry{}, false, err
	}
	known = false
	err = p.log.Deletions(dot, made.Seq, func(e log.Entry) bool {
		by, known = e, true // the oldest did it, and is the last to come
		return true
	})
	if p.replica != nil {
		by.Seq = 0
	}
	return by, known, err
}

// confirmedInput is what made the input with an id that a replica had before its pending operations.
func (p *Partition) confirmedInput(id string) (log.Dot, bool, error) {
	v := p.View()
	in, err := catalog.Read(catalog.Before(v.snapshot, p.o.App), p.o.App).InputByID(id)
	err = errors.Join(err, v.Close())
	if errors.Is(err, catalog.ErrNotFound) {
		return log.Dot{}, false, nil
	}
	return in.Dot, err == nil, err
}
